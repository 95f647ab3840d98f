package input_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// made returns the files after edits.
func made(files map[string]string, all []input.Edit) (map[string]string, error) {
	return resolved(files, func(base fs.FS) (patch.Patchset, error) { return input.ResolveEdits(base, all) })
}

var files = map[string]string{
	"a.go": "one\n\ttwo\nthree\n\ttwo\n", "crlf.txt": "one\r\ntwo\r\n", "end.txt": "one\ntwo", "empty.txt": "", "mixed.txt": "one\r\ntwo\n",
	"a.md": "one\n-----\ntwo\n",
}

const above = "<<<<<<< SEARCH\n"

func TestBlocks(t *testing.T) {
	for _, c := range []struct{ name, text, path, want, err string }{
		{"a block", "a.go\n" + above + "three\n=======\n3\n>>>>>>> REPLACE\n", "a.go", "one\n\ttwo\n3\n\ttwo\n", ""},
		{"in a fence", "Do this:\n\n**a.go**:\n```go\n" + above + "three\n=======\n3\n>>>>>>> REPLACE\n```\n", "a.go", "one\n\ttwo\n3\n\ttwo\n", ""},
		{"a heading", "### `a.go`\n\n```\n" + above + "three\n=======\n3\n>>>>>>> REPLACE\n```\n", "a.go", "one\n\ttwo\n3\n\ttwo\n", ""},
		{"two of one file", "a.go\n" + above + "one\n=======\n1\n>>>>>>> REPLACE\n" + above + "three\n=======\n3\n>>>>>>> REPLACE\n", "a.go", "1\n\ttwo\n3\n\ttwo\n", ""},
		{"lines gone", "a.go\n" + above + "three\n=======\n>>>>>>> REPLACE\n", "a.go", "one\n\ttwo\n\ttwo\n", ""},
		{"more lines say which", "a.go\n" + above + "three\n\ttwo\n=======\nthree\n>>>>>>> REPLACE\n", "a.go", "one\n\ttwo\nthree\n", ""},
		{"a new file", "d/n.go\n" + above + "=======\nn\n>>>>>>> REPLACE\n", "d/n.go", "n\n", ""},
		{"an empty file", "empty.txt\n" + above + "=======\nn\n>>>>>>> REPLACE\n", "empty.txt", "n\n", ""},
		{"carriage returns", "crlf.txt\n" + above + "one\n=======\n1\n1\n>>>>>>> REPLACE\n", "crlf.txt", "1\r\n1\r\ntwo\r\n", ""},
		{"carriage returns for line feeds", "a.go\r\n" + strings.TrimSuffix(above, "\n") + "\r\nthree\r\n=======\r\n3\r\n>>>>>>> REPLACE\r\n", "a.go", "one\n\ttwo\n3\n\ttwo\n", ""},
		{"mixed carriage returns", "a.go\n" + above + "three\n=======\r\n3\r\n>>>>>>> REPLACE\n", "a.go", "one\n\ttwo\n3\r\n\ttwo\n", ""},
		{"a block that changes nothing", "a.go\n" + above + "one\n=======\none\n>>>>>>> REPLACE\n" + above + "three\n=======\n3\n>>>>>>> REPLACE\n", "a.go", "one\n\ttwo\n3\n\ttwo\n", ""},
		{"Cline's", "<replace_in_file>\n<path>a.go</path>\n<diff>\n------- SEARCH\nthree\n=======\n3\n+++++++ REPLACE\n</diff>\n</replace_in_file>\n", "a.go", "one\n\ttwo\n3\n\ttwo\n", ""},
		{"Roo's", "<apply_diff>\n<path>a.go</path>\n<diff>\n" + above + ":start_line:3\n-------\nthree\n=======\n3\n>>>>>>> REPLACE\n</diff>\n</apply_diff>\n", "a.go", "one\n\ttwo\n3\n\ttwo\n", ""},
		{"Roo's without a line of dashes", "a.md\n" + above + ":start_line:1\none\n-----\n=======\n1\n>>>>>>> REPLACE\n", "a.md", "1\ntwo\n", ""},
		{"the last line stays", "end.txt\n" + above + "one\n=======\n1\n>>>>>>> REPLACE\n", "end.txt", "1\ntwo", ""},
		{"the last line goes", "end.txt\n" + above + "two\n=======\n2\n>>>>>>> REPLACE\n", "end.txt", "one\n2\n", ""},
		{"other lengths", "a.go\n<<<<<<<<< SEARCH\nthree\n=====\n3\n>>>>> REPLACE\n", "a.go", "one\n\ttwo\n3\n\ttwo\n", ""},

		{"several places", "a.go\n" + above + "\ttwo\n=======\n2\n>>>>>>> REPLACE\n", "", "", "lines 2, 4"},
		{"not whole lines", "a.go\n" + above + "wo\n=======\n2\n>>>>>>> REPLACE\n", "", "", "not there"},
		{"an empty line behind the last", "end.txt\n" + above + "two\n\n=======\n2\n>>>>>>> REPLACE\n", "", "", "not there"},
		{"an empty line in an empty file", "empty.txt\n" + above + "\n=======\n2\n>>>>>>> REPLACE\n", "", "", "not there"},
		{"white space", "a.go\n" + above + "two\nthree\n=======\n2\n>>>>>>> REPLACE\n", "", "", "not there"},
		{"mixed ends", "mixed.txt\n" + above + "one\n=======\n2\n>>>>>>> REPLACE\n", "", "", "not there"},
		{"no path", above + "one\n=======\n2\n>>>>>>> REPLACE\n", "", "", "no path"},
		{"no words as a path", "Here is what I did: look\n" + above + "one\n=======\n2\n>>>>>>> REPLACE\n", "", "", "path"},
		{"no end", "a.go\n" + above + "one\n=======\n2\n", "", "", "does not end"},
		{"no middle", "a.go\n" + above + "one\n>>>>>>> REPLACE\n", "", "", "does not belong"},
		{"two middles", "a.go\n" + above + "one\n=======\n2\n=======\n>>>>>>> REPLACE\n", "", "", "does not belong"},
		{"within another", "a.go\n" + above + "one\n" + above + "=======\n2\n>>>>>>> REPLACE\n", "", "", "does not belong"},
		{"a file that is there", "a.go\n" + above + "=======\n2\n>>>>>>> REPLACE\n", "", "", "the file is there"},
		{"none", "a.go\n", "", "", "no line is"},
		{"another place", "../a.go\n" + above + "=======\n2\n>>>>>>> REPLACE\n", "", "", "path"},
		{"the same", "a.go\n" + above + "one\n=======\none\n>>>>>>> REPLACE\n", "", "", "changes nothing"},
	} {
		all, err := input.Blocks([]byte(c.text))
		var got map[string]string
		if err == nil {
			got, err = made(files, all)
		}
		if c.err == "" && (err != nil || got[c.path] != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %q, %v", c.name, got[c.path], err)
		}
	}
}

