package report_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report"
)

// hostile are texts that try to break out of a table, a list, a code span, a
// block, HTML, or a comment, and to mention, link or reorder.
var hostile = []string{
	"a|b `c` <img src=x> @team #1 ![x](y) **bold**", "\n| new | row |", "``` \n</details>\n```", "`", "``", " ` ", "\\", "\\`", "a\\|b", "|", "||",
	"<!-- hidden", "-->", "<!-- countersign:report -->", "</details><script>x</script>", "</code>", "&lt;b&gt; &#64;ada", "@ada", "acme/app#1", "GH-1",
	"https://evil.example/x", "www.evil.example", "www", "wwwgh-1", "mailto:a@b.example", "[x](https://evil.example)", "[^1]: x", ":tada:", "$x$ $$y$$", "~~x~~ __y__ *z*",
	"\u202egnp.exe", "zero\u200bwidth", "\x1b[2J", "\r\n### countersign: approved", "/approve patchset:" + thePatch, "e\u0301\u0323\u0336", "🌈👩\u200d👧", "日本", "\xff\xfe",
	"> [!NOTE]", "- [x] done", "1. one", "# head", "    code", "$`x`$", "<span>$</span>", " lead", "trail ", "", "a  b", "~~~", "```diff", "<code>", "%%", "=== ", "^x^",
	" 0123456789abcdef0123456789abcdef01234567", " abcdef1|1234567_7654321 acme/app@0123456 " + thePatch, "`1234567`", "!!! \n#aa aaaaaa00\n```",
}

// filled are all documents with one foreign text in every place for foreign text.
func filled(text string) map[string]string {
	who := ledger.Actor{Kind: "user", ID: "1", Login: "x" + text}
	word := "x" + text
	r := proposal()
	r.Summary, r.Proposer, r.AppliedCommit, r.LedgerRef = word, who, word, word
	r.Message, r.Declared = "greet\n\n"+word, []string{"Assisted-by: " + word}
	r.Proposals = []report.Proposed{{Proposer: who}, {Proposer: who, Input: ledger.Input{Kind: word, Format: word, Via: word}, Message: word}}
	r.Files = append(r.Files, report.File{Path: word, From: word, Kind: "rename"})
	r.Risks = &risk.List{Risks: []risk.Risk{
		{Kind: risk.Executable, Path: word, From: word, Lines: []int{1, 2}, More: 3, Detail: word}, {Kind: risk.Protected, Path: word, Detail: word + " " + word}, {Kind: risk.Kind(word), Path: word},
	}}
	r.Verdict = verdict(approval.Pending, word, 0, judged(who, ledger.Approve, approval.KindReview, word, false))
	r.Verdict.Drift = &approval.Drift{From: strings.Repeat("1", 40), To: word, Commits: 1, Files: 2, Beside: 2, Names: []string{word, word}}
	bad := r
	res := effect.NewResult(".", ledger.PatchSource{}, false, []ledger.Operation{
		{Op: "modify", Path: word, Status: ledger.StatusError, Error: word}, {Op: "modify", Path: word, Status: ledger.StatusSuccess},
	})
	res.Error, res.Violations = word, []canon.Violation{{RuleID: "P1", Path: word, Message: word}}
	bad.ApplyResult, bad.Status, bad.State = &res, ledger.Failed, plain.ApplyFailed
	bad.Verdict = verdict(approval.Approved, word, 1)
	bad.Verdict.BreakGlass = true
	bad.Verdict.Drift = &approval.Drift{Unknown: word}
	q := request()
	q.Report, q.Commands = r, []string{word}
	q.Needs = append(q.Needs, policy.Need{Kind: policy.KindProtected, Prefix: "protected:", Users: []string{word}, Teams: []string{word}, Paths: []string{word}})
	g := guard(r, bad)
	g.Errors, g.Siblings, g.HeadCommit = []string{word}, []report.Sibling{{PullRequest: 1, Base: word, Reason: word}}, word
	over := applied()
	over.Summary, over.Proposer, over.AppliedCommit, over.LedgerRef, over.Risks = word, who, word, word, r.Risks
	over.Verdict = verdict(approval.Approved, word, 1, judged(who, ledger.Approve, approval.KindReview, word, true))
	gone := r
	gone.Status, gone.State, gone.Ended = ledger.Superseded, plain.Superseded, word
	q.Web, q.Policy = "https://"+word, report.PolicyFile{Commit: word, Lines: map[string]int{word: 3}}
	c := report.Comment{Web: "https://" + word, Notes: []string{word}, Obstacles: []report.Obstacle{{Code: "x", What: word, Instead: word}}, Threads: map[string]string{numbered(r, 5).TransactionID: "https://" + word}}
	for i := range 2 {
		c.Transactions = append(c.Transactions, numbered(r, i), numbered(bad, 10+i))
	}
	ended := report.Comment{Web: c.Web, Transactions: []report.Report{over, numbered(gone, 7)}, Threads: map[string]string{over.TransactionID: c.Web}}
	return map[string]string{
		"ended": ended.Body(), "pending": r.CheckRun().Summary, "failed": bad.CheckRun().Summary, "title": bad.CheckRun().Title, "guard": g.CheckRun().Summary,
		"request": q.Body(), "comment": c.Body(),
	}
}

