package explain

import (
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
)

// A Span is when a commit came to a branch, by the ledger's word alone: not before After, and
// by By at the latest. After is zero where the ledger does not tell.
type Span struct{ After, By time.Time }

// Came tells for each commit of a chain, oldest first, when it came. It was there when the
// ledger first named it, or a later one of the chain, and it is there now; and it was not there
// before the apply began that made it, or an earlier one. Where a record contradicts that, nothing
// is known of the beginning: each commit has a time at which it may have come, so that none is
// left out of all periods.
func (x *Index) Came(chain []history.BranchCommit, now time.Time) []Span {
	out := make([]Span, len(chain))
	by, after := now, time.Time{}
	for i := len(chain) - 1; i >= 0; i-- {
		if at, is := x.named[chain[i].ID]; is && at.Before(by) {
			by = at
		}
		out[i].By = by
	}
	for i := range chain {
		if at, is := x.begun[chain[i].ID]; is && at.After(after) {
			after = at
		}
		if !after.After(out[i].By) {
			out[i].After = after
		}
	}
	return out
}

// Within reports whether a commit may have come at a time from a moment on and before
// another. One of which too little is known may be within several such times.
func (s Span) Within(from, end time.Time) bool { return !s.By.Before(from) && s.After.Before(end) }
