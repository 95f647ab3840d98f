package input_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
)

// hostilePaths are names that no change may have, in any format, and a part of what is
// said of each.
var hostilePaths = map[string]string{
	"../f": "path", "/etc/passwd": "path|not below", "a/../../f": "path", ".git/config": ".git", "A/.GIT/hooks/x": ".git|.GIT", "git~1/x": "path component",
	"a\\b": "in path", "C:f": "drive path", "con": "path component", "f\u202egpj": `\u202e`, "a\u200bb": `\u200b`, "f.": "path component", "e\x1b[1m": `\x1b`, "": "path|no file|not a unified",
	strings.Repeat("d/", 300) + "f": "components",
}

// TestHostilePaths: a path that leads out of the repository, or is shown as another one, is
// refused in each format in one line that does not have it as it is.
func TestHostilePaths(t *testing.T) {
	for path, want := range hostilePaths {
		for format, text := range map[string]string{
			"git":          "diff --git a/" + path + " b/" + path + "\nnew file mode 100644\n--- /dev/null\n+++ b/" + path + "\n@@ -0,0 +1 @@\n+x\n",
			"unified":      "--- /dev/null\n+++ b/" + path + "\n@@ -0,0 +1 @@\n+x\n",
			"codex":        "*** Begin Patch\n*** Add File: " + path + "\n+x\n*** End Patch\n",
			"codex, move":  "*** Begin Patch\n*** Update File: f\n*** Move to: " + path + "\n@@\n-f\n+x\n*** End Patch\n",
			"blocks":       path + "\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n",
			"edits":        `{"path": ` + quoted(t, path) + `, "content": "x"}`,
			"auto":         "```\n*** Begin Patch\n*** Add File: " + path + "\n+x\n*** End Patch\n```\n",
			"codex-action": `{"patch": ` + quoted(t, "*** Begin Patch\n*** Add File: "+path+"\n+x\n*** End Patch\n") + `}`,
		} {
			as, _, moved := strings.Cut(format, ",")
			if moved && path == "" {
				continue // nowhere
			}
			if format == "edits" && path == "a\\b" {
				continue // as tools on Windows write a/b
			}
			_, err := read(as, fixture{Base: map[string]string{"f": "f\n"}, Input: text})
			if err == nil || strings.ContainsAny(err.Error(), "\n\x1b\u202e\u200b") {
				t.Errorf("%s: %q: %v", format, path, err)
			}
			if err != nil && as != "git" && !saysOne(err, want) {
				t.Errorf("%s: %q: %v, want %q", format, path, err, want)
			}
		}
	}
}

