package gitstore

import (
	"fmt"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// TestCheckEntries: what newNode refuses of a sorted tree, and what is not sorted.
func TestCheckEntries(t *testing.T) {
	id := packfile.ParseID("0123456789012345678901234567890123456789")
	file := func(name string) treeEntry { return treeEntry{name, filemode.Regular, id} }
	dir := func(name string) treeEntry { return treeEntry{name, filemode.Dir, id} }
	tests := []struct {
		entries []treeEntry
		want    string
	}{
		{nil, ""},
		{[]treeEntry{file("a"), file("a-b"), dir("a0"), dir("b")}, ""},
		{[]treeEntry{dir("a"), file("a0")}, ""},
		{[]treeEntry{file("b"), file("a")}, "is malformed: it is not sorted"},
		{[]treeEntry{dir("a"), file("a-b")}, "is malformed: it is not sorted"},
		{[]treeEntry{file("a"), file("a")}, `has a malformed entry "a"`},
		{[]treeEntry{file("a"), dir("a")}, `has a malformed entry "a"`},
		{[]treeEntry{file("a"), file("a-b"), file("a."), dir("a"), file("b")}, `has a malformed entry "a"`},
		{[]treeEntry{{"a", filemode.Symlink, id}, file("a-b"), dir("a")}, `has a malformed entry "a"`},
		{[]treeEntry{file("")}, `has a malformed entry ""`},
		{[]treeEntry{file("..")}, `has a malformed entry ".."`},
		{[]treeEntry{dir(".")}, `has a malformed entry "."`},
		{[]treeEntry{file("a/b")}, `has a malformed entry "a/b"`},
	}
	for _, tt := range tests {
		got := ""
		if err := checkEntries(tt.entries); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%v: %q, not %q", tt.entries, got, tt.want)
		}
		if _, err := newNode(tt.entries); err != nil && err.Error() != got {
			t.Errorf("%v: %q, and newNode says %q", tt.entries, got, err)
		}
	}
}

// counted serves trees that are made when they are asked for, each with its own name alone.
type counted struct {
	source
	entries, asked int
}

func (c *counted) View(id packfile.ID) (packfile.Object, error) {
	c.asked++
	entries := make([]treeEntry, c.entries)
	for i := range entries {
		entries[i] = treeEntry{fmt.Sprintf("%s-%08d", id, i), filemode.Regular, id}
	}
	return packfile.Object{Type: plumbing.TreeObject, Data: encodeTree(entries)}, nil
}

// TestLister: a tree that was read lately is not read again, and of many the first ones are.
func TestLister(t *testing.T) {
	trees := &counted{entries: maxListed/4 + 1}
	l := &lister{source: trees}
	read := func(n, want int) {
		t.Helper()
		id := packfile.ParseID(fmt.Sprintf("%040x", n))
		got, err := l.list(id)
		if err != nil || got.bad != nil || len(got.entries) != trees.entries || got.entries[0].name != id.String()+"-00000000" {
			t.Fatalf("tree %d: %d entries, %v, %v", n, len(got.entries), got.bad, err)
		}
		if trees.asked != want {
			t.Fatalf("tree %d: %d trees were read, not %d", n, trees.asked, want)
		}
	}
	read(1, 1)
	read(1, 1)
	for n := 2; n <= 8; n++ {
		read(n, n)
		read(n-1, n)
	}
	read(1, 9)
}
