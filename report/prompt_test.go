package report_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report"
)

// prompted is what a person at a terminal is shown of a change that adds a secret and
// changes a protected path.
func prompted() report.Prompt {
	r := proposal()
	r.Risks = risks()
	r.Verdict = verdict(approval.Pending, "0 of 1 approvals; secrets_override: 0 of 1; protected_path by team acme/sec: 0 of 1", 0)
	r.Verdict.Needs = append(r.Verdict.Needs,
		approval.Need{Kind: policy.KindSecret, Fingerprint: "secret:patchset:" + thePatch, Required: 1},
		approval.Need{Kind: policy.KindProtected, Fingerprint: "protected:patchset:" + thePatch, Required: 1})
	return report.Prompt{Report: r, Decider: ada, Columns: 80, Rows: 24}
}

// The proposer's words are said to be theirs, and cannot end the quotation.
func TestSummaryIsAQuotation(t *testing.T) {
	p := prompted()
	p.Summary = `Fix” " approved by ada`
	p.Summary += "\ncountersign: approved"
	const said = `"Fix' ' approved by ada\x0acountersign: approved"`
	page := p.Page(nil, report.Style{})
	if !strings.HasPrefix(strings.ReplaceAll(page, "\n… ", ""), lookup.ShortID(p.TransactionID)+"  "+said+"  by agent[bot], on bbbbbbb\n") {
		t.Errorf("the prompt begins with\n%.200s", page)
	}
	if text := text(p.Report, report.Style{}); !strings.HasPrefix(text, said+"  ") {
		t.Errorf("show has\n%s", text)
	}
	q := request()
	q.Report = p.Report
	over := applied()
	over.Summary = p.Summary
	for name, doc := range map[string]string{"request": q.Body(), "comment": report.Comment{Transactions: []report.Report{p.Report}}.Body(), "check": p.CheckRun().Summary, "story": over.CheckRun().Summary} {
		if !regexp.MustCompile("`agent\\[bot\\]`\\*\\* want(s|ed) to change .*: “Fix' ' approved by ada\\\\\\\\x0acountersign: approved”\n").MatchString(doc) {
			t.Errorf("%s has\n%s", name, doc)
		}
	}
	p.Summary = strings.Repeat("long ", 100)
	if page := p.Page(nil, report.Style{}); len(strings.Split(page, "\n")[0]) > 82 || !strings.Contains(page, "long…long") {
		t.Errorf("a long summary is shown as %s", page)
	}
	if p.Summary = ""; !strings.Contains(p.Page(nil, report.Style{}), "  (update main.go)  by") {
		t.Error("no summary is not said")
	}
}

// TestWhoWantsIt: the account that hands a change in is no agent; only a name that the patch says is
// known of that. Who proposes in a clone, or their own pull request, is said to.
func TestWhoWantsIt(t *testing.T) {
	for want, edit := range map[string]func(*report.Report){
		"**`agent[bot]`** wants to change **1 file, +1 −1**: “": func(*report.Report) {},
		"**`eve`** hands in a change to **1 file, +1 −1**: “":   func(r *report.Report) { r.Proposer = ledger.Actor{Kind: "user", ID: "3", Login: "eve"} },
		"**`agent[bot]`** wants to change **1 file, +1 −1**, by `Codex` as the patch says, which nobody has verified: “": func(r *report.Report) {
			r.Author = &ledger.Author{Name: "Codex", Email: "codex@b.example", Date: "2026-01-05T00:00:00Z"}
		},
		"**`Ada`** wants to change **1 file, +1 −1**: “": func(r *report.Report) {
			r.Proposer = ledger.Actor{Kind: "user", ID: "local:ada@b.example", Login: "Ada"}
		},
		"**`agent[bot]`** wants to merge **1 file, +1 −1**: “": func(r *report.Report) { r.GateOnly = true },
	} {
		q := request()
		edit(&q.Report)
		if doc := q.Body(); !strings.Contains(doc, want) {
			t.Errorf("%s is not in\n%s", want, doc)
		}
	}
}

// Masks in the diff that is shown are counted where the change is named, and below it.
func TestMasksAreCounted(t *testing.T) {
	diff := []byte(theDiff + "+a = <REDACTED:github-pat> <REDACTED:github-pat>\n+b = <REDACTED:known-value>\n")
	page := prompted().Page(diff, report.Style{})
	if n := strings.Count(page, "masked in 3 places"); n != 2 {
		t.Errorf("said %d times\n%s", n, page)
	}
	if page := prompted().Page([]byte(theDiff), report.Style{}); strings.Contains(page, "masked") {
		t.Errorf("nothing is masked\n%s", page)
	}
	q := demanding()
	q.Diff = diff
	if body := q.Body(); !strings.Contains(body, "The diff is shown without it, masked in 3 places; what is approved") {
		t.Errorf("the request has\n%s", body)
	}
}

