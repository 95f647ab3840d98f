package input_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
)

// dice turn a fuzzer's bytes into choices.
type dice []byte

func (d *dice) roll(n int) int {
	if len(*d) == 0 {
		return 0
	}
	r := int((*d)[0]) % n
	*d = (*d)[1:]
	return r
}

var hunkHead = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// A slowHunk puts lines in the place of others, which are below so many lines.
type slowHunk struct {
	from     int
	old, new []string
	last     byte
}

// slowHunks reads hunks line by line (POSIX, diff, "Diff -u Output Format"). ok is false where their counts are wrong.
func slowHunks(diff []string) (hunks []slowHunk, ok bool) {
	number := func(text string) int {
		if text == "" {
			return 1
		}
		n, _ := strconv.Atoi(text)
		return n
	}
	end := 0
	for len(diff) > 0 {
		m := hunkHead.FindStringSubmatch(diff[0])
		if m == nil {
			return nil, false
		}
		h := slowHunk{from: number(m[1])} // where it goes follows from that, as for git
		olds, news := number(m[2]), number(m[4])
		diff = diff[1:]
		for len(h.old) < olds || len(h.new) < news {
			if len(diff) == 0 || diff[0][0] == '@' {
				return nil, false
			}
			line := diff[0][1:]
			h.last = diff[0][0]
			if diff = diff[1:]; len(diff) > 0 && diff[0][0] == '\\' {
				line, diff = strings.TrimSuffix(line, "\n"), diff[1:]
			}
			if h.last != '+' {
				h.old = append(h.old, line)
			}
			if h.last != '-' {
				h.new = append(h.new, line)
			}
		}
		if len(h.old) != olds || len(h.new) != news {
			return nil, false
		}
		if olds > 0 {
			h.from--
		}
		if h.from < end {
			return nil, false // they are in order, and apart
		}
		end = h.from + olds
		hunks = append(hunks, h)
	}
	return hunks, true
}

// slowPlaces says where in a file hunks are that are not all where they say, as patch.Diff.Moved has it.
func slowPlaces(lines []string, hunks []slowHunk) (found []slowHunk, ok bool) {
	has := func(at int, want []string) bool {
		return at >= 0 && at+len(want) <= len(lines) && slices.Equal(lines[at:at+len(want)], want)
	}
	end, shift, moved := 0, 0, false
	for _, h := range hunks {
		if moved || !has(h.from, h.old) {
			var there []int
			for at := range lines {
				if strings.HasPrefix(strings.Join(lines[at:], ""), strings.Join(h.old, "")) {
					there = append(there, at)
				}
			}
			already := len(h.new) > 0 && has(h.from+shift, h.new)
			if len(h.old) == 0 || already || len(there) != 1 || !has(there[0], h.old) || h.from == 0 && there[0] > 0 {
				return nil, false
			}
			moved = moved || there[0] != h.from
			h.from = there[0]
		}
		if h.from < end || h.last != ' ' && h.from+len(h.old) < len(lines) {
			return nil, false
		}
		end, shift = h.from+len(h.old), shift+len(h.new)-len(h.old)
		found = append(found, h)
	}
	return found, true
}

// slowPut puts hunks on a file exactly where they say. ok is false where they do not fit.
func slowPut(lines []string, hunks []slowHunk) (out string, ok bool) {
	at := 0
	for _, h := range hunks {
		if h.from < at || h.from+len(h.old) > len(lines) || !slices.Equal(lines[h.from:h.from+len(h.old)], h.old) {
			return "", false
		}
		out += strings.Join(lines[at:h.from], "")
		if len(h.new) > 0 && out != "" && !strings.HasSuffix(out, "\n") {
			return "", false // behind a line that has no end
		}
		at = h.from + len(h.old)
		out += strings.Join(h.new, "")
	}
	return out + strings.Join(lines[at:], ""), true
}

