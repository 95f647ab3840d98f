package pipeline_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/review"
)

// TestUnfitBounds: what a diff that does not fit would need is looked for in so many commits, files and
// directories, and no more is told where there are more.
func TestUnfitBounds(t *testing.T) {
	files := func(n int, name, text string) map[string]string {
		out := map[string]string{}
		for i := range n {
			out[fmt.Sprintf(name, i)] = fmt.Sprintf(text, i)
		}
		return out
	}
	change := func(path, old, new string) string {
		return fmt.Sprintf("diff --git a/%s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-%s+%s", path, old, new)
	}
	for name, c := range map[string]struct {
		within, beyond int
		world          func(w *world, n int) (diff string)
		want           func(e *review.UnfitError) string
	}{
		"commits that it may fit": {20, 21, func(w *world, n int) string {
			for i := n; i >= 0; i-- {
				w.repo.commit(map[string]string{"f": fmt.Sprintf("%d\n", i)})
			}
			return change("f", fmt.Sprintf("%d\n", n), "x\n")
		}, func(e *review.UnfitError) string { return e.Fits }},
		"commits that have it": {19, 20, func(w *world, n int) string {
			w.repo.commit(map[string]string{"f": "a\nc\n"})
			for i := range n {
				w.repo.commit(map[string]string{"f": fmt.Sprintf("b\nc\n%d\n", i)})
			}
			return "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n"
		}, func(e *review.UnfitError) string { return e.Since }},
		"files of the diff": {100, 101, func(w *world, n int) (diff string) {
			w.repo.commit(files(n, "f%d", "a\n%.0d"))
			w.repo.commit(files(n, "f%d", "b\n%.0d"))
			for i := range n {
				diff += change(fmt.Sprintf("f%d", i), "a\n", "x\n")
			}
			return diff
		}, func(e *review.UnfitError) string { return e.Fits }},
		"directories": {20, 21, func(w *world, n int) string {
			w.repo.commit(files(n, "d%02d/f", "%d\n"))
			return change("f", "0\n", "x\n")
		}, func(e *review.UnfitError) string { return e.Below }},
		"entries of a tree": {99_997, 99_998, func(w *world, n int) string { // beside the top, d and d/f
			all := files(n, "e%d", "%d\n")
			all["d/f"] = "a\n"
			w.repo.commit(all)
			return change("f", "a\n", "x\n")
		}, func(e *review.UnfitError) string { return e.Below }},
	} {
		for n, told := range map[int]bool{c.within: true, c.beyond: false} {
			w := newWorld(t)
			diff := c.world(w, n)
			in, err := input.One([]byte(diff), false, "")
			if err == nil {
				_, err = review.Run(t.Context(), w.as(bot), in, false)
			}
			var unfit *review.UnfitError
			if !errors.As(err, &unfit) || (c.want(unfit) != "") != told {
				t.Errorf("%s, %d: %v, %+v", name, n, err, unfit)
			}
		}
	}
}
