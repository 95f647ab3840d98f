package replay

import (
	"cmp"
	"io/fs"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A Result is what a Policy would have made of what came after a time. Counts has every
// difference. Cases are in the Order of their differences, the newest first.
type Simulation struct {
	LedgerCommit string             `json:"ledger_commit"` // "" where there is no ledger
	Policy       string             `json:"policy"`        // the file that it was read from
	PolicySHA256 string             `json:"policy_sha256"`
	Since        string             `json:"since"`      // RFC 3339, "" for everything
	Incomplete   []string           `json:"incomplete"` // what could not be read, and is in no case
	Counts       map[Difference]int `json:"counts"`
	AtBest       int                `json:"approved_at_best"` // of those that are Unknown
	Cases        []Case             `json:"cases"`
}

// Simulate replays the transactions of a ledger's tree of which something was recorded at
// a time or later, on all cores. Progress is told how many are done.
func Simulate(tree fs.FS, since time.Time, p policy.Policy, progress func(done, total int)) ([]Case, error) {
	all, damaged, err := lookup.Each(tree)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, tx := range all {
		if tx.Closed && tx.Pointers.Proposal == nil { // nobody asked for a decision
			continue
		}
		if at, err := time.Parse(ledger.TimeFormat, tx.UpdatedAt); err != nil || !at.Before(since) {
			ids = append(ids, tx.TransactionID)
		}
	}
	for _, d := range damaged { // when that was cannot be told either
		ids = append(ids, d.ID)
	}
	var policies approval.Policies
	cases := make([]Case, len(ids))
	const atOnce = 256
	for from := 0; from < len(ids); from += atOnce {
		n := min(atOnce, len(ids)-from)
		parallel.Do(n, func(i int) { cases[from+i] = SimulateTransaction(tree, &policies, ids[from+i], p) })
		progress(from+n, len(ids))
	}
	return cases, nil
}

// Sum puts cases in order and counts them.
func (r *Simulation) Sum(cases []Case) {
	r.Cases = slices.SortedStableFunc(slices.Values(cases), func(a, b Case) int {
		return cmp.Or(cmp.Compare(slices.Index(Differences, a.Difference), slices.Index(Differences, b.Difference)), -cmp.Compare(a.At, b.At))
	})
	r.Counts = map[Difference]int{}
	for _, d := range Differences {
		r.Counts[d] = 0
	}
	for _, c := range cases {
		r.Counts[c.Difference]++
		if c.Difference == DifferenceUnknown && c.AtBest == approval.Approved {
			r.AtBest++
		}
	}
}
