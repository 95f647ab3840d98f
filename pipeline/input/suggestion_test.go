package input_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// commented is a comment on the lines from start to line of the file "f".
func commented(start, line int, body string) forge.ReviewComment {
	c := forge.ReviewComment{ID: 1, Author: ledger.Actor{Login: "eve"}, Body: body, Path: "f", Commit: strings.Repeat("c", 40), Start: start, Line: line, Side: "RIGHT"}
	if start > 0 {
		c.StartSide = "RIGHT"
	}
	return c
}

// suggest is what a comment makes of a file that is the same in its commit and in the base.
func suggest(c forge.ReviewComment, file string) (string, error) {
	in, err := input.Suggestion(c, fstest.MapFS{"f": &fstest.MapFile{Data: []byte(file), Mode: 0o644}}, "")
	if err != nil {
		return "", err
	}
	got, err := after(map[string]string{"f": file}, in)
	return got["f"], err
}

// TestSuggestion: the lines of the block take the place of those that the comment is on.
func TestSuggestion(t *testing.T) {
	const s, e = "```suggestion\n", "```\n"
	for _, c := range []struct {
		name, file  string
		start, line int
		body, want  string
	}{
		{"one line", "a\nb\nc\n", 0, 2, s + "B\n" + e, "a\nB\nc\n"},
		{"first line", "a\nb\nc\n", 0, 1, s + "A\n" + e, "A\nb\nc\n"},
		{"several", "a\nb\nc\n", 1, 2, s + "x\n" + e, "x\nc\n"},
		{"start is end", "a\nb\nc\n", 2, 2, s + "x\n" + e, "a\nx\nc\n"},
		{"more than there were", "a\nb\nc\n", 0, 2, s + "x\ny\nz\n" + e, "a\nx\ny\nz\nc\n"},
		{"nothing deletes", "a\nb\nc\n", 1, 2, s + e, "c\n"},
		{"an empty line", "a\nb\nc\n", 0, 2, s + "\n" + e, "a\n\nc\n"},
		{"two empty lines", "a\nb\nc\n", 0, 2, s + "\n\n" + e, "a\n\n\nc\n"},
		{"all goes", "a\nb", 1, 2, s + e, ""},
		{"white space stays", "a\nb\n", 0, 2, s + "\t b  \n" + e, "a\n\t b  \n"},
		{"text around it", "a\nb\n", 0, 2, "Why not\n\n" + s + "x\n" + e + "\nas before?", "a\nx\n"},
		{"another block", "a\nb\n", 0, 2, "```go\ny\n```\n" + s + "x\n" + e, "a\nx\n"},
		{"tildes", "a\nb\n", 0, 2, "~~~suggestion\n```\n~~~\n", "a\n```\n"},
		{"longer fence", "a\nb\n", 0, 2, "````suggestion\n```go\nx\n```\n````\n", "a\n```go\nx\n```\n"},
		{"longer end", "a\nb\n", 0, 2, s + "x\n`````\n", "a\nx\n"},
		{"space before the word", "a\nb\n", 0, 2, "``` suggestion\nx\n" + e, "a\nx\n"},
		{"more of an info string", "a\nb\n", 0, 2, "```suggestion a b\nx\n" + e, "a\nx\n"},
		{"indented", "a\nb\n", 0, 2, "  ```suggestion\n  x\n    y\n z\n  ```\n", "a\nx\n  y\nz\n"},
		{"in a list", "a\nb\n", 0, 2, "- so:\n    ```suggestion\n    x\n    ```\n", "a\nx\n"},
		{"end that is too far in", "a\nb\n", 0, 2, s + "    ```\n" + e, "a\n    ```\n"},
		{"quoted suggestion", "a\nb\n", 0, 2, "````md\n" + s + "no\n" + e + "````\n" + s + "x\n" + e, "a\nx\n"},
		{"code in a line", "a\nb\n", 0, 2, "```suggestion``` is how\n" + s + "x\n" + e, "a\nx\n"},
		{"the browser's line ends", "a\nb\nc\n", 0, 2, "Hi\r\n```suggestion\r\nx\r\ny\r\n```\r\n", "a\nx\ny\nc\n"},
		{"the file's line ends", "a\r\nb\r\nc\r\n", 0, 2, s + "x\ny\n" + e, "a\r\nx\r\ny\r\nc\r\n"},
		{"both", "a\r\nb\r\n", 0, 2, "```suggestion\r\nx\r\n```", "a\r\nx\r\n"},
		{"mixed line ends", "a\nb\r\nc\n", 0, 2, s + "x\n" + e, "a\nx\r\nc\n"},
		{"no end at the end", "a\nb", 0, 2, s + "x\ny\n" + e, "a\nx\ny"},
		{"no end, and other line ends", "a\r\nb", 0, 2, s + "x\ny\n" + e, "a\r\nx\r\ny"},
		{"no end, deleted", "a\nb", 0, 2, s + e, "a\n"},
		{"no end after it", "a\nb", 0, 1, s + "x\n" + e, "x\nb"},
		{"no end to the block", "a\nb\n", 0, 2, s + "x\n```", "a\nx\n"},
		{"only carriage returns", "a\rb\rc", 0, 1, s + "x\n" + e, "x"},
		{"not UTF-8", "a\n\xff\nc\n", 0, 1, s + "x\n" + e, "x\n\xff\nc\n"},
	} {
		got, err := suggest(commented(c.start, c.line, c.body), c.file)
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// TestSuggestionRefuses: a comment that is on other lines than those of the head as it is,
// and one that does not say which change it suggests.
func TestSuggestionRefuses(t *testing.T) {
	const ok = "```suggestion\nx\n```\n"
	with := func(change func(*forge.ReviewComment)) forge.ReviewComment {
		c := commented(1, 2, ok)
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		comment forge.ReviewComment
		want    string
	}{
		"file comment":       {with(func(c *forge.ReviewComment) { c.OnFile, c.Line, c.Start = true, 0, 0 }), "on a whole file"},
		"outdated":           {with(func(c *forge.ReviewComment) { c.Line, c.Start = 0, 0 }), "outdated"},
		"base":               {with(func(c *forge.ReviewComment) { c.Side, c.StartSide = "LEFT", "LEFT" }), "lines of the base"},
		"begins in the base": {with(func(c *forge.ReviewComment) { c.StartSide = "LEFT" }), "lines of the base"},
		"no side":            {with(func(c *forge.ReviewComment) { c.Side = "" }), "lines of the base"},
		"no start side":      {with(func(c *forge.ReviewComment) { c.StartSide = "" }), "lines of the base"},
		"backwards":          {commented(3, 2, ok), "lines 3 to 2"},
		"negative":           {with(func(c *forge.ReviewComment) { c.Start = -1 }), "lines -1 to 2"},
		"negative end":       {with(func(c *forge.ReviewComment) { c.Line, c.Start = -1, 0 }), "lines 0 to -1"},
		"beyond the file":    {commented(1, 4, ok), "has 3 lines, and the comment is on line 4"},
		"far beyond":         {commented(0, 1<<62, ok), "has 3 lines"},
		"no block":           {commented(0, 1, "I would not"), "no block that begins with ```suggestion"},
		"another block":      {commented(0, 1, "```diff\nx\n```\n"), "no block that begins with ```suggestion"},
		"GitLab's form":      {commented(0, 1, "```suggestion:-0+1\nx\n```\n"), "no block that begins with ```suggestion"},
		"two":                {commented(0, 1, "so\n"+ok+"or\n"+ok), "2 suggestions, at its lines 2, 6"},
		"no end":             {commented(0, 1, "so\n```suggestion\nx\n"), "line 2: the fenced block does not end"},
		"no change":          {commented(0, 1, "```suggestion\na\n```\n"), "changes nothing"},
		"no file":            {with(func(c *forge.ReviewComment) { c.Path = "g" }), "g: is not there in cccccccccccc"},
		"a path out":         {with(func(c *forge.ReviewComment) { c.Path = "../f" }), `path`},
		"a path that lies":   {with(func(c *forge.ReviewComment) { c.Path = "f\u202egpj" }), `"f\u202egpj"`},
		"a path with a NUL":  {with(func(c *forge.ReviewComment) { c.Path = "f\x00" }), `"f\x00"`},
		"Git's own":          {with(func(c *forge.ReviewComment) { c.Path = ".git/config" }), ".git"},
	} {
		_, err := suggest(c.comment, "a\nb\nc\n")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	in, err := input.Suggestion(commented(0, 1, ok), fstest.MapFS{"f": &fstest.MapFile{Data: []byte("a\n")}}, "why")
	if err != nil || in.Summary != "why (suggested by eve in a review)" || in.Author != nil || in.Proposer != nil {
		t.Errorf("%+v, %v", in, err)
	}
	for _, base := range []map[string]string{{"f": "a\nb\n"}, {"g": "a\n"}, nil} {
		if _, err := after(base, in); err == nil || !strings.Contains(err.Error(), "f: is another file than in cccccccccccc") {
			t.Errorf("%q: %v", base, err)
		}
	}
}
