package report_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/report"
)

// T16 T61 T67 The check that branch protection requires is a success only if all
// of it is approved and nothing is missing.
func TestT16Guard(t *testing.T) {
	yes, wait, no := gateOnly(approval.Approved), gateOnly(approval.Pending), gateOnly(approval.Denied)
	odd, none := gateOnly("certain"), gateOnly("")
	none.Verdict = nil
	sibling := []report.Sibling{{PullRequest: 13, Base: "main", Reason: "0 of 1 approvals"}}
	for _, c := range []struct {
		name  string
		guard report.Guard
		want  string
	}{
		{"approved", guard(yes, yes), "success"},
		{"one pending", guard(yes, wait), "action_required"},
		{"one denied", guard(yes, no, wait), "failure"},
		{"none", guard(), "failure"},
		{"a state that is not known", guard(yes, odd), "failure"},
		{"no verdict", guard(yes, none), "failure"},
		{"a sibling", report.Guard{Transactions: []report.Report{yes}, Siblings: sibling}, "action_required"},
		{"a denial and a sibling", report.Guard{Transactions: []report.Report{no}, Siblings: sibling}, "failure"},
		{"an error", report.Guard{Transactions: []report.Report{yes}, Errors: []string{"502"}}, "failure"},
	} {
		run := c.guard.CheckRun()
		if run.Conclusion != c.want || run.Status != "completed" || run.Name != "countersign" {
			t.Errorf("%s: %s, want %s", c.name, run.Conclusion, c.want)
		}
		if !strings.Contains(run.Text, "Advisory") || !strings.Contains(run.Summary, "Advisory") {
			t.Errorf("%s: does not say that it is advisory", c.name)
		}
		c.guard.Dedicated = true
		if run := c.guard.CheckRun(); strings.Contains(run.Text+run.Summary, "Advisory") || run.Conclusion != c.want {
			t.Errorf("%s: an App's check is called advisory, or concludes otherwise", c.name)
		}
	}
}

// A broken glass is shown first in every report.
func TestGlassFirst(t *testing.T) {
	r := glass()
	guarded := gateOnly(approval.Approved)
	guarded.Verdict = r.Verdict
	for name, text := range map[string]string{
		"text": text(r, report.Style{}), "title": r.CheckRun().Title, "summary": strings.TrimPrefix(r.CheckRun().Summary, "> [!CAUTION]\n> **"),
		"comment": strings.TrimPrefix(report.Comment{Transactions: []report.Report{proposal(), r}}.Body(), "> [!CAUTION]\n> **"),
		"guard":   guard(guarded).CheckRun().Title, "guard's summary": strings.TrimPrefix(guard(guarded).CheckRun().Summary, "> [!CAUTION]\n> **"),
	} {
		if !strings.HasPrefix(text, "BREAK-GLASS: ") {
			t.Errorf("%s: %.200s", name, text)
		}
	}
}

// T14 What does not show is listed with its place, once for each file.
func TestT14Hidden(t *testing.T) {
	q := request()
	q.Report.Files = append(q.Report.Files, report.File{Path: "b"})
	q.Diff = []byte(theDiff + "diff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -7,2 +9,4 @@ \n \u202e kept\n-\u202e gone\n+a\u200b\u200b\n+b\ttab\u200b\n+\u3164\n+crlf\r\n-caf\xe9\n+caf\xe9\n")
	body := q.Body()
	for _, want := range []string{
		"bytes that are not UTF-8, in:\n\n- `b`, lines 10, 11, 12, 13, 14\n- `b`, line 9 of what is removed\n",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in %s", want, body)
		}
	}
	if strings.Contains(body, "lines 9,") || strings.Contains(body, "line 8") {
		t.Error("a line that was there before is flagged")
	}
	if strings.Contains(request().Body(), "do not show") {
		t.Error("a plain diff is flagged")
	}
}

// The same request gives the same bytes, whatever has happened meanwhile.
func TestRequestStays(t *testing.T) {
	before, after := demanding(), demanding()
	after.Report.Verdict, after.Report.Status, after.Report.State, after.Report.LedgerCommit = glass().Verdict, "applied", plain.Unchecked, strings.Repeat("9", 40)
	if before.Body() != after.Body() {
		t.Error("the text of a request changes with the state of its transaction")
	}
	marker := report.RequestMarker(before.Report.TransactionID)
	if !strings.HasSuffix(before.Body(), "\n"+marker+"\n") || strings.Count(before.Body(), marker) != 1 {
		t.Error("the marker is not the last line")
	}
}

func TestCheckInProgress(t *testing.T) {
	r := proposal()
	r.Status, r.Verdict = "in_progress", nil
	if run := r.CheckRun(); run.Status != "in_progress" || run.Conclusion != "" {
		t.Errorf("%s %q", run.Status, run.Conclusion)
	}
}
