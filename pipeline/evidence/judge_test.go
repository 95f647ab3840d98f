package evidence

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

const theTx = "tx_01KE5W5200041061050R3GG28A"

// aLog is a transaction of one kind that got so far.
func aLog(t *testing.T, kind string, to ...ledger.Status) *ledger.Log {
	t.Helper()
	log := &ledger.Log{}
	events := []ledger.Payload{
		&ledger.Meta{TransactionID: theTx}, &ledger.TurnStart{TransactionID: theTx, TurnID: "turn_1"},
		&ledger.TurnItem{TransactionID: theTx, TurnID: "turn_1", Item: ledger.Item{ID: "item_1", Type: ledger.FileChange, Metadata: &ledger.Proposal{Kind: kind, PatchID: strings.Repeat("ab", 32)}}},
	}
	from := ledger.Created
	for _, s := range to {
		switch s {
		case ledger.Applied:
			events = append(events, &ledger.ApplyStart{TransactionID: theTx, ApplyID: "apply_1"}, &ledger.ApplyComplete{TransactionID: theTx, ApplyID: "apply_1", Success: true})
		case ledger.Completed:
			events = append(events, &ledger.ValidateStart{TransactionID: theTx, ValidateID: "validate_1"}, &ledger.ValidateComplete{TransactionID: theTx, ValidateID: "validate_1", Success: true})
		}
		events = append(events, &ledger.StatusChange{TransactionID: theTx, From: from, To: s})
		from = s
	}
	for _, e := range events {
		if err := log.Append(time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), e); err != nil {
			t.Fatal(err)
		}
	}
	return log
}

