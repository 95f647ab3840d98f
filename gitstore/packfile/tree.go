package packfile

import (
	"bytes"
	"cmp"

	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
)

// An Entry is an entry as it stands in a tree, of which it is a part: its fields
// are not to be modified. The zero Entry is none.
type Entry struct {
	Mode []byte // octal digits
	Name []byte
	Raw  []byte // the bytes of its id
}

// IsDir reports whether the entry is a directory.
func (e Entry) IsDir() bool { return string(e.Mode) == "40000" }

// ID is the id of what stands there, zero for none.
func (e Entry) ID() ID { return history.NewID(e.Raw) }

// Append writes the entry at the end of a tree.
func (e Entry) Append(tree []byte) []byte {
	tree = append(append(tree, e.Mode...), ' ')
	return append(append(append(tree, e.Name...), 0), e.Raw...)
}

// CutEntry takes the first entry off a tree. Without one, ok is false.
func (f Format) CutEntry(tree []byte) (e Entry, rest []byte, ok bool) {
	idSize := f.Size()
	space := bytes.IndexByte(tree[:min(len(tree), 8)], ' ')
	if space < 1 {
		return e, tree, false
	}
	end := bytes.IndexByte(tree[space:], 0)
	if end < 2 || len(tree) < space+end+1+idSize {
		return e, tree, false
	}
	e = Entry{tree[:space], tree[space+1 : space+end], tree[space+end+1 : space+end+1+idSize]}
	return e, tree[space+end+1+idSize:], true
}

// Compare is Git's order of entries.
func Compare(a, b Entry) int { return CompareNames(a.Name, a.IsDir(), b.Name, b.IsDir()) }

// CompareNames is Git's order of names: a directory sorts as if its name ended in a
// slash.
func CompareNames[Name string | []byte](a Name, aDir bool, b Name, bDir bool) int {
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
