package lineage

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig/signing"
)

// differ compares the trees of one commit after another, as raw bytes. It is
// for one goroutine.
type differ struct {
	*History
	trees packfile.Recent[packfile.ID, []byte] // those read lately

	out *history.Commit
	cut bool // out has too much, and is not gone on with
}

// keptTrees is how many bytes of trees a differ keeps, in two generations.
const keptTrees = 1 << 20

// What a commit may hold before it is called none of ours: a stage adds a few
// files, a few directories down. A crafted tree could hold more than there is
// time for: one directory that stands twice in each of those above it is there a
// million times twenty levels down.
const (
	maxChanges = 10_000
	maxDepth   = 16
)

func newDiffer(h *History) *differ {
	return &differ{History: h}
}

// commit reads one commit and everything that is new in it but its files.
func (d *differ) commit(c rawCommit) history.Commit {
	out := history.Commit{ID: c.id, Age: c.age, Parents: c.Parents, Problems: c.wrong, Base: c.base}
	d.out, d.cut = &out, false
	if !c.base {
		d.words(c)
		d.entered(c.Tree, "")
		d.dirs("", c.former, c.Tree, 0)
	}
	return out
}

// words reads the commit itself.
func (d *differ) words(c rawCommit) {
	payload, signature, err := c.raw, "", error(nil)
	if bytes.Contains(c.raw, []byte("\ngpgsig")) {
		payload, signature, err = signing.Split(c.raw)
	}
	switch {
	case signature == "" && err == nil, errors.Is(err, sshsig.ErrNoSignature): // in its message, perhaps
		payload = c.raw
	case err != nil:
		payload, d.out.Signature, d.out.SignatureError = c.raw, history.Bad, err
	default:
		d.out.Signature = history.Signed
	}
	head, message, _ := strings.Cut(string(payload), "\n\n")
	_, who, _ := strings.Cut(head, "\ncommitter "+packfile.Us+" ")
	seconds, _, _ := strings.Cut(who, " ")
	when, _ := strconv.ParseInt(seconds, 10, 64)
	d.out.When, d.out.Message = when, message
	d.out.Ours = when >= 0 && bytes.HasPrefix(payload, packfile.EncodeCommit(c.Commit, packfile.Us, packfile.Us, time.Unix(when, 0), ""))
	if d.out.Signature != history.Signed {
		return
	}
	good := history.Signed
	if d.o.Signers == nil {
		_, err = sshsig.MadeWith(sshsig.ForGit, payload, signature)
	} else {
		good = history.Good
		_, _, err = d.o.Signers.Verify(sshsig.ForGit, payload, signature, time.Unix(when, 0))
	}
	if d.out.Signature = good; err != nil {
		d.out.Signature, d.out.SignatureError = history.Bad, err
	}
}

func (d *differ) problem(rule, path, format string, args ...any) {
	d.out.Problems = append(d.out.Problems, history.Finding{
		RuleID: rule, Commit: d.out.ID.String(), Path: path, Message: fmt.Sprintf(format, args...),
	})
}

// entered is told of every object that a commit brings.
func (d *differ) entered(id packfile.ID, path string) {
	if d.o.Replaced[id] {
		d.problem("HISTORY", path, "git shows something else in place of %s (refs/replace/); countersign reads it as it is", id)
	}
}

// tree returns the bytes of a tree, none for the zero id.
func (d *differ) tree(id packfile.ID) (raw []byte, err error) {
	if id.IsZero() {
		return nil, nil
	}
	raw, known := d.trees.Get(id)
	if !known {
		if raw, err = read(d.objects, plumbing.TreeObject, id); err != nil {
			return nil, err
		}
		d.trees.Put(id, raw, len(raw)+128, keptTrees/2)
	}
	return raw, nil
}

// full reports whether a commit has more than a ledger can, in changes and in what is
// wrong with them. It is told once, and the rest of the commit is not read.
func (d *differ) full(dir string) bool {
	if !d.cut && len(d.out.Changes)+len(d.out.Problems) > maxChanges {
		d.cut = true
		d.problem("L10", dir, "holds more than a ledger can")
	}
	return d.cut
}