// TestJudge: what is not as it should be, each by itself.
func TestJudge(t *testing.T) {
	done := []ledger.Status{ledger.InProgress, ledger.Proposed, ledger.Applied, ledger.Completed}
	merged := []ledger.Status{ledger.InProgress, ledger.Proposed, ledger.Completed}
	run := policy.Policy{Commands: policy.Commands{Run: []policy.Check{{Command: policy.Command{Argv: []string{"go", "test"}}, Required: true}}}}
	check := func(name, when string, passed, required bool) Check {
		return Check{Name: name, When: when, Passed: passed, Required: required}
	}
	denial, err := canon.Line(ledger.Denial{Fingerprint: "patchset:" + strings.Repeat("ab", 32), Kind: "fileChange", TransactionID: theTx, Author: ledger.Actor{Kind: "user", ID: "1", Login: "eve"}, DeniedAt: "2026-01-05T00:00:00.000Z"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		kind   string
		to     []ledger.Status
		is     Independence
		glass  bool
		checks []Check
		rules  policy.Policy
		files  fstest.MapFS
		want   []Code
	}{
		"nothing":                     {to: done, is: Yes},
		"the proposer approved":       {to: done, is: No, want: []Code{DependentApproval}},
		"not told who":                {to: done, is: Untold, want: []Code{UnknownIndependence}},
		"nothing told":                {to: done, is: "", want: []Code{UnknownIndependence}},
		"broken glass":                {to: done, is: No, glass: true, want: []Code{BreakGlass}},
		"broken, and not told who":    {to: done, is: Untold, glass: true, want: []Code{BreakGlass, UnknownIndependence}},
		"applied":                     {to: done[:3], is: Yes, want: []Code{NotValidated}},
		"approved, a pull request":    {kind: ledger.KindPullRequest, to: merged[:2], is: Yes, want: []Code{NotValidated}},
		"merged":                      {kind: ledger.KindPullRequest, to: merged, is: Yes, rules: run},
		"failed":                      {to: done, is: Yes, checks: []Check{check("x", "after", false, true)}, want: []Code{ChecksFailed}},
		"failed, which may be":        {to: done, is: Yes, checks: []Check{check("x", "after", false, false)}},
		"failed first":                {to: done, is: Yes, checks: []Check{check("x", "before", false, true), check("x", "before", true, true)}},
		"failed last":                 {to: done, is: Yes, checks: []Check{check("x", "before", true, true), check("x", "before", false, true)}, want: []Code{ChecksFailed}},
		"failed before, passed after": {to: done, is: Yes, checks: []Check{check("x", "before", false, true), check("x", "after", true, true)}, want: []Code{ChecksFailed}},
		"asked for and not there":     {to: done, is: Yes, rules: run, checks: []Check{check("go", "before", true, true)}, want: []Code{ChecksAbsent}},
		"asked for and there":         {to: done, is: Yes, rules: run, checks: []Check{check("go test", "before", true, true)}},
		"denied":                      {to: done, is: Yes, files: fstest.MapFS{ledger.DeniedDir(strings.Repeat("ab", 32)) + "/fileChange.json": {Data: denial}}, want: []Code{Denied}},
		"denials that cannot be read": {to: done, is: Yes, files: fstest.MapFS{ledger.DeniedDir(strings.Repeat("ab", 32)) + "/fileChange.json": {Data: []byte("{")}}, want: []Code{RecordInvalid}},
	} {
		files := c.files
		if files == nil {
			files = fstest.MapFS{}
		}
		tab, row := &table{Source: Source{Ledger: files}}, &Row{}
		kind := c.kind
		if kind == "" {
			kind = "patch"
		}
		tab.judge(row, Record{Independent: c.is, Why: "why", Checks: c.checks}, aLog(t, kind, c.to...), approval.Verdict{BreakGlass: c.glass, Reason: "broken"}, c.rules)
		var got []Code
		for _, e := range row.Exceptions {
			got = append(got, e.Code)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// T82 A check of which the record does not say that it may fail has to pass.
func TestT82Checks(t *testing.T) {
	log := aLog(t, "patch")
	if err := log.Append(time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), &ledger.ArtifactStored{TransactionID: theTx, Kind: "validation", Path: "artifacts/v.json"}); err != nil {
		t.Fatal(err)
	}
	for doc, required := range map[string]bool{
		`{"checks":[{"type":"file","target":"a"}]}`: true, `{"checks":[{"type":"file","target":"a","required":true,"ok":false}]}`: true, `{"checks":[{"type":"file","target":"a","required":false}]}`: false, `{`: true,
	} {
		r := new(Record)
		r.checks(fstest.MapFS{"artifacts/v.json": {Data: []byte(doc)}}, log)
		if len(r.Checks) != 1 || r.Checks[0].Passed || r.Checks[0].Required != required {
			t.Errorf("%s: %+v", doc, r.Checks)
		}
	}
}

// TestRules: what a rule of the Policy lets in was approved by nobody; a merge has its changes beside it; what is
// not known here is no explanation.
func TestRules(t *testing.T) {
	id := strings.Repeat("a", 40)
	for by, want := range map[explain.By][]Code{
		explain.ByBot: {NoApproval}, explain.ByMerge: nil, "magic": {Unexplained}, explain.ByTransaction: {RecordInvalid},
	} {
		tab := &table{Source: Source{Ledger: fstest.MapFS{}, Judged: explain.Result{Explained: map[string]explain.Explained{id: {Commit: id, By: by}}}}, policies: new(approval.Policies)}
		row, err := tab.row([]string{id}, explain.Span{})
		var got []Code
		for _, e := range row.Exceptions {
			got = append(got, e.Code)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", by, got, err, want)
		}
	}
}

// T79 Of several transactions the worst counts.
func TestT79Several(t *testing.T) {
	const yes, no, unknown = Yes, No, Untold
	for _, c := range []struct {
		of   []Independence
		want Independence
	}{
		{nil, ""}, {[]Independence{yes}, yes}, {[]Independence{yes, yes}, yes}, {[]Independence{yes, unknown}, unknown}, {[]Independence{unknown, yes}, unknown},
		{[]Independence{yes, unknown, no}, no}, {[]Independence{no, yes}, no}, {[]Independence{no, unknown}, no}, {[]Independence{unknown, no, yes}, no},
	} {
		row := Row{}
		for _, is := range c.of {
			row.Records = append(row.Records, Record{Independent: is})
		}
		if got := row.Independent(); got != c.want {
			t.Errorf("%v: %s, want %s", c.of, got, c.want)
		}
	}
}
