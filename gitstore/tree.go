package gitstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// builder makes a commit. It knows exactly which objects are new: they wait in
// the batch until all are made.
type builder struct {
	store source
	batch *packfile.Batch
}

// edit is what becomes of a path: an entry, or nothing.
type edit struct {
	path  string
	entry treeEntry // without a name
	gone  bool
}

// edits names the new blobs, and sorts.
func (b *builder) edits(files []patch.Change) ([]edit, error) {
	out := make([]edit, len(files))
	var blobs []packfile.Object
	for i, f := range files {
		out[i] = edit{path: f.Path, gone: f.After == nil}
		if f.After != nil {
			out[i].entry.mode = modes[f.After.Mode]
			blobs = append(blobs, packfile.Object{Type: plumbing.BlobObject, Data: f.After.Data})
		}
	}
	ids, err := b.batch.Add(blobs...)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if !out[i].gone {
			out[i].entry.id, ids = ids[0], ids[1:]
		}
	}
	slices.SortFunc(out, func(a, b edit) int { return strings.Compare(a.path, b.path) })
	for i, e := range out {
		if !fs.ValidPath(e.path) || e.path == "." || i > 0 && out[i-1].path == e.path {
			return nil, fmt.Errorf("%+q is not a path, or occurs twice", e.path)
		}
	}
	return out, nil
}

var modes = map[patch.Mode]filemode.FileMode{patch.Regular: filemode.Regular, patch.Executable: filemode.Executable}

// tree makes the tree that old becomes with these edits, which are sorted, and
// returns its id; the zero id for a tree that is left empty. Only directories
// on the way to an edited path are read and made.
func (b *builder) tree(old packfile.ID, edits []edit) (packfile.ID, error) {
	var entries []treeEntry
	if !old.IsZero() {
		var err error
		if entries, err = readTree(b.store, old); err != nil {
			return packfile.None, err
		}
		if !slices.IsSortedFunc(entries, compareEntries) {
			return packfile.None, fmt.Errorf("tree %s is malformed: it is not sorted", old)
		}
	}
	entries, err := b.change(entries, edits)
	if err != nil || len(entries) == 0 {
		return packfile.None, err
	}
	return b.batch.AddOn(packfile.Object{Type: plumbing.TreeObject, Data: encodeTree(entries)}, old)
}

// change returns the entries of one directory with these edits below it. A file
// can become a directory, and a directory whose files all go a file.
func (b *builder) change(entries []treeEntry, edits []edit) ([]treeEntry, error) {
	changed := map[string]treeEntry{} // mode 0: it goes
	for _, e := range edits {
		if !strings.Contains(e.path, "/") {
			changed[e.path] = treeEntry{e.path, e.entry.mode, e.entry.id}
		}
	}
	dirs := directories(entries, edits)
	if err := b.below(dirs); err != nil {
		return nil, err
	}
	for _, d := range dirs {
		file, edited := changed[d.name]
		switch full := !d.id.IsZero(); {
		case d.inTheWay && (!edited || file.mode != 0):
			return nil, fmt.Errorf("%q is not a directory", d.name)
		case full && edited && file.mode != 0:
			return nil, fmt.Errorf("%q is both a file and a directory", d.name)
		case full:
			changed[d.name] = treeEntry{d.name, filemode.Dir, d.id}
		case !edited:
			changed[d.name] = treeEntry{name: d.name}
		}
	}
	for _, e := range entries {
		now, edited := changed[e.name]
		below := func(d directory) bool { return d.name == e.name }
		if e.mode == filemode.Dir && edited && now.mode != filemode.Dir && !slices.ContainsFunc(dirs, below) {
			return nil, fmt.Errorf("%q is a directory", e.name)
		}
	}
	return merge(entries, changed), nil
}

// named finds an entry, which is in one place as a directory and in another as
// anything else.
func named(entries []treeEntry, name string) (treeEntry, bool) {
	for _, mode := range []filemode.FileMode{filemode.Regular, filemode.Dir} {
		if i, ok := slices.BinarySearchFunc(entries, treeEntry{name: name, mode: mode}, compareEntries); ok && entries[i].name == name {
			return entries[i], true
		}
	}
	return treeEntry{}, false
}

// directory is a directory with edits below it.
type directory struct {
	name     string
	old      packfile.ID // zero: it is new
	inTheWay bool        // something else has its name
	edits    []edit
	id       packfile.ID // what it becomes; zero: it is left empty
}

// directories are those that edits are below, in order.
func directories(entries []treeEntry, edits []edit) (out []directory) {
	for len(edits) > 0 {
		name, _, nested := strings.Cut(edits[0].path, "/")
		if !nested {
			edits = edits[1:]
			continue
		}
		n, prefix := 1, edits[0].path[:len(name)+1]
		for n < len(edits) && strings.HasPrefix(edits[n].path, prefix) {
			n++
		}
		d := directory{name: name, edits: slices.Clone(edits[:n])}
		for i := range d.edits {
			d.edits[i].path = d.edits[i].path[len(prefix):]
		}
		if old, exists := named(entries, name); old.mode == filemode.Dir {
			d.old = old.id
		} else {
			d.inTheWay = exists
		}
		out, edits = append(out, d), edits[n:]
	}
	return out
}

