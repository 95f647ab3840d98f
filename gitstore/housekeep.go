package gitstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/object"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A notedPack is a pack that this program wrote, with how many objects it has.
type notedPack struct {
	name    string
	objects int
}

const (
	// mergeAt is how many packs of about one size are merged: an append makes
	// one, so an object is written again once for each power of it.
	mergeAt = 8
	// smallest is what an append may make and is still of the first size.
	smallest = 64
)

// size is the class of a pack's size: 0 for an append, 1 for eight of them.
func (p notedPack) size() (class int) {
	for most := smallest; p.objects > most; most *= mergeAt {
		class++
	}
	return class
}

func (r *Repo) packNotes() string { return filepath.Join(r.stateDir(), "packs") }

// notePacks remembers packs. The caller holds the lock.
func (r *Repo) notePacks(packs ...notedPack) error {
	if len(packs) == 0 {
		return nil
	}
	f, err := os.OpenFile(r.packNotes(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return fmt.Errorf("remembering a pack: %w", err)
	}
	_, err = f.WriteString(packLines(packs))
	return errors.Join(err, f.Close())
}

func packLines(packs []notedPack) string {
	var b strings.Builder
	for _, p := range packs {
		fmt.Fprintf(&b, "%s %d\n", p.name, p.objects)
	}
	return b.String()
}

// notedPacks are those of the packs remembered that are still there, oldest
// first. A line that cannot be read is left out: a pack that is not remembered
// is merely never merged.
func (r *Repo) notedPacks() ([]notedPack, error) {
	raw, err := os.ReadFile(r.packNotes())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	there, err := r.objects.PackNames()
	if err != nil {
		return nil, err
	}
	var out []notedPack
	for line := range strings.Lines(string(raw)) {
		var p notedPack
		if n, err := fmt.Sscanf(line, "%s %d\n", &p.name, &p.objects); n == 2 && err == nil && slices.Contains(there, p.name) {
			out = append(out, p)
		}
	}
	return out, nil
}

// mergePacks merges packs of this program's where there are many of one size,
// so that there are never more than a few dozen. A failure is no reason to fail
// what was being done: everything is there, in more files.
func (r *Repo) mergePacks() {
	_ = r.objects.Sweep() // what killed processes held
	for {
		packs, err := r.notedPacks()
		if err != nil {
			return
		}
		group := crowded(packs)
		if len(group) == 0 || !r.merge(group) {
			return
		}
	}
}

// crowded returns the packs of the smallest size of which there are many.
func crowded(packs []notedPack) []notedPack {
	sizes := map[int][]notedPack{}
	for _, p := range packs {
		sizes[p.size()] = append(sizes[p.size()], p)
	}
	for class := range 32 {
		if group := sizes[class]; len(group) >= mergeAt {
			return group
		}
	}
	return nil
}

// merge makes one pack of several, and reports whether it did.
func (r *Repo) merge(group []notedPack) bool {
	unlock, err := r.lockFile("merge.lock")
	if err != nil {
		return false
	}
	defer unlock()
	var names []string
	made := notedPack{}
	for _, p := range group {
		names = append(names, p.name)
		made.objects += p.objects
	}
	if made.name, err = r.objects.Merge(names, r.versions); made.name == "" {
		return false
	}
	return r.renotePacks(made) == nil && err == nil
}

// renotePacks writes the notes anew, with what is gone left out.
func (r *Repo) renotePacks(made notedPack) error {
	unlock, err := r.lock()
	if err != nil {
		return err
	}
	defer unlock()
	packs, err := r.notedPacks()
	if err != nil {
		return err
	}
	packs = slices.DeleteFunc(packs, func(p notedPack) bool { return p.name == made.name })
	return writeState(r.packNotes(), []byte(packLines(append(packs, made))))
}

// versions plans a pack: walking the commits from the oldest, each tree and
// file is a later version of what its path was before.
func (r *Repo) versions(ids []plumbing.Hash, get func(plumbing.Hash) (packfile.Object, error)) ([]packfile.Version, error) {
	src := planSource{r.objects, get}
	in := make(map[plumbing.Hash]bool, len(ids))
	commits := map[plumbing.Hash]commit{}
	for _, id := range ids {
		in[id] = true
		o, err := get(id)
		if err != nil {
			return nil, err
		}
		if o.Type != plumbing.CommitObject {
			continue
		}
		if commits[id], err = object.ParseCommit(o.Data); err != nil {
			return nil, err
		}
	}
	p := plan{src: src, in: in, listed: map[plumbing.Hash]bool{}}
	for _, id := range ids {
		if err := p.commit(id, commits); err != nil {
			return nil, err
		}
	}
	return p.out, nil
}

// planSource reads what is being merged, and else what is there.
type planSource struct {
	*packfile.Store
	get func(plumbing.Hash) (packfile.Object, error)
}

func (s planSource) View(id plumbing.Hash) (packfile.Object, error) {
	o, err := s.get(id)
	if errors.Is(err, packfile.ErrMissing) {
		return s.Store.View(id)
	}
	return o, err
}

type plan struct {
	src    source
	in     map[plumbing.Hash]bool
	listed map[plumbing.Hash]bool
	out    []packfile.Version
}

func (p *plan) add(id, base plumbing.Hash) {
	if p.in[id] && !p.listed[id] {
		p.listed[id] = true
		p.out = append(p.out, packfile.Version{ID: id, Base: base})
	}
}

// commit lists a commit after its parent, and what it brought.
func (p *plan) commit(id plumbing.Hash, commits map[plumbing.Hash]commit) error {
	var todo []plumbing.Hash // the newest first
	for {
		c, ok := commits[id]
		if !ok || p.listed[id] {
			break
		}
		todo = append(todo, id)
		if len(c.Parents) != 1 {
			break
		}
		id = c.Parents[0]
	}
	for _, id := range slices.Backward(todo) {
		p.add(id, plumbing.ZeroHash)
		if err := p.trees(commits[id]); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) trees(c commit) error {
	former := plumbing.ZeroHash
	if len(c.Parents) == 1 {
		parent, err := readCommit(p.src, c.Parents[0])
		if err != nil && !errors.Is(err, packfile.ErrMissing) {
			return err
		}
		former = parent.Tree
	}
	var page, diff plumbing.Hash
	err := diffTrees(p.src, former, c.Tree, func(d treeChange) error {
		switch _, inTransaction := ledger.TransactionOf(d.path); {
		case inTransaction && path.Base(d.path) == ledger.ReadmeFile && d.old.id.IsZero():
			page = d.new.id
			return nil
		case inTransaction && path.Ext(d.path) == ".diff":
			diff = d.new.id
		}
		p.add(d.new.id, d.old.id)
		return nil
	})
	p.add(page, diff) // a page has the diff in it
	if errors.Is(err, packfile.ErrMissing) {
		return nil // of a partial history only what is there is packed well
	}
	return err
}
