package gitstore

import (
	"bytes"
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
	return writeBundle(w, l.repo.objects, l.refAt(tip))
}

func (l *Ledger) refAt(tip string) bundle.Ref {
	return bundle.Ref{Name: l.ref.String(), ID: object.ParseID(tip)}
}

// WriteAuditedBundle is WriteBundle of a ledger all of which has been read, and is an error if something is not there. Git
// writes the objects as they are packed already, which takes a tenth of the time.
func (l *Ledger) WriteAuditedBundle(ctx context.Context, tip string, w io.Writer) error {
	ref := l.refAt(tip)
	return bundle.Write(w, func(w io.Writer) error { return l.repo.objects.Pack(ctx, ref.ID, w) }, ref)
}

func writeBundle(w io.Writer, s source, ref bundle.Ref) error {
	if _, err := readCommit(s, ref.ID); err != nil {
		return fmt.Errorf("writing a bundle: %w", err)
	}
	v := &versions{source: s, listed: map[object.ID]bool{}}
	v.history(ref.ID)
	v.listed = nil // as large as a half of the list
	return bundle.Write(w, func(w io.Writer) error {
		return packfile.WriteVersions(w, object.FormatOf(ref.ID), v.order, s.View)
	}, ref)
}

// versions lists objects, once each, with what each is a later version of.
type versions struct {
	source
	listed map[object.ID]bool
	order  []packfile.Version
}

// history lists all that a commit leads to, the oldest commit first.
func (v *versions) history(tip object.ID) {
	seen := map[object.ID]bool{tip: true}
	var commits []object.ID
	for queue := []object.ID{tip}; len(queue) > 0; queue = queue[1:] {
		c, err := readCommit(v, queue[0])
		commits = append(commits, queue[0])
		for _, parent := range c.Parents {
			if err == nil && !seen[parent] {
				seen[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	v.order = make([]packfile.Version, 0, 16*len(commits)) // a stage has about as many: to grow takes a half more
	for _, id := range slices.Backward(commits) {
		v.add(id, object.None)
		c, err := readCommit(v, id)
		if err != nil {
			continue
		}
		former := object.None
		if len(c.Parents) > 0 {
			former, _ = treeOf(v, c.Parents[0])
		}
		v.tree(c.Tree, former)
	}
}

// tree lists an object and, whatever it is said to be, what is in it if it is a tree. A crafted one may be deeper than
// the stack of a program.
func (v *versions) tree(id, former object.ID) {
	type pair struct{ id, former object.ID }
	for todo := []pair{{id, former}}; len(todo) > 0; {
		n := len(todo) - 1
		p := todo[n]
		todo = todo[:n]
		raw := v.add(p.id, p.former)
		var old []byte
		if len(raw) > 0 && !p.former.IsZero() { // to look for what is nowhere lists the packs again
			old, _ = readObject(v, plumbing.TreeObject, p.former)
		}
		was, old, more := object.FormatOf(id).CutEntry(old)
		for e, rest, ok := object.FormatOf(id).CutEntry(raw); ok; e, rest, ok = object.FormatOf(id).CutEntry(rest) {
			for more && object.Compare(was, e) < 0 {
				was, old, more = object.FormatOf(id).CutEntry(old)
			}
			switch same := more && bytes.Equal(was.Name, e.Name); {
			case !same:
				todo = append(todo, pair{e.ID(), object.None})
			case was.ID() != e.ID():
				todo = append(todo, pair{e.ID(), was.ID()})
			}
		}
		slices.Reverse(todo[n:]) // the first is next
	}
}

// add lists an object that is there and not listed yet, and returns the content of a
// tree.
func (v *versions) add(id, base object.ID) (tree []byte) {
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
