package approval_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// TestReadMerge: as what a pull request was merged is of that one, is told once, and says when;
// rule L25 is the same.
func TestReadMerge(t *testing.T) {
	here := ledger.Repository{ID: "100", Name: "acme/site"}
	whole, err := forge.MergedAs(here, 12, "main", strings.Repeat("1", 40), strings.Repeat("2", 40), "2026-01-02T03:04:05Z")
	fatal(t, err)
	for name, c := range map[string]struct {
		kind  string
		edits []func(*approval.Merge) // one for each artifact
		why   string
	}{
		"none":            {kind: ledger.KindPullRequest},
		"one":             {ledger.KindPullRequest, []func(*approval.Merge){func(*approval.Merge) {}}, ""},
		"renamed since":   {ledger.KindPullRequest, []func(*approval.Merge){func(m *approval.Merge) { m.Repository.Name = "acme/new" }}, ""},
		"of a proposal":   {ledger.KindWorktree, []func(*approval.Merge){func(*approval.Merge) {}}, "another pull request"},
		"another number":  {ledger.KindPullRequest, []func(*approval.Merge){func(m *approval.Merge) { m.PullRequest = 13 }}, "another pull request"},
		"elsewhere":       {ledger.KindPullRequest, []func(*approval.Merge){func(m *approval.Merge) { m.Repository.ID = "200" }}, "another pull request"},
		"two":             {ledger.KindPullRequest, []func(*approval.Merge){func(*approval.Merge) {}, func(m *approval.Merge) { m.MergedAt = "2026-01-02T03:04:06Z" }}, "another merge"},
		"unknown schema":  {ledger.KindPullRequest, []func(*approval.Merge){func(m *approval.Merge) { m.Schema = "x" }}, "unknown schema"},
		"no commit":       {ledger.KindPullRequest, []func(*approval.Merge){func(m *approval.Merge) { m.MergeCommit = "" }}, "as which commit"},
		"no such commit":  {ledger.KindPullRequest, []func(*approval.Merge){func(m *approval.Merge) { m.MergeCommit = "main" }}, "missing"},
		"no head":         {ledger.KindPullRequest, []func(*approval.Merge){func(m *approval.Merge) { m.HeadCommit = "" }}, "missing"},
		"no branch":       {ledger.KindPullRequest, []func(*approval.Merge){func(m *approval.Merge) { m.Base = "" }}, "missing"},
		"no time":         {ledger.KindPullRequest, []func(*approval.Merge){func(m *approval.Merge) { m.MergedAt = "" }}, "time"},
		"of another zone": {ledger.KindPullRequest, []func(*approval.Merge){func(m *approval.Merge) { m.MergedAt = "2026-01-02T04:04:05+01:00" }}, "time"},
	} {
		x := newPull(t, "version: 1", ledger.Proposal{Kind: c.kind, Repository: &here})
		for _, edit := range c.edits {
			m := whole
			edit(&m)
			x.artifact(approval.KindMerge, m)
		}
		got, err := approval.ReadMerge(x.dir, x.log)
		if (err != nil) != (c.why != "") || err != nil && !strings.Contains(err.Error(), c.why) || err == nil && (got != nil) != (len(c.edits) > 0) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if found := new(approval.Policies).Record(x.dir, x.log).Redo(); len(found) > 0 != (c.why != "") || len(found) > 0 && found[0].RuleID != "L25" {
			t.Errorf("%s: found %v", name, found)
		}
	}
}