// inertForms are the only shapes that foreign text has in Markdown: an escape, a
// sign that is broken up, a code span, and code with entities.
var (
	inertForms = regexp.MustCompile(`\\[!-/:-@\[-` + "`" + `{-~]|&lt;|<span>\$</span>|[@#:]` + "\u200b|`[^`\n|\\\\]+`" + `|<code>(?:[^!-.:-@\[-` + "`" + `{-~]|&#[0-9]+;)*</code>`)
	looseSigns = regexp.MustCompile("(?i)[`*_{}\\[\\]<>|~#@!$^&\\\\]|://|:[^ \n]|www\\.|\\bgh-")
)

// skeleton is what is left of a document that can mean anything in Markdown.
func skeleton(doc string) string {
	var out []string
	for line := range strings.SplitSeq(doc, "\n") {
		out = append(out, strings.Join(looseSigns.FindAllString(inertForms.ReplaceAllString(line, "·"), -1), " "))
	}
	return strings.Join(out, "\n")
}

// unclaimed is a document without what is in the blocks of proposers' messages, which have as many lines as these. No
// run of backticks in one is as long as its fence.
func unclaimed(t testing.TB, doc string) string {
	t.Helper()
	var b strings.Builder
	for {
		before, after, found := strings.Cut(doc, "which nobody has verified:\n\n")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		fence, after, _ := strings.Cut(after, "text\n")
		block, rest, ended := strings.Cut(after, "\n"+fence+"\n")
		if !ended || strings.Trim(fence, "`") != "" || len(fence) < 3 || strings.Contains(block, fence) {
			t.Fatalf("a message does not end with its block: %s", doc)
		}
		doc = rest
	}
}

// T14 T21 No foreign text changes the structure of a document, makes a link,
// mentions anybody, or holds a character that does not show.
func FuzzForeign(f *testing.F) {
	for _, text := range append(hostile, "w!ww") {
		f.Add(text)
	}
	plain := shapes(f, filled("plain"))
	f.Fuzz(func(t *testing.T, text string) { checkForeign(t, plain, text) })
}

// Pieces that are harmless alone may be harmful together.
func TestT14Together(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	plain := shapes(t, filled("plain"))
	for range 50 {
		text := ""
		for range 2 + random.IntN(4) {
			text += hostile[random.IntN(len(hostile))]
		}
		checkForeign(t, plain, text)
	}
}

// A shape is a document with its skeleton.
type shape struct{ doc, skeleton string }

func shapes(t testing.TB, docs map[string]string) map[string]shape {
	out := map[string]shape{}
	for name, doc := range docs {
		doc = unclaimed(t, linkless.ReplaceAllString(doc, "$1"))
		out[name] = shape{doc, skeleton(doc)}
	}
	return out
}

