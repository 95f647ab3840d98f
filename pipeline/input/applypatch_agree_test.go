package input_test

import (
	"maps"
	"regexp"
	"strings"
	"testing"
)

// slowPatch is what a patch of updates makes of one file, found the long way: every line is
// compared with every other, in each of the four ways that the format has, one after the
// other. It reads what the format's documentation says and nothing else; ok is false where
// a chunk has no place, or several.
func slowPatch(file string, chunks [][]string) (out string, ok bool) {
	texts, ends := slowLines(file)
	style := "\n"
	if len(ends) > 0 && ends[0] != "" {
		style = ends[0]
	}
	before, gone := map[int]string{}, map[int]bool{} // what comes before a line, and which ones go
	put := func(i int, chunk []string) {
		from := -1 // where the lines go whose place new ones take
		for _, l := range chunk {
			switch {
			case l[0] == ' ':
				from, i = -1, i+1
				continue
			case from < 0:
				from = i
			}
			if l[0] == '+' {
				before[from] += l[1:] + style
			} else {
				gone[i], i = true, i+1
			}
		}
	}
	next := 0
	for _, c := range chunks {
		head, body, last := c[0], c[1:], false
		if len(body) > 0 && body[len(body)-1] == "*** End of File" {
			body, last = body[:len(body)-1], true
		}
		var want []string
		for _, l := range body {
			if l[0] != '+' {
				want = append(want, l[1:])
			}
		}
		starts := []int{next}
		after, named := strings.CutPrefix(head, "@@ ")
		if named {
			starts = nil
			for _, i := range slowFind(texts, []string{after}, next, false) {
				starts = append(starts, i+1)
			}
		}
		if len(starts) == 0 {
			return "", false
		}
		if len(want) == 0 {
			put(len(texts), body)
			next = starts[0]
			continue
		}
		found := map[int]bool{}
		for _, start := range starts {
			some := slowFind(texts, want, start, last)
			if named && len(some) > 1 {
				some = some[:1]
			}
			for _, i := range some {
				found[i] = true
			}
		}
		if len(found) != 1 {
			return "", false
		}
		for i := range maps.Keys(found) {
			put(i, body)
			next = i + len(want)
		}
	}
	for i := range len(texts) + 1 {
		out += before[i]
		if i < len(texts) && !gone[i] {
			out += texts[i]
			if out += ends[i]; ends[i] == "" {
				out += style
			}
		}
	}
	return out, true
}

var lineForm = regexp.MustCompile(`(?s)[^\r\n]*(\r\n|\n|\r)|[^\r\n]+$`)

func slowLines(file string) (texts, ends []string) {
	for _, l := range lineForm.FindAllString(file, -1) {
		text := strings.TrimRight(l, "\r\n")
		texts, ends = append(texts, text), append(ends, l[len(text):])
	}
	return texts, ends
}

var plainer = strings.NewReplacer("\u2013", "-", "\u201c", `"`, "\u201d", `"`, "\u00a0", " ")

func slowFind(texts, want []string, start int, last bool) (out []int) {
	for _, way := range []func(string) string{
		func(s string) string { return s },
		func(s string) string { return strings.TrimRight(s, " \t\r") },
		strings.TrimSpace,
		func(s string) string { return plainer.Replace(strings.TrimSpace(s)) },
	} {
		for i := start; i+len(want) <= len(texts); i++ {
			if last && i+len(want) != len(texts) {
				continue
			}
			same := true
			for j, w := range want {
				same = same && way(texts[i+j]) == way(w)
			}
			if same {
				out = append(out, i)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// FuzzAgree: files and updates that the fuzzer puts together of few lines, which are alike
// often, come to what the slow way makes of them.
func FuzzAgree(f *testing.F) {
	f.Add([]byte("\x03\x01\x02\x03\x01\x02\x00\x01\x01\x02\x01\x02\x01\x03"))
	f.Add([]byte("\x06\x01\x05\x02\x01\x05\x02\x01\x02\x02\x01\x01\x02\x05\x01\x01\x00"))
	words := []string{"a", "b", " a", "a ", "x\u2013y", "x-y", "\u201cq\u201d", `"q"`, "f {", "c"}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d := dice(raw)
		roll := d.roll
		end := []string{"\n", "\r\n"}[roll(2)]
		var file string
		for range roll(9) {
			file += words[roll(len(words))] + end
		}
		if roll(3) == 0 {
			file = strings.TrimSuffix(file, end)
		}
		var chunks [][]string
		var text strings.Builder
		for range 1 + roll(3) {
			c := []string{[]string{"@@", "@@", "@@ " + words[roll(len(words))]}[roll(3)]}
			c[0] = strings.TrimSpace(c[0]) // as the marker's line is read
			for range 1 + roll(4) {
				c = append(c, []string{" ", "-", "+"}[roll(3)]+words[roll(len(words))])
			}
			if roll(4) == 0 {
				c = append(c, "*** End of File")
			}
			chunks = append(chunks, c)
			text.WriteString(strings.Join(c, "\n") + "\n")
		}
		want, ok := slowPatch(file, chunks)
		got, err := byUs(map[string]string{"a.txt": file}, update1(text.String()))
		if ok != (err == nil) || ok && got["a.txt"] != want {
			t.Errorf("%q, %v, want %q, %v\n%q\n%s", got, err, want, ok, file, text.String())
		}
	})
}
