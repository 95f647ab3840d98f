package gitstore

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
)

// source is where objects are read from, whose content is shared and must not be
// modified. Several goroutines may use it.
type source interface {
	View(id packfile.ID) (packfile.Object, error)
	Size(id packfile.ID) (plumbing.ObjectType, int64, error)
}

// overlay serves what is not written yet before what is there.
type overlay struct {
	new *packfile.Batch
	source
}

func (o overlay) View(id packfile.ID) (packfile.Object, error) {
	if object, ok := o.new.Get(id); ok {
		return object, nil
	}
	return o.source.View(id)
}

func (o overlay) Size(id packfile.ID) (plumbing.ObjectType, int64, error) {
	if object, ok := o.new.Get(id); ok {
		return object.Type, int64(len(object.Data)), nil
	}
	return o.source.Size(id)
}

// A lister reads trees as lists, and keeps those that it read last: a difference reads each directory twice, the
// commits of a branch are compared with the one before and the one after, and trees that hold the same ones again and
// again are small and never end. Several goroutines may use it.
type lister struct {
	source
	recent packfile.Recent[packfile.ID, list]
}

// maxListed is how many entries the lists have that are kept, and as many again of those before.
const maxListed = 1 << 16

// A list is a tree that was read. bad says why it is not as git writes it, nil if it is: two
// readers could differ in what is in it. It is shared.
type list struct {
	entries []treeEntry
	bad     error
}

func (l *lister) list(id packfile.ID) (list, error) {
	if got, known := l.recent.Get(id); known {
		return got, nil
	}
	entries, err := parsedTree(l.source, id)
	if err != nil {
		return list{}, err
	}
	got := list{entries, checkEntries(entries)}
	l.recent.Put(id, got, len(entries)+1, maxListed)
	return got, nil
}

// readObject returns the content of an object, which must have this type. It is
// shared.
func readObject(s source, kind plumbing.ObjectType, id packfile.ID) ([]byte, error) {
	o, err := s.View(id)
	if err == nil && o.Type != kind {
		err = fmt.Errorf("object %s is a %s, not a %s", id, o.Type, kind)
	}
	return o.Data, err
}

// commit is short for what an object has of one.
type commit = packfile.Commit

func readCommit(s source, id packfile.ID) (commit, error) {
	c, _, err := readRawCommit(s, id)
	return c, err
}

// readRawCommit is readCommit with the bytes, which are shared.
func readRawCommit(s source, id packfile.ID) (c commit, raw []byte, err error) {
	if raw, err = readObject(s, plumbing.CommitObject, id); err == nil {
		c, err = packfile.ParseCommit(raw)
	}
	if err != nil {
		return commit{}, nil, fmt.Errorf("reading commit %s: %w", id, err)
	}
	return c, raw, nil
}

// treeOf returns the tree of a commit, zero for no commit.
func treeOf(s source, commit packfile.ID) (packfile.ID, error) {
	if commit.IsZero() {
		return packfile.None, nil
	}
	c, err := readCommit(s, commit)
	return c.Tree, err
}

// identity is who a commit is by. What would end a name or an address early is left
// out, as git does.
func identity(name, email string) string {
	clean := strings.NewReplacer("<", "", ">", "", "\n", "", "\x00", "")
	return clean.Replace(name) + " <" + clean.Replace(email) + ">"
}

// treeEntry is one entry of a tree.
type treeEntry struct {
	name string
	mode filemode.FileMode
	id   packfile.ID
}

// readTree returns the entries of a tree, which are shared.
func readTree(s source, id packfile.ID) ([]treeEntry, error) {
	if l, is := s.(*lister); is {
		got, err := l.list(id)
		return got.entries, err
	}
	return parsedTree(s, id)
}

func parsedTree(s source, id packfile.ID) ([]treeEntry, error) {
	raw, err := readObject(s, plumbing.TreeObject, id)
	if err == nil {
		var entries []treeEntry
		if entries, err = parseTree(raw, packfile.FormatOf(id)); err == nil {
			return entries, nil
		}
	}
	return nil, fmt.Errorf("reading tree %s: %w", id, err)
}

// parseTree reads a tree object: entries of "<octal mode> <name>\0" and the
// bytes of an id, as many as there are.
func parseTree(raw []byte, f packfile.Format) ([]treeEntry, error) {
	entries := make([]treeEntry, 0, bytes.Count(raw, []byte{0})) // an id may hold some as well
	for rest := string(raw); rest != ""; {
		mode, after, ok1 := strings.Cut(rest, " ")
		name, after, ok2 := strings.Cut(after, "\x00")
		bits, err := strconv.ParseUint(mode, 8, 24)
		if !ok1 || !ok2 || err != nil || len(after) < f.Size() {
			return nil, errors.New("the tree is malformed")
		}
		id := history.NewID([]byte(after[:f.Size()]))
		if id.IsZero() {
			return nil, fmt.Errorf("the tree's entry %+q names no object", name)
		}
		entries = append(entries, treeEntry{name, filemode.FileMode(bits), id})
		rest = after[f.Size():]
	}
	return entries, nil
}

