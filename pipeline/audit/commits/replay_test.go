package commits

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/patch"
)

// TestMaxWork: once an audit has made too many patches again, it makes none, and says so.
func TestMaxWork(t *testing.T) {
	set, err := patch.Between(fstest.MapFS{}, map[string]*patch.File{"a": {Mode: patch.Regular, Data: []byte("a\n")}})
	if err != nil {
		t.Fatal(err)
	}
	x := &Index{order: []string{"tx", "other"}, files: []int{1, 2}, touches: map[string][]int{"a": {0, 1}, "b": {1}}}
	if got := x.inside(set.Paths()); len(got) != 1 || got[0] != "tx" {
		t.Errorf("inside: %q", got)
	}
	for _, work := range []int{maxWork + 1, maxWork - perPatch + 1} { // reading one small patch is work, too
		j := &judge{Options: Options{Index: x, Ledger: fstest.MapFS{}}, work: work}
		by, why, lines, err := j.replay(t.Context(), set, "commit", nil)
		if by != nil || !strings.Contains(why, "has made too many") || lines != nil || err != nil {
			t.Errorf("%+v %q %v %v", by, why, lines, err)
		}
	}
}