// slowUnified puts the hunks of a plain diff on a file, line by line.
func slowUnified(file string, diff []string) (out string, ok bool) {
	lines := strings.SplitAfter(file, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	hunks, ok := slowHunks(diff)
	if !ok {
		return "", false
	}
	if out, ok = slowPut(lines, hunks); ok {
		return out, !slices.ContainsFunc(hunks, func(h slowHunk) bool {
			end := h.from + len(h.new)
			return h.last == '+' && len(h.old) > 0 && len(h.new) > len(h.old) && end <= len(lines) && slices.Equal(lines[h.from:end], h.new)
		})
	}
	if hunks, ok = slowPlaces(lines, hunks); !ok {
		return "", false
	}
	return slowPut(lines, hunks)
}

// FuzzUnifiedAgree: diffs that the fuzzer makes, some of them broken a little, come to what
// the slow way makes of them.
func FuzzUnifiedAgree(f *testing.F) {
	f.Add([]byte("\x06\x01\x02\x03\x01\x02\x00\x01\x01\x02\x01\x02\x01\x03"))
	f.Add([]byte("\x08\x01\x05\x02\x01\x05\x02\x01\x02\x02\x01\x01\x02\x05\x01\x01\x00\x01\x02\x03\x04"))
	words := []string{"a", "b", "", "-- x", "++ y", "@@ z", "a\r"}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := dice(raw)
		var lines []string
		for range d.roll(10) {
			lines = append(lines, words[d.roll(len(words))]+"\n")
		}
		bare := len(lines) > 0 && d.roll(3) == 0 // the last line has no end
		file := strings.Join(lines, "")
		if bare {
			file = strings.TrimSuffix(file, "\n")
		}
		var diff []string
		at, made := 0, 0
		for range 1 + d.roll(2) {
			skip := min(d.roll(4), len(lines)-at)
			at, made = at+skip, made+skip
			from, to, olds, news, changed := at, made, 0, 0, false
			var body []string
			for range 1 + d.roll(5) {
				last := bare && at == len(lines)-1
				switch op := d.roll(3); {
				case op == 2 || at == len(lines):
					if bare && at == len(lines) { // nothing comes behind a line without an end
						continue
					}
					body, news, made, changed = append(body, "+"+words[d.roll(len(words))]+"\n"), news+1, made+1, true
					continue
				case op == 1:
					body, olds, at, changed = append(body, "-"+lines[at]), olds+1, at+1, true
				default:
					body, olds, news, at, made = append(body, " "+lines[at]), olds+1, news+1, at+1, made+1
				}
				if last {
					body = append(body, "\\ No newline at end of file\n")
				}
			}
			if !changed {
				t.Skip()
			}
			if olds > 0 {
				from++
			}
			if news > 0 {
				to++
			}
			switch d.roll(12) {
			case 0:
				from++
			case 1:
				olds++
			case 2:
				news = max(0, news-1)
			case 3:
				if i := d.roll(len(body)); body[i][0] != '\\' {
					body[i] = body[i][:1] + "other\n"
				}
			}
			diff = append(append(diff, fmt.Sprintf("@@ -%d,%d +%d,%d @@\n", from, olds, to, news)), body...)
		}
		text := "--- a/f\n+++ b/f\n" + strings.Join(diff, "")
		want, ok := slowUnified(file, diff)
		in, err := input.From("unified", []byte(text), "", false, "")
		got := map[string]string{}
		if err == nil {
			got, err = after(map[string]string{"f": file}, in)
		}
		if err != nil && strings.Contains(err.Error(), "changes nothing") {
			got, err = map[string]string{"f": file}, nil
		}
		if ok != (err == nil) || ok && got["f"] != want {
			t.Errorf("%q, %v, want %q, %v\n%q\n%s", got["f"], err, want, ok, file, text)
		}
	})
}

// A fenced block as the slow way finds it.
type fenced struct{ info, text string }

var (
	opening = regexp.MustCompile("^( *)(`{3,}|~{3,})([^\r\n]*)")
	closing = regexp.MustCompile("^( *)(`{3,}|~{3,})[ \t]*[\r\n]*$")
)

// slowFences finds the fenced blocks of a text by patterns (CommonMark, "Fenced code
// blocks"), where a fence may be indented by any number of spaces. whole is false where one
// does not end.
func slowFences(text string) (out []fenced, whole bool) {
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		m := opening.FindStringSubmatch(lines[i])
		if m == nil || m[2][0] == '`' && strings.Contains(m[3], "`") {
			continue
		}
		b, ended := fenced{info: strings.Trim(m[3], " \t")}, false
		for i++; i < len(lines); i++ {
			c := closing.FindStringSubmatch(lines[i])
			if c != nil && c[2][0] == m[2][0] && len(c[2]) >= len(m[2]) && len(c[1]) < len(m[1])+4 {
				ended = true
				break
			}
			line := lines[i]
			for range m[1] {
				line = strings.TrimPrefix(line, " ")
			}
			b.text += line
		}
		if !ended {
			return nil, false
		}
		out = append(out, b)
	}
	return out, true
}

