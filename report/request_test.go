package report_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report"
)

// diffOf is the diff as a request has it: from the first file to the answers.
func diffOf(t *testing.T, q report.Request) string {
	t.Helper()
	_, text, _ := strings.Cut(q.Body(), "overlook.\n\n")
	text, _, found := strings.Cut(text, "**Reply in this thread")
	if !found {
		t.Fatal(q.Body())
	}
	return text
}

// TestHunks: of a file the hunks are shown under its name, and of the other lines of the diff those that
// neither the title nor a risk says.
func TestHunks(t *testing.T) {
	const whole = "--- /dev/null\n+++ b/a|`b`.go\n@@ -0,0 +1 @@\n+x\n"
	const title = "<code>a&#124;&#96;b&#96;&#46;go</code>"
	for name, c := range map[string]struct {
		file  report.File
		risks []risk.Risk
		diff  string
		want  string
	}{
		"new":                    {report.File{Kind: "add", Added: 1}, nil, "new file mode 100644\nindex 0..1\n" + whole, title + " new, +1</summary>\n\n```diff\n+x\n```"},
		"a mode that no risk is": {report.File{Kind: "add", Added: 1}, nil, "new file mode 120000\nindex 0..1\n" + whole, title + " new, +1</summary>\n\n```diff\nnew file mode 120000\n+x\n```"},
		"executable": {report.File{Kind: "add", Added: 1}, []risk.Risk{{Kind: risk.Executable, Path: "a|`b`.go"}}, "new file mode 100755\nindex 0..1\n" + whole,
			title + " new, +1, becomes executable</summary>\n\n```diff\n+x\n```"},
		"executable, and of another file": {report.File{Kind: "add", Added: 1}, []risk.Risk{{Kind: risk.Executable, Path: "a"}}, "new file mode 100755\nindex 0..1\n" + whole,
			title + " new, +1</summary>\n\n```diff\nnew file mode 100755\n+x\n```"},
		"deleted": {report.File{Kind: "delete", Deleted: 1}, nil, "deleted file mode 100644\nindex 1..0\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", title + " deleted, −1</summary>\n\n```diff\n-x\n```"},
		"renamed": {report.File{Kind: "rename", From: "<b>"}, nil, "similarity index 100%\nrename from <b>\nrename to x\n", "<p>" + title + " renamed from <code>&#60;b&#62;</code></p>\n\n"},
		"binary":  {report.File{Kind: "update"}, []risk.Risk{{Kind: risk.Binary, Path: "a|`b`.go"}}, "index 1..0\nGIT binary patch\nliteral 3\nKcmZQz\n\n", "<p>" + title + " binary</p>\n\n"},
		"binary, for whose risk there was no room": {report.File{Kind: "update"}, []risk.Risk{{Kind: risk.Binary, Path: "a"}}, "index 1..0\nGIT binary patch\nliteral 3\nKcmZQz\n\n",
			title + "</summary>\n\n```diff\nGIT binary patch\n```"},
		"words of a header in a hunk": {report.File{Kind: "update", Added: 1, Deleted: 1}, nil, "index 1..0\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/y\n+++ b/y\n index 1..0\n\\ No newline at end of file\n",
			title + " +1 −1</summary>\n\n```diff\n@@ -1,2 +1,2 @@\n--- a/y\n+++ b/y\n index 1..0\n\\ No newline at end of file\n```"},
		"a header of another kind": {report.File{Kind: "update"}, nil, "index 1..0\ncopy from x\n", title + "</summary>\n\n```diff\ncopy from x\n```"},
	} {
		q := request()
		c.file.Path = "a|`b`.go"
		q.Report.Files, q.Report.Risks, q.Diff = []report.File{c.file}, &risk.List{Risks: c.risks}, []byte("diff --git a/x b/x\n"+c.diff)
		if got := q.Body(); !strings.Contains(got, c.want) || strings.Contains(got, "index 0..1") || strings.Contains(got, "diff --git") {
			t.Errorf("%s: %s", name, got)
		}
		q.Report.Files = nil // then every line is shown
		if got := q.Body(); !strings.Contains(got, "<summary>file 1</summary>\n\n```diff\ndiff --git a/x b/x\n") || !strings.Contains(got, strings.SplitAfter(c.diff, "\n")[1]) {
			t.Errorf("%s, of no known file: %s", name, got)
		}
	}
}

// TestHunksOpen: what is short is seen at once, and what is long or many opens on a click; every file is named.
func TestHunksOpen(t *testing.T) {
	q := request()
	q.Diff, q.Report.Files = nil, nil
	add := func(path string, lines int) {
		q.Diff = append(q.Diff, "diff --git x x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n"+strings.Repeat("+x\n", lines-1)...)
		q.Report.Files = append(q.Report.Files, report.File{Path: path, Kind: "update"})
	}
	add("a", 30)
	add("b", 30)
	add("c", 10)
	if got := diffOf(t, q); !strings.Contains(got, "<details open><summary><code>a</code>") || !strings.Contains(got, "<details><summary><code>b</code>") || !strings.Contains(got, "<details open><summary><code>c</code>") {
		t.Error(got)
	}
	add("d", 30000)
	add("e", 20)
	if got := q.Body(); !strings.Contains(got, "lines shown</summary>") || !strings.Contains(got, " of 30000 lines shown</summary>") || !strings.Contains(got, "<code>e</code></summary>") || len(got) > report.MaxComment {
		t.Error(got[len(got)-3000:])
	}
	for range 200 {
		add("f", 1)
	}
	if got := q.Body(); !strings.Contains(got, " more files not shown here.") || !strings.Contains(got, "**The diff is cut: ") || len(got) > report.MaxComment {
		t.Error(got[len(got)-3000:])
	}
}