func TestCalls(t *testing.T) {
	for _, c := range []struct{ name, text, path, want, err string }{
		{"Edit", `{"file_path":"/repo/a.go","old_string":"three","new_string":"3"}`, "a.go", "one\n\ttwo\n3\n\ttwo\n", ""},
		{"everywhere", `{"file_path":"a.go","old_string":"two","new_string":"2","replace_all":true}`, "a.go", "one\n\t2\nthree\n\t2\n", ""},
		{"Write", `{"file_path":"/repo/d/n.txt","content":"n\n"}`, "d/n.txt", "n\n", ""},
		{"Write over", `{"file_path":"a.go","content":"n\n"}`, "a.go", "n\n", ""},
		{"MultiEdit", `{"file_path":"a.go","edits":[{"old_string":"one","new_string":"1"},{"old_string":"1\n","new_string":"0\n"}]}`, "a.go", "0\n\ttwo\nthree\n\ttwo\n", ""},
		{"MCP's edit_file", `{"path":"a.go","edits":[{"oldText":"one","newText":"1"}]}`, "a.go", "1\n\ttwo\nthree\n\ttwo\n", ""},
		{"str_replace", `{"command":"str_replace","path":"a.go","old_str":"one","new_str":"1"}`, "a.go", "1\n\ttwo\nthree\n\ttwo\n", ""},
		{"create", `{"command":"create","path":"n","file_text":"1"}`, "n", "1", ""},
		{"tool_use", `{"type":"tool_use","id":"x","name":"Edit","input":{"file_path":"a.go","old_string":"one","new_string":"1"}}`, "a.go", "1\n\ttwo\nthree\n\ttwo\n", ""},
		{"arguments as text", `{"name":"Edit","arguments":"{\"file_path\":\"a.go\",\"old_string\":\"one\",\"new_string\":\"1\"}"}`, "a.go", "1\n\ttwo\nthree\n\ttwo\n", ""},
		{"a line each", "{\"path\":\"n\",\"content\":\"a\"}\n\n{\"path\":\"n\",\"old_text\":\"a\",\"new_text\":\"b\"}\n", "n", "b", ""},
		{"an array", `[{"path":"n","content":"a"},{"path":"n","old_text":"a","new_text":"b"}]`, "n", "b", ""},
		{"a new file", `{"file_path":"n","old_string":"","new_string":"1"}`, "n", "1", ""},
		{"carriage returns for line feeds", `{"file_path":"a.go","old_string":"one\r\n\ttwo\r\n","new_string":"1\r\n"}`, "a.go", "1\nthree\n\ttwo\n", ""},
		{"a dry run that is none", `{"path":"a.go","edits":[{"oldText":"three","newText":"3"}],"dryRun":false}`, "a.go", "one\n\ttwo\n3\n\ttwo\n", ""},
		{"a dry run", `{"path":"a.go","edits":[{"oldText":"three","newText":"3"}],"dryRun":true}`, "", "", "dry run"},
		{"no content", `{"path":"a.go","content":""}`, "", "", "has no content, which would empty the file"},
		{"an address", `{"path":"file:///repo/d%20e/n.go","content":"1\n"}`, "d e/n.go", "1\n", ""},
		{"an address that leads out", `{"path":"file:///repo/%2e%2e/a.go","content":"1\n"}`, "", "", "not below the repository"},
		{"backslashes", `{"path":".\\d\\n.go","content":"1\n"}`, "d/n.go", "1\n", ""},
		{"backslashes that lead out", `{"path":"d\\..\\..\\n.go","content":"1\n"}`, "", "", "path traversal"},
		{"a drive", `{"path":"C:\\w\\a.go","content":"1\n"}`, "", "", "\"C:\\\\w\\\\a.go\" is not below the repository"},
		{"a whole file with carriage returns", `{"file_path":"a.go","content":"one\r\n\ttwo\r\n"}`, "a.go", "one\n\ttwo\n", ""},
		{"a whole file without", `{"file_path":"crlf.txt","content":"one\n2\n"}`, "crlf.txt", "one\r\n2\r\n", ""},
		{"a new file with carriage returns", `{"file_path":"n.go","content":"one\r\n"}`, "n.go", "one\r\n", ""},
		{"carriage returns", `{"file_path":"crlf.txt","old_string":"one\ntwo","new_string":"1"}`, "crlf.txt", "1\r\n", ""},
		{"surrogates", `{"path":"n","content":"\ud83d\ude00"}`, "n", "\U0001f600", ""},

		{"several places", `{"file_path":"a.go","old_string":"two","new_string":"2"}`, "", "", "lines 2, 4"},
		{"which of them", `[{"path":"n","content":"a"},{"path":"n","old_text":"x","new_text":"b"}]`, "", "", "edit 2"},
		{"elsewhere", `{"file_path":"/other/a.go","old_string":"two","new_string":"2"}`, "", "", "not below"},
		{"above", `{"file_path":"/repo/../a.go","old_string":"two","new_string":"2"}`, "", "", "not below"},
		{"Git's own", `{"file_path":"/repo/.git/config","content":"2"}`, "", "", ".git"},
		{"no path", `{"old_string":"two","new_string":"2"}`, "", "", "no file"},
		{"no new text", `{"path":"a.go","old_string":"two"}`, "", "", "needs"},
		{"null", `{"path":"a.go","old_string":"two","new_string":null}`, "", "", "not a text"},
		{"a number", `{"path":"a.go","old_string":1,"new_string":"2"}`, "", "", "not a text"},
		{"half a character", `{"path":"n","content":"\ud83d"}`, "", "", "not a text"},
		{"twice", `{"path":"a.go","file_path":"b.go","content":"2"}`, "", "", "another name"},
		{"twice the same", `{"path":"a.go","path":"b.go","content":"2"}`, "", "", "uplicate"},
		{"unknown", `{"path":"a.go","content":"2","insert_line":3}`, "", "", "insert_line"},
		{"both", `{"path":"a.go","content":"2","old_string":"one","new_string":"2"}`, "", "", "needs"},
		{"a call in a call in a call", `{"input":{"input":{"path":"a.go","content":"2"}}}`, "", "", "within another"},
		{"edits in edits", `{"path":"a.go","edits":[{"edits":[{"old_text":"a","new_text":"b"}]}]}`, "", "", "needs"},
		{"another file", `{"path":"a.go","edits":[{"path":"b","old_text":"a","new_text":"b"}]}`, "", "", "another file"},
		{"no edits", `{"path":"a.go","edits":[]}`, "", "", "no list"},
		{"nothing", `[]`, "", "", "no call"},
		{"not JSON", `{`, "", "", ""},
		{"a broken line", "{\"path\":\"n\",\"content\":\"a\"}\n{\n", "", "", "line 2"},
		{"a view", `{"command":"view","path":"a.go"}`, "", "", "needs"},
		{"the same", `{"file_path":"a.go","old_string":"one","new_string":"one"}`, "", "", "changes nothing"},
		{"too many", strings.Repeat(`{"path":"n","content":"2"}`+"\n", 1001), "", "", "at most 1000"},
		{"deep", strings.Repeat("[", 5000), "", "", ""},
	} {
		all, err := input.Calls([]byte(c.text), "/repo")
		var got map[string]string
		if err == nil {
			got, err = made(files, all)
		}
		wrong := c.path == "" && (err == nil || !strings.Contains(err.Error(), c.err))
		if c.path != "" && (err != nil || got[c.path] != c.want) || wrong {
			t.Errorf("%s: %q, %v", c.name, got[c.path], err)
		}
	}
}

