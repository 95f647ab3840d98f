package report

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report/template"
)

// Between shows in which lines two patches differ, as "git range-diff" does, but for where the lines are and of
// which files' contents: nobody who has read the old one has to read the rest again.
func Between(old, now []byte, s Style) string {
	lines := func(diff []byte) (out [][]byte) {
		for line := range bytes.Lines(diff) {
			if !bytes.HasPrefix(line, []byte("@@ ")) && !bytes.HasPrefix(line, []byte("index ")) {
				out = append(out, line)
			}
		}
		return out
	}
	a, b := lines(old), lines(now)
	var out strings.Builder
	edits := patch.DiffLines(a, b)
	if len(edits) == 0 {
		return "The patch has the same lines as before, at other places.\n"
	}
	out.WriteString(s.paint(bold, "What is different in the patch, - before and + now:") + "\n")
	write := func(sign, colour string, lines [][]byte) {
		for _, line := range lines {
			out.WriteString(s.paint(colour, Clean(sign+" "+strings.TrimSuffix(string(line), "\n"))) + "\n")
		}
	}
	for _, e := range edits {
		write("-", red, a[e.OldStart:e.OldEnd])
		write("+", green, b[e.NewStart:e.NewEnd])
	}
	return out.String()
}

// renamedFrom says what a file was before it was renamed with changes, "" where it was not;
// show makes a name safe.
func renamedFrom(f File, show func(string) string) string {
	if f.RenamedFrom == "" {
		return ""
	}
	return fmt.Sprintf(", renamed with changes from %s (%d%% alike)", show(f.RenamedFrom), f.Alike)
}

// Renamed shows, below a diff, what changed in files that were renamed: "" where none was. It
// is for eyes alone, and no part of what is approved.
func Renamed(diff []byte, s Style) string {
	var b strings.Builder
	for _, r := range gitpatch.Renamings(diff) {
		title := fmt.Sprintf("renamed with changes: %s → %s (%d%% alike; only for reading, the bytes above are what counts)", r.OldPath, r.NewPath, r.Alike)
		b.WriteString("\n" + s.paint(bold, Clean(title)) + "\n")
		for l := range gitpatch.Lines(r.Diff) {
			b.WriteString("  " + s.diffLine(l) + "\n")
		}
	}
	return b.String()
}

// Stat is the changed files, a line each: their names alone, or with the lines that each changes.
func Stat(r Report, namesOnly bool) string {
	name := map[bool]string{true: "names", false: "stat"}[namesOnly]
	return Style{}.with(name, r.View().Files, template.Funcs{"filesLine": r.filesLine})
}

// Diff shows canonical bytes to a person: coloured by line, and with every
// character that does not print, and every byte that is not UTF-8, shown as an
// escape, so that nothing in the patch can move the cursor, hide or reorder text
// (T14, T71). A note below it says where escapes stand, since a patch may also
// hold text that only looks like one. It is for eyes; the bytes themselves are
// what is approved.
func Diff(diff []byte, s Style) string {
	var b strings.Builder
	var escaped []int
	n := 0
	for l := range gitpatch.Lines(diff) {
		n++
		text := strings.TrimSuffix(string(l.Raw), "\n")
		if plain := (Style{}).reveal(text); plain != text && plain+"\r" != text {
			escaped = append(escaped, n)
		}
		b.WriteString(s.diffLine(l))
		b.WriteByte('\n')
	}
	if len(escaped) > 0 {
		b.WriteString(s.paint(yellow, "Escapes such as \\x1b stand for what does not show in "+lineNumbers(escaped)+" of this diff.") + "\n")
	}
	return b.String()
}

func (s Style) diffLine(l gitpatch.Line) string {
	return s.paint(marks[l.Mark], s.reveal(strings.TrimSuffix(string(l.Raw), "\n")))
}

// marks are the colours of a diff's lines.
var marks = map[byte]string{'@': cyan, 0: bold, '+': green, '-': red}

// reveal is Clean for a line of a diff: tabs stay, and escapes stand out. The
// carriage return that ends an unchanged line is left out; on a changed one it
// may be all that changed.
func (s Style) reveal(text string) string {
	if strings.HasPrefix(text, " ") {
		text = strings.TrimSuffix(text, "\r")
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if v := escape.Show(r, text[:size]); v == text[:size] || r == '\t' {
			b.WriteString(text[:size])
		} else {
			b.WriteString(s.paint(invert, v))
		}
		text = text[size:]
	}
	return b.String()
}

// DiffDocument is a transaction's diff as JSON. A string of JSON holds no bytes that are not
// UTF-8: where there are some they are escaped as for a person, and the bytes themselves
// stand beside it (T71).
func DiffDocument(id, diff string) map[string]any {
	doc := map[string]any{"transaction_id": id, writing.DiffKey: diff}
	if !utf8.ValidString(diff) {
		doc[writing.DiffKey] = writing.EscapeBytes(diff)
		doc[writing.DiffBytesKey] = base64.StdEncoding.EncodeToString([]byte(diff))
	}
	return doc
}
