package gitstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
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
		empty, err := newTreeFS(l.repo.objects, &object.Tree{})
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
	root := plumbing.ZeroHash
	if !parent.IsZero() {
		c, err := object.GetCommit(l.repo.objects, parent)
		if err != nil {
			return "", fmt.Errorf("reading commit %s: %w", parent, err)
		}
		root = c.TreeHash
	}
	b := builder{l.repo.objects}
	files := edits{}
	for name, data := range e.Files {
		files[name] = &patch.File{Mode: patch.Regular, Data: data}
	}
	tree, err := b.tree(root, files)
	if err != nil {
		return "", err
	}
	who := object.Signature{Name: "countersign", Email: "countersign@localhost", When: e.When.UTC()}
	c := object.Commit{Author: who, Committer: who, Message: e.Message, TreeHash: tree}
	if !parent.IsZero() {
		c.ParentHashes = []plumbing.Hash{parent}
	}
	commit, err := b.commit(c)
	if err != nil {
		return "", err
	}
	if err := l.repo.moveRef(l.ref, parent, commit); err != nil {
		return "", err
	}
	return commit.String(), nil
}

// builder makes objects. An append knows exactly which ones.
type builder struct{ store storer.EncodedObjectStorer }

func (b builder) commit(c object.Commit) (plumbing.Hash, error) {
	o := b.store.NewEncodedObject()
	if err := c.Encode(o); err != nil {
		return plumbing.ZeroHash, fmt.Errorf("writing a commit: %w", err)
	}
	return b.put(o)
}

func (b builder) put(o plumbing.EncodedObject) (plumbing.Hash, error) {
	h, err := b.store.SetEncodedObject(o)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("writing a Git object: %w", err)
	}
	return h, nil
}

// StartAt makes the ledger's ref, which must not exist yet, name a commit.
func (l *Ledger) StartAt(tip string) error {
	return l.repo.moveRef(l.ref, plumbing.ZeroHash, plumbing.NewHash(tip))
}
