package gitstore

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/bundle"
	"github.com/countersign-dev/countersign/gitstore/object"
	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// WriteBundle writes the ledger as it was at a tip as a Git bundle: its ref, and all
// that the tip leads to. Of a ledger that is damaged, what can be read is written: who
// audits the bundle finds what is missing.
func (l *Ledger) WriteBundle(_ context.Context, tip string, w io.Writer) error {
	return writeBundle(w, l.repo.objects, bundle.Ref{Name: l.ref.String(), ID: plumbing.NewHash(tip)})
}

func writeBundle(w io.Writer, s source, ref bundle.Ref) error {
	if _, err := readCommit(s, ref.ID); err != nil {
		return fmt.Errorf("writing a bundle: %w", err)
	}
	v := &versions{source: s, listed: map[plumbing.Hash]bool{}}
	v.history(ref.ID)
	return bundle.Write(w, []bundle.Ref{ref}, v.order, s.View)
}

// versions lists objects, once each, with what each is a later version of.
type versions struct {
	source
	listed map[plumbing.Hash]bool
	order  []packfile.Version
}

// history lists all that a commit leads to, the oldest commit first.
func (v *versions) history(tip plumbing.Hash) {
	seen := map[plumbing.Hash]bool{tip: true}
	var commits []plumbing.Hash
	for queue := []plumbing.Hash{tip}; len(queue) > 0; queue = queue[1:] {
		c, err := readCommit(v, queue[0])
		commits = append(commits, queue[0])
		for _, parent := range c.Parents {
			if err == nil && !seen[parent] {
				seen[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	for _, id := range slices.Backward(commits) {
		v.add(id, plumbing.ZeroHash)
		c, err := readCommit(v, id)
		if err != nil {
			continue
		}
		former := plumbing.ZeroHash
		if len(c.Parents) > 0 {
			former, _ = treeOf(v, c.Parents[0])
		}
		v.tree(c.Tree, former)
	}
}

// tree lists an object and, whatever it is said to be, what is in it if it is a tree.
func (v *versions) tree(id, former plumbing.Hash) {
	raw := v.add(id, former)
	if len(raw) == 0 {
		return
	}
	before := map[string]plumbing.Hash{}
	if old, err := readObject(v, plumbing.TreeObject, former); err == nil {
		for e, rest, ok := object.CutEntry(old); ok; e, rest, ok = object.CutEntry(rest) {
			before[string(e.Name)] = e.ID()
		}
	}
	for e, rest, ok := object.CutEntry(raw); ok; e, rest, ok = object.CutEntry(rest) {
		if was := before[string(e.Name)]; was != e.ID() {
			v.tree(e.ID(), was)
		}
	}
}

// add lists an object that is there and not listed yet, and returns the content of a
// tree.
func (v *versions) add(id, base plumbing.Hash) (tree []byte) {
	if id.IsZero() || v.listed[id] {
		return nil
	}
	o, err := v.View(id)
	if err != nil {
		return nil
	}
	v.listed[id] = true
	v.order = append(v.order, packfile.Version{ID: id, Base: base})
	if o.Type != plumbing.TreeObject {
		return nil
	}
	return o.Data
}