// below makes the trees of directories, on all cores. Which objects there are,
// and in which order, does not depend on that.
func (b *builder) below(dirs []directory) error {
	builders := make([]builder, len(dirs))
	err := parallel.Try(runtime.GOMAXPROCS(0), len(dirs), func(i int) (err error) {
		builders[i] = builder{b.store, &packfile.Batch{Format: b.batch.Format}}
		dirs[i].id, err = builders[i].tree(dirs[i].old, dirs[i].edits)
		return err
	})
	if err != nil {
		return err
	}
	for _, made := range builders {
		b.batch.Join(made.batch)
	}
	return nil
}

// merge puts the changed entries in their place among the others.
func merge(entries []treeEntry, changed map[string]treeEntry) []treeEntry {
	added := make([]treeEntry, 0, len(changed))
	for _, e := range changed {
		if e.mode != 0 {
			added = append(added, e)
		}
	}
	slices.SortFunc(added, compareEntries)
	out := make([]treeEntry, 0, len(entries)+len(added))
	for _, e := range entries {
		if _, other := changed[e.name]; other {
			continue
		}
		for len(added) > 0 && compareEntries(added[0], e) < 0 {
			out, added = append(out, added[0]), added[1:]
		}
		out = append(out, e)
	}
	return append(out, added...)
}

// commit makes a commit and all that is new in it. c has its parent's tree,
// which the files change.
func (b *builder) commit(c commit, files []patch.Change, encode func(commit) ([]byte, error)) (packfile.ID, error) {
	edits, err := b.edits(files)
	if err != nil {
		return packfile.None, err
	}
	c.Tree, err = b.tree(c.Tree, edits)
	if err == nil && c.Tree.IsZero() {
		c.Tree, err = b.put(plumbing.TreeObject, nil) // every file is gone
	}
	if err != nil {
		return packfile.None, err
	}
	raw, err := encode(c)
	if err != nil {
		return packfile.None, err
	}
	return b.put(plumbing.CommitObject, raw)
}

func (b *builder) put(kind plumbing.ObjectType, data []byte) (packfile.ID, error) {
	ids, err := b.batch.Add(packfile.Object{Type: kind, Data: bytes.Clone(data)})
	if err != nil {
		return packfile.None, err
	}
	return ids[0], nil
}

// What a difference may hold: far more than any Policy lets through. Trees
// that hold the same ones again and again are small and never end.
const (
	maxDiffPaths = 200_000
	maxDiffBytes = 256 << 20
)

// Diff returns what turns the files of one commit into those of another. Only
// directories that differ are read. A difference with a symbolic link or a
// submodule in it, one with a path that patch.CheckPath refuses, one that is
// too large and one that is nothing are a *patch.Error.
func (r *Repo) Diff(_ context.Context, from, to string) (patch.Patchset, error) {
	return diff(r.trees, r.id(from), r.id(to))
}

func diff(s *lister, from, to packfile.ID) (patch.Patchset, error) {
	old, err := readCommit(s, from)
	if err != nil {
		return patch.Patchset{}, err
	}
	next, err := readCommit(s, to)
	if err != nil {
		return patch.Patchset{}, err
	}
	d := &differences{store: s, after: map[string]*patch.File{}}
	if err := diffTrees(s, old.Tree, next.Tree, d.add); err != nil {
		return patch.Patchset{}, err
	}
	base, err := commitTree(s.source, from)
	if err != nil {
		return patch.Patchset{}, err
	}
	return patch.NewTree(base).Between(d.after)
}

// FirstParent returns the commit that another was made on; of a merge, the one
// that it was merged into. One that is not here is a *CutOffError, none at all a *NoParentError.
func (r *Repo) FirstParent(_ context.Context, of string) (string, error) {
	c, err := readCommit(r.objects, r.id(of))
	switch {
	case err != nil:
		return "", err
	case len(c.Parents) == 0:
		return "", &fault.Error{Kind: fault.Failed, Message: "commit " + of + " has no parent", Try: "name a later commit", Cause: ErrNoParent}
	case !r.has(c.Parents[0]):
		return "", &CutOffError{c.Parents[0].String()}
	}
	return c.Parents[0].String(), nil
}

// Parents returns the parents of a commit, in the order in which it has them.
func (r *Repo) Parents(_ context.Context, of string) ([]string, error) {
	c, err := readCommit(r.objects, r.id(of))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range c.Parents {
		out = append(out, p.String())
	}
	return out, nil
}

// ErrNoParent is the cause of the error of a commit that a repository began with, where one that changed something is asked for.
var ErrNoParent = errors.New("it has no parent")

// ErrNoCommit is the error of a name behind which no commit is.
var ErrNoCommit = errors.New("names no commit here")

func noCommit(name string) error { return fmt.Errorf("%+q %w", name, ErrNoCommit) }

