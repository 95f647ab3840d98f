package gitstore

import (
	"fmt"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// entryAt returns what a path is in a tree; a zero entry means nothing.
func entryAt(s source, root plumbing.Hash, name string) (treeEntry, error) {
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
// in them. Equal directories are not read.
func diffTrees(s source, old, new plumbing.Hash, visit func(treeChange) error) error {
	return diffDirs(s, "", treeEntry{mode: filemode.Dir, id: old}, treeEntry{mode: filemode.Dir, id: new}, visit)
}

func diffDirs(s source, dir string, old, new treeEntry, visit func(treeChange) error) error {
	before, err := directoryEntries(s, old)
	if err != nil {
		return err
	}
	after, err := directoryEntries(s, new)
	if err != nil {
		return err
	}
	for len(before) > 0 || len(after) > 0 {
		var c treeChange
		switch order := compareHeads(before, after); {
		case order < 0:
			c.old, before = before[0], before[1:]
		case order > 0:
			c.new, after = after[0], after[1:]
		default:
			c.old, c.new, before, after = before[0], after[0], before[1:], after[1:]
		}
		if c.old == c.new {
			continue
		}
		c.path = path.Join(dir, c.old.name+c.new.name)
		if c.old.name == c.new.name {
			c.path = path.Join(dir, c.new.name)
		}
		if err := visit(c); err != nil {
			return err
		}
		if c.old.mode == filemode.Dir || c.new.mode == filemode.Dir {
			if err := diffDirs(s, c.path, c.old, c.new, visit); err != nil {
				return err
			}
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
	id, parent plumbing.Hash
	tree       plumbing.Hash
}

// between returns the commits after ancestor up to tip, oldest first; all of
// them for a zero ancestor.
func between(s source, ancestor, tip plumbing.Hash) ([]link, error) {
	var out []link
	for at := tip; at != ancestor; {
		c, err := readCommit(s, at)
		if err != nil {
			return nil, err
		}
		if len(c.parents) > 1 {
			return nil, fmt.Errorf("commit %s is a merge, which a ledger has none of", at)
		}
		l := link{id: at, tree: c.tree}
		if len(c.parents) == 1 {
			l.parent = c.parents[0]
		}
		out = append(out, l)
		if l.parent.IsZero() && !ancestor.IsZero() {
			return nil, fmt.Errorf("commit %s is no ancestor of %s", ancestor, tip)
		}
		at = l.parent
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out, nil
}
