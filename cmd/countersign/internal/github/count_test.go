package github

import (
	"context"
	"fmt"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
)

// maxRequests is what a gate may take on a pull request with 300 statements:
// the pull request, what was said, and what three people may do.
const maxRequests = 12

// Each thread comes with a review of its own, which is empty.
func TestRequestsOfAGate(t *testing.T) {
	for _, row := range []struct {
		name                       string
		comments, reviews, threads int
		replies                    int // in one thread
		edited                     int
		want                       int
	}{
		{"nothing said", 0, 0, 0, 0, 0, 7},
		{"100 of each kind", 100, 100, 100, 0, 0, 8},
		{"100 of each kind, half of the comments edited", 100, 100, 100, 0, 50, 9},
		{"300 comments", 300, 0, 0, 0, 0, 11},
		{"300 comments, some edited", 300, 0, 0, 0, 10, 12},
		{"300 reviews", 0, 300, 0, 0, 0, 9},
		{"300 threads", 0, 0, 300, 0, 0, 9},
		{"one thread of 300", 0, 0, 1, 299, 0, 11},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			for i := range row.comments {
				c := w.comment("ada", fmt.Sprint("comment ", i))
				if i < row.edited {
					w.Edit(c.ID, "ada", "edited")
				}
			}
			for i := range row.reviews {
				w.Review(githubtest.NewComment{Repository: site, Number: 1, By: "bob", Body: fmt.Sprint("review ", i), State: "COMMENTED"})
			}
			var thread githubtest.Comment
			for i := range row.threads {
				thread = w.ReviewComment(githubtest.NewComment{Repository: site, Number: 1, By: "ada", Body: fmt.Sprint("thread ", i), Path: "greet.go"})
			}
			for i := range row.replies {
				w.ReviewComment(githubtest.NewComment{Repository: site, Number: 1, By: "ada", Body: fmt.Sprint("reply ", i), ReplyTo: thread.ID})
			}
			got, said := w.gate()
			t.Logf("%d statements: %d requests", said, got)
			if got != row.want || got > maxRequests {
				t.Errorf("%d requests, want %d and at most %d", got, row.want, maxRequests)
			}
			if said < row.comments+row.reviews+row.threads+row.replies {
				t.Errorf("%d statements", said)
			}
		})
	}
}

// gate reads what a gate reads, and returns how many requests that took and how
// many statements there are.
func (w *world) gate() (requests, said int) {
	w.t.Helper()
	ctx := context.Background()
	w.ResetRequests()
	w.pull(1)
	all := w.statements()
	for _, login := range []string{"ada", "bob", "eve", "ada"} {
		if _, err := w.client.Access(ctx, w.people[login]); err != nil {
			w.t.Fatal(err)
		}
	}
	return w.Count().API, len(all)
}
