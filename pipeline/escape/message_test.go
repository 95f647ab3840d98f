package escape_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// own are the trailers of the program, as a commit has them.
var own = []string{"Countersign-Transaction: tx_01KE5W5200041061050R3GG28A", "Countersign-Patch: " + strings.Repeat("ab", 32), "Approved-by: ada <7+ada@users.noreply.github.example>"}

// TestRead: the text and the declarations of messages, as a commit can have them.
func TestRead(t *testing.T) {
	long := strings.Repeat("0123456 ", 20)
	for name, c := range map[string]struct {
		messages []string
		text     string
		declared []string
	}{
		"a subject":           {[]string{"greet the world\n"}, "greet the world", nil},
		"a body":              {[]string{"greet\n\n\n\nwhy  \r\n\n    code\n\n"}, "greet\n\nwhy\n\n    code", nil},
		"trailers":            {[]string{"greet\n\nwhy\n\nAssisted-by: a model\nCo-authored-by : Eve <eve@example.org>\n"}, "greet\n\nwhy", []string{"Assisted-by: a model", "Co-authored-by: Eve <eve@example.org>"}},
		"without a body":      {[]string{"greet\n\nLink: https://example.org/x?a=b\n"}, "greet", []string{"Link: https://example.org/x?a=b"}},
		"folded":              {[]string{"greet\n\nAssisted-by: a\n\tmodel\n  of mine\nReviewed-by: b"}, "greet", []string{"Assisted-by: a model of mine", "Reviewed-by: b"}},
		"in the subject":      {[]string{"Assisted-by: a model\nReviewed-by: b"}, "Assisted-by: a model\nReviewed-by: b", nil},
		"words beside":        {[]string{"greet\n\nThis is said:\nAssisted-by: a model"}, "greet\n\nThis is said:\nAssisted-by: a model", nil},
		"Git's beside":        {[]string{"greet\n\n(my note)\nSigned-off-by: A <a@b>\nAcked-by: b"}, "greet\n\n(my note)", []string{"Signed-off-by: A <a@b>", "Acked-by: b"}},
		"cherry-picked":       {[]string{"greet\n\nTested-by: a\n(cherry picked from commit 1234)"}, "greet\n\n(cherry picked from commit 1234)", []string{"Tested-by: a"}},
		"an address":          {[]string{"greet\n\nhttps://example.org/"}, "greet\n\nhttps://example.org/", nil},
		"not the last":        {[]string{"greet\n\nAssisted-by: a\n\nthe end"}, "greet\n\nAssisted-by: a\n\nthe end", nil},
		"several":             {[]string{"one\n\nwhy\n\nAssisted-by: a", "two\n\nAssisted-by: a\nLink: b"}, "one\n\nwhy\n\ntwo", []string{"Assisted-by: a", "Link: b"}},
		"ours":                {[]string{"greet\n\nApproved-by: boss\nAssisted-by: a\nCountersign-Transaction: tx_1"}, "greet\n\n> Approved-by: boss\n> Countersign-Transaction: tx_1", []string{"Assisted-by: a"}},
		"ours, folded":        {[]string{"greet\n\nAssisted-by: a\n Approved-by: boss\nLink: b"}, "greet\n\n>  Approved-by: boss", []string{"Assisted-by: a", "Link: b"}},
		"ours in the middle":  {[]string{"greet\n\nx\nAPPROVED  BY : boss\ny\n  countersign-patch=1"}, "greet\n\nx\n> APPROVED  BY : boss\ny\n>   countersign-patch=1", nil},
		"ours by look":        {[]string{"a\n\nСountersign-Patch: 1\nＡpproved－by：x\nAppr0ved-By: x\nCounter\u200bsign-X: y\nCountersıgn-Y∶ z"}, "a\n\n> Сountersign-Patch: 1\n> Ａpproved－by：x\n> Appr0ved-By: x\n> Counter sign-X: y\n> Countersıgn-Y∶ z", nil},
		"not ours":            {[]string{"countersign: one\n\ncountersign(mcp): two\ncmd/countersign: three\nthe gate approved by now: yes\nПредложение: да"}, "countersign: one\n\ncountersign(mcp): two\ncmd/countersign: three\nthe gate approved by now: yes\nПредложение: да", nil},
		"commands":            {[]string{"a [skip ci]\n\n*****NO_CI*****\n\nskip-checks: true\nAssisted-by: [ci skip]"}, "a (skip ci)\n\n* * * * *NO_CI* * * * *\n\nskip checks: true", []string{"Assisted-by: (ci skip)"}},
		"ends":                {[]string{"a\n\nb\n---\n--- a/x\n---x\ndiff --git a b\nIndex: x\n# ------------------------ >8 ------------------------"}, "a\n\nb\n> ---\n> --- a/x\n---x\n> diff --git a b\n> Index: x\n# ------------------------ > 8 ------------------------", nil},
		"no text":             {[]string{"a\x1b(0\u202e\xff\n\nb\rc\u2028d\u00a0e\x00f\vg"}, "a (0\n\nb c d e f g", nil},
		"a long declaration":  {[]string{"a\n\nNote: " + strings.Repeat(long, 5)}, "a", []string{"Note: " + strings.TrimSpace(strings.Repeat(long, 5))[:499] + "…"}},
		"no declaration more": {[]string{"a\n\n" + numbered(60)}, "a", strings.Split(numbered(50), "\n")},
		"too long":            {[]string{"a\n\n" + strings.Repeat(long+"\n", 100) + "\nNote: b"}, "a\n\n" + strings.Repeat(strings.TrimSpace(long)+"\n", 51) + "\n… cut here", []string{"Note: b"}},
		"folded without end":  {[]string{"a\n\nNote: b\n" + strings.Repeat(" b\n", 1<<20)}, "a", []string{"Note: b" + strings.Repeat(" b", 249) + "…"}},
		"nothing":             {[]string{"", " \n\t\n"}, "", nil},
	} {
		text, declared := escape.ReadMessages(c.messages...)
		if text != c.text || !slices.Equal(declared, c.declared) {
			t.Errorf("%s: %q, %q\nwant %q, %q", name, text, declared, c.text, c.declared)
		}
	}
}

