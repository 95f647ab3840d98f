package report_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/report"
)

// Where a patch was found, and that its files changed since, stands in the text and above the question; a path
// is shown as text.
func TestFoundAndMoved(t *testing.T) {
	p := prompted()
	again := func(args ...string) string { return strings.Join(args, " ") }
	for _, text := range []string{p.Page(nil, report.Style{}), p.Text(again, 200, false, report.Style{})} {
		if strings.Contains(text, "lower") || strings.Contains(text, "meanwhile") {
			t.Errorf("nothing moved, and it says\n%s", text)
		}
	}
	p.Offsets = []patch.Offset{{Path: "a.go", Line: 3, By: 4}, {Path: "a.go", Line: 30, By: 4}, {Path: "b\x1b.go", Line: 5, By: -1}}
	p.Moved = []string{"a.go", "b\x1b.go"}
	p.Columns = 200
	for _, text := range []string{p.Page(nil, report.Style{}), p.Text(again, 200, false, report.Style{})} {
		if !strings.Contains(strings.ToLower(text), `found`) || !strings.Contains(text, `a.go 4 lines lower, "b\x1b.go" 1 line higher`) || strings.Count(text, "4 lines") != 1 {
			t.Errorf("what was found elsewhere is not in\n%s", text)
		}
		if !strings.Contains(text, `a.go, "b\x1b.go" changed meanwhile`) {
			t.Errorf("what changed meanwhile is not in\n%s", text)
		}
	}
	p.PullRequest = 0
	if next := p.NextStep(again); !strings.HasPrefix(next, "review --again "+p.TransactionID) {
		t.Errorf("next: %s", next)
	}
}

// Between shows the lines of a patch that are other ones, and not where they are.
func TestBetween(t *testing.T) {
	const old = "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -4,3 +4,3 @@\n one\n-two\n+2\n"
	same := strings.NewReplacer("1..2", "3..4", "-4,3 +4,3", "-9,3 +9,3").Replace(old)
	for now, want := range map[string]string{
		same:                 "The patch has the same lines as before, at other places.\n",
		same + " \x1b[31m\n": "What is different in the patch, - before and + now:\n+  \\x1b[31m\n",
		strings.Replace(same, "-two", "-zwei", 1): "What is different in the patch, - before and + now:\n- -two\n+ -zwei\n",
	} {
		if got := report.Between([]byte(old), []byte(now), report.Style{}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
