package report_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report"
)

// TestT75Claims: whoever approves sees what the commit will say, and who proposed it too, wherever they are asked;
// what does not show is shown, and what is cut is said to be.
func TestT75Claims(t *testing.T) {
	r := proposal()
	r.Message, r.Declared = "Remove TODOs\n\nNobody needs\u202e them.\n```", []string{"Co-authored-by: Grace <grace@example.org>"}
	r.Proposals = []report.Proposed{{Proposer: agent, Input: ledger.Input{Kind: "patch"}}, {Proposer: bob, Input: ledger.Input{Kind: "patch", Format: "codex", Via: "mcp"}}}
	q := request()
	q.Report = r
	p := report.Prompt{Report: r, Columns: 80, Rows: 24}
	const head = "A commit of this change says, in the proposer's words, which nobody has verified:"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"terminal": {text(r, report.Style{}), []string{"says   in the proposer's words, which nobody has verified:\n", "  | Nobody needs\\u202e them.\n", "  | Co-authored-by: Grace <grace@example.org>\n", "too    proposed by bob (user, 2) as codex over mcp\n"}},
		"prompt":   {p.Page([]byte(theDiff), report.Style{}), []string{"proposed too by bob (user, 2) as codex over mcp\n", head[:70], "  | Nobody needs\\u202e them.\n", "  | Co-authored-by: Grace", "diff --git"}},
		"request":  {q.Body(), []string{head + "\n\n````text\nRemove TODOs\n", "\nNobody needs\\u202e them.\n", "\nCo-authored-by: Grace <grace@example.org>\n````\n"}},
		"comment":  {report.Comment{Transactions: []report.Report{r}}.Body(), []string{head, "| proposed too | bob"}},
	} {
		rest := strings.Join(strings.Fields(c.text), " ")
		for _, want := range c.want {
			want = strings.Join(strings.Fields(want), " ")
			_, after, found := strings.Cut(rest, want)
			if !found {
				t.Errorf("%s: %q is not there, or not in its place:\n%s", name, want, c.text)
				break
			}
			rest = after
		}
	}
	if strings.Contains(q.Body(), "codex") {
		t.Error("the request tells of what may change")
	}
	q.Report.Message = strings.Repeat("a line\n", 60) + "end"
	if body := q.Body(); strings.Contains(body, "\nend\n") || !strings.Contains(body, "**Cut:** 23 lines not shown here") {
		t.Error(body)
	}
	if r.Message, r.Declared = "", nil; strings.Contains(text(r, report.Style{}), "in the proposer's words") {
		t.Error("nothing is said to be said")
	}
}
