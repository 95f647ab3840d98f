package input_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
)

// A change is one replacement as its format's documentation says it; lines says that old
// is whole lines of the file.
type change struct {
	path, old, new string
	all, lines     bool
}

// slow makes changes the long way: every place of the file is looked at. ok is false where
// a text is not there, or is in several places.
func slow(files map[string]string, changes []change) (map[string]string, bool) {
	files = maps.Clone(files)
	for _, c := range changes {
		text, there := files[c.path]
		if c.old == "" {
			if there && text != "" {
				return nil, false
			}
			files[c.path] = c.new
			continue
		}
		if !there {
			return nil, false
		}
		if c.old == c.new {
			continue
		}
		// A file's last line may lack its end, which the block's lines have.
		grown := c.lines && text != "" && !strings.HasSuffix(text, "\n")
		if grown {
			text += "\n"
		}
		var at []int
		for i := range text {
			if strings.HasPrefix(text[i:], c.old) && (!c.lines || i == 0 || text[i-1] == '\n') {
				at = append(at, i)
			}
		}
		if len(at) == 0 || len(at) > 1 && !c.all {
			return nil, false
		}
		out, from := "", 0
		for _, i := range at {
			if i >= from {
				out, from = out+text[from:i]+c.new, i+len(c.old)
			}
		}
		if out += text[from:]; grown && from < len(text) {
			out = strings.TrimSuffix(out, "\n")
		}
		files[c.path] = out
	}
	return files, true
}

// agrees holds what a reader made of a text against what it should be.
func agrees(t *testing.T, files map[string]string, all []input.Edit, err error, want map[string]string, ok bool, text string) {
	t.Helper()
	var got map[string]string
	if err == nil {
		got, err = made(files, all)
	}
	if err != nil && strings.Contains(err.Error(), "changes nothing") {
		got, err = files, nil
	}
	if ok != (err == nil) || ok && !maps.Equal(got, want) {
		t.Errorf("%q, %v, want %q, %v\n%q\n%s", got, err, want, ok, files, text)
	}
}

// FuzzCallsAgree: calls under all names that tools have come to what the slow way makes of
// them.
func FuzzCallsAgree(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08"))
	f.Add([]byte("\x02\x01\x01\x02\x00\x00\x01\x00\x03\x01\x02\x01\x01\x00\x00\x01"))
	texts := []string{"a", "aa", "b", "a\n", "\nb", "ab", "b\na", ""}
	names := [][3]string{{"file_path", "old_string", "new_string"}, {"path", "old_text", "new_text"}, {"path", "oldText", "newText"}, {"filePath", "old_str", "new_str"}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := dice(raw)
		files := map[string]string{"f": "", "g": "aaa\nb\n"}
		for range d.roll(6) {
			files["f"] += texts[d.roll(len(texts))]
		}
		var changes []change
		var calls []any
		for range 1 + d.roll(3) {
			c := change{path: []string{"f", "g", "n"}[d.roll(3)], old: texts[d.roll(len(texts))], new: texts[d.roll(len(texts))], all: d.roll(3) == 0}
			changes = append(changes, c)
			n := names[d.roll(len(names))]
			call := map[string]any{n[1]: c.old, n[2]: c.new}
			if c.all || d.roll(2) == 0 {
				call["replace_all"] = c.all
			}
			switch d.roll(4) {
			case 0:
				call = map[string]any{"edits": []any{call}}
			case 1:
				call[n[0]] = "./" + c.path
				call = map[string]any{"name": "Edit", "input": call}
			}
			if call["input"] == nil && call[n[0]] == nil {
				call[n[0]] = "/repo/" + c.path
			}
			calls = append(calls, call)
		}
		var text []byte
		switch d.roll(3) {
		case 0:
			text, _ = json.Marshal(calls)
		case 1:
			text, _ = json.MarshalIndent(map[string]any{"edits": calls}, "", " ")
		default:
			for _, c := range calls {
				line, _ := json.Marshal(c)
				text = append(append(text, line...), '\n')
			}
		}
		want, ok := slow(files, changes)
		all, err := input.Calls(text, "/repo")
		agrees(t, files, all, err, want, ok, string(text))
	})
}

// blockForm is a block with the line above it, as aider documents them.
var blockForm = regexp.MustCompile("(?s)^(?:([a-z]+)\n)?(?:```\n)?<<<<<<< SEARCH\n(.*?)=======\n(.*?)>>>>>>> REPLACE\n(?:```\n)?")

// FuzzBlocksAgree: blocks that the fuzzer puts together come to what the slow way, and a
// pattern that finds them, make of them.
func FuzzBlocksAgree(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08"))
	f.Add([]byte("\x05\x01\x02\x03\x01\x01\x01\x00\x01\x02\x02\x01\x01"))
	lines := []string{"a\n", "b\n", " a\n", "\n", "aa\n", "a \n"}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := dice(raw)
		some := func(most int) (text string) {
			for range d.roll(most) {
				text += lines[d.roll(len(lines))]
			}
			return text
		}
		files := map[string]string{"f": some(8), "g": "a\nb"}
		if d.roll(3) == 0 {
			files["f"] = strings.TrimSuffix(files["f"], "\n")
		}
		var text string
		for i := range 1 + d.roll(3) {
			if i == 0 || d.roll(2) == 0 {
				text += []string{"f\n", "g\n", "n\n"}[d.roll(3)]
			}
			block := "<<<<<<< SEARCH\n" + some(4) + "=======\n" + some(4) + ">>>>>>> REPLACE\n"
			if d.roll(2) == 0 {
				block = "```\n" + block + "```\n"
			}
			text += block
		}
		var changes []change
		for rest, path := text, ""; rest != ""; {
			m := blockForm.FindStringSubmatch(rest)
			if m[1] != "" {
				path = m[1]
			}
			changes, rest = append(changes, change{path: path, old: m[2], new: m[3], lines: true}), rest[len(m[0]):]
		}
		want, ok := slow(files, changes)
		all, err := input.Blocks([]byte(text))
		agrees(t, files, all, err, want, ok, text)
	})
}
