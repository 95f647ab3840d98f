package explain_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/explain"
)

// TestGenerated (T87, T88, T89): of random histories whose truth is known, no unapproved commit is explained and
// no approved one unexplained.
func TestGenerated(t *testing.T) {
	want, parts := 30, 3
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		want, parts = 4000, 8
	}
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			commits, explained := 0, 0
			for seed := uint64(part + 1); commits < want/parts && !t.Failed(); seed += uint64(parts) {
				var moves []int
				for n := range 20 {
					moves = append(moves, n)
				}
				w, wrong := told(t, seed, moves)
				for _, b := range []*branch{w.main, w.other} {
					if b == nil {
						continue
					}
					commits += len(b.truth)
					for _, is := range b.truth {
						if is.explained {
							explained++
						}
					}
				}
				if len(wrong) == 0 {
					continue
				}
				for i := len(moves) - 1; i >= 0; i-- { // as few moves as show it
					less := slices.Delete(slices.Clone(moves), i, i+1)
					if _, still := told(t, seed, less); len(still) > 0 {
						moves = less
					}
				}
				w, wrong = told(t, seed, moves)
				t.Errorf("seed %d, moves %v:\n%s\n%s", seed, moves, strings.Join(w.words, "\n"), strings.Join(wrong, "\n"))
			}
			t.Logf("%d commits, %d of them explained", commits, explained)
		})
	}
}

// told is a tale, and what the judge says of it that is wrong.
func told(t *testing.T, seed uint64, moves []int) (*tale, []string) {
	w, err := tell(t, seed, moves)
	if err != nil {
		return w, []string{err.Error()}
	}
	wrong := w.check(w.main)
	if w.other != nil {
		wrong = append(wrong, w.check(w.other)...)
	}
	return w, wrong
}

// TestForkOfBefore: what another branch begins with is judged by the Policy that the record names, not
// by an older one that the default branch had where the other begins.
func TestForkOfBefore(t *testing.T) {
	w := newTale(t, 1)
	r := ruleset{book: rulebook{required: 1, decisions: "signed, forge, local"}, keys: "ada cyd", bots: "bot"}
	old := w.add(w.main, "lax", r.in(w.tree()), nobody)
	r.book.decisions = "signed, forge"
	w.add(w.main, "strict", r.in(w.tree()), nobody)
	edits := w.change(w.tree(), 1)
	x := w.propose(w.main.tip, edits, false)
	w.approve(x, vote{"ada", "local"})
	_, err := w.applies(x.id, "topic")
	w.must(err)
	fork := w.commit("fork", w.apply(w.trees[old], edits...), old)
	got, err := w.run(nil, fork)
	w.must(err)
	if is := got.Unexplained[fork].Code; is != explain.WeakDecision {
		t.Errorf("%s, %+v", is, got.Explained[fork])
	}
}

// TestHotFile: what is approved, or done by hand, later in the same file takes nothing from what was
// approved before: a row after many commits by hand, and a squash on a base that has moved.
func TestHotFile(t *testing.T) {
	if os.Getenv("COUNTERSIGN_LONG") == "" {
		t.Skip("COUNTERSIGN_LONG=1 runs it")
	}
	t.Parallel()
	w := newTale(t, 1)
	r := ruleset{book: rulebook{required: 1, decisions: "signed, forge, local"}, keys: "ada cyd", bots: "bot"}
	w.add(w.main, "lax", r.in(w.tree()), nobody)
	base := w.main.tip
	in := func(place int) edit {
		return edit{"src/a", place, inPlace(w.trees[base]["src/a"], place), w.fresh()}
	}
	approved := func(edits ...edit) {
		x := w.propose(base, edits, false)
		w.approve(x, vote{"ada", "local"})
		_, err := w.applies(x.id, "topic-"+x.id)
		w.must(err)
	}
	want := map[string]bool{}
	squash := func(is bool, e edit) { want[w.add(w.main, "squash", w.apply(w.tree(), e), nobody)] = is }
	one, two := in(0), in(2)
	approved(one, two)
	for range 3 { // which nobody merges
		approved(in(4))
	}
	for range explain.MaxRow {
		squash(false, edit{"src/a", 6, inPlace(w.tree()["src/a"], 6), w.fresh()})
	}
	squash(true, one)
	squash(true, two)
	long := in(5) // is approved now, and merged at the end
	approved(long)
	for range 33 {
		base = w.main.tip
		one, two = in(1), in(3)
		approved(one)
		approved(two)
		squash(true, one)
		squash(true, two)
	}
	squash(true, long)
	got, err := w.run(w.main, w.main.tip)
	w.must(err)
	for id, is := range want {
		if _, explained := got.Explained[id]; explained != is {
			t.Errorf("%s, %+v", got.Unexplained[id].Reason, got.Explained[id])
		}
	}
}

// TestRowOfManyLines: of a file with thousands of lines that are alike, too, it is found out soon
// that commits are no row.
func TestRowOfManyLines(t *testing.T) {
	if os.Getenv("COUNTERSIGN_LONG") == "" {
		t.Skip("COUNTERSIGN_LONG=1 runs it")
	}
	t.Parallel()
	w := newTale(t, 1)
	x, y := strings.Repeat("x\n", 8000), strings.Repeat("y\n", 8000)
	r := ruleset{book: rulebook{required: 1, decisions: "signed, forge, local"}, keys: "ada cyd", bots: "bot"}
	base := w.add(w.main, "many", r.in(w.tree().with("many", x+y)), nobody)
	change := edit{"many", -1, x + y, y + x}
	one := w.propose(base, []edit{change}, false)
	w.approve(one, vote{"ada", "local"})
	_, err := w.applies(one.id, "topic")
	w.must(err)
	w.add(w.main, "half", w.tree().with("many", strings.Repeat("x\ny\n", 8000)), nobody)
	whole := w.add(w.main, "whole", w.apply(w.trees[base], change), nobody)
	got, err := w.run(w.main, whole)
	w.must(err)
	if len(got.Explained) > 0 {
		t.Errorf("%+v", got.Explained)
	}
}
