package report_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/policy"
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
	const said = `agent[bot] says: "Fix' ' approved by ada\x0acountersign: approved"`
	page := p.Page(nil, report.Style{})
	if lines := strings.Split(page, "\n"); !strings.HasPrefix(lines[0], p.TransactionID) || lines[1] != said {
		t.Errorf("the prompt begins with\n%s\n%s", lines[0], lines[1])
	}
	if text := p.Text(report.Style{}); !strings.Contains(text, "summary      "+said+"\n") {
		t.Errorf("show has\n%s", text)
	}
	q := request()
	q.Report = p.Report
	over := applied()
	over.Summary = p.Summary
	for name, doc := range map[string]string{"request": q.Body(), "comment": report.Comment{Transactions: []report.Report{p.Report}}.Body(), "check": p.CheckRun().Summary, "story": over.CheckRun().Summary} {
		if !regexp.MustCompile("`agent\\[bot\\]` propose[sd] to change .*, and sa(ys|id): \"Fix' ' approved by ada\\\\\\\\x0acountersign: approved\"\n").MatchString(doc) {
			t.Errorf("%s has\n%s", name, doc)
		}
	}
	p.Summary = strings.Repeat("long ", 100)
	if line := strings.Split(p.Page(nil, report.Style{}), "\n")[1]; len([]rune(line)) != 80 || !strings.HasSuffix(line, `"`) {
		t.Errorf("a long summary is shown as %s", line)
	}
	if p.Summary = ""; !strings.Contains(p.Page(nil, report.Style{}), "\nagent[bot] says nothing about it\n") {
		t.Error("no summary is not said")
	}
}

// Masks in the diff that is shown are counted where the change is named, and below it.
func TestMasksAreCounted(t *testing.T) {
	diff := []byte(theDiff + "+a = <REDACTED:github-pat> <REDACTED:github-pat>\n+b = <REDACTED:known-value>\n")
	page := prompted().Page(diff, report.Style{})
	if n := strings.Count(page, ", masked in 3 places\n"); n != 2 {
		t.Errorf("said %d times\n%s", n, page)
	}
	if page := prompted().Page([]byte(theDiff), report.Style{}); strings.Contains(page, "masked") {
		t.Errorf("nothing is masked\n%s", page)
	}
	q := demanding()
	q.Diff = diff
	if body := q.Body(); !strings.Contains(body, "The diff is shown without it, masked in 3 places; the fingerprint") {
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
	text := p.Standing()
	for _, want := range []string{"These commands run first, in a sandbox", "\n  make \\x1b0\n", "\n  make \\x1b11\n  and 2 more\n", "Not asked: your approval of what looks", `proposer\x1b.`, "You decide as ada (1).", "proves only"} {
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
		policy.KindFileChange: "The change itself", policy.KindSecret: "What looks like a secret in what the patch adds", policy.KindProtected: "Paths that the Policy protects",
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
	if text := p.Question([]string{policy.KindSecret}, report.Style{}); !strings.Contains(text, "\n  11 (github-pat)\n  and 13 more\n") {
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
	again := func(args ...string) string { return "countersign " + strings.Join(args, " ") }
	docs := map[string]string{
		"page": p.Page(nil, report.Style{}), "question": p.Question([]string{policy.KindSecret, policy.KindProtected}, report.Style{}), "text": p.Text(report.Style{}),
		"request": q.Body(), "comment": report.Comment{Transactions: []report.Report{p.Report, numbered(broken, 1)}}.Body(), "check": p.CheckRun().Summary, "guard": guard(p.Report).CheckRun().Summary,
		"hint": report.HowToApprove("tx_1", 0, *p.Verdict, again), "glass": broken.Text(report.Style{}), "table": report.Table([]report.Row{{Verdict: approval.Pending, Reason: p.Verdict.Reason}}, report.Style{}),
	}
	for name, doc := range docs {
		if found := regexp.MustCompile(`secrets\\?_override|protected\\?_path`).FindString(doc); found != "" {
			t.Errorf("%s has %s:\n%s", name, found, doc)
		}
	}
	if want := "verdict      pending (0 of 1 approvals; secrets: 0 of 1; protected paths by team acme/sec: 0 of 1)\n"; !strings.Contains(docs["text"], want) {
		t.Errorf("no %s in\n%s", want, docs["text"])
	}
	p.Verdict.State, p.Verdict.Reason = approval.Denied, "denied by ada: x; secrets_override is what I mean"
	if !strings.Contains(p.Text(report.Style{}), "(denied by ada: x; secrets_override is what I mean)") {
		t.Error("a person's own words were changed")
	}
}

// A hint asks nobody to approve unseen, or everything with one answer.
func TestHints(t *testing.T) {
	again := func(args ...string) string { return "countersign " + strings.Join(args, " ") }
	p := prompted()
	change := *p.Verdict
	change.Needs = change.Needs[:1]
	signed := change
	signed.Needs = []approval.Need{change.Needs[0]}
	signed.Needs[0].Signed = true
	const elsewhere = " (in a terminal it shows the change and asks; elsewhere read countersign diff tx_1 first"
	const others = "; somebody other than the proposer must approve what looks like a secret"
	for _, c := range []struct {
		pull int
		v    approval.Verdict
		want string
	}{
		{0, change, "countersign approve tx_1" + elsewhere + "), then countersign run tx_1"},
		{0, signed, "countersign approve tx_1 --sign" + elsewhere + "), then countersign run tx_1"},
		{0, *p.Verdict, "countersign approve tx_1" + elsewhere + " and add --fingerprint secret or --fingerprint protected), then countersign run tx_1" + others},
		{12, change, "comment on pull request 12: /approve patchset:" + thePatch},
		{12, signed, "countersign sign --pr 12 --post tx_1"},
		{12, *p.Verdict, "comment on pull request 12: /approve patchset:" + thePatch + ", and in another comment: /approve secret:patchset:" + thePatch + ", and in another comment: /approve protected:patchset:" + thePatch + others},
	} {
		if got := report.HowToApprove("tx_1", c.pull, c.v, again); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