// slowSuggestion puts the lines of the one block of suggestion in the place of others.
func slowSuggestion(body, file string, start, line int) (string, bool) {
	all, whole := slowFences(body)
	var found []string
	for _, b := range all {
		if words := strings.FieldsFunc(b.info, func(r rune) bool { return r == ' ' || r == '\t' }); len(words) > 0 && words[0] == "suggestion" {
			found = append(found, b.text)
		}
	}
	if start == 0 {
		start = line
	}
	lines := strings.SplitAfter(file, "\n")
	if !whole || len(found) != 1 || start < 1 || start > line || line > len(lines) || lines[line-1] == "" {
		return "", false
	}
	end := "\n"
	if strings.HasSuffix(lines[start-1], "\r\n") || start == len(lines) && strings.HasSuffix(lines[0], "\r\n") {
		end = "\r\n"
	}
	text := strings.ReplaceAll(found[0], "\r\n", "\n")
	text = strings.TrimSuffix(strings.TrimSuffix(text+"\x00", "\x00"), "\n")
	if found[0] == "" {
		return strings.Join(lines[:start-1], "") + strings.Join(lines[line:], ""), true
	}
	text = strings.ReplaceAll(text, "\n", end)
	if strings.HasSuffix(lines[line-1], "\n") {
		text += end
	}
	return strings.Join(lines[:start-1], "") + text + strings.Join(lines[line:], ""), true
}

// FuzzSuggestionAgree: whatever stands in a comment comes to what the slow way makes of it.
func FuzzSuggestionAgree(f *testing.F) {
	f.Add("```suggestion\nx\n```\n", uint8(0), uint8(1), uint8(0))
	f.Add("Hi\r\n\r\n````suggestion a\r\n```\r\nx\r\n````\r\n", uint8(1), uint8(2), uint8(1))
	f.Add("- a\n   ~~~ suggestion\n   x\n  y\n   ~~~\n```go\n```", uint8(2), uint8(2), uint8(2))
	f.Add("```suggestion\n```\n```suggestion\n```", uint8(2), uint8(3), uint8(3))
	f.Add("```suggestion\n\n```\n", uint8(3), uint8(3), uint8(3))
	f.Fuzz(func(t *testing.T, body string, start, line, which uint8) {
		if strings.Contains(strings.ReplaceAll(body, "\r\n", ""), "\r") {
			t.Skip() // a carriage return alone is a part of its line, and at a line's end it cannot be told
		}
		file := []string{"a\nb\nc\n", "a\r\nb\r\nc\r\n", "a\nb\r\nc", "a\r\nb"}[which%4]
		s, l := int(start%4), 1+int(line%4)
		want, ok := slowSuggestion(body, file, s, l)
		got, err := suggest(commented(s, l, body), file)
		if err != nil && strings.Contains(err.Error(), "changes nothing") {
			got, err = file, nil
		}
		if ok != (err == nil) || ok && got != want {
			t.Errorf("%q, %v, want %q, %v\n%q, %d to %d\n%q", got, err, want, ok, file, s, l, body)
		}
	})
}

// FuzzFencedAgree: the one block of a text that holds a patch is the one that the slow way
// finds.
func FuzzFencedAgree(f *testing.F) {
	f.Add([]byte("\x00\x07\x08\x09\x00"))
	f.Add([]byte("\x03\x07\x08\x09\x03\x0a\x02\x07\x08\x09\x02"))
	words := []string{
		"```", "````", "~~~", "```diff", "  ```", "     ```", "```x```", "*** Begin Patch", "*** Delete File: f", "*** End Patch", "hello", "", "``` ", "~~~~ a ~",
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := dice(raw)
		text := "hello\n"
		for len(d) > 0 {
			text += words[d.roll(len(words))] + []string{"\n", "\n", "\n", "\r\n"}[d.roll(4)]
		}
		all, whole := slowFences(text)
		var found []string
		for _, b := range all {
			if strings.HasPrefix(strings.TrimLeft(b.text, " \t\r\n"), "*** Begin Patch") {
				found = append(found, b.text)
			}
		}
		files := map[string]string{"f": "f\n", "g": "g\n"}
		run := func(format, text string) (map[string]string, error) {
			in, err := input.From(format, []byte(text), "", false, "")
			if err != nil {
				return nil, err
			}
			return after(files, in)
		}
		got, err := run("auto", text)
		if !whole || len(found) != 1 {
			if err == nil {
				t.Errorf("%q was taken of %d blocks\n%s", got, len(found), text)
			}
			return
		}
		want, wrong := run("codex", found[0])
		if (err == nil) != (wrong == nil) || !maps.Equal(got, want) {
			t.Errorf("%q, %v, want %q, %v\n%s", got, err, want, wrong, text)
		}
	})
}
