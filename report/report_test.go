package report_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
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

// T71 A byte that is not UTF-8 reaches neither a terminal nor a comment: C1
// controls of 8 bits, and a change of Latin-1 that would look like none.
func TestT71NotUTF8(t *testing.T) {
	diff := []byte("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -3,2 +3,4 @@\n ctx\x9b1m\n-caf\xe9\n+caf\\xe9\n+\x9b2J\x9b8mhidden\n+ok \ufffd\n")
	for _, s := range []report.Style{{}, {Colour: true}} {
		shown := report.Diff(diff, s)
		if !utf8.ValidString(shown) || strings.ContainsRune(shown, '\u009b') {
			t.Errorf("raw bytes: %q", shown)
		}
		if !strings.Contains(shown, "does not show in lines 5, 6, 8 of this diff.") {
			t.Errorf("nothing tells an escape from a text that looks like one: %q", shown)
		}
	}
	if shown := report.Diff(diff, report.Style{}); !strings.Contains(shown, "\n+\\x9b2J\\x9b8mhidden\n+ok \ufffd\n") {
		t.Errorf("shown: %q", shown)
	}
	q := request()
	q.Report.Files, q.Diff = []report.File{{Path: "f"}}, diff
	body := q.Body()
	for _, want := range []string{
		"- `f`, line 4 of what is removed\n", "- `f`, line 5\n", "\n-caf\\xe9\n+caf\\xe9\n", "bytes that are not UTF-8",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in %s", want, body)
		}
	}
	if !utf8.ValidString(body) || strings.Contains(report.Diff([]byte(theDiff), report.Style{}), "does not show") {
		t.Error("raw bytes in a comment, or a note below a plain diff")
	}
}

// T71 What a terminal would obey stands in JSON as JSON's own escapes.
func TestT71EscapeJSON(t *testing.T) {
	doc := "{\"a\":\"\u009b2J \u202e é \U000e0041 \\u001b \\\\ \u007f\"}\n"
	want := "{\"a\":\"\\u009b2J \\u202e é \\udb40\\udc41 \\u001b \\\\ \\u007f\"}\n"
	got := escape.JSON(doc)
	if got != want {
		t.Errorf("JSON(%q) = %q", doc, got)
	}
	var before, after any
	if err := errors.Join(json.Unmarshal([]byte(doc), &before), json.Unmarshal([]byte(got), &after)); err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("another document: %v", err)
	}
}

// T71 A text that is cut shows its bytes as escapes too.
func TestT71Shortened(t *testing.T) {
	r := some()
	r.Summary = strings.Repeat("\xe9", 400)
	if md := r.Markdown(); strings.Contains(md, "\ufffd") || !strings.Contains(md, strings.Repeat(`\\xe9`, 300)+"…") {
		t.Errorf("a long summary in Latin-1: %s", md)
	}
}

func some() report.Report {
	return report.Report{
		TransactionID: "tx_01", PatchID: strings.Repeat("ab", 32), Fingerprint: "patchset:x", Status: ledger.Awaiting, State: plain.Waits,
		LedgerRef: "refs/agent/ledger", LedgerCommit: "0123456789abcdef",
		Files:   []report.File{{Path: "a.go", Kind: "update", Added: 2, Deleted: 1}},
		Verdict: &approval.Verdict{State: approval.Pending, Reason: "0 of 1 approvals"},
	}
}