// Commit returns the id of the commit that HEAD, a branch, a remote branch
// ("origin/main"), a tag, or the full name of a ref names, or that is a whole id
// itself. What is none is [ErrNoCommit]: also the beginning of an id, which
// another commit can be made to have.
func (r *Repo) Commit(ctx context.Context, name string) (string, error) {
	id, err := name, error(nil)
	switch {
	case name == "HEAD":
		return r.Head(ctx)
	case !packfile.IsID(name):
		id, err = r.named(name)
	case r.id(name).IsZero():
		return "", noCommit(name)
	}
	if err != nil {
		return "", err
	}
	if _, err := readCommit(r.objects, r.id(id)); errors.Is(err, packfile.ErrMissing) {
		return "", noCommit(name)
	} else if err != nil {
		return "", err
	}
	return id, nil
}

func (r *Repo) named(name string) (string, error) {
	full, tip, err := r.firstRef(name, "refs/heads/", "refs/remotes/", "refs/tags/", "")
	if err != nil || tip.IsZero() {
		return "", cmp.Or(err, noCommit(name))
	}
	tip, err = r.commitNamed(full)
	return tip.String(), err
}

// differences are the files of a tree that differ from another's.
type differences struct {
	store *lister
	after map[string]*patch.File
	paths int
	bytes int64
}

func (d *differences) add(c treeChange) error {
	if d.paths++; d.paths > maxDiffPaths {
		return &patch.Error{Message: fmt.Sprintf("changes more than %d files and directories", maxDiffPaths)}
	}
	for _, e := range []treeEntry{c.old, c.new} {
		if err := d.check(c.path, e); err != nil {
			return err
		}
	}
	// A file in the place of a directory, or the other way round, is a change of
	// its own.
	switch {
	case c.new.mode.IsFile():
		data, err := readObject(d.store, plumbing.BlobObject, c.new.id)
		d.after[c.path] = &patch.File{Mode: fileMode(c.new.mode), Data: data}
		return err
	case c.old.mode.IsFile():
		d.after[c.path] = nil
	}
	return nil
}

// check refuses what no Patchset holds, and a directory that is not as git
// writes it: two readers could differ in what is in it.
func (d *differences) check(path string, e treeEntry) error {
	if e == (treeEntry{}) {
		return nil
	}
	switch e.mode { // git takes a mode of 0, and every one that it does not know, for a submodule
	case filemode.Dir:
		return d.checkDir(e.id)
	case filemode.Regular, filemode.Executable, filemode.Deprecated:
		_, size, err := d.store.Size(e.id)
		if d.bytes += size; err == nil && d.bytes > maxDiffBytes {
			err = &patch.Error{Path: path, Message: fmt.Sprintf("the changed files have more than %d bytes", maxDiffBytes)}
		}
		return err
	case filemode.Symlink:
		return &patch.Error{Path: path, Message: "symbolic links are refused"}
	case filemode.Submodule:
		return &patch.Error{Path: path, Message: "submodules are refused"}
	}
	return &patch.Error{Path: path, Message: fmt.Sprintf("unknown file mode %o", uint32(e.mode))}
}

func (d *differences) checkDir(id packfile.ID) error {
	dir, err := d.store.list(id)
	if err == nil && dir.bad != nil {
		err = fmt.Errorf("tree %s %w", id, dir.bad)
	}
	return err
}

func fileMode(m filemode.FileMode) patch.Mode {
	if m == filemode.Executable {
		return patch.Executable
	}
	return patch.Regular
}

// Blob is the content of a file.
func (r *Repo) Blob(_ context.Context, id string) ([]byte, error) {
	return readObject(r.objects, plumbing.BlobObject, r.id(id))
}

// Paths tells in which paths the files of two commits differ, in byte order, without reading any
// content. A directory that is not as git writes it, and one without files, is told as
// a path of its own with its mode: no patch is that.
func (r *Repo) Paths(_ context.Context, from, to string) ([]code.PathChange, error) {
	old, err := readCommit(r.objects, r.id(from))
	if err != nil {
		return nil, err
	}
	next, err := readCommit(r.objects, r.id(to))
	if err != nil {
		return nil, err
	}
	out := []code.PathChange{}
	err = diffTrees(r.trees, old.Tree, next.Tree, func(c treeChange) error {
		var one code.PathChange
		for _, side := range []struct {
			treeEntry
			toMode *uint32
			toID   *string
		}{{c.old, &one.Old, &one.OldID}, {c.new, &one.New, &one.NewID}} {
			if side.treeEntry == (treeEntry{}) {
				continue
			}
			if side.mode == filemode.Dir {
				dir, err := r.trees.list(side.id)
				if err != nil {
					return err
				}
				if dir.bad == nil && (len(dir.entries) > 0 || c.path == "") {
					continue
				}
			}
			*side.toMode, *side.toID = cmp.Or(uint32(side.mode), uint32(filemode.Submodule)), side.id.String() // as git takes a mode of 0
		}
		if one != (code.PathChange{}) {
			one.Path = c.path
			out = append(out, one)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b code.PathChange) int { return strings.Compare(a.Path, b.Path) })
	return out, err
}