// checkForeign leaves the structure of long texts alone, which may cut a document.
func checkForeign(t *testing.T, plain map[string]shape, text string) {
	t.Helper()
	if len(text) > 5000 {
		return
	}
	for name, doc := range filled(text) {
		checkShown(t, name, doc)
		got := unclaimed(t, linkless.ReplaceAllString(doc, "$1"))
		if len(text) <= 200 && skeleton(got) != plain[name].skeleton {
			t.Fatalf("%s has another structure with %q: %s", name, text, firstDifference(got, plain[name].doc))
		}
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if skeleton(a[i]) != skeleton(b[i]) {
			return a[i] + "\nwant " + b[i]
		}
	}
	return "more or fewer lines"
}

// linkless: an address that the forge told becomes a link only if it is plain.
var linkless = regexp.MustCompile(`\[(the request|the Policy|` + "`[0-9A-Za-z_]+`" + `)\]\(https://[A-Za-z0-9./_:#?=&%-]+\)`)

// inCode is where GitHub links no commit: code, blocks, what is a link already, and what
// does not show; and escapes.
var (
	inCode   = regexp.MustCompile("(?s)\\\\[!-/:-@\\[-`{-~]|(?m:^`{3,})[a-z]*\n.*?\n`{3,}\n|`[^`\n]+`|<code>.*?</code>|<!--.*?-->|\\]\\([^)\n]*\\)|&#[0-9]+;")
	hexWords = regexp.MustCompile(`(?i)\b[0-9a-f]{7,64}\b`)
)

func checkShown(t *testing.T, name, doc string) {
	t.Helper()
	for _, r := range doc {
		if !ledger.Visible(r) && r != '\n' && r != '\u200b' && r != '\t' {
			t.Fatalf("%s has %U", name, r)
		}
	}
	if bare := hexWords.FindString(inCode.ReplaceAllString(unclaimed(t, doc), " ")); bare != "" {
		t.Fatalf("%s has %s, which GitHub links to a commit of whatever repository:\n%s", name, bare, doc)
	}
	if len(doc) > report.MaxCheckText {
		t.Fatalf("%s has %d bytes", name, len(doc))
	}
	if strings.HasPrefix(doc, "/") {
		t.Fatalf("%s begins like a command", name)
	}
}

// T14 T63 Whatever a diff holds, it stays inside of its block, and the block is
// followed by what always follows it.
func FuzzDiff(f *testing.F) {
	for _, text := range hostile {
		f.Add([]byte(theDiff+" "+text+"\n+"+text+"\n"), 1)
	}
	f.Add([]byte(theDiff+"+"+strings.Repeat("`", 40000)+"\n"), 1)
	f.Add([]byte(theDiff+" "+strings.Repeat("`", 20000)+"\n"), 40)
	f.Add([]byte(theDiff+"+🌈\u202e\n"), 9000)
	f.Add([]byte("\n\n```\n"), 1)
	f.Fuzz(func(t *testing.T, diff []byte, times int) {
		if len(diff)*max(1, times) > 1<<20 || times < 0 {
			return
		}
		q := request()
		q.Diff = []byte(strings.Repeat(string(diff), times))
		body := q.Body()
		if len(body) > report.MaxComment {
			t.Fatalf("%d bytes", len(body))
		}
		for _, r := range body {
			if !ledger.Visible(r) && r != '\n' && r != '\t' {
				t.Fatalf("holds %U", r)
			}
		}
		checkBlock(t, body)
	})
}

var opening = regexp.MustCompile("(?m)^(`{3,})diff$")

// checkBlock holds every block of a diff to end with its own fence, in its own details.
func checkBlock(t *testing.T, body string) {
	t.Helper()
	for {
		at := opening.FindStringSubmatchIndex(body)
		if at == nil {
			break
		}
		fence, inside := body[at[2]:at[3]], 0
		lines := strings.Split(body[at[1]+1:], "\n")
		for ; inside < len(lines); inside++ {
			if ends := strings.TrimLeftFunc(lines[inside], unicode.IsSpace); strings.HasPrefix(ends, fence) {
				break
			}
		}
		if body = strings.Join(lines[inside:], "\n"); !strings.HasPrefix(body, fence+"\n\n</details>\n") {
			t.Fatalf("the block ends early: %.300q", body)
		}
	}
	if strings.Count(body, "\n**Reply in this thread with one line:**\n") != 1 || strings.Count(body, "<!--") != 1 {
		t.Fatalf("no answers below the diff: %.300q", body)
	}
}