// A proposal that nobody answered, or that was denied, does not paint a pull
// request red; a failure does.
func TestConclusion(t *testing.T) {
	failed := effect.NewResult(".", ledger.PatchSource{}, false, []ledger.Operation{{Path: "a", Status: ledger.StatusError, Error: "x"}})
	done := effect.NewResult(".", ledger.PatchSource{}, false, nil)
	for _, c := range []struct {
		want string
		set  func(*report.Report)
	}{
		{"neutral", func(*report.Report) {}},
		{"neutral", func(r *report.Report) {
			r.Status, r.State, r.Verdict.State = ledger.Denied, plain.Denied, approval.Denied
		}},
		{"success", func(r *report.Report) { r.Status, r.State, r.ApplyResult = ledger.Completed, plain.Applied, &done }},
		{"failure", func(r *report.Report) { r.State, r.ApplyResult = plain.ApplyFailed, &failed }},
		{"failure", func(r *report.Report) { r.Status = ledger.Failed }},
		{"failure", func(r *report.Report) {
			r.Status, r.State, r.ApplyResult, r.Validation = ledger.Applied, plain.CheckFailed, &done, &canon.Report{Violations: []canon.Violation{{RuleID: "L5"}}}
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
	var ops []ledger.Operation
	for range 5000 {
		ops = append(ops, ledger.Operation{Op: "modify", Path: strings.Repeat("é", 40), Status: ledger.StatusSuccess})
	}
	ops = append(ops, ledger.Operation{Op: "modify", Path: "zz-the-bad-one", Status: ledger.StatusError, Error: "cannot write"})
	res := effect.NewResult(".", ledger.PatchSource{}, false, ops)
	r.ApplyResult, r.State = &res, plain.ApplyFailed
	run := r.CheckRun()
	for name, text := range map[string]string{"summary": run.Summary, "text": run.Text} {
		if n := utf8.RuneCountInString(text); n > 65535 {
			t.Errorf("%s has %d characters", name, n)
		}
	}
	if !strings.Contains(run.Summary, "Countersign: Apply failed") || !strings.Contains(run.Summary, "zz-the-bad-one") {
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

// TestRenamed: a file that is deleted, and added elsewhere with changes, is shown as renamed;
// names and lines are foreign text.
func TestRenamed(t *testing.T) {
	const ten = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"
	diff := func(name, text string) []byte {
		p, err := patch.NewTree(fstest.MapFS{"old": {Data: []byte(ten)}}).Between(map[string]*patch.File{"old": nil, name: {Mode: patch.Regular, Data: []byte(text)}})
		check(t, err)
		return p.Bytes()
	}
	edited := diff("néw", strings.Replace(ten, "five", "FIVE\u202e\x1b", 1))
	const want = `
renamed with changes: old → néw (83% alike; only for reading, the bytes above are what counts)
  diff --git a/old b/néw
  similarity index 83%
  rename from old
  rename to néw
  index 100644
  --- a/old
  +++ b/néw
  @@ -2,7 +2,7 @@
   two
   three
   four
  -five
  +FIVE\u202e\x1b
   six
   seven
   eight
`
	ids := regexp.MustCompile(`index [0-9a-f.]{82}`)
	if got := ids.ReplaceAllString(report.Renamed(edited, report.Style{}), "index"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := report.Renamed(diff("new", "another\n"), report.Style{}); got != "" {
		t.Errorf("another file: %s", got)
	}
}

// A run that was cut off finds its request again though the ledger has moved; nothing else is
// taken for it.
func TestRequestIs(t *testing.T) {
	q := request()
	moved := q
	moved.Report.MoveLedger(strings.Repeat("9", 40))
	if !q.Is(q.Body()) || !q.Is(moved.Body()) || moved.Body() == q.Body() {
		t.Error("the request is not found again")
	}
	long, later := q, q // SHA-256 ids
	long.Report.MoveLedger(strings.Repeat("1", 64))
	later.Report.MoveLedger(strings.Repeat("2", 64))
	if !long.Is(later.Body()) {
		t.Error("the request of a ledger of SHA-256 is not found again")
	}
	bare := q
	bare.Report.Record = ""
	if !bare.Is(bare.Body()) || bare.Is(q.Body()) {
		t.Error("a request without a record")
	}
	body := moved.Body()
	for what, other := range map[string]string{
		"nothing": "", "without the link": bare.Body(), "another text": strings.Replace(body, "and nothing else", "and no more", 1),
		"another place": strings.Replace(body, "forge.example", "other.example", 1), "another diff": strings.Replace(body, "+func main", "+func niam", 1),
		"more": body + "\n", "another transaction": strings.ReplaceAll(body, "tx_01", "tx_02"), "no commit": strings.Replace(body, strings.Repeat("9", 40), "main", 1),
	} {
		if other == body || q.Is(other) {
			t.Errorf("%s is taken for the request", what)
		}
	}
}

// TestCommentOfTwo: of a proposal and the pull request's own diff in one comment, which have a
// heading each, the proposal is first. A short diff is shown where no thread has it.
func TestCommentOfTwo(t *testing.T) {
	proposed, own := numbered(proposal(), 1), numbered(gateOnly(approval.Pending), 2)
	body := func(diff []byte, thread string) string {
		proposed.Diff = diff
		return report.Comment{Transactions: []report.Report{own, proposed}, Threads: map[string]string{proposed.TransactionID: thread}}.Body()
	}
	const hidden, ours = "The diff is not shown here", "### Countersign (the pull request itself): waits for approval: "
	text := body([]byte(theDiff), "")
	if i, j := strings.Index(text, "### Countersign: waits for approval: "), strings.Index(text, ours); i < 0 || j < i || strings.Contains(text, hidden) {
		t.Error(text)
	}
	if i := strings.Index(text, "```diff\n@@ -1,3 +1,3 @@\n"); i < 0 || i > strings.Index(text, "**To answer,**") {
		t.Error(text)
	}
	long := append([]byte(theDiff), strings.Repeat("+line\n", 5000)...)
	for name, text := range map[string]string{"no diff": body(nil, ""), "a long one": body(long, "")} {
		if !strings.Contains(text, hidden) || strings.Contains(text, "```diff") || !strings.Contains(text, "/approve "+proposed.Fingerprint) {
			t.Errorf("%s: %s", name, text)
		}
	}
	if text := body(nil, "https://forge.example/acme/app/pull/12#1"); strings.Contains(text, hidden) {
		t.Error(text)
	}
	proposed.LedgerWeb = "https://forge.example/acme/records"
	if text := body(nil, ""); strings.Count(text, "(in another repository, for those who may read that)\n") != 1 {
		t.Error(text)
	}
}