// TestHostile: what claims to be large, nests, circles or is alike everywhere ends in one
// line of words, and soon.
func TestHostile(t *testing.T) {
	many := strings.Repeat
	with := func(n int, line func(int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(line(i))
		}
		return b.String()
	}
	codex := func(text string) string { return "*** Begin Patch\n" + text + "*** End Patch\n" }
	for _, c := range []struct{ name, format, text, file, want string }{
		{"a line", "auto", many("x", 1<<20), "", "no format that is known"},
		{"NUL", "auto", many("\x00", 1<<20), "", "no format that is known"},
		{"carriage returns", "auto", many("\r", 1<<20), "", "no format that is known"},
		{"empty lines", "auto", many("\n", 1<<20), "", "no format that is known"},
		{"fences", "auto", many("```\n", 1<<18), "", "no format that is known"},
		{"growing fences", "auto", with(1001, func(i int) string { return many("`", i+3) + "\n" }), "", "does not end"},
		{"blocks that are changes", "auto", many("```\n"+codex("")+"```\n", 10_000), "", "10000 fenced blocks hold a change, at lines 1, 5, 9, 13, 17, 21, 25, 29, 33, 37, and others"},

		{"carriage returns as line ends", "unified", "--- a/f\r+++ b/f\r@@ -1 +1 @@\r-a\r+b\r", "a\r", "no \"diff --git\""},
		{"a billion lines", "unified", "--- a/f\n+++ b/f\n@@ -1,1000000000 +1,1000000000 @@\n-a\n+b\n", "a\n", "hunk says"},
		{"a place far away", "unified", "--- a/f\n+++ b/f\n@@ -9223372036854775807 +1 @@\n-a\n+b\n", "a\n", "head of a hunk"},
		{"a negative count", "unified", "--- a/f\n+++ b/f\n@@ -1,-1 +1,-1 @@\n-a\n+b\n", "a\n", "head of a hunk"},
		{"one file over and over", "unified", many("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", 10_000), "a\n", "twice"},
		{"NUL in a name", "unified", "--- a/f\x00\n+++ b/f\x00\n@@ -1 +1 @@\n-a\n+b\n", "a\n", `\x00`},
		{"a gigabyte in a binary section", "git", "diff --git a/f b/f\nindex 1234567..2345678 100644\nGIT binary patch\nliteral 1073741824\nzcmZ?wbhEHbRA5kGXkcUjg8%>k\n\n", "a\n", ""},

		{"carriage returns as line ends", "codex", strings.ReplaceAll(codex("*** Update File: f\n@@\n-a\n+b\n"), "\n", "\r"), "a\r", "first line"},
		{"moves in a circle", "codex", codex("*** Update File: f\n*** Move to: g\n@@\n-a\n+b\n*** Update File: g\n*** Move to: f\n@@\n-b\n+c\n*** Update File: g\n*** Move to: h\n@@\n-a\n+b\n"), "a\n", "does not exist"},
		{"a move onto itself", "codex", codex("*** Update File: f\n*** Move to: f\n@@\n-a\n+b\n"), "a\n", "onto itself"},
		{"a file below a file", "codex", codex("*** Add File: f/g\n+x\n"), "a\n", "not a directory|f"},
		{"lines that are alike", "codex", codex("*** Update File: f\n" + many("@@\n"+many("-a\n", 30_000)+"-b\n+c\n", 2)), many("a\n", 60_000) + "c\nb\n" + many("a\n", 60_000), "not there|too many lines"},
		{"a long file over and over", "codex", codex(many("*** Update File: f\n@@\n+x\n", 1000)), many("a\n", 1<<19), "too many lines are alike to look for these, or the files are too long"},
		{"places to come after", "codex", codex("*** Update File: f\n" + many("@@ a\n-b\n+c\n", 10_000)), many("a\n", 1<<18) + "b\n", "not there|too many lines"},
		{"too many files", "codex", codex(many("*** Delete File: f\n", 1001)), "a\n", "at most 1000 files"},
		{"a NUL", "codex", codex("*** Update File: f\n@@\n-\x00\n+b\n"), "a\n", "not there"},
		{"not UTF-8", "codex", codex("*** Add File: n\n+\xff\n"), "a\n", "not UTF-8"},

		{"carriage returns as line ends", "blocks", "f\r<<<<<<< SEARCH\ra\r=======\rb\r>>>>>>> REPLACE\r", "a\r", "no line is"},
		{"too many blocks", "blocks", "f\n" + many("<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", 1001), "a\n", "at most 1000 edits"},
		{"a block that is nearly everywhere", "blocks", "f\n<<<<<<< SEARCH\n" + many("a\n", 1<<17) + "b\n=======\nb\n>>>>>>> REPLACE\n", many("a\n", 1<<19), "not there"},
		{"a block that is everywhere", "blocks", "f\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", many("a\n", 1<<19), "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and others"},
		{"a block in a block in a block", "blocks", "f\n" + many("<<<<<<< SEARCH\n", 1<<16), "a\n", "does not belong here"},
		{"a path with a NUL", "blocks", "f\x00\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", "a\n", `\x00`},

		{"deep lists", "edits", many("[", 1<<20), "", "nested deeper"},
		{"calls in calls", "edits", many(`{"input":`, 900) + "1" + many("}", 900), "", "within another call"},
		{"text in text in text", "edits", `{"input":"{\"input\":\"{\\\"input\\\":1}\"}"}`, "", "within another call"},
		{"a terabyte", "edits", `[{"path":"f","old_text":"a","new_text":"` + many("b", 1<<20) + `","replace_all":true}]`, many("a", 1<<20), "makes more than 67108864 bytes of the file"},
		{"doubled over and over", "edits", "[" + strings.TrimSuffix(many(`{"path":"f","old_text":"a","new_text":"aa","replace_all":true},`, 60), ",") + "]", many("a\n", 1000), "at more than 1048576 places"},
		{"a gigabyte in small steps", "edits", "[" + strings.TrimSuffix(many(`{"path":"f","old_text":"b","new_text":"c"},{"path":"f","old_text":"c","new_text":"b"},`, 400), ",") + "]", many("a", 8<<20) + "b", "the edits make too much content"},
		{"a member with two names", "edits", `{"path":"f","file_path":"../g","content":"x"}`, "", "under another name"},
		{"a number beyond numbers", "edits", `{"path":"f","content":1e999}`, "", "invalid JSON"},

		{"members", "codex-action", "{" + with(2000, func(i int) string { return fmt.Sprintf(`"%d":[[{}]],`, i) }) + `"x":1}`, "", "2001 members, more than 1000"},
		{"members that are changes", "codex-action", "{" + with(900, func(i int) string { return fmt.Sprintf(`"%d":%s,`, i, quoted(t, codex(""))) }) + `"x":1}`, "", "several members of the object hold a change"},
		{"a name that is long", "codex-action", `{"` + many("\u202e", 1<<16) + `":` + quoted(t, codex("")) + `,"b":` + quoted(t, codex("")) + `}`, "", "several members"},
		{"messages without an end", "claude-code-action", "[" + strings.TrimSuffix(many(`{"type":"user"},`, 1<<16), ",") + "]", "", "edit 1: "},
	} {
		if slices.Contains([]string{"a long file over and over", "lines that are alike"}, c.name) && os.Getenv("COUNTERSIGN_LONG") == "" {
			continue // as "places to come after"
		}
		_, err := read(c.format, fixture{Base: map[string]string{"f": c.file}, Input: c.text})
		if err == nil || !saysOne(err, c.want) || len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x00\x1b\u202e") {
			t.Errorf("%s, %s: %.300v, want %q", c.format, c.name, err, c.want)
		}
	}
	for name, body := range map[string]string{
		"fences": many("```suggestion\n```\n", 1<<16), "growing fences": with(1000, func(i int) string { return many("`", i+3) + "suggestion\n" }), "one line": many("x", 1<<20), "NUL": many("\x00", 1<<20),
	} {
		if got, err := suggest(commented(0, 1, body), "a\n"); err == nil || strings.Contains(err.Error(), "\n") || len(err.Error()) > 1000 {
			t.Errorf("suggestion, %s: %.100q, %.300v", name, got, err)
		}
	}
	if got, err := suggest(commented(0, 1, "```suggestion\n"+many("x\n", 1<<19)+"```\n"), "a\n"); err != nil || len(got) != 1<<20 {
		t.Errorf("a long suggestion: %d bytes, %v", len(got), err)
	}
	for name, output := range map[string]string{
		"deep": many(`{"items":`, 1<<18), "many items": `{"items":[` + strings.TrimSuffix(many(`{"type":"create_pull_request"},`, 1<<16), ",") + `]}`,
		"a name that lies": `{"items":[{"type":"create_pull_request","patch_path":"aw-\u202e\u001b\n.patch"}]}`,
	} {
		asked, err := input.ReadGHAW([]byte(output))
		if err == nil {
			_, _, err = asked.Files(nil)
		}
		if err == nil || strings.ContainsAny(err.Error(), "\n\x1b\u202e") || len(err.Error()) > 1000 {
			t.Errorf("gh-aw, %s: %.300v", name, err)
		}
	}
}