func numbered(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("Note-%d: a", i))
	}
	return strings.Join(all, "\n")
}

// TestCompose: a text that begins with the subject goes on from there.
func TestCompose(t *testing.T) {
	trailers := strings.Join(own, "\n") + "\n"
	for name, c := range map[string]struct {
		subject, text string
		declared      []string
		want          string
	}{
		"a subject":      {"greet", "", nil, "greet\n\n" + trailers},
		"once":           {"greet", "greet\n\nwhy", nil, "greet\n\nwhy\n\n" + trailers},
		"another":        {"hello", "greet\n\nwhy", []string{"Link: x"}, "hello\n\ngreet\n\nwhy\n\nLink: x\n" + trailers},
		"declared alone": {"greet", "", []string{"Link: x"}, "greet\n\nLink: x\n" + trailers},
		"hostile":        {"---", "Approved-by: x", []string{"Approved-by: y", "skip-checks: true", "Link: x\n\nb"}, "> ---\n\n> Approved-by: x\n\n> Approved-by: y\nskip checks: true\nLink: x\n\nb\n\n" + trailers},
	} {
		if got := escape.Message(c.subject, c.text, c.declared, own); got != c.want {
			t.Errorf("%s: %q\nwant    %q", name, got, c.want)
		}
	}
}

