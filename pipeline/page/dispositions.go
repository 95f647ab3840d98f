package page

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/disposition"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/rule"
)

// dispositions holds what became of exceptions to its form (L26), as an audit hands on the transactions.
type dispositions struct {
	mu    sync.Mutex
	found []history.Finding
}

// each checks a transaction, and hands it on to next, which may be nil.
func (d *dispositions) each(next audit.Each) audit.Each {
	return func(id string, commit history.ID, record *approval.Record, found []rule.Violation) {
		if record != nil && record.Log != nil { // of one that cannot be read the audit tells
			for _, v := range disposition.Check(record.Dir, record.Log) {
				d.mu.Lock()
				d.found = append(d.found, history.Finding{RuleID: v.RuleID, Commit: commit.String(), Path: path.Join(ledger.Dir(id), v.Path), Message: v.Message})
				d.mu.Unlock()
				found = append(slices.Clip(found), v)
			}
		}
		if next != nil {
			next(id, commit, record, found)
		}
	}
}

// addTo adds what was found to the result of the audit. Of a ledger that only a newer program can judge these are notes (V15).
func (d *dispositions) addTo(r *audit.Result) {
	for _, f := range d.found {
		if r.Newer != "" {
			r.Notes = append(r.Notes, audit.Note{Commit: f.Commit, Path: f.Path, Message: f.RuleID + " of this version does not hold: " + f.Message})
			continue
		}
		r.Findings, r.OK = append(r.Findings, f), false
		r.Count++
	}
	slices.SortFunc(r.Findings, func(a, b history.Finding) int {
		return cmp.Or(strings.Compare(a.RuleID, b.RuleID), strings.Compare(a.Path, b.Path), strings.Compare(a.Commit, b.Commit), strings.Compare(a.Message, b.Message))
	})
	r.Findings = r.Findings[:min(len(r.Findings), audit.MaxFindings)]
}
