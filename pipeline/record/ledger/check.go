package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// ReadOwn verifies the directory of a transaction, which must be of this program's making, so that a tamperer gains nothing by
// dropping the chain: I1–I12, L1–L7, L9, L10, L20 and L24 (docs/formats.md). Of events that do not fold, the first that does not is
// told. id is the transaction's. The log is nil where the events cannot be read or ReadLog refuses them, and where they or an artifact are for a
// newer program; something was found then.
//
// ReadOwn never fails on what the directory holds: whatever cannot be read is a violation.
func ReadOwn(dir fs.FS, id string) (*Log, []canon.Violation) {
	c := &checker{dir: dir, modes: true, files: map[string]fs.FileMode{}}
	c.check()
	if c.txID != id {
		c.Add("I2", TransactionFile, "transaction_id is %s, the directory is %s's", show(c.txID), id)
	}
	return c.log, c.Sorted()
}

// ReadExported is ReadOwn of a directory on a disk, which is any transaction's and has modes of its own.
func ReadExported(dir fs.FS) (*Log, []canon.Violation) {
	c := &checker{dir: dir, files: map[string]fs.FileMode{}}
	c.check()
	return c.log, c.Sorted()
}

func (c *checker) check() {
	c.list()
	raw, err := c.read(EventsFile)
	if err != nil {
		raw = nil // whatever came of it
		c.Add("EMPTY", EventsFile, "cannot be read")
	}
	var refused error
	c.log, refused = ReadLog(raw)
	c.readState()
	var broken *ruleError
	switch newer := errors.As(refused, new(*canon.NewerError)); {
	case newer:
		c.Add(canon.Newer, EventsFile, "%v", refused)
		c.chain(raw)
	case c.log == nil:
		if err == nil && len(raw) == 0 {
			c.Add("EMPTY", EventsFile, "no events")
		}
		if c.chain(raw); errors.As(refused, &broken) {
			c.Add(broken.rule, atLine(broken.line), "%v", broken.err)
		}
		c.Add("L9", EventsFile, "events do not fold to a state: %v", refused)
		c.shape()
	default:
		if c.ownRules(); c.newer {
			c.log = nil
		}
	}
}

// A checker goes by the log, which alone proves most rules.
type checker struct {
	dir fs.FS
	canon.Finder
	txID  string
	log   *Log // nil where ReadLog refuses the events
	files map[string]fs.FileMode
	newer bool // an artifact is for a newer program, and so is the log
	parts bool // some of the directory cannot be read
	modes bool // dir is of Git, where a file that may be executed is another; elsewhere a disk makes its own modes
}

// A lister is a directory that knows what is in it, by path. Any other is walked.
type lister interface{ Files() map[string]fs.FileMode }

// list finds out what is in the directory. Links are not followed, and what is in the place of the page is not looked at.
func (c *checker) list() {
	if l, ok := c.dir.(lister); ok {
		c.files = l.Files()
		return
	}
	_ = fs.WalkDir(c.dir, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case name == ReadmeFile && d.IsDir():
			return fs.SkipDir
		case name == ReadmeFile:
			return nil
		case err != nil:
			c.parts = true
			return nil
		}
		info, err := d.Info()
		if err != nil {
			c.files[name] = fs.ModeIrregular
		} else if name != "." {
			c.files[name] = info.Mode()
		}
		return nil
	})
}

// atLine is the path of a finding about one event: the file and its line.
func atLine(n int) string { return fmt.Sprintf("%s:%d", EventsFile, n) }

// readState finds out whose transaction.json it is, and whether it is what the events fold to.
func (c *checker) readState() {
	raw, err := c.read(TransactionFile)
	if c.log != nil {
		if tx := c.log.Transaction(); err == nil && tx.IsWrittenAs(raw) {
			c.txID = tx.TransactionID
			return
		}
		c.Add("L9", TransactionFile, "is not what the events fold to")
	}
	if err != nil {
		c.Add("PARSE", TransactionFile, "cannot be read")
		return
	}
	doc, err := canon.Parse(raw)
	state, ok := doc.(map[string]any)
	if err != nil || !ok {
		c.Add("PARSE", TransactionFile, "is not a JSON object")
		return
	}
	c.txID, _ = state["transaction_id"].(string)
}

// chain is L1, L2 and L7 of events that ReadLog does not take, as far as no version changes them. A line that is no JSON object has
// no place in the chain.
func (c *checker) chain(raw []byte) {
	var prev any
	n := 0
	for line := range bytes.Lines(raw) {
		n++
		if !canon.IsLine(line) {
			c.Add("L7", atLine(n), "not canonical JSON and one LF")
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		doc, err := canon.Parse(line)
		fields, ok := doc.(map[string]any)
		if err != nil || !ok {
			c.Add("PARSE", atLine(n), "is not a JSON object")
			continue
		}
		if seq, _ := fields["seq"].(float64); seq != float64(n) {
			c.Add("L1", atLine(n), "seq is %v, not %d", fields["seq"], n)
		}
		if got, has := fields["prev"]; !has || got != prev {
			c.Add("L2", atLine(n), "prev is not the hash of the line before")
		}
		prev = canon.Sum(line)
	}
}

// show makes a foreign value safe to print.
func show(s string) string {
	if s == "" {
		return "missing"
	}
	if len(s) > 80 {
		s = s[:80]
	}
	return fmt.Sprintf("%+q", s)
}

// read returns a regular file of the directory. The bytes are not to be changed.
func (c *checker) read(name string) ([]byte, error) {
	if !c.exists(name) {
		return nil, fs.ErrNotExist
	}
	return fs.ReadFile(c.dir, name)
}

// exists reports whether a path inside the directory is a regular file.
func (c *checker) exists(path string) bool {
	mode, is := c.files[path]
	return is && mode.IsRegular() && !strings.Contains(path, `\`)
}

// evidence is I2 and I10–I12: what events name is there. The other invariants, and L1, L2 and L7 of the events, ReadLog holds
// them to.
func (c *checker) evidence() {
	if id := c.log.Meta().TransactionID; id != c.txID {
		c.Add("I2", atLine(1), "tx/meta names %s, transaction.json %s", show(id), show(c.txID))
	}
	artifact := func(i int, id string) {
		if !c.exists(ArtifactFile(id)) {
			c.Add("I12", atLine(i+1), "artifact %s of a finished command does not exist", show(id))
		}
	}
	for i, p := range c.log.Payloads() {
		switch p := p.(type) {
		case *TurnItem:
			// patch_id is in all metadata, as it has no omitempty
			if m := p.Item.Metadata; p.Item.Type == FileChange && m != nil && !c.exists(PatchFile(m.PatchID)) {
				c.Add("I11", atLine(i+1), "patch %s is not in patches/", show(m.PatchID))
			}
		case *CommandItem:
			artifact(i, p.Item.Metadata.Artifact.ArtifactID)
		case *TraceItem:
			if p.Item.Type == CommandExecution && p.Item.Status != "" {
				artifact(i, p.Item.Metadata.Artifact.ArtifactID)
			}
		case *ArtifactStored:
			if !c.exists(p.Path) {
				c.Add("I10", atLine(i+1), "artifact %s does not exist", show(p.Path))
			}
		}
	}
}
