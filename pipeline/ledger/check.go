package ledger

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// Check verifies one transaction directory. A directory of this program's
// making (its id has our form, or its events carry seq and prev) is held to I1–I12 and to L1–L7, L9 and
// L10; a foreign one to I1–I12 alone. The rules are in docs/formats.md.
//
// Check never fails on what the directory holds: whatever cannot be read is a
// violation.
func Check(dir fs.FS) []rule.Violation {
	return newChecker(dir).check()
}

func (c *checker) check() []rule.Violation {
	c.invariants()
	if c.own() {
		c.ownRules()
	}
	return c.Sorted()
}

// CheckOwn is Check for a directory that must be of our making, so that a
// tamperer gains nothing by dropping the chain. id is the transaction's.
func CheckOwn(dir fs.FS, id string) []rule.Violation {
	_, found := ReadOwn(dir, id)
	return found
}

// ReadOwn is CheckOwn, and returns the log that was checked for those who go on
// with it. The log is nil where the events cannot be read or ReadLog refuses
// them; something was found then.
func ReadOwn(dir fs.FS, id string) (*Log, []rule.Violation) {
	c := newChecker(dir)
	found := c.checkOwn(id)
	if !c.proven {
		return nil, found
	}
	return c.log, found
}

func (c *checker) checkOwn(id string) []rule.Violation {
	c.invariants()
	c.ownRules()
	if c.txID != id {
		c.Add("I2", TransactionFile, "transaction_id is %s, the directory is %s's", show(c.txID), id)
	}
	return c.Sorted()
}

// A checker goes by the log if ReadLog takes the events, as it does in any
// directory that we wrote and nobody touched: that alone proves most rules. If
// not, it walks the events leniently, a line being a JSON object with any
// fields, so that every broken rule is told.
type checker struct {
	dir fs.FS
	rule.Finder
	txID   string
	raw    []byte
	log    *Log         // nil where ReadLog refuses raw
	refuse error        // why it does
	proven bool         // raw is the whole file, and ReadLog takes it
	folds  bool         // transaction.json is what log folds to
	events []looseEvent // what the lenient walk goes over; none where raw is proven
	files  map[string]*file
}

// A file of the directory, looked up and read once.
type file struct {
	regular, read bool
	data          []byte
	err           error
}

// looseEvent is an event whose fields may be missing or of the wrong type.
type looseEvent struct {
	line    int
	typ     string
	fields  map[string]any
	payload map[string]any
}

func newChecker(dir fs.FS) *checker {
	c := &checker{dir: dir, files: map[string]*file{}}
	var err error
	if c.raw, err = c.read(EventsFile); err != nil {
		c.Add("EMPTY", EventsFile, "cannot be read")
	}
	c.log, c.refuse = ReadLog(c.raw)
	c.proven = err == nil && c.log != nil
	c.readState()
	if err == nil && !c.proven {
		c.readEvents()
	}
	return c
}

// at is the path of a finding about one event: the file and its line.
func at(e looseEvent) string { return atLine(e.line) }

func atLine(n int) string { return fmt.Sprintf("%s:%d", EventsFile, n) }

func (c *checker) readState() {
	raw, err := c.read(TransactionFile)
	if err != nil {
		c.Add("PARSE", TransactionFile, "cannot be read")
		return
	}
	if c.log != nil {
		tx := c.log.Transaction()
		want, err := canon.Line(tx)
		if c.folds = err == nil && bytes.Equal(raw, want); c.folds {
			c.txID = tx.TransactionID
			return
		}
	}
	doc, err := canon.Parse(raw)
	state, ok := doc.(map[string]any)
	if err != nil || !ok {
		c.Add("PARSE", TransactionFile, "is not a JSON object")
		return
	}
	c.txID = text(state, "transaction_id")
}

func (c *checker) readEvents() {
	n := 0
	for line := range bytes.Lines(c.raw) {
		n++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		doc, err := canon.Parse(line)
		fields, ok := doc.(map[string]any)
		if err != nil || !ok {
			c.Add("PARSE", atLine(n), "is not a JSON object")
			continue
		}
		payload, _ := fields["payload"].(map[string]any)
		c.events = append(c.events, looseEvent{n, text(fields, "type"), fields, payload})
	}
	if n == 0 || len(c.events) == 0 {
		c.Add("EMPTY", EventsFile, "no events")
	}
}

// own: an id of our form, or one event with a chain field, makes the directory
// ours; dropping the chain from a record does not make it a foreign one.
func (c *checker) own() bool {
	if c.proven || CheckID(c.txID) == nil {
		return true
	}
	for _, e := range c.events {
		_, seq := e.fields["seq"]
		_, prev := e.fields["prev"]
		if seq || prev {
			return true
		}
	}
	return false
}

// text returns a string field, "" where it is missing or something else.
func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func object(m map[string]any, key string) map[string]any {
	o, _ := m[key].(map[string]any)
	return o
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

// Foreign reports whether Check judges a directory as another program's, by
// I1–I12 alone.
func Foreign(dir fs.FS) bool { return !newChecker(dir).own() }

// read returns a regular file of the directory. Links are not followed, pipes
// not opened. The bytes are not to be changed.
func (c *checker) read(name string) ([]byte, error) {
	f := c.file(name)
	if !f.regular {
		return nil, fs.ErrNotExist
	}
	if !f.read {
		f.data, f.err = fs.ReadFile(c.dir, name)
		f.read = true
	}
	return f.data, f.err
}

// exists reports whether a path inside the directory is a regular file.
func (c *checker) exists(path string) bool { return c.file(path).regular }

func (c *checker) file(path string) *file {
	f := c.files[path]
	if f == nil {
		f = &file{regular: isRegular(c.dir, path)}
		c.files[path] = f
	}
	return f
}

func isRegular(dir fs.FS, path string) bool {
	if !fs.ValidPath(path) || strings.Contains(path, `\`) {
		return false
	}
	info, err := fs.Lstat(dir, path)
	return err == nil && info.Mode().IsRegular()
}
