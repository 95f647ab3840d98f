package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/sshsig"
)

// HistoryOptions say which part of a ledger's history is read, and how.
type HistoryOptions struct {
	// From is a commit of the history after which it is read: its whole id (who
	// can write to the ledger can make a commit with a given beginning of one), or
	// a ref's full name. "" reads all of it.
	From string
	// Signers are who may sign. nil reads signatures and does not verify them.
	Signers *sshsig.Allowed
}

// A History is a ledger's history, from its tip back, for one audit. It reads
// objects and nothing else: grafts and replacements (git-replace(1)) change
// nothing in it, and a shallow clone ends where its objects end.
type History struct {
	// Rollback is set where the tip does not descend from the one remembered.
	Rollback *RollbackError
	// First says that nothing was known of the ledger before.
	First bool

	objects source
	store   *packfile.Store
	signers *sshsig.Allowed
	tip     plumbing.Hash
	from    plumbing.Hash
	seen    plumbing.Hash // what was remembered

	shallow, grafted, replaced map[plumbing.Hash]bool

	base plumbing.Hash // the tree before the first commit that is visited
	done plumbing.Hash // From, once it was met
}

var _ history.Reader = (*History)(nil)

// A NotInHistoryError is a commit that is none of a ledger's.
type NotInHistoryError struct{ Name, Why string }

func (e *NotInHistoryError) Error() string {
	return fmt.Sprintf("%+q is not a commit of the ledger's history%s", e.Name, e.Why)
}

// ErrNoLedger is a ledger's ref that is not there.
var ErrNoLedger = errors.New("there is no ledger here")

// History returns the ledger's history as it stands. The tip is held to the
// memory, as in Snapshot; but one that does not descend from it can be read, and
// none is remembered.
func (l *Ledger) History(_ context.Context, o HistoryOptions) (*History, error) {
	h := &History{objects: l.repo.objects, store: l.repo.objects, signers: o.Signers}
	seen, err := l.seen.read()
	if err != nil {
		return nil, err
	}
	if h.tip, err = l.repo.tip(l.ref); err != nil {
		return nil, err
	}
	h.seen, h.First = seen, seen.IsZero() && l.seen.known.IsZero()
	// Any other error is of the history, which is read yet.
	err = l.seen.follows(seen, h.tip, l.checkOf(h.tip).descends)
	if errors.As(err, &h.Rollback) && h.tip.IsZero() {
		return nil, err
	}
	if h.tip.IsZero() {
		return nil, ErrNoLedger
	}
	if h.from, err = l.repo.commitNamed(o.From); err != nil {
		return nil, err
	}
	return h, h.distortions(l.repo)
}

// Remember remembers the tip of a history that was audited and found sound. If
// the audit did not begin with the first commit, what is new here is audited.
func (l *Ledger) Remember(h *History) error {
	c := l.checkOf(h.tip)
	if h.from.IsZero() {
		c.verify = func(plumbing.Hash) error { return nil }
	}
	err := l.seen.hold(h.seen, h.tip, c)
	if err == nil {
		l.passed = h.tip
	}
	return err
}

// commitNamed reads a whole commit id or a ref's full name; "" is none.
func (r *Repo) commitNamed(name string) (plumbing.Hash, error) {
	if name == "" || plumbing.IsHash(name) {
		return plumbing.NewHash(name), nil
	}
	if !strings.HasPrefix(name, "refs/") {
		return plumbing.ZeroHash, &NotInHistoryError{name, ": give all 40 digits of an id, or the full name of a ref"}
	}
	id, err := r.tip(plumbing.ReferenceName(name))
	if err == nil && id.IsZero() {
		err = &NotInHistoryError{name, ": there is no such ref"}
	}
	for err == nil {
		var o packfile.Object
		if o, err = r.objects.View(id); err != nil || o.Type != plumbing.TagObject {
			break
		}
		var tagged bool
		if id, _, tagged = headerLine(string(o.Data), "object "); !tagged {
			err = &NotInHistoryError{name, ": the tag is malformed"}
		}
	}
	return id, err
}

// Tip is the commit that the history ends with.
func (h *History) Tip() string { return h.tip.String() }

// From is the commit that it begins after, once Commits has met it.
func (h *History) From() string { return hexOf(h.done) }

// distortions reads what makes git show another history than there is.
func (h *History) distortions(r *Repo) (err error) {
	if h.shallow, err = idsIn(filepath.Join(r.gitDir, "shallow")); err != nil {
		return err
	}
	if h.grafted, err = idsIn(filepath.Join(r.gitDir, "info", "grafts")); err != nil {
		return err
	}
	h.replaced = map[plumbing.Hash]bool{}
	refs, err := r.refsBelow("refs/replace")
	for name := range refs {
		if id := strings.TrimPrefix(name, "refs/replace/"); plumbing.IsHash(id) {
			h.replaced[plumbing.NewHash(id)] = true
		}
	}
	return err
}

// idsIn reads the first word of each line.
func idsIn(file string) (map[plumbing.Hash]bool, error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ids := map[plumbing.Hash]bool{}
	for line := range strings.Lines(string(raw)) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); plumbing.IsHash(word) {
			ids[plumbing.NewHash(word)] = true
		}
	}
	return ids, nil
}

