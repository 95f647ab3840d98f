// Package lineage reads a ledger's history, from its tip back, out of whatever holds
// Git objects: a repository, the bytes of a bundle, a map. What an audit finds is then
// the same wherever the objects are. It does no I/O of its own.
package lineage

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// Objects is where objects come from: each is held to its name. What it returns is
// shared and not modified; several goroutines may ask at once. An object that is not
// there is packfile.ErrMissing.
type Objects interface {
	View(id packfile.ID) (packfile.Object, error)
}

// read returns the content of an object, which must have this type.
func read(from Objects, kind plumbing.ObjectType, id packfile.ID) ([]byte, error) {
	got, err := from.View(id)
	if err == nil && got.Type != kind {
		err = fmt.Errorf("object %s is a %s, not a %s", id, got.Type, kind)
	}
	return got.Data, err
}

// Distortions are the commits and objects of which git shows something else than there
// is: where a shallow clone ends, grafts, and replacements (git-replace(1)). They
// change nothing in a History, but each that it meets is a finding.
type Distortions struct {
	Shallow, Grafted, Replaced map[packfile.ID]bool
}

// Options say which part of a history is read, and how.
type Options struct {
	Tip packfile.ID
	// From is the commit after which it is read; zero reads all of it.
	From packfile.ID
	// Signers are who may sign. nil reads signatures and does not verify them.
	Signers *sshsig.Allowed

	Distortions
}

// A History is a ledger's history, from its tip back, for one audit.
type History struct {
	objects Objects
	o       Options

	base packfile.ID // the tree before the first commit that is visited
	done packfile.ID // From, once it was met
}

var _ history.Reader = (*History)(nil)

// MayBeLedger reports whether a commit has what is at the root of every ledger, or cannot be read.
func MayBeLedger(objects Objects, id packfile.ID) bool {
	raw, err := read(objects, plumbing.CommitObject, id)
	if err != nil {
		return true
	}
	c, err := packfile.ParseCommit(raw)
	if err != nil {
		return true
	}
	rest, err := read(objects, plumbing.TreeObject, c.Tree)
	for err == nil && len(rest) > 0 {
		e, after, ok := packfile.FormatOf(id).CutEntry(rest)
		if !ok || string(e.Name) == "ledger.json" || string(e.Name) == "transactions" {
			return true
		}
		rest = after
	}
	return err != nil
}

// New returns the history that ends with a tip.
func New(objects Objects, o Options) *History { return &History{objects: objects, o: o} }

// NotInHistory is the error of a commit that is none of a ledger's.
func NotInHistory(name, why string) error {
	return fault.Refuse(fmt.Sprintf("%+q is not a commit of the ledger's history%s", name, why), "countersign ledger tip")
}

// format is that of all objects.
func (h *History) format() packfile.Format { return packfile.FormatOf(h.o.Tip) }

// Tip is the commit that the history ends with.
func (h *History) Tip() string { return h.o.Tip.String() }

// From is the commit that it begins after, once Commits has met it; "" for none.
func (h *History) From() string {
	if h.done.IsZero() {
		return ""
	}
	return h.done.String()
}

// Blob returns a file's content.
func (h *History) Blob(id history.ID) ([]byte, error) {
	return read(h.objects, plumbing.BlobObject, id)
}

// A rawCommit is a commit as it was read, with the tree of the one before it:
// zero for the root's.
type rawCommit struct {
	id   packfile.ID
	age  int
	raw  []byte
	base bool // no commit is before it that could be read
	packfile.Commit
	former packfile.ID
	wrong  []history.Finding
}

// someCommits is how many commits a worker takes: enough that their trees are
// deltas on each other.
const someCommits = 128

// Commits reads the history: one goroutine goes from commit to commit, the
// others take what it has read and compare their trees.
func (h *History) Commits(visit func(history.Commit)) error {
	chunks := make(chan []rawCommit, 1)
	var workers sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) { // most wait for objects
		workers.Go(func() {
			d := newDiffer(h)
			for chunk := range chunks {
				for i := len(chunk) - 1; i >= 0; i-- { // oldest first
					visit(d.commit(chunk[i]))
				}
			}
		})
	}
	err := h.walk(func(chunk []rawCommit) { chunks <- chunk })
	close(chunks)
	workers.Wait()
	return err
}

