package explain_test

import (
	"context"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// changing is a repository in which every commit changes the same in its first parent, which has these files.
type changing struct {
	set  patch.Patchset
	base fs.FS
}

func (c changing) Diff(context.Context, string, string) (patch.Patchset, error) { return c.set, nil }
func (c changing) Tree(context.Context, string) (fs.FS, error)                  { return c.base, nil }
func (c changing) MergeBases(context.Context, string, string) ([]string, error) {
	return []string{"base"}, nil
}
func (c changing) Descends(context.Context, string, string) (bool, error) { return false, nil }
func (c changing) Paths(context.Context, string, string) (out []explain.PathChange, err error) {
	for _, f := range c.set.Files() {
		one := explain.PathChange{Path: f.Path}
		if f.Before != nil {
			one.Old, one.OldID = uint32(f.Before.Mode), f.Before.BlobID()
		}
		if f.After != nil {
			one.New, one.NewID = uint32(f.After.Mode), f.After.BlobID()
		}
		out = append(out, one)
	}
	return out, nil
}
func (c changing) Blob(_ context.Context, id string) ([]byte, error) {
	for _, f := range c.set.Files() {
		for _, side := range []*patch.File{f.Before, f.After} {
			if side != nil && side.BlobID() == id {
				return side.Data, nil
			}
		}
	}
	return nil, fs.ErrNotExist
}
func (c changing) RawCommit(context.Context, string) ([]byte, error) { return []byte("tree x\n"), nil }

// TestT79CommitThatARecordNames: a record that an approved change became a commit accounts
// for that commit only if it is that change. Whoever writes the ledger can name another one,
// and an apply that was cut off names what it then finds on the branch.
func TestT79CommitThatARecordNames(t *testing.T) {
	t.Parallel()
	tree, ids := storetest.Recorded(t, storetest.Whole)
	index, err := indexOf(tree)
	fatal(t, err)
	log, err := lookup.Read(tree, ids[0])
	fatal(t, err)
	made := ledger.Of[*ledger.ApplyComplete](log)[0].CommitAfter
	base := fstest.MapFS{"dir/file0.txt": &fstest.MapFile{Data: []byte("one\nhello 0\nthree\n"), Mode: 0o644}}
	approved := map[string]*patch.File{"dir/file0.txt": {Mode: patch.Regular, Data: []byte("one\nhello, world 0\nthree\n")}}
	more := map[string]*patch.File{"dir/file0.txt": approved["dir/file0.txt"], "evil": {Mode: patch.Regular, Data: []byte("evil\n")}}
	for name, c := range map[string]struct {
		after map[string]*patch.File
		list  []code.BranchCommit
		want  int
	}{
		"the change":    {approved, []code.BranchCommit{{ID: made, Parents: []string{"base"}}}, 1},
		"and more":      {more, []code.BranchCommit{{ID: made, Parents: []string{"base"}}}, 0},
		"a merge of it": {more, []code.BranchCommit{{ID: made, Parents: []string{"base", "side"}}, {ID: "side", Parents: []string{"base"}}}, 0},
		"without any":   {approved, []code.BranchCommit{{ID: made}}, 0},
	} {
		set, err := patch.NewTree(base).Between(c.after)
		fatal(t, err)
		got, err := explain.Run(context.Background(), explain.Options{Ledger: tree, Index: index, Code: changing{set, base}, Default: []string{"base"}}, c.list)
		fatal(t, err)
		if len(got.Explained) != c.want || len(got.Unexplained) != len(c.list)-c.want {
			t.Errorf("%s: explained %+v, unexplained %+v", name, got.Explained, got.Unexplained)
		}
	}
}
