package report_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report"
	"github.com/countersign-dev/countersign/report/view"
)

// sized is a request whose diff has one added line of n bytes made of text.
func sized(text string, n int) string {
	q := request()
	line := "+" + strings.Repeat(text, n/len(text)) + strings.Repeat("a", n%len(text))
	q.Diff = []byte(theDiff + line + "\n")
	return q.Body()
}

// A diff is shown whole up to the last byte that there is room for, and one byte
// more cuts it, loudly; whatever the characters are, the limit is in bytes.
func TestRequestEdge(t *testing.T) {
	for _, text := range []string{"a", "é", "日", "🌈", "e\u0301", "`"} {
		low, high := 1000, report.MaxComment // whole, and cut
		for high-low > 1 {
			if middle := (low + high) / 2; strings.Contains(sized(text, middle), "The diff is cut") {
				high = middle
			} else {
				low = middle
			}
		}
		whole, cut := sized(text, low), sized(text, high)
		if len(whole) > report.MaxComment || len(whole) < report.MaxComment-4<<10 && text != "`" {
			t.Errorf("%s: the last whole one has %d bytes", text, len(whole))
		}
		if len(cut) > report.MaxComment || !strings.Contains(cut, "5 of its 6 lines") || !strings.Contains(cut, "before you decide: [the record](https://") || !strings.Contains(cut, "\ngit show FETCH_HEAD:transactions/") {
			t.Errorf("%s: the first cut one: %.3000s", text, cut)
		}
		if !utf8.ValidString(whole) || !utf8.ValidString(cut) {
			t.Errorf("%s: half a character", text)
		}
	}
}

// The text of a check run holds an ApplyResult to the last byte, or none of it.
func TestCheckTextEdge(t *testing.T) {
	r := applied()
	with := func(n int, letter string) string {
		res := *r.ApplyResult
		res.Error = strings.Repeat(letter, n)
		r.ApplyResult = &res
		return r.CheckRun().Text
	}
	for _, letter := range []string{"x", "é", "🌈"} {
		n := (report.MaxCheckText - len(with(0, letter)) - len(`"error":"",`)) / len(letter)
		if got := with(n, letter); len(got) > report.MaxCheckText || len(got) <= report.MaxCheckText-len(letter) || !strings.HasPrefix(got, "```json\n") {
			t.Errorf("%d bytes: %.80s", len(got), got)
		}
		if got := with(n+1, letter); !strings.HasPrefix(got, "The ApplyResult is too long") {
			t.Errorf("one more: %d bytes: %.80s", len(got), got)
		}
	}
}

// huge is a report of which everything is too much.
func huge(text string) report.Report {
	r := failed()
	long := strings.Repeat(text, 2000)
	var ops []ledger.Operation
	r.Validation = &canon.Report{}
	r.Verdict = verdict(approval.Pending, long, 0)
	r.Risks = &risk.List{More: map[risk.Kind]int{risk.Long: 1 << 40}}
	for i := range 1000 {
		r.Risks.Risks = append(r.Risks.Risks, risk.Risk{Kind: risk.Kinds()[i*len(risk.Kinds())/1000], Path: long, From: long, Detail: long})
		ops = append(ops, ledger.Operation{Op: "modify", Path: long, Status: ledger.StatusError, Error: long})
		r.Files = append(r.Files, report.File{Path: long, Kind: "update"})
		r.Validation.Violations = append(r.Validation.Violations, canon.Violation{RuleID: "L5", Path: "main.go", Message: long})
		r.Verdict.Decisions = append(r.Verdict.Decisions, judged(ada, "deny", approval.KindReview, long, false))
	}
	res := effect.NewResult(".", ledger.PatchSource{}, false, ops)
	res.Error, r.Summary, r.ApplyResult = long, long, &res
	return r
}

// T63 However long a report is, it keeps to the limits, says what is missing,
// and begins with the verdict.
func TestT63Huge(t *testing.T) {
	for i, text := range []string{"`|\\@#:", "x", "🌈"} {
		if i > 0 && os.Getenv("COUNTERSIGN_LONG") == "" {
			continue
		}
		r := huge(text)
		waiting := huge(text)
		waiting.State, waiting.ApplyResult, waiting.Validation = plain.CheckFailed, nil, nil
		g := guard(waiting, r)
		g.Errors = make([]string, 30)
		q := request()
		q.Report, q.Diff, q.Commands = waiting, []byte(strings.Repeat("+"+text+"\n", 40000)), make([]string, 500)
		c := report.Comment{}
		for i := range 20 {
			c.Transactions = append(c.Transactions, numbered(r, i), numbered(waiting, 200+i))
		}
		run, body, comment := r.CheckRun(), q.Body(), c.Body()
		for name, doc := range map[string]struct{ text, begins string }{
			"failed":  {run.Summary, "### Countersign: Apply failed\n\n**Error:** "},
			"waiting": {waiting.CheckRun().Summary, "### Countersign: Check failed\n"},
			"guard":   {g.CheckRun().Summary, "### Countersign: not everything could be read"},
			"request": {body, "### Countersign: does a human approve this change?"},
			"comment": {comment, "### Countersign: Check failed"},
		} {
			if len(doc.text) > report.MaxCheckText || !strings.HasPrefix(doc.text, doc.begins) || !strings.Contains(doc.text, "**Cut") && name != "request" {
				t.Errorf("%s of %q: %d bytes: %.200s", name, text, len(doc.text), doc.text)
			}
		}
		if !strings.Contains(body, "**The diff is cut: ") || !strings.Contains(body, "```diff\n") {
			t.Errorf("%q: the request does not say that it is cut, or has nothing of it", text)
		}
		for name, doc := range map[string]string{"failed": run.Summary, "request": body, "comment": comment} {
			for _, kind := range risk.Kinds() {
				if title := view.RiskTitle(kind); !regexp.MustCompile("(?m)^> - .*" + title).MatchString(doc) {
					t.Errorf("%s of %q: nothing is %s", name, text, title)
				}
			}
		}
		if len(run.Annotations) != 200 || len(run.Annotations[0].Message) > 4000 {
			t.Errorf("%d annotations", len(run.Annotations))
		}
	}
}

// What has its approvals is not asked for again.
func TestOnlyMissing(t *testing.T) {
	r := proposal()
	r.Verdict.Needs[0].Approved = 1
	for range 2 { // two rules that name other people: one line is for both
		r.Verdict.Needs = append(r.Verdict.Needs, approval.Need{Kind: policy.KindProtected, Fingerprint: "protected:patchset:" + thePatch, Required: 1})
	}
	body := report.Comment{Transactions: []report.Report{r}}.Body()
	if strings.Contains(body, "/approve patchset:") || strings.Count(body, "/approve protected:patchset:") != 1 {
		t.Error(body)
	}
}

// A comment keeps the lines to copy of everything that waits, as long as it can.
func TestCommentLines(t *testing.T) {
	c := report.Comment{}
	for i := range 10 {
		c.Transactions = append(c.Transactions, numbered(proposal(), i))
	}
	if n := strings.Count(c.Body(), "/approve patchset:"+thePatch); n != 10 {
		t.Errorf("%d lines to copy, want 10", n)
	}
}