// walk reads commits, newest first.
func (h *History) walk(emit func([]rawCommit)) error {
	var chunk []rawCommit
	for at, age := h.o.Tip, 0; !at.IsZero(); age++ {
		c, err := h.read(at, age)
		if err != nil && age == 0 {
			return err
		}
		if n := len(chunk); n > 0 {
			chunk[n-1].former = c.Tree
		}
		if err != nil || at == h.o.From {
			if h.base = c.Tree; err != nil {
				h.cut(&chunk[len(chunk)-1], at, err)
			} else {
				h.done = at
			}
			break
		}
		if len(chunk) >= someCommits {
			emit(chunk)
			chunk = nil
		}
		chunk = append(chunk, c)
		at = packfile.None
		if len(c.Parents) > 0 {
			at = c.Parents[0]
		}
	}
	met := !h.done.IsZero() || h.o.From.IsZero() || len(chunk) > 0 && chunk[len(chunk)-1].base
	emit(chunk)
	if !met {
		return NotInHistory(h.o.From.String(), "")
	}
	return nil
}

// cut marks the oldest commit that could be read. What the one before it holds
// is not known, so nothing can be said of what this one changed.
func (h *History) cut(c *rawCommit, parent packfile.ID, err error) {
	c.base, h.base = true, c.Tree
	message := fmt.Sprintf("the history is not all here: the commit before, %s, cannot be read: %v", parent, err)
	if h.o.Shallow[c.id] {
		message = fmt.Sprintf("the history is not all here: the clone is shallow, and the commit before, %s, was never fetched", parent)
	}
	c.wrong = append(c.wrong, history.Finding{RuleID: "HISTORY", Commit: c.id.String(), Message: message})
}

func (h *History) read(id packfile.ID, age int) (rawCommit, error) {
	c := rawCommit{id: id, age: age}
	var err error
	if c.raw, err = read(h.objects, plumbing.CommitObject, id); err != nil {
		return c, err
	}
	if c.Commit, err = packfile.ParseCommit(c.raw); err != nil {
		return c, fmt.Errorf("commit %s: %w", id, err)
	}
	for _, d := range []struct {
		ids  map[packfile.ID]bool
		text string
	}{
		{h.o.Shallow, "the clone is shallow: git shows no commit before this one (.git/shallow)"},
		{h.o.Grafted, "git shows other parents of this commit than it has (.git/info/grafts); countersign reads its own"},
		{h.o.Replaced, "git shows another commit in place of this one (refs/replace/); countersign reads this one"},
	} {
		if d.ids[id] {
			c.wrong = append(c.wrong, history.Finding{RuleID: "HISTORY", Commit: id.String(), Message: d.text})
		}
	}
	return c, nil
}

// Commit reads one commit alone, with what it changed in the tree of its first parent.
func (h *History) Commit(id packfile.ID) (history.Commit, error) {
	c, err := h.read(id, 0)
	if err != nil {
		return history.Commit{}, err
	}
	if len(c.Parents) > 0 {
		before, err := h.read(c.Parents[0], 0)
		if err != nil {
			return history.Commit{}, err
		}
		c.former = before.Tree
	}
	return newDiffer(h).commit(c), nil
}

// Former lists the files at or below a path as they were before the first
// commit that is visited.
func (h *History) Former(name string) (map[string]history.Entry, error) {
	if h.base.IsZero() {
		return nil, nil
	}
	e := packfile.Entry{Mode: []byte("40000"), Raw: h.base.Append(nil)}
	for part := range strings.SplitSeq(name, "/") {
		if !e.IsDir() {
			return nil, nil
		}
		raw, err := read(h.objects, plumbing.TreeObject, e.ID())
		if err != nil {
			return nil, err
		}
		found := false
		for len(raw) > 0 && !found {
			ok := false
			if e, raw, ok = h.format().CutEntry(raw); !ok {
				return nil, errTree
			}
			found = string(e.Name) == part
		}
		if !found {
			return nil, nil
		}
	}
	if !e.IsDir() {
		return map[string]history.Entry{name: entryOf(e)}, nil
	}
	d := newDiffer(h)
	d.out = &history.Commit{}
	d.dirs(name, packfile.None, e.ID(), 0)
	if len(d.out.Problems) > 0 {
		return nil, errors.New(d.out.Problems[0].Message)
	}
	out := make(map[string]history.Entry, len(d.out.Changes))
	for _, c := range d.out.Changes {
		out[c.Path] = c.New
	}
	return out, nil
}
