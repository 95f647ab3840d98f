package report_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/report"
	"github.com/countersign-dev/countersign/report/html"
	"github.com/countersign-dev/countersign/report/site"
	"github.com/countersign-dev/countersign/report/workpaper"
)

// recordWords are how the record, the ApplyResult and older versions call a state.
var recordWords = regexp.MustCompile(`\b(interrupted|awaiting_approval|in_progress|SUCCESS|PARTIAL|FAILED|REFUSED|completed|validated|stopped|proposed, not asked about yet)\b|pending \(pending\)`)

// forPrograms are the parts of a document that a program reads, or that give the record as it is: blocks of JSON, comments,
// code of a page, and the fields of a check run.
var forPrograms = regexp.MustCompile("(?s)```json\n.*?\n```|<!--.*?-->|<(code|pre)[ >].*?</(code|pre)>|<[^>]*>|(?m:^(status|conclusion): .*$)")

func holdVocabulary(t *testing.T, name, text string) {
	t.Helper()
	if found := recordWords.FindString(forPrograms.ReplaceAllString(text, " ")); found != "" {
		t.Errorf("%s has %q\n%s", name, found, text)
	}
}

// TestVocabulary: where a transaction stands is told in the words of package plain alone.
func TestVocabulary(t *testing.T) {
	for _, status := range ledger.Statuses {
		for _, verdict := range []approval.State{approval.Pending, approval.Approved, approval.Denied} {
			for _, gate := range []bool{false, true} {
				for _, outcome := range []ledger.Outcome{"", ledger.OutcomeSuccess, ledger.OutcomePartial, ledger.OutcomeFailed, ledger.OutcomeRefused} {
					r := proposal()
					if gate {
						r = gateOnly(verdict)
					}
					name := fmt.Sprintf("%s, %s, gate only %v, %s", status, verdict, gate, outcome)
					r.Status, r.Verdict = status, denied().Verdict
					if verdict != approval.Denied {
						r.Verdict = verdictOf(verdict)
					}
					if outcome != "" {
						r.ApplyResult = failed().ApplyResult
						r.ApplyResult.Outcome, r.ApplyResult.Error = outcome, "it says why"
					}
					if status == ledger.Superseded {
						r.Ended = "the base changed: README.md"
					}
					r.State = plain.StateOf(status, verdict, gate, outcome == ledger.OutcomePartial || outcome == ledger.OutcomeFailed)
					for doc, text := range documents(r) {
						holdVocabulary(t, name+": "+doc, text)
					}
				}
			}
		}
	}
}

func verdictOf(at approval.State) *approval.Verdict {
	return verdict(at, fmt.Sprintf("%d of 1 approvals", strings.Count(string(at), "approved")), 0)
}

// documents are all that people read of a transaction.
func documents(r report.Report) map[string]string {
	listed := []report.Listed{{Transaction: ledger.Transaction{TransactionID: r.TransactionID, Status: r.Status, Notes: r.Summary, Proposer: r.Proposer, CreatedAt: r.CreatedAt}, State: r.State, Verdict: r.Verdict.State}}
	q := request()
	q.Report = r
	prompt := report.Prompt{Report: r, Decider: ada, Columns: 80, Rows: 24}
	return map[string]string{
		"text": text(r, report.Style{}), "long": r.Text(again, 100, true, report.Style{}), "result": r.Result("", again, 100, report.Style{}), "decided": r.Result("ada", again, 100, report.Style{}), "next": r.NextStep(again),
		"list": report.List(listed), "screen": report.Screen(listed, now, 100, report.Style{}), "open": strings.Join(report.OpenLines(listed), "\n"),
		"table":   report.Table([]report.Row{{TransactionID: r.TransactionID, Status: r.Status, State: r.State, Verdict: r.Verdict.State, Reason: r.Verdict.Reason, Outcome: ledger.Outcome(r.AppliedOutcome())}, {State: plain.Waits}}, report.Style{}),
		"comment": report.Comment{Transactions: []report.Report{r, numbered(r, 1)}}.Body(), "check": checkText(r.CheckRun()), "guard": checkText(guard(r).CheckRun()), "request": q.Body(), "opened": report.OpenedBody(r),
		"prompt": prompt.Page([]byte(theDiff), report.Style{}),
	}
}

// TestVocabularyOfLives: so are transactions of every kind, as the pipeline records them. The pages that the ledger itself
// has of them (pipeline/record/ledger/page.go) are part of the format, and stay as they are.
func TestVocabularyOfLives(t *testing.T) {
	tree, ids := storetest.Recorded(t, append(storetest.Mixed(20), storetest.Signed)...)
	var all []html.Summary
	seen := map[ledger.Status]bool{}
	for _, id := range ids {
		log, err := lookup.Read(tree, id)
		check(t, err)
		page, err := new(html.Reader).Read(tree, id)
		check(t, err)
		all = append(all, page.Summary)
		tx := log.Transaction()
		seen[tx.Status] = true
		name := id + " (" + string(tx.Status) + ")"
		holdVocabulary(t, name+"'s page", string(page.Page(html.Options{})))
		holdVocabulary(t, name+"'s log", report.Events(log))
		holdVocabulary(t, name+", explained", report.Explanation(explain.Explanation{Transactions: []explain.Claim{{TransactionID: id, Status: tx.Status, Why: plain.Unsettled(log)}}}))
		for file, data := range workpaper.Pages(evidence.Report{Rows: []evidence.Row{{Records: []evidence.Record{{TransactionID: id, Why: plain.Unsettled(log)}}}}}) {
			if strings.HasSuffix(file, ".html") {
				holdVocabulary(t, name+", "+file, string(data))
			}
		}
	}
	for _, status := range ledger.Statuses {
		if !seen[status] && !slices.Contains([]ledger.Status{ledger.Created, ledger.InProgress, ledger.Failed}, status) {
			t.Errorf("no life ends as %s", status)
		}
	}
	s := site.New(all, site.Options{Now: now, Nav: site.Nav("", false)})
	for _, address := range s.Addresses() {
		if data, ok := s.File(address); ok {
			holdVocabulary(t, address, string(data))
		}
	}
}

// check ends a test that has an error.
var check = teststand.Fatal