// checkEntries says why a tree is not as git writes it: it is not sorted, or has a name twice, or one that is no name.
func checkEntries(entries []treeEntry) error {
	if !slices.IsSortedFunc(entries, compareEntries) {
		return errors.New("is malformed: it is not sorted")
	}
	for i, e := range entries {
		twice := i > 0 && entries[i-1].name == e.name
		if e.mode == filemode.Dir && !twice {
			first, _ := named(entries, e.name) // a file before a directory
			twice = first.mode != filemode.Dir
		}
		if twice || !isName(e.name) {
			return fmt.Errorf("has a malformed entry %+q", e.name)
		}
	}
	return nil
}

// compareEntries is Git's order: a directory sorts as if its name ended in a
// slash.
func compareEntries(a, b treeEntry) int {
	return packfile.CompareNames(a.name, a.mode == filemode.Dir, b.name, b.mode == filemode.Dir)
}

func encodeTree(entries []treeEntry) []byte {
	size := 0
	for _, e := range entries {
		size += len("100644 ") + len(e.name) + 1 + e.id.Size()
	}
	out := make([]byte, 0, size)
	for _, e := range entries {
		out = strconv.AppendUint(out, uint64(e.mode), 8)
		out = append(append(append(out, ' '), e.name...), 0)
		out = e.id.Append(out)
	}
	return out
}

// entryAt returns what a path is in a tree; a zero entry means nothing.
func entryAt(s source, root packfile.ID, name string) (treeEntry, error) {
	e := treeEntry{mode: filemode.Dir, id: root}
	for _, part := range strings.Split(name, "/") {
		entries, err := directoryEntries(s, e)
		if err != nil {
			return treeEntry{}, err
		}
		e, _ = named(entries, part)
	}
	return e, nil
}

// A treeChange is a path whose entry differs between two trees. Either may be
// zero.
type treeChange struct {
	path     string
	old, new treeEntry
}

// diffTrees calls visit for every path that differs, directories before what is
// in them; the whole tree is the path "". Equal directories are not read, nor what is
// below where visit returns fs.SkipDir.
func diffTrees(s source, old, new packfile.ID, visit func(treeChange) error) error {
	if old == new {
		return nil
	}
	return diffEntries(s, treeChange{"", treeEntry{mode: filemode.Dir, id: old}, treeEntry{mode: filemode.Dir, id: new}}, visit)
}

// diffEntries visits a path that differs, and what does below it.
func diffEntries(s source, at treeChange, visit func(treeChange) error) error {
	if err := visit(at); err == fs.SkipDir {
		return nil
	} else if err != nil {
		return err
	}
	before, err := directoryEntries(s, at.old)
	if err != nil {
		return err
	}
	after, err := directoryEntries(s, at.new)
	if err != nil {
		return err
	}
	for len(before) > 0 || len(after) > 0 {
		if len(before) > 0 && len(after) > 0 && before[0] == after[0] {
			before, after = before[1:], after[1:]
			continue
		}
		var c treeChange
		switch order := compareHeads(before, after); {
		case order < 0:
			c.old, before = before[0], before[1:]
		case order > 0:
			c.new, after = after[0], after[1:]
		default:
			c.old, c.new, before, after = before[0], after[0], before[1:], after[1:]
		}
		c.path = path.Join(at.path, cmp.Or(c.new.name, c.old.name))
		if err := diffEntries(s, c, visit); err != nil {
			return err
		}
	}
	return nil
}

// compareHeads tells which list's first entry comes first.
func compareHeads(a, b []treeEntry) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return compareEntries(a[0], b[0])
}

// directoryEntries lists a directory; anything else has none.
func directoryEntries(s source, e treeEntry) ([]treeEntry, error) {
	if e.mode != filemode.Dir || e.id.IsZero() {
		return nil, nil
	}
	return readTree(s, e.id)
}

// A link is one commit of a linear history.
type link struct {
	id, parent packfile.ID
	tree       packfile.ID
}

// An ancestor is a commit as it was read.
type ancestor struct {
	id packfile.ID
	commit
	raw []byte // shared
}

// ancestors are a commit and those before it, by first parents; the error is the last.
func ancestors(s source, tip packfile.ID) iter.Seq2[ancestor, error] {
	return func(yield func(ancestor, error) bool) {
		for at := tip; !at.IsZero(); {
			c, raw, err := readRawCommit(s, at)
			if !yield(ancestor{at, c, raw}, err) || err != nil || len(c.Parents) == 0 {
				return
			}
			at = c.Parents[0]
		}
	}
}

// between returns the commits after an ancestor up to tip, oldest first; all of
// them for a zero one.
func between(s source, after, tip packfile.ID) (out []link, err error) {
	if tip == after {
		return nil, nil
	}
	for c, err := range ancestors(s, tip) {
		if err != nil {
			return nil, err
		}
		if len(c.Parents) > 1 {
			return nil, fmt.Errorf("commit %s is a merge, and a ledger has no merges", c.id)
		}
		l := link{id: c.id, tree: c.Tree}
		if len(c.Parents) == 1 {
			l.parent = c.Parents[0]
		}
		if out = append(out, l); l.parent == after {
			slices.Reverse(out)
			return out, nil
		}
	}
	return nil, fmt.Errorf("commit %s is not an ancestor of %s", after, tip)
}