// Packs checks every pack of the repository, to the last bit, and returns what
// is damaged. progress is told how many bytes are done, of how many.
func (h *History) Packs(progress func(done, total int64)) []history.Finding {
	err := h.store.Verify(progress)
	if err == nil {
		return nil
	}
	var out []history.Finding
	for _, one := range unjoin(err) {
		if errors.Is(one, fs.ErrNotExist) {
			continue // it was merged into another meanwhile; what is missing is found
		}
		out = append(out, history.Finding{RuleID: "OBJECT", Message: one.Error()})
	}
	return out
}

func unjoin(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return []error{err}
}

// Blob returns a file's content.
func (h *History) Blob(id history.ID) ([]byte, error) {
	return readObject(h.objects, plumbing.BlobObject, plumbing.Hash(id))
}

// A rawCommit is a commit as it was read, with the tree of the one before it:
// zero for the root's.
type rawCommit struct {
	id   plumbing.Hash
	age  int
	raw  []byte
	base bool // no commit is before it that could be read
	commit
	former plumbing.Hash
	wrong  []history.Finding
}

// someCommits is how many commits a worker takes: enough that their trees are
// deltas on each other.
const someCommits = 256

// Commits reads the history: one goroutine goes from commit to commit, the
// others take what it has read and compare their trees.
func (h *History) Commits(visit func(history.Commit)) error {
	chunks := make(chan []rawCommit, 1)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
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
	for at, age := h.tip, 0; !at.IsZero(); age++ {
		c, err := h.read(at, age)
		if err != nil && age == 0 {
			return err
		}
		if n := len(chunk); n > 0 {
			chunk[n-1].former = c.tree
		}
		if err != nil || at == h.from {
			if h.base = c.tree; err != nil {
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
		at = plumbing.ZeroHash
		if len(c.parents) > 0 {
			at = c.parents[0]
		}
	}
	met := !h.done.IsZero() || h.from.IsZero() || len(chunk) > 0 && chunk[len(chunk)-1].base
	emit(chunk)
	if !met {
		return &NotInHistoryError{h.from.String(), ""}
	}
	return nil
}

// cut marks the oldest commit that could be read. What the one before it holds
// is not known, so nothing can be said of what this one changed.
func (h *History) cut(c *rawCommit, parent plumbing.Hash, err error) {
	c.base, h.base = true, c.tree
	message := fmt.Sprintf("the history is not all here: the commit before, %s, cannot be read: %v", parent, err)
	if h.shallow[c.id] {
		message = fmt.Sprintf("the history is not all here: the clone is shallow, and the commit before, %s, was never fetched", parent)
	}
	c.wrong = append(c.wrong, history.Finding{RuleID: "HISTORY", Commit: c.id.String(), Message: message})
}

func (h *History) read(id plumbing.Hash, age int) (rawCommit, error) {
	c := rawCommit{id: id, age: age}
	var err error
	if c.raw, err = readObject(h.objects, plumbing.CommitObject, id); err != nil {
		return c, err
	}
	if c.commit, err = parseCommit(c.raw); err != nil {
		return c, fmt.Errorf("commit %s: %w", id, err)
	}
	for _, d := range []struct {
		ids  map[plumbing.Hash]bool
		text string
	}{
		{h.shallow, "the clone is shallow: git shows no commit before this one (.git/shallow)"},
		{h.grafted, "git shows other parents of this commit than it has (.git/info/grafts); countersign reads its own"},
		{h.replaced, "git shows another commit in place of this one (refs/replace/); countersign reads this one"},
	} {
		if d.ids[id] {
			c.wrong = append(c.wrong, history.Finding{RuleID: "HISTORY", Commit: id.String(), Message: d.text})
		}
	}
	return c, nil
}

// Former lists the files at or below a path as they were before the first
// commit that is visited.
func (h *History) Former(name string) (map[string]history.Entry, error) {
	if h.base.IsZero() {
		return nil, nil
	}
	e := rawEntry{mode: []byte("40000"), id: h.base[:]}
	for part := range strings.SplitSeq(name, "/") {
		if !e.isDir() {
			return nil, nil
		}
		raw, err := readObject(h.objects, plumbing.TreeObject, e.hash())
		if err != nil {
			return nil, err
		}
		found := false
		for len(raw) > 0 && !found {
			ok := false
			if e, raw, ok = cutEntry(raw); !ok {
				return nil, errTree
			}
			found = string(e.name) == part
		}
		if !found {
			return nil, nil
		}
	}
	if !e.isDir() {
		return map[string]history.Entry{name: e.entry()}, nil
	}
	d := newDiffer(h)
	d.out = &history.Commit{}
	d.dirs(name, plumbing.ZeroHash, e.hash(), 0)
	if len(d.out.Problems) > 0 {
		return nil, errors.New(d.out.Problems[0].Message)
	}
	out := make(map[string]history.Entry, len(d.out.Changes))
	for _, c := range d.out.Changes {
		out[c.Path] = c.New
	}
	return out, nil
}
