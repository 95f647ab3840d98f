package report_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/rule"
	"github.com/countersign-dev/countersign/report"
)

// T14 What does not print is shown, not sent to the terminal.
func TestT14Clean(t *testing.T) {
	for in, want := range map[string]string{
		"plain é 日本":            "plain é 日本",
		"a\nb":                  `a\x0ab`,
		"\x1b[31mred":           `\x1b[31mred`,
		"user\u202egnp.exe":     `user\u202egnp.exe`,
		"zero\u200bwidth":       `zero\u200bwidth`,
		"\xff\xfe":              `\xff\xfe`,
		"filler\u3164\ufe0f":    `filler\u3164\ufe0f`,
		"tab\t":                 `tab\x09`,
		"\U000e0041 tag":        `\ue0041 tag`,
		"replacement \ufffd ok": "replacement \ufffd ok",
	} {
		if got := report.Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// T14 A diff cannot move the cursor, and the escape stands out in colour.
func TestT14Diff(t *testing.T) {
	diff := []byte("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\tx\r\n+new\u202e\x1b[2J\n")
	plain := report.Diff(diff, report.Style{})
	if strings.ContainsAny(plain, "\x1b\u202e\r") || !strings.Contains(plain, `+new\u202e\x1b[2J`) || !strings.Contains(plain, "-old\tx\\x0d\n") {
		t.Errorf("plain: %q", plain)
	}
	colour := report.Diff(diff, report.Style{Colour: true})
	if !strings.Contains(colour, "\x1b[7m\\u202e\x1b[0m") || strings.Contains(colour, "\x1b[2J") {
		t.Errorf("colour: %q", colour)
	}
	if !strings.Contains(colour, "\x1b[1m--- a/f\x1b[0m") {
		t.Errorf("a header is not told from a deleted line: %q", colour)
	}
}

func some() report.Report {
	return report.Report{
		TransactionID: "tx_01", PatchID: strings.Repeat("ab", 32), Fingerprint: "patchset:x", Status: ledger.Awaiting,
		LedgerRef: "refs/agent/ledger", LedgerCommit: "0123456789abcdef",
		Files:   []report.File{{Path: "a.go", Kind: "update", Added: 2, Deleted: 1}},
		Verdict: &approval.Verdict{State: approval.Pending, Reason: "0 of 1 approvals"},
	}
}

// A proposal that nobody answered, or that was denied, does not paint a pull
// request red; a failure does.
func TestConclusion(t *testing.T) {
	failed := result.New(".", result.Source{}, false, []result.Operation{{Path: "a", Status: result.StatusError, Error: "x"}})
	done := result.New(".", result.Source{}, false, nil)
	for _, c := range []struct {
		want string
		set  func(*report.Report)
	}{
		{"neutral", func(*report.Report) {}},
		{"neutral", func(r *report.Report) { r.Status, r.Verdict.State = ledger.Denied, approval.Denied }},
		{"success", func(r *report.Report) { r.Status, r.ApplyResult = ledger.Completed, &done }},
		{"failure", func(r *report.Report) { r.ApplyResult = &failed }},
		{"failure", func(r *report.Report) { r.Status = ledger.Failed }},
		{"failure", func(r *report.Report) {
			r.Status, r.ApplyResult, r.Validation = ledger.Applied, &done, &rule.Report{Violations: []rule.Violation{{RuleID: "L5"}}}
		}},
	} {
		r := some()
		c.set(&r)
		if got := r.CheckRun().Conclusion; got != c.want {
			t.Errorf("conclusion %s, want %s for %+v", got, c.want, r)
		}
	}
}

// T63 A long report keeps to GitHub's limit, and the verdict and the failures
// stand in what is left.
func TestT63LongReport(t *testing.T) {
	r := some()
	var ops []result.Operation
	for range 5000 {
		ops = append(ops, result.Operation{Op: "modify", Path: strings.Repeat("é", 40), Status: result.StatusSuccess})
	}
	ops = append(ops, result.Operation{Op: "modify", Path: "zz-the-bad-one", Status: result.StatusError, Error: "cannot write"})
	res := result.New(".", result.Source{}, false, ops)
	r.ApplyResult = &res
	run := r.CheckRun()
	for name, text := range map[string]string{"summary": run.Summary, "text": run.Text} {
		if n := utf8.RuneCountInString(text); n > 65535 {
			t.Errorf("%s has %d characters", name, n)
		}
	}
	if !strings.Contains(run.Summary, "countersign: PARTIAL") || !strings.Contains(run.Summary, "zz-the-bad-one") {
		t.Errorf("the failure is cut: %.300s", run.Summary)
	}
}

// T21 Foreign text is inert in Markdown.
func TestT21Markdown(t *testing.T) {
	r := some()
	r.Summary = "a|b `c` <img src=x> @team #1 ![x](y) **bold**\n| new | row |"
	md := r.Markdown()
	for _, bad := range []string{"a|b", " `c`", "<img", "@team", "#1", "![x](y)", "**bold**", "\n| new"} {
		if strings.Contains(md, bad) {
			t.Errorf("%q survives in %s", bad, md)
		}
	}
}
