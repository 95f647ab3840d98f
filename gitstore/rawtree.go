package gitstore

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

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
