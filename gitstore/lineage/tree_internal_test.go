package lineage

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/object"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
)

// nothing has no object.
type nothing struct{}

func (nothing) Object(object.ID) (plumbing.ObjectType, []byte, error) {
	return 0, nil, object.ErrMissing
}

// treeOf is a tree of files, each named by one byte of the names and another after it.
func treeOf(names []byte) (raw []byte) {
	for i, n := range names {
		id := [20]byte{0: n, 7: ' ', 9: byte(i), 19: '1'}
		raw = object.Entry{Mode: []byte("100644"), Name: fmt.Appendf(nil, "%02x%03d", n%64, i), Raw: id[:]}.Append(raw)
	}
	return raw
}

// FuzzTrees: two versions of a tree differ as if all of both had been read.
func FuzzTrees(f *testing.F) {
	f.Add([]byte("abcdefgh"), 3, 3, []byte(nil))
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaa"), 0, 0, treeOf([]byte("a")))
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaa"), 70, 0, []byte("x"))
	f.Add([]byte("abcdefgh"), 32, 32, treeOf([]byte("b")))
	f.Add([]byte(nil), 0, 0, []byte("100644 a\x0012345678901234567890"))
	f.Add([]byte("abc"), 0, 96, []byte(nil))
	f.Add([]byte("abc"), 7, 9, []byte("\x00\x00"))
	f.Fuzz(func(t *testing.T, names []byte, at, drop int, put []byte) {
		old := treeOf(slices.Sorted(slices.Values(names[:min(len(names), 300)])))
		at = min(max(at, 0), len(old))
		next := slices.Concat(old[:at], put, old[at+min(max(drop, 0), len(old)-at):])
		for _, pair := range [][2][]byte{{old, next}, {next, old}, {nil, next}, {next, next}, {old, bytes.Repeat(next, 2)}} {
			compare := func(a, b *tree) (*history.Commit, error) {
				d := newDiffer(New(nothing{}, Options{}))
				d.out = &history.Commit{}
				err := d.entries("dir", a, b, 1)
				return d.out, err
			}
			quick, err := compare(&tree{raw: pair[0]}, &tree{raw: pair[1]})
			whole, want := compare(&tree{raw: pair[0], known: true}, &tree{raw: pair[1], known: true})
			if !reflect.DeepEqual(quick, whole) || fmt.Sprint(err) != fmt.Sprint(want) {
				t.Errorf("%q, %q:\n%+v %v\n%+v %v", pair[0], pair[1], quick, err, whole, want)
			}
			one, other := &tree{raw: pair[0]}, &tree{raw: pair[1]}
			if one.isSound(nil) && other.isSound(one) {
				if alone := (&tree{raw: pair[1]}); !alone.isSound(nil) || !slices.Equal(alone.ends, other.ends) {
					t.Errorf("%q: entries end at %v, not %v", pair[1], other.ends, alone.ends)
				}
			}
		}
	})
}
