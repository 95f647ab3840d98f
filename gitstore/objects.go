package gitstore

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// source is where objects are read from, whose content is shared and must not be
// modified. Several goroutines may use it.
type source interface {
	View(id plumbing.Hash) (packfile.Object, error)
	Size(id plumbing.Hash) (plumbing.ObjectType, int64, error)
}

// overlay serves what is not written yet before what is there.
type overlay struct {
	new *packfile.Batch
	source
}

func (o overlay) View(id plumbing.Hash) (packfile.Object, error) {
	if object, ok := o.new.Get(id); ok {
		return object, nil
	}
	return o.source.View(id)
}

// readObject returns the content of an object, which must have this type. It is
// shared.
func readObject(s source, kind plumbing.ObjectType, id plumbing.Hash) ([]byte, error) {
	o, err := s.View(id)
	if err == nil && o.Type != kind {
		err = fmt.Errorf("object %s is a %s, not a %s", id, o.Type, kind)
	}
	return o.Data, err
}

// commit is what matters here of a commit.
type commit struct {
	tree    plumbing.Hash
	parents []plumbing.Hash
}

func readCommit(s source, id plumbing.Hash) (commit, error) {
	raw, err := readObject(s, plumbing.CommitObject, id)
	if err == nil {
		var c commit
		if c, err = parseCommit(raw); err == nil {
			return c, nil
		}
	}
	return commit{}, fmt.Errorf("reading commit %s: %w", id, err)
}

// treeOf returns the tree of a commit, zero for no commit.
func treeOf(s source, commit plumbing.Hash) (plumbing.Hash, error) {
	if commit.IsZero() {
		return plumbing.ZeroHash, nil
	}
	c, err := readCommit(s, commit)
	return c.tree, err
}

// parseCommit reads the first lines of a commit: "tree <id>", then any number
// of "parent <id>" (git-hash-object(1) checks the same).
func parseCommit(raw []byte) (c commit, err error) {
	text, ok := string(raw), false
	if c.tree, text, ok = headerLine(text, "tree "); !ok {
		return commit{}, fmt.Errorf("it has no tree")
	}
	for {
		parent, rest, ok := headerLine(text, "parent ")
		if !ok {
			break
		}
		c.parents, text = append(c.parents, parent), rest
	}
	if !strings.HasPrefix(text, "author ") {
		return commit{}, fmt.Errorf("it has no author")
	}
	return c, nil
}

func headerLine(text, key string) (id plumbing.Hash, rest string, ok bool) {
	line, rest, found := strings.Cut(text, "\n")
	hex, ok := strings.CutPrefix(line, key)
	if !found || !ok || !plumbing.IsHash(hex) {
		return id, text, false
	}
	return plumbing.NewHash(hex), rest, true
}

// identity is who a commit is by. What would end a name or an address early is left
// out, as git does.
func identity(name, email string) string {
	clean := strings.NewReplacer("<", "", ">", "", "\n", "", "\x00", "")
	return clean.Replace(name) + " <" + clean.Replace(email) + ">"
}

// us is who commits what this program makes.
const (
	ourName  = "countersign"
	ourEmail = "countersign@localhost"
	us       = ourName + " <" + ourEmail + ">"
)

// encodeCommit writes a commit. All of its times are UTC.
func encodeCommit(c commit, author, committer string, when time.Time, message string) []byte {
	return encodeAuthored(c, author, when.UTC(), committer, when, message)
}

// encodeAuthored writes a commit whose author has a time, and a zone, of their own.
func encodeAuthored(c commit, author string, authored time.Time, committer string, when time.Time, message string) []byte {
	text := append(make([]byte, 0, 256+len(message)), "tree "+c.tree.String()...)
	for _, p := range c.parents {
		text = append(text, "\nparent "+p.String()...)
	}
	text = append(append(append(text, "\nauthor "...), author...), ' ')
	text = strconv.AppendInt(text, max(authored.Unix(), 0), 10)
	text = append(append(append(authored.AppendFormat(text, " -0700"), "\ncommitter "...), committer...), ' ')
	text = strconv.AppendInt(text, max(when.Unix(), 0), 10)
	return append(append(text, " +0000\n\n"...), message...)
}

// treeEntry is one entry of a tree.
type treeEntry struct {
	name string
	mode filemode.FileMode
	id   plumbing.Hash
}

func readTree(s source, id plumbing.Hash) ([]treeEntry, error) {
	raw, err := readObject(s, plumbing.TreeObject, id)
	if err == nil {
		var entries []treeEntry
		if entries, err = parseTree(raw); err == nil {
			return entries, nil
		}
	}
	return nil, fmt.Errorf("reading tree %s: %w", id, err)
}

// parseTree reads a tree object: entries of "<octal mode> <name>\0" and the 20
// bytes of an id, as many as there are.
func parseTree(raw []byte) ([]treeEntry, error) {
	const idSize = len(plumbing.Hash{})
	entries := make([]treeEntry, 0, bytes.Count(raw, []byte{0})) // an id may hold some as well
	for rest := string(raw); rest != ""; {
		mode, after, ok1 := strings.Cut(rest, " ")
		name, after, ok2 := strings.Cut(after, "\x00")
		bits, err := strconv.ParseUint(mode, 8, 24)
		if !ok1 || !ok2 || err != nil || len(after) < idSize {
			return nil, errors.New("the tree is malformed")
		}
		e := treeEntry{name: name, mode: filemode.FileMode(bits)}
		copy(e.id[:], after)
		entries, rest = append(entries, e), after[idSize:]
	}
	return entries, nil
}

// compareEntries is Git's order: a directory sorts as if its name ended in a
// slash.
func compareEntries(a, b treeEntry) int {
	return compareNames(a.name, a.mode == filemode.Dir, b.name, b.mode == filemode.Dir)
}

func compareNames[Name string | []byte](a Name, aDir bool, b Name, bDir bool) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return cmp.Compare(a[i], b[i])
		}
	}
	return cmp.Compare(byteAt(a, aDir, n), byteAt(b, bDir, n))
}

// byteAt is what stands at i in a name as it sorts: nothing, a byte with a
// value that is greater, or a directory's slash.
func byteAt[Name string | []byte](name Name, dir bool, i int) byte {
	switch {
	case i < len(name):
		return name[i]
	case dir:
		return '/'
	}
	return 0
}

func encodeTree(entries []treeEntry) []byte {
	size := 0
	for _, e := range entries {
		size += len("100644 ") + len(e.name) + 1 + len(e.id)
	}
	out := make([]byte, 0, size)
	for _, e := range entries {
		out = strconv.AppendUint(out, uint64(e.mode), 8)
		out = append(append(append(out, ' '), e.name...), 0)
		out = append(out, e.id[:]...)
	}
	return out
}

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
// in them; the whole tree is the path "". Equal directories are not read, nor what is
// below where visit returns fs.SkipDir.
func diffTrees(s source, old, new plumbing.Hash, visit func(treeChange) error) error {
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
			return nil, fmt.Errorf("commit %s is a merge, and a ledger has no merges", at)
		}
		l := link{id: at, tree: c.tree}
		if len(c.parents) == 1 {
			l.parent = c.parents[0]
		}
		out = append(out, l)
		if l.parent.IsZero() && !ancestor.IsZero() {
			return nil, fmt.Errorf("commit %s is not an ancestor of %s", ancestor, tip)
		}
		at = l.parent
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out, nil
}