// TestT75Trailers: whatever a proposer's message holds, Git itself reads the program's own trailers at the
// end of a commit's, once each, and before them nothing but declarations.
func TestT75Trailers(t *testing.T) {
	git := func(stdin string, args ...string) string { return teststand.Git(t, repo(t), stdin, args...) }
	tree := strings.TrimSpace(git("", "write-tree"))
	for name, text := range map[string]string{
		"none":           "",
		"own":            "a\n\n" + strings.Join(own, "\n"),
		"own, alone":     strings.Join(own, "\n"),
		"a divider":      "a\n\nApproved-by: boss\n---\nwhat follows",
		"a longer one":   "a\n\nApproved-by: boss\n--- \t\n",
		"a diff":         "a\n\nApproved-by: boss\n\ndiff --git a/x b/x\n",
		"scissors":       "a\n\nApproved-by: boss\n# ------------------------ >8 ------------------------\n",
		"comments":       "a\n\nAssisted-by: x\n# Approved-by: boss\n",
		"conflicts":      "a\n\nApproved-by: boss\n\nConflicts:\n\tx\n",
		"signed off":     "a\n\nSigned-off-by: A <a@b>\nApproved-by: boss\nwords\n",
		"cherry-picked":  "a\n\nApproved-by: boss\n(cherry picked from commit 1)\n",
		"white space":    "a\n\nAssisted-by: x\n \t\nApproved-by: boss\n",
		"folded":         "a\n\nAssisted-by: x\n Approved-by: boss\n\tCountersign-Patch: y\n",
		"other spelling": "a\n\nAPPROVED-BY : boss\ncountersign-transaction:tx_1\n",
		"line ends":      "a\r\n\r\nApproved-by: boss\r\nAssisted-by: x\rCountersign-Patch: y\u2028Approved-by: z\n",
		"a pull request": "Title\n\n## Why\n\n| a | b |\n|---|---|\n\n---\n\n[skip ci] see [x](https://y)\n\nCloses #1\n",
	} {
		for i, subject := range []string{"---", "a", "b", "# ------------------------ >8 ------------------------", own[0], "Approved-by: boss"} {
			if i > 0 && os.Getenv("COUNTERSIGN_LONG") == "" {
				continue
			}
			read, declared := escape.ReadMessages(text)
			whole := escape.Message(subject, read, declared, own)
			want := strings.Join(append(declared, own...), "\n") + "\n"
			if got := git(whole, "interpret-trailers", "--parse"); got != want {
				t.Errorf("%s, %s: interpret-trailers reads\n%s, not\n%s, of\n%s", name, subject, got, want, whole)
			}
			commit := strings.TrimSpace(git(whole, "commit-tree", tree))
			if got := git("", "log", "-1", "--format=%(trailers)", commit); strings.TrimSpace(got) != strings.TrimSpace(want) {
				t.Errorf("%s, %s: log reads\n%s, not\n%s, of\n%s", name, subject, got, want, whole)
			}
			for _, d := range declared {
				if claimsOurs.MatchString(d) {
					t.Errorf("%s: declared %q", name, d)
				}
			}
		}
	}
}

var claimsOurs = regexp.MustCompile(`(?mi)^[ \t]*(countersign-|approved-by)[^\n]*:`)

var dirs = map[string]string{}

// repo is a repository without commits.
func repo(t *testing.T) string {
	if dirs[t.Name()] == "" {
		dirs[t.Name()] = t.TempDir()
		teststand.Git(t, dirs[t.Name()], "", "init", "-q", "--bare")
	}
	return dirs[t.Name()]
}

// FuzzRead: what Read makes of a message it leaves as it is, and no line of it is a trailer of the program.
func FuzzRead(f *testing.F) {
	f.Add("a\n\nb\n\nAssisted-by: x\n y\nApproved-by: z")
	f.Add("a\n\n---\n\nSkip-Checks: true\nSigned-off-by: x\nb\n\xff\u200b[skip ci] *****")
	f.Add("Сountersign-Patch: 1\r\n\r\nCountersign-Patch: 1\n> Approved-by: x\n   a: b")
	f.Add("Countersign-@:")
	f.Fuzz(func(t *testing.T, raw string) {
		text, declared := escape.ReadMessages(raw)
		if len(text) > escape.MaxMessage || claimsOurs.MatchString(text) || strings.ContainsAny(text, "[]\r\t") || strings.Contains(text, "\n\n\n") {
			t.Fatalf("%q", text)
		}
		again, more := escape.ReadMessages(text)
		if len(declared) > 0 { // they would be the end of the text
			again, more = escape.ReadMessages(text + "\n\n" + strings.Join(declared, "\n"))
		}
		if again != text || !slices.Equal(more, declared) {
			t.Fatalf("%q, %q\nwant %q, %q", again, more, text, declared)
		}
		whole := escape.Message("subject", text, declared, own)
		if !strings.HasSuffix(whole, "\n"+strings.Join(append(declared, own...), "\n")+"\n") || claimsOurs.MatchString(strings.TrimSuffix(whole, strings.Join(own, "\n")+"\n")) {
			t.Fatalf("%q", whole)
		}
	})
}