// TestAnswers: what is to type, and elsewhere; a command of the program only where nothing else counts.
func TestAnswers(t *testing.T) {
	secret := policy.Need{Kind: policy.KindSecret, Prefix: "secret:", Required: 1}
	protected := policy.Need{Kind: policy.KindProtected, Prefix: "protected:", Required: 2}
	change := policy.Need{Kind: policy.KindFileChange, Required: 1}
	signed := func(n policy.Need) policy.Need { n.Signed = true; return n }
	const sign = "signed with your own SSH key: `countersign sign --pr 12 --post` |\n"
	for want, needs := range map[string][]policy.Need{
		"| **yes** | `/approve` |\n": {change},
		"| **yes, all of it** | `/approve` then `/approve secret` then `/approve protected`, a reply each |\n": {change, secret, protected, protected},
		"| **yes** | " + sign:                 {signed(change), signed(secret)},
		"| **yes** | `/approve`, and " + sign: {change, signed(secret)},
	} {
		q := request()
		q.Needs = needs
		above, folded, _ := strings.Cut(q.Body(), "<details><summary>Answer from elsewhere")
		if !strings.Contains(above, want) || strings.Contains(above, "patchset:") || !strings.Contains(want, sign) && strings.Contains(above, "countersign ") {
			t.Errorf("%s is not in %s", want, above)
		}
		for _, n := range needs {
			if strings.Contains(folded, "\n/approve "+n.Prefix+"patchset:"+thePatch+"\n") == n.Signed {
				t.Errorf("%s: %s", n.Kind, folded)
			}
		}
		if !strings.Contains(folded, "\n/deny patchset:"+thePatch+"\n") {
			t.Error(folded)
		}
	}
}

// TestFirstLine: how it stands is the first line of a comment: who approved, or did, and why that counts no more;
// and the title of a check says what it waits for.
func TestFirstLine(t *testing.T) {
	half := proposal()
	half.Verdict.Needs[0].Approved = 1
	half.Verdict.Needs = append(half.Verdict.Needs, approval.Need{Kind: policy.KindProtected, Fingerprint: "protected:patchset:" + thePatch, Required: 2, Approved: 1})
	never, renewed := drifted(), drifted()
	never.Verdict.Decisions[0].Recorded = false
	renewed.Verdict.Decisions = append(renewed.Verdict.Decisions, judged(ada, ledger.Approve, approval.KindIssueComment, "approved", true))
	gone := applied()
	gone.Status, gone.State, gone.Ended, gone.ApplyResult, gone.Validation, gone.AppliedCommit = ledger.Superseded, plain.Superseded, "the base changed: main.go", nil, nil, ""
	merged := gateOnly(approval.Approved)
	merged.Status, merged.State, merged.Verdict.Decisions = ledger.Completed, plain.Merged, []approval.Judged{judged(ada, ledger.Approve, approval.KindReview, "approved", true)}
	merged.Verdict.Needs[0].Approved = 1
	const waits = "Countersign: waits for approval: the change (0 of 1)"
	for _, c := range []struct {
		name, first, title string
		r                  report.Report
	}{
		{"nobody answered", waits, "waiting: the change (0 of 1)", proposal()},
		{"half", "Countersign: waits for approval: protected path (1 of 2)", "waiting: protected path (1 of 2)", half},
		{"drifted", "Countersign: ada did approve, which counts no more: 2 other files in the same directory changed", "waiting: the change (0 of 1)", drifted()},
		{"it never counted", waits, "waiting: the change (0 of 1)", never},
		{"approved again", waits, "waiting: the change (0 of 1)", renewed},
		{"superseded", "Countersign: Approved by ada; never applied: main.go changed meanwhile", "Approved by ada; never applied: main.go changed meanwhile", gone},
		{"applied", "Applied: [`eeeeeeeeeeee`](https://github.example/acme/app/commit/" + strings.Repeat("e", 40) + "), approved by ada", "Applied: eeeeeeeeeeee, approved by ada", applied()},
		{"denied", "Countersign: Denied by bob: “it breaks the build”", "Denied by bob: “it breaks the build”", denied()},
		{"failed", "Countersign: Apply failed", "Apply failed", failed()},
		{"merged", "Countersign (the pull request itself): Approved by ada, and merged", "Approved by ada, and merged", merged},
	} {
		body := report.Comment{Transactions: []report.Report{c.r}, Web: "https://github.example/acme/app"}.Body()
		if !strings.HasPrefix(body, "### "+c.first) {
			t.Errorf("%s: %.300s", c.name, body)
		}
		if got := c.r.CheckRun().Title; got != c.title {
			t.Errorf("%s: %s", c.name, got)
		}
	}
	next := numbered(proposal(), 9)
	next.Supersedes = []string{gone.TransactionID}
	body := report.Comment{Transactions: []report.Report{gone, next}}.Body()
	if !strings.HasPrefix(body, "### Countersign: ada did approve, which counts no more: this patch took the place of that one\n") {
		t.Error(body)
	}
}