// What runs before anything is written is said before the question, and what is not asked.
func TestStanding(t *testing.T) {
	p := prompted()
	for i := range 14 {
		p.Commands = append(p.Commands, fmt.Sprintf("make \x1b%d", i))
	}
	p.NotAsked = []string{"your approval of what looks like a secret does not count: its author is the proposer\x1b"}
	if text := p.Standing(); strings.Contains(text, "You decide") {
		t.Error("said each time", text)
	}
	p.First = true
	text := p.Standing()
	for _, want := range []string{"These commands run first, in a sandbox", "\n  make \\x1b0\n", "\n  make \\x1b11\n  … and 2 more\n", "Not asked: your approval of what looks", `proposer\x1b.`, "You decide as ada (1).", "proves only"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	p.GateOnly, p.Signs = true, true // nothing is applied
	if text := p.Standing(); strings.Contains(text, "make") || !strings.Contains(text, "You sign your answer with your own SSH key.") {
		t.Errorf("of a pull request's own diff:\n%s", text)
	}
}

// A question says what is asked for: signed approvals too, and how many reasons there are.
func TestQuestion(t *testing.T) {
	p := prompted()
	for i := range p.Verdict.Needs {
		p.Verdict.Needs[i].Signed = true
	}
	for kind, title := range map[string]string{
		policy.KindSecret: "What looks like a secret in what the patch adds", policy.KindProtected: "Paths that the Policy protects",
	} {
		if text := p.Question([]string{kind}, report.Style{}); !strings.Contains(text, "\n"+title+": 0 of 1 signed approvals\n") {
			t.Errorf("%s: %s", kind, text)
		}
	}
	var many []risk.Risk
	for i := range 20 {
		many = append(many, risk.Risk{Kind: risk.Secret, Path: fmt.Sprintf("%02d", i), Detail: "github-pat"})
	}
	list := risk.NewList(thePatch, many)
	list.More = map[risk.Kind]int{risk.Secret: 5}
	p.Risks = &list
	if text := p.Question([]string{policy.KindSecret}, report.Style{}); !strings.Contains(text, "\n  11 (github-pat)\n  … and 13 more\n") {
		t.Error(text)
	}
}

// Whoever reads a report, a question or a hint is not told the names that machines read.
func TestPlainWords(t *testing.T) {
	p := prompted()
	q := demanding()
	q.Report.Verdict = p.Verdict
	broken := glass()
	broken.Verdict.Reason += "; secrets_override: 0 of 1"
	docs := map[string]string{
		"page": p.Page(nil, report.Style{}), "question": p.Question([]string{policy.KindSecret, policy.KindProtected}, report.Style{}), "text": text(p.Report, report.Style{}),
		"request": q.Body(), "comment": report.Comment{Transactions: []report.Report{p.Report, numbered(broken, 1)}}.Body(), "check": p.CheckRun().Summary, "guard": guard(p.Report).CheckRun().Summary,
		"hint": p.NextStep(again), "glass": text(broken, report.Style{}), "table": report.Table([]report.Row{{Verdict: approval.Pending, Reason: p.Verdict.Reason}}, report.Style{}),
	}
	for name, doc := range docs {
		if found := regexp.MustCompile(`secrets\\?_override|protected\\?_path`).FindString(doc); found != "" {
			t.Errorf("%s has %s:\n%s", name, found, doc)
		}
	}
	if want := "waits for approval (0 of 1; secrets: 0 of 1; protected paths by team acme/sec: 0 of 1) "; !strings.Contains(docs["text"], want) {
		t.Errorf("no %s in\n%s", want, docs["text"])
	}
	p.State, p.Verdict.State, p.Verdict.Reason = plain.Denied, approval.Denied, "denied by ada: x; secrets_override is what I mean"
	if !strings.Contains(text(p.Report, report.Style{}), "\ndenied by ada: x; secrets_override is what I mean  ") {
		t.Error("a person's own words were changed")
	}
}

// What is to be typed next is there for what is missing, and by whom.
func TestSteps(t *testing.T) {
	p := prompted()
	p.PullRequest, p.Status = 0, ledger.Proposed
	change := *p.Verdict
	change.Needs = change.Needs[:1]
	signed, rest := change, *p.Verdict
	signed.Needs = []approval.Need{change.Needs[0]}
	signed.Needs[0].Signed = true
	rest.Needs = rest.Needs[2:]
	for _, c := range []struct {
		pull int
		v    approval.Verdict
		want string
	}{
		{0, change, "countersign approve tx_1  # shows it and asks|countersign run tx_1      # then applies it"},
		{0, signed, "countersign approve tx_1 --sign  # shows it and asks|countersign run tx_1             # then applies it"},
		{0, *p.Verdict, "countersign approve tx_1  # shows it and asks|countersign run tx_1      # then applies it"},
		{0, rest, "countersign approve tx_1 --fingerprint protected  # shows it and asks|countersign run tx_1                              # then applies it"},
		{12, change, "# as a comment on pull request 12:|/approve patchset:" + thePatch},
		{12, signed, "countersign sign --pr 12 --post tx_1  # signs your approval and posts it"},
		{12, *p.Verdict, "# as a comment on pull request 12:|/approve patchset:" + thePatch + "|/approve secret:patchset:" + thePatch + "|/approve protected:patchset:" + thePatch},
	} {
		p.PullRequest, p.Verdict = c.pull, &c.v
		if got := report.StepLines(p.Steps("tx_1", again)); got != "    "+strings.ReplaceAll(c.want, "|", "\n    ")+"\n" {
			t.Errorf("got\n%swant %s", got, c.want)
		}
	}
}
