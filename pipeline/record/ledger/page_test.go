package ledger_test

import (
	"io/fs"
	"path"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/online"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// T77 T96 No rule and no list of the record looks at what is in the place of a page, be it a file, a link or a directory.
func TestT77T96NoPageDecides(t *testing.T) {
	tree, ids := storetest.Recorded(t, storetest.Mixed(9)...)
	denials, err := online.AllDenials(tree)
	if err != nil || len(denials) == 0 {
		t.Fatal(err)
	}
	places := map[string]bool{ledger.ReadmeFile: true}
	for name := range tree {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if page := dir + "/" + ledger.ReadmeFile; ledger.IsPage(page) {
				places[page] = true
			}
		}
	}
	for _, file := range []struct {
		below string
		fstest.MapFile
	}{{"", fstest.MapFile{Data: []byte("# All is well\n")}}, {"", fstest.MapFile{Data: []byte("ledger.json"), Mode: fs.ModeSymlink}}, {"/transaction.json", fstest.MapFile{Data: []byte("{}\n")}}, {"/00/x/y", fstest.MapFile{}}} {
		for page := range places {
			tree[page+file.below] = &file.MapFile
		}
		if again, err := lookup.IDs(tree); err != nil || !slices.Equal(again, ids) {
			t.Errorf("%q: %v %v", file.below, again, err)
		}
		if again, err := online.AllDenials(tree); err != nil || !slices.Equal(again, denials) {
			t.Errorf("%q: %v %v", file.below, again, err)
		}
		for _, id := range ids {
			dir, err := fs.Sub(tree, ledger.Dir(id))
			fatal(t, err)
			if found := checkOwn(dir, id); len(found) > 0 {
				t.Errorf("%q: %v", file.below, found)
			}
		}
		for page := range places {
			delete(tree, page+file.below)
		}
	}
}
