package explain_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/explain"
)

// TestGenerated: of random histories whose truth is known, no unapproved commit is explained and
// no approved one unexplained.
func TestGenerated(t *testing.T) {
	want := 1000
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		want = 20000
	}
	const parts = 8
	for part := range uint64(parts) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			commits, explained := 0, 0
			for seed := part + 1; commits < want/parts && !t.Failed(); seed += parts {
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
