package gitstore

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/bundle"
	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// WriteBundle writes the ledger as it was at a tip as a Git bundle, with its ref and all
// that the tip leads to and nothing else. Of a ledger that is damaged, what can be read
// is written: who audits the bundle finds what is missing.
func (l *Ledger) WriteBundle(_ context.Context, tip string, w io.Writer) error {
	id := plumbing.NewHash(tip)
	order, err := versions(l.repo.objects, id)
	if err != nil {
		return fmt.Errorf("listing the objects of %s: %w", tip, err)
	}
	return bundle.Write(w, []bundle.Ref{{Name: l.ref.String(), ID: id}}, order, l.repo.objects.View)
}

// versions lists all objects that a commit leads to, once each, the oldest commit's
// first, with what each is a later version of. What cannot be read is left out, but
// for the commit itself.
func versions(s source, tip plumbing.Hash) ([]packfile.Version, error) {
	if _, err := readCommit(s, tip); err != nil {
		return nil, err
	}
	var commits []plumbing.Hash
	_, _ = lineage.Walk(objectsOf{s}, []plumbing.Hash{tip}, plumbing.ZeroHash, map[plumbing.Hash]bool{}, func(id plumbing.Hash, _ []byte) bool {
		commits = append(commits, id)
		return true
	})
	v := versionList{source: s, listed: map[plumbing.Hash]bool{}}
	for _, id := range slices.Backward(commits) {
		c, err := readCommit(s, id)
		if err != nil {
			continue
		}
		v.add(id, plumbing.ZeroHash)
		former := plumbing.ZeroHash
		if len(c.Parents) > 0 {
			former, _ = treeOf(s, c.Parents[0])
		}
		_ = diffTrees(s, former, c.Tree, func(d treeChange) error {
			if d.new.mode != submodule {
				v.add(d.new.id, d.old.id)
			}
			return nil
		})
	}
	return v.order, nil
}

type versionList struct {
	source
	listed map[plumbing.Hash]bool
	order  []packfile.Version
}

func (v *versionList) add(id, base plumbing.Hash) {
	if id.IsZero() || v.listed[id] {
		return
	}
	if _, err := v.View(id); err != nil {
		return
	}
	v.listed[id] = true
	v.order = append(v.order, packfile.Version{ID: id, Base: base})
}
