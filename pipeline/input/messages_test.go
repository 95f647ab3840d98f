package input

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// TestMessages: what a mail, "git show" and "git log -p" say of a commit is what Git itself has of it, and so is
// what "git am" makes of the mail.
func TestMessages(t *testing.T) {
	dir := t.TempDir()
	git := func(stdin string, args ...string) string { return teststand.Git(t, dir, stdin, args...) }
	git("", "init", "-q", "-b", "main")
	git("x", "commit", "-q", "--allow-empty", "-F", "-")
	texts := []string{
		"a subject",
		"a subject\nof two lines\n\nA body.\n\n    code\n\n- a point\n  that goes on\n",
		"löng: ein Gruß an die ganze Welt, der so lang ist, dass er in keine Zeile einer Mail passt\n\nÄ\n",
		"x\n\nFrom: nobody <n@example.org>\n\nnot the head\n",
		"x\n\nwhy\n\nSigned-off-by: A <a@b>\nCo-authored-by: B <b@c>\nLink: https://example.org/\n",
		"x\n\n-- \nno signature\n\nAssisted-by: a model\n",
		"x\n\ncommit 1234\nSubject: y\nNotes:\n    n\n",
	}
	for i, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(strings.Repeat("x\n", i+1)), 0o666); err != nil {
			t.Fatal(err)
		}
		git("", "add", "f")
		git(text, "commit", "-q", "--cleanup=verbatim", "-F", "-")
		want, declared := escape.ReadMessages(strings.Replace(git("", "log", "-1", "--format=%s%n%n%b"), "\n\n\n", "\n\n", 1))
		git("a note", "notes", "add", "-F", "-")
		for _, args := range [][]string{{"show"}, {"log", "-p", "-1"}, {"show", "--format=fuller"}, {"format-patch", "-1", "--stdout"}, {"format-patch", "-1", "--stdout", "--no-stat"}} {
			raw := git("", args...)
			if args[0] == "format-patch" && strings.HasPrefix(text, "x\n\nFrom: ") {
				continue // Git itself takes that for the author's line
			}
			for _, raw := range []string{raw, strings.ReplaceAll(raw, "    \n", "\n")} {
				pieces, err := Pieces([]byte(raw))
				if err != nil || len(pieces) != 1 {
					t.Fatalf("%v of %q: %v", args, text, err)
				}
				got, more := escape.ReadMessages(pieces[0].Message)
				if got != want || !slices.Equal(more, declared) {
					t.Errorf("%v of %q:\n%q %q, want\n%q %q", args, text, got, more, want, declared)
				}
			}
		}
	}
	mails := git("", "format-patch", "--stdout", "main~"+"2")
	all, err := One([]byte(mails), true, "")
	if err != nil || len(all.Messages) != 2 {
		t.Fatalf("%v %q", err, all.Messages)
	}
	crlf, err := Pieces([]byte(strings.ReplaceAll(mails, "\n", "\r\n")))
	if text, _ := escape.ReadMessages(crlf[0].Message); err != nil || text != "x\n\n--\nno signature" {
		t.Errorf("with carriage returns: %q %v", text, err)
	}
	// A line of a message that ends it for "git am" ends it here.
	for _, line := range []string{"---", "--- ", "--- a/x", "diff -u", "Index: x", "---x", "----", "--- \tx"} {
		mail := strings.Replace(git("", "format-patch", "-1", "--stdout"), "\n\n", "\n\nbefore\n"+line+"\nafter\n\n", 1)
		git(mail, "mailinfo", "msg", "patch")
		body, err := os.ReadFile(filepath.Join(dir, "msg"))
		if err != nil {
			t.Fatal(err)
		}
		pieces, err := Pieces([]byte(mail))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := escape.ReadMessages(pieces[0].Message)
		if want, _ := escape.ReadMessages(pieces[0].Subject + "\n\n" + string(body)); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// TestClaims: what a change says more than its summary is kept, without secrets; a pull request's own
// commits say it themselves.
func TestClaims(t *testing.T) {
	clean := func(s string) string { return strings.ReplaceAll(s, "hunter2", "<REDACTED:x>") }
	for name, c := range map[string]struct {
		in       Change
		text     string
		declared []string
	}{
		"nothing":  {Change{Summary: "a"}, "", nil},
		"no more":  {Change{Summary: "a", Messages: []string{"a\n"}}, "", nil},
		"another":  {Change{Summary: "b", Messages: []string{"a\n"}}, "a", nil},
		"declared": {Change{Summary: "a", Messages: []string{"a\n\nLink: hunter2"}}, "a", []string{"Link: <REDACTED:x>"}},
		"a secret": {Change{Messages: []string{"a\n\nhunter2\xff"}}, "a\n\n<REDACTED:x>\\xff", nil},
		"own":      {Change{Kind: KindPullRequest, Messages: []string{"a\n\nb"}}, "", nil},
		"gh-aw":    {Change{Messages: itemMessages(map[string]any{"title": "t", "body": "b"}, []string{"a\n\nwhy\n\nLink: x"})}, "t\n\nb", []string{"Link: x"}},
		"a session": {Change{Summary: "s", TraceFormat: TraceClaude, Trace: []any{
			map[string]any{"type": "message", "content": "I look"}, map[string]any{"type": "message", "content": "Done.\n\nhunter2\n\nApproved-by: me"},
			map[string]any{"tool": "Bash"},
		}}, "Done.\n\n<REDACTED:x>\n\n> Approved-by: me", nil},
		"a session beside a message": {Change{Messages: []string{"a\n\nb"}, TraceFormat: TraceClaude, Trace: []any{map[string]any{"type": "message", "content": "Done."}}}, "a\n\nb", nil},
		"steps":                      {Change{Trace: []any{map[string]any{"type": "message", "content": "Done."}}}, "", nil},
		"gh-aw, no text":             {Change{Messages: itemMessages(map[string]any{"title": "t"}, []string{"a\n\nwhy"})}, "a\n\nwhy", nil},
	} {
		if text, declared := c.in.Claims(clean); text != c.text || !slices.Equal(declared, c.declared) {
			t.Errorf("%s: %q %q", name, text, declared)
		}
	}
}