// dirs compares two versions of a directory; zero is none. Only what differs is
// read. Every entry of the new one is held to its form.
func (d *differ) dirs(dir string, old, new packfile.ID, depth int) {
	if d.full(dir) {
		return
	}
	if depth > maxDepth {
		d.problem("L10", dir, "holds more than a ledger can")
		return
	}
	before, err := d.tree(old)
	if err != nil {
		d.problem("OBJECT", dir, "what was there before: %v", err)
		return
	}
	after, err := d.tree(new)
	if err != nil {
		d.problem("OBJECT", dir, "%v", err)
		return
	}
	if len(after) == 0 && !new.IsZero() {
		d.change(dir, history.Entry{}, history.Entry{Mode: history.ModeDir, ID: new})
	}
	if err := d.entries(dir, before, after, depth); err != nil {
		d.problem("L10", dir, "the tree %s %v", new, err)
	}
}

func (d *differ) entries(dir string, before, after []byte, depth int) error {
	var last, a, b packfile.Entry
	haveA, haveB := false, false
	for !d.full(dir) {
		if !haveA && len(before) > 0 {
			if a, before, haveA = d.format().CutEntry(before); !haveA {
				return errTree
			}
		}
		if !haveB && len(after) > 0 {
			if b, after, haveB = d.format().CutEntry(after); !haveB {
				return errTree
			}
			if err := sound(last, b); err != nil {
				return err
			}
			last = b
		}
		switch {
		case !haveA && !haveB:
			return nil
		case haveA && haveB && bytes.Equal(a.Name, b.Name) && a.IsDir() == b.IsDir():
			if !bytes.Equal(a.Raw, b.Raw) || !bytes.Equal(a.Mode, b.Mode) {
				d.entry(dir, a, b, depth)
			}
			haveA, haveB = false, false
		case !haveB || haveA && packfile.Compare(a, b) < 0:
			d.entry(dir, a, packfile.Entry{}, depth)
			haveA = false
		default:
			d.entry(dir, packfile.Entry{}, b, depth)
			haveB = false
		}
	}
	return nil
}

// entry takes in one name that differs.
func (d *differ) entry(dir string, a, b packfile.Entry, depth int) {
	name := b.Name
	if name == nil {
		name = a.Name
	}
	path := string(name)
	if dir != "" {
		path = dir + "/" + path
	}
	if b.Name != nil {
		d.entered(b.ID(), path)
	}
	if a.IsDir() || b.IsDir() {
		d.dirs(path, a.ID(), b.ID(), depth+1)
		return
	}
	d.change(path, entryOf(a), entryOf(b))
}

func (d *differ) change(path string, old, new history.Entry) {
	d.out.Changes = append(d.out.Changes, history.Change{Path: path, Old: old, New: new})
}

// entryOf is an entry as an audit reads it.
func entryOf(e packfile.Entry) history.Entry {
	if e.Raw == nil {
		return history.Entry{}
	}
	mode, _ := strconv.ParseUint(string(e.Mode), 8, 32)
	return history.Entry{Mode: uint32(mode), ID: e.ID()}
}

var errTree = errors.New("is malformed")

// sound refuses entries that no git writes: out of order, twice, with a name
// that is none, or a mode that is written otherwise.
func sound(before, e packfile.Entry) error {
	switch n := e.Name; {
	case n[0] == '.' && (len(n) == 1 || string(n) == ".." || strings.EqualFold(string(n), ".git")), bytes.IndexByte(n, '/') >= 0:
		return fmt.Errorf("has an entry named %+q", n)
	case before.Name != nil && packfile.Compare(before, e) >= 0, bytes.Equal(before.Name, n):
		return fmt.Errorf("has the entry %+q out of order, or twice", n)
	}
	switch string(e.Mode) {
	case "40000", "100644", "100755", "120000", "160000":
		return nil
	}
	return fmt.Errorf("has an entry %+q with the mode %+q", e.Name, e.Mode)
}