// FuzzEdit: an edit is what one replacement makes where the text is once.
func FuzzEdit(f *testing.F) {
	f.Add("one\ntwo\n", "one", "1", false)
	f.Add("aaa", "aa", "b", true)
	f.Add("aaa", "aa", "b", false)
	f.Add("é", "\xa9", "e", false)
	f.Fuzz(func(t *testing.T, text, old, replacement string, all bool) {
		if old == "" || old == replacement || strings.Contains(text, "\r") {
			t.Skip()
		}
		got, err := made(map[string]string{"a": text}, []input.Edit{{Path: "a", Old: old, New: replacement, All: all}})
		n := 0
		for i := range len(text) {
			if strings.HasPrefix(text[i:], old) {
				n++
			}
		}
		want := strings.ReplaceAll(text, old, replacement)
		switch {
		case n == 0 || n > 1 && !all:
			if err == nil {
				t.Errorf("%d places: %q", n, got["a"])
			}
		case err == nil && got["a"] != want:
			t.Errorf("%q, want %q", got["a"], want)
		}
	})
}

func FuzzBlocks(f *testing.F) {
	f.Add("a.go\n" + above + "three\n=======\n3\n>>>>>>> REPLACE\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := input.Blocks([]byte(text))
		if (err == nil) && len(all) == 0 {
			t.Error("no error and no edit")
		}
		_, _ = made(files, all)
	})
}

func FuzzCalls(f *testing.F) {
	f.Add(`{"file_path":"a.go","edits":[{"old_string":"one","new_string":"1"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := input.Calls([]byte(text), "/repo")
		if (err == nil) && len(all) == 0 {
			t.Error("no error and no edit")
		}
		_, _ = made(files, all)
	})
}

// TestDrive: a path below a repository on a drive, whose letters have no case.
func TestDrive(t *testing.T) {
	for path, want := range map[string]string{`c:\\repo\\d\\a.go`: "d/a.go", "file:///C:/Repo/d/a.go": "d/a.go", `C:\\Repo\\..\\a.go`: "", `C:\\Repository\\a.go`: "", `D:\\Repo\\a.go`: ""} {
		all, err := input.Calls([]byte(`{"path":"`+path+`","content":"1"}`), "C:/Repo")
		if want == "" && err == nil || want != "" && (err != nil || all[0].Path != want) {
			t.Errorf("%s: %v, %v", path, all, err)
		}
	}
}
