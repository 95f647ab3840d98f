package explain_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// These are commits, each of some files and on some others: "x:" before a text makes a file
// executable. One that has no files cannot be read.
type commits map[string]struct {
	parents string
	files   files
}

var errUnread = errors.New("no connection")

func (h commits) Parents(_ context.Context, commit string) ([]string, error) {
	if _, known := h[commit]; !known {
		return nil, errUnread
	}
	return strings.Fields(h[commit].parents), nil
}

func (h commits) Diff(_ context.Context, from, to string) (patch.Patchset, error) {
	if h[from].files == nil || h[to].files == nil {
		return patch.Patchset{}, errUnread
	}
	return patchOf(h[from].files, h[to].files)
}

func patchOf(from, to files) (patch.Patchset, error) {
	after := map[string]*patch.File{}
	for path := range from {
		after[path] = nil
	}
	for path, text := range to {
		after[path] = file(text)
	}
	return patch.NewTree(from.fs()).Between(after)
}

// TestPlaced: a change of two lines of a, and a file that is made, on a base that has moved or
// not, as one commit, a merge or a row.
func TestPlaced(t *testing.T) {
	base := files{"a": lines("1 2 3 4 5 6 7"), "b": "b\n"}
	approved := files{"a": lines("1 two 3 4 5 six 7"), "b": "b\n", "new": "new\n"}
	want, err := patchOf(base, approved)
	fatal(t, err)
	with := func(files files, changes ...string) files {
		out := maps.Clone(files)
		for i := 0; i < len(changes); i += 2 {
			if out[changes[i]] = changes[i+1]; changes[i+1] == "" {
				delete(out, changes[i])
			}
		}
		return out
	}
	moved := with(base, "a", lines("1 2 3 FOUR 5 6 7 8"), "b", "c\n")
	onMoved := with(moved, "a", lines("1 two 3 FOUR 5 six 7 8"), "new", "new\n")
	for name, c := range map[string]struct {
		was   files
		row   []files // the commits on what was
		merge int     // which of them is one, counted from 1
		from  int     // before the row; -1 where it is not placed
	}{
		"as approved":                    {base, []files{approved}, 0, 0},
		"as a merge":                     {base, []files{approved}, 1, 0},
		"on a moved base":                {moved, []files{onMoved}, 0, 0},
		"as a merge on a moved base":     {moved, []files{onMoved}, 1, 0},
		"a row":                          {base, []files{with(base, "new", "new\n"), approved}, 0, 0},
		"a row on a moved base":          {moved, []files{with(moved, "a", lines("1 two 3 FOUR 5 6 7 8")), with(moved, "a", lines("1 two 3 FOUR 5 six 7 8")), onMoved}, 0, 0},
		"after another commit":           {base, []files{moved, onMoved}, 0, 1},
		"and a line more":                {moved, []files{with(onMoved, "a", lines("1 two 3 FOUR 5 six 7 8 9"))}, 0, -1},
		"and a line less":                {moved, []files{with(onMoved, "a", lines("1 two 3 FOUR 5 six 7"))}, 0, -1},
		"and another file":               {base, []files{with(approved, "evil", "x\n")}, 0, -1},
		"and a mode":                     {base, []files{with(approved, "new", "x:new\n")}, 0, -1},
		"without a file":                 {base, []files{with(approved, "new", "")}, 0, -1},
		"another file, there and gone":   {base, []files{with(base, "new", "new\n", "evil", "x\n"), approved}, 0, -1},
		"another file, in the row":       {base, []files{with(base, "evil", "x\n"), with(approved, "evil", "x\n")}, 0, 1},
		"a line of it was there":         {with(moved, "a", lines("1 two 3 FOUR 5 6 7 8")), []files{onMoved}, 0, -1},
		"a neighbour moved":              {with(base, "a", lines("1 2 THREE 4 5 6 7")), []files{with(approved, "a", lines("1 two THREE 4 5 six 7"))}, 0, -1},
		"taken back":                     {approved, []files{base}, 0, -1},
		"a row that ends with a merge":   {base, []files{with(base, "new", "new\n"), approved}, 2, -1},
		"a merge in a row":               {base, []files{with(base, "new", "new\n"), approved}, 1, -1},
		"a row that is longer than most": {base, []files{with(base, "new", "new\n"), with(base, "new", "x:new\n"), with(base, "new", "new\n", "a", "x:"+base["a"]), approved}, 0, -1},
		"a commit that cannot be read":   {base, []files{nil, approved}, 0, -2},
	} {
		h := commits{"side": {"", base}, "c0": {"", c.was}}
		tip := "c0"
		for i, tree := range c.row {
			parents := tip
			if tip = fmt.Sprint("c", i+1); i+1 == c.merge {
				parents += " side"
			}
			h[tip] = struct {
				parents string
				files   files
			}{parents, tree}
		}
		from, ok, err := explain.Placed(t.Context(), h, want, tip, 3)
		if ok != (c.from >= 0) || ok && from != fmt.Sprint("c", c.from) || errors.Is(err, errUnread) != (c.from == -2) {
			t.Errorf("%s: %q %v %v", name, from, ok, err)
		}
	}
	if _, ok, err := explain.Placed(t.Context(), commits{}, want, "c9", 3); ok || !errors.Is(err, errUnread) {
		t.Errorf("no such commit: %v %v", ok, err)
	}
	if _, ok, err := explain.Placed(t.Context(), commits{"c0": {"", base}}, want, "c0", 3); ok || err != nil {
		t.Errorf("the first commit: %v %v", ok, err)
	}
}
