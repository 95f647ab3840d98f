package gitstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/go-git/go-git/v5/plumbing"
)

// LedgerRef is where the ledger is unless somebody says otherwise.
const LedgerRef = "refs/agent/ledger"

// Ledger is the ledger of a repository.
type Ledger struct {
	repo *Repo
	ref  plumbing.ReferenceName
}

var _ pipeline.Store = (*Ledger)(nil)

// Ledger returns the ledger that ref names. The ref must lie below refs/ and
// hold two slashes, as a forge demands (GitHub docs, REST git/refs).
func (r *Repo) Ledger(ref string) (*Ledger, error) {
	name := plumbing.ReferenceName(ref)
	if err := name.Validate(); err != nil || !strings.HasPrefix(ref, "refs/") || strings.Count(ref, "/") < 2 {
		return nil, fmt.Errorf("%q is not a name for a ledger ref", ref)
	}
	if head, err := r.git.Storer.Reference(plumbing.HEAD); err == nil && head.Target() == name {
		return nil, fmt.Errorf("%q is the branch that is checked out", ref)
	}
	return &Ledger{r, name}, nil
}

// Snapshot returns the ledger as it stands.
func (l *Ledger) Snapshot(context.Context) (pipeline.Snapshot, error) {
	tip, err := l.repo.tip(l.ref)
	if err != nil {
		return pipeline.Snapshot{}, err
	}
	if tip.IsZero() {
		empty, err := newTreeFS(l.repo.objects, nil)
		return pipeline.Snapshot{Tree: empty}, err
	}
	tree, err := l.repo.tree(tip)
	if err != nil {
		return pipeline.Snapshot{}, err
	}
	return pipeline.Snapshot{Tip: tip.String(), Tree: tree}, nil
}

// Append adds one commit on tip. The objects are written first; the ref then
// moves by Git's own lock protocol, so a crash leaves the ledger as it was.
func (l *Ledger) Append(_ context.Context, tip string, e ledger.Entry) (string, error) {
	parent := plumbing.NewHash(tip)
	now, err := l.repo.tip(l.ref)
	if err != nil {
		return "", err
	}
	if now != parent {
		return "", pipeline.ErrMoved
	}
	made, err := l.build(parent, e)
	if err != nil {
		return "", err
	}
	if err := l.repo.moveRef(l.ref, parent, made); err != nil {
		return "", err
	}
	return made.String(), nil
}

// build writes the objects of an entry.
func (l *Ledger) build(parent plumbing.Hash, e ledger.Entry) (plumbing.Hash, error) {
	next := commit{}
	if !parent.IsZero() {
		old, err := readCommit(l.repo.objects, parent)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		next = commit{old.tree, []plumbing.Hash{parent}}
	}
	var files []patch.Change
	for name, data := range e.Files {
		files = append(files, patch.Change{Path: name, After: &patch.File{Mode: patch.Regular, Data: data}})
	}
	slices.SortFunc(files, func(a, b patch.Change) int { return strings.Compare(a.Path, b.Path) })
	return l.repo.build(next, files, func(c commit) []byte { return encodeCommit(c, us, us, e.When, e.Message) })
}

// StartAt makes the ledger's ref, which must not exist yet, name a commit.
func (l *Ledger) StartAt(tip string) error {
	return l.repo.moveRef(l.ref, plumbing.ZeroHash, plumbing.NewHash(tip))
}
