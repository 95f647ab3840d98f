package lookup

import (
	"cmp"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A Turn is what says when people are to look at a transaction that waits.
type Turn struct {
	Since time.Time // when it was proposed
	Due   time.Time // until when people are to have decided, zero for no time
	Rank  int       // of its gravest risk, the most dangerous first
	By    string    // who proposed it
}

// NewTurn is the turn of what was proposed at a time of the record, and is to be decided within due, 0 for whenever. What has
// no time that can be read comes first.
func NewTurn(proposed string, due time.Duration, rank int, by string) Turn {
	t := Turn{Rank: rank, By: by}
	t.Since, _ = time.Parse(ledger.TimeFormat, proposed)
	if due > 0 {
		t.Due = t.Since.Add(due)
	}
	return t
}

// Overdue reports whether people should have decided by now.
func (t Turn) Overdue(now time.Time) bool { return !t.Due.IsZero() && now.After(t.Due) }

// Compare orders a queue: what is overdue, then the riskiest, the oldest, by proposer.
func (t Turn) Compare(o Turn, now time.Time) int {
	late := map[bool]int{true: -1}
	return cmp.Or(late[t.Overdue(now)]-late[o.Overdue(now)], t.Rank-o.Rank, t.Since.Compare(o.Since), strings.Compare(t.By, o.By))
}
