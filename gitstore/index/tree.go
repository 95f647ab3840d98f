package index

import (
	"bytes"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
)

// A Tree is a directory whose tree object git has noted.
type Tree struct {
	Name  string
	Valid bool          // ID is the tree that the entries below make
	ID    plumbing.Hash // zero unless valid
	Below []*Tree
}

// Root returns the tree that the entries make, as far as git has noted it; nil
// if it has not.
func (x *Index) Root() *Tree { return readTrees(x.trees, len(x.entries)) }

// Dir returns what is noted of a directory in this one, nil if nothing is.
func (t *Tree) Dir(name string) *Tree {
	if t == nil {
		return nil
	}
	for _, b := range t.Below {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// readTrees reads the extension: for each directory its name, a NUL, the number
// of its entries (-1 where it is not valid), a space, the number of directories
// in it that follow, a newline, and the id if it is valid. What is malformed is
// as if it were not there, as git takes it.
func readTrees(b []byte, entries int) *Tree {
	t, rest := readTree(b, entries, 0)
	if len(rest) > 0 {
		return nil
	}
	return t
}

// maxDepth is how deep directories may be.
const maxDepth = 4096

func readTree(b []byte, entries, depth int) (*Tree, []byte) {
	name, b, ok1 := bytes.Cut(b, []byte{0})
	head, b, ok2 := bytes.Cut(b, []byte("\n"))
	count, below, ok3 := bytes.Cut(head, []byte(" "))
	n, err1 := strconv.Atoi(string(count))
	dirs, err2 := strconv.Atoi(string(below))
	if !ok1 || !ok2 || !ok3 || err1 != nil || err2 != nil || n > entries || dirs < 0 || depth > maxDepth {
		return nil, nil
	}
	t := &Tree{Name: string(name), Valid: n >= 0}
	if t.Valid {
		if len(b) < len(t.ID) {
			return nil, nil
		}
		copy(t.ID[:], b)
		b = b[len(t.ID):]
	}
	for range dirs {
		var d *Tree
		if d, b = readTree(b, entries, depth+1); d == nil {
			return nil, nil
		}
		t.Below = append(t.Below, d)
	}
	return t, b
}
