package gitstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
)

// randomHistory makes n commits with random parents. Of every three seeds one
// has all commits at one time, one at times in order with a few wrong clocks,
// and one at any times.
func randomHistory(t *testing.T, seed uint64, n int) (work, []string) {
	t.Helper()
	w := initWork(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var in strings.Builder
	for i := range n {
		when := 1_700_000_000
		switch {
		case seed%3 == 1 && rnd.IntN(8) > 0:
			when += i / 3 * 10
		case seed%3 > 0:
			when += rnd.IntN(200)
		}
		fmt.Fprintf(&in, "commit refs/heads/c%d\nmark :%d\ncommitter A <a@example.org> %d +0000\ndata 2\nc\n", i, i+1, when)
		word := "from"
		for _, p := range rnd.Perm(min(i, 7))[:min(i, rnd.IntN(4))] {
			fmt.Fprintf(&in, "%s :%d\n", word, i-p)
			word = "merge"
		}
		in.WriteString("\n")
	}
	w.stdin(in.String(), "fast-import", "--quiet")
	ids := make([]string, n)
	for line := range strings.Lines(w.git("for-each-ref", "--format=%(refname:short) %(objectname)") + "\n") {
		var i int
		var id string
		if _, err := fmt.Sscanf(line, "c%d %s", &i, &id); err != nil {
			t.Fatal(err)
		}
		ids[i] = id
	}
	return w, ids
}

// TestMergeBaseIsNeverWrong: with commits missing, the answer is the right one
// or none.
func TestMergeBaseIsNeverWrong(t *testing.T) {
	right, cut := 0, 0
	for seed := range uint64(4) {
		w, ids := randomHistory(t, seed, 30)
		w.loosen()
		rnd := rand.New(rand.NewPCG(seed, 3))
		for range 8 {
			a, b, gone := ids[rnd.IntN(len(ids))], ids[rnd.IntN(len(ids))], ids[rnd.IntN(len(ids))]
			want, wantErr := w.try("merge-base", a, b)
			fatal(t, os.Rename(w.object(gone), w.path("gone")))
			got, err := w.open().MergeBase(context.Background(), a, b)
			fatal(t, os.Rename(w.path("gone"), w.object(gone)))
			var off *gitstore.CutOffError
			switch {
			case errors.As(err, &off):
				cut++
			case err == nil && got == want && wantErr == nil, errors.Is(err, gitstore.ErrNoMergeBase) && wantErr != nil:
				right++
			default:
				t.Errorf("seed %d: without %s, MergeBase(%s, %s) is %q, %v; want %s", seed, gone, a, b, got, err, want)
			}
		}
	}
	if right == 0 || cut == 0 {
		t.Errorf("%d right, %d cut off: the test tells nothing", right, cut)
	}
}

// loosen makes every object a file of its own.
func (w work) loosen() {
	w.t.Helper()
	packs := strings.Fields(w.git("rev-parse", "--git-path", "objects/pack"))
	entries, err := os.ReadDir(w.path(packs[0]))
	w.do(err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".pack") {
			continue
		}
		data, err := os.ReadFile(w.path(packs[0] + "/" + e.Name()))
		w.do(err, os.RemoveAll(w.path(packs[0])), os.MkdirAll(w.path(packs[0]), 0o777))
		w.stdin(string(data), "unpack-objects", "-q")
	}
}

// TestMergeBaseBehindMissing: one of two common ancestors is before the other,
// later by a wrong clock, and the commit that shows it is not here. Of two that are as good git's first is meant.
func TestMergeBaseBehindMissing(t *testing.T) {
	w := newWork(t, map[string]string{"a": "1\n"})
	commit := func(when int, parents ...string) string {
		text := "tree " + w.git("rev-parse", "HEAD^{tree}") + "\n"
		for _, p := range parents {
			text += "parent " + p + "\n"
		}
		return w.stdin(fmt.Sprintf("%sauthor A <a> %d +0000\ncommitter A <a> %d +0000\n\nc\n", text, when, when), "hash-object", "-t", "commit", "-w", "--stdin")
	}
	early := commit(5000)
	between := commit(3000, early)
	late := commit(4000, between)
	a, b := commit(9000, late, early), commit(9001, late, early)
	got, err := w.open().MergeBase(context.Background(), a, b)
	if err != nil || got != late || got != w.git("merge-base", a, b) {
		t.Errorf("%s, %v; want %s", got, err, late)
	}
	one, other := commit(6000, early), commit(7000, early)
	a, b = commit(9000, one, other), commit(9000, other, one)
	all, err := w.open().MergeBases(context.Background(), a, b)
	first, baseErr := w.open().MergeBase(context.Background(), a, b)
	if errors.Join(err, baseErr) != nil || len(all) != 2 || first != w.git("merge-base", a, b) {
		t.Errorf("of two that are as good: %v, %s, %v %v; want %s", all, first, err, baseErr, w.git("merge-base", a, b))
	}
	a, b = commit(9000, late, early), commit(9001, late, early)
	fatal(t, os.Remove(w.object(between)))
	var off *gitstore.CutOffError
	if got, err := w.open().MergeBase(context.Background(), a, b); !errors.As(err, &off) || off.Missing != between {
		t.Errorf("%s, %v", got, err)
	}
}
