package gitpatch_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// unified writes hunks as "git diff" does, with so many lines of context.
func unified(old, new string, context int) string {
	a, b := patch.Lines([]byte(old)), patch.Lines([]byte(new))
	var out strings.Builder
	write := func(mark string, lines [][]byte) {
		for _, line := range lines {
			out.WriteString(mark + string(line))
			if !bytes.HasSuffix(line, []byte("\n")) {
				out.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	place := func(start, count int) string {
		if count > 0 {
			start++
		}
		return fmt.Sprintf("%d,%d", start, count)
	}
	for _, h := range patch.LineHunks(patch.DiffLines(a, b), len(a), len(b), context) {
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", place(h.OldStart, h.OldLines), place(h.NewStart, h.NewLines))
		at := h.OldStart
		for _, e := range h.Edits {
			write(" ", a[at:e.OldStart])
			write("-", a[e.OldStart:e.OldEnd])
			write("+", b[e.NewStart:e.NewEnd])
			at = e.OldEnd
		}
		write(" ", a[at:h.OldStart+h.OldLines])
	}
	if out.Len() == 0 {
		return ""
	}
	return "diff --git a/f b/f\n--- a/f\n+++ b/f\n" + out.String()
}

// linesAt are the numbers of the lines of a file, from 0, at which others begin.
func linesAt(file, lines []string) (out []int) {
	for at := 0; at+len(lines) <= len(file); at++ {
		if strings.Join(file[at:at+len(lines)], "|") == strings.Join(lines, "|") {
			out = append(out, at)
		}
	}
	return out
}

// onePlace reports whether each hunk of a diff can go to one place alone: its old lines are in the file
// once, below those of the one before, and its new ones are not where it says.
func onePlace(diff, file string) bool {
	lines := strings.SplitAfter(file, "\n")
	end := 0
	for _, h := range strings.Split(diff, "\n@@ ")[1:] {
		var from, olds, made, news int
		if _, err := fmt.Sscanf(h, "-%d,%d +%d,%d @@", &from, &olds, &made, &news); err != nil {
			panic(err)
		}
		var old, after []string
		for _, l := range strings.Split(strings.TrimSuffix(h, "\n"), "\n")[1:] {
			if l[0] == '\\' {
				return false // where a line without an end may be, git sees more loosely
			}
			if l[0] != '+' {
				old = append(old, l[1:]+"\n")
			}
			if l[0] != '-' {
				after = append(after, l[1:]+"\n")
			}
		}
		at := linesAt(lines, old)
		if len(old) == 0 || len(at) != 1 || at[0] < end {
			return false
		}
		for _, there := range linesAt(lines, after) {
			if len(after) > 0 && there == made-1 {
				return false
			}
		}
		end = at[0] + len(old)
	}
	return true
}

// FuzzOffset: what git apply places, and can place nowhere else, is placed at the same lines; and
// wherever a hunk is found at another line, git apply finds it there.
func FuzzOffset(f *testing.F) {
	seeds := uint64(40)
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		seeds = 200
	}
	for seed := range seeds {
		f.Add(seed)
	}
	work := newRepo(f)
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 6))
		words := 2 + r.IntN(90)
		edit := func(text string, odds int) string {
			var out strings.Builder
			for line := range strings.Lines(text) {
				switch r.IntN(odds) {
				case 0:
				case 1:
					fmt.Fprintf(&out, "%d\n", r.IntN(words))
					out.WriteString(line)
				default:
					out.WriteString(line)
				}
			}
			return strings.TrimSuffix(out.String(), strings.Repeat("\n", r.IntN(8)/7))
		}
		var b strings.Builder
		for range r.IntN(40) {
			fmt.Fprintf(&b, "%d\n", r.IntN(words))
		}
		was := b.String()
		context := r.IntN(4)
		diff, now := unified(was, edit(was, 15), context), edit(was, 40)
		if diff == "" {
			return
		}
		d, err := gitpatch.Parse([]byte(diff))
		fatal(t, err)
		base := fstest.MapFS{"f": {Data: []byte(now), Mode: 0o644}}
		ours, err := d.Moved().Resolve(base)
		name := filepath.Join(work.dir, "f")
		fatal(t, os.WriteFile(name, []byte(now), 0o666))
		_, failed := teststand.TryGit(work.dir, diff, "apply", "-")
		theirs, readErr := os.ReadFile(name)
		if readErr != nil {
			t.Fatal(readErr)
		}
		switch {
		case context == 0 && err == nil && len(ours.Offsets) == 0: // git takes it for one that reaches to the end
		case err == nil && failed == nil && !bytes.Equal(ours.Changes[0].After.Data, theirs):
			t.Errorf("%q, and git makes %q of\n%s\n%s", ours.Changes[0].After.Data, theirs, now, diff)
		case err == nil && failed != nil && len(ours.Offsets) > 0:
			t.Errorf("%v, and git says %s\n%s\n%s", ours.Offsets, failed, now, diff)
		case err != nil && failed == nil && onePlace(diff, now):
			t.Errorf("%v, and git makes %q of\n%s\n%s", err, theirs, now, diff)
		}
	})
}

// TestOffset: a hunk is found where its lines are, once, below those before, and said to be there.
func TestOffset(t *testing.T) {
	const head = "diff --git a/f b/f\n--- a/f\n+++ b/f\n"
	lines := func(words string) string { return strings.Join(strings.Fields(words), "\n") + "\n" }
	for _, c := range []struct{ name, file, diff, want, says string }{
		{"lower", "x a b c d e", "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", "", "does not apply"}, // from the first line on
		{"lower by one", "x 0 a b c d", "@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n", "x 0 a B c d", "f 1 line lower"},
		{"higher", "a b c d", "@@ -4,3 +4,3 @@\n a\n-b\n+B\n c\n", "a B c d", "f 3 lines higher"},
		{"at the end, and there already", "a b c", "@@ -1,2 +1,3 @@\n a\n b\n+c\n", "", "the lines that it adds already"},
		{"twice", "0 1 a b c 2 a b c d", "@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n", "", "; the hunk's lines are at line 3 and at line 7, and nothing says which are meant"},
		{"twice, and where it says", "0 a b c 2 a b c d", "@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n", "0 a B c 2 a b c d", ""},
		{"fuzz", "0 1 a b z d", "@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n", "", `line 5 is not what the patch expects: it is "z", and not "c"`},
		{"two, one moved", "0 a b c 1 2 e f g h", "@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n@@ -6,3 +6,3 @@\n e\n-f\n+F\n g\n", "0 a B c 1 2 e F g h", "f 1 line lower"},
		{"below one that moved it must be once", "0 1 a b c e f g 2 e f g h", "@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n@@ -6,3 +6,3 @@\n e\n-f\n+F\n g\n", "", "does not apply"},
		{"out of order", "0 e f g a b c 1", "@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n@@ -6,3 +6,3 @@\n e\n-f\n+F\n g\n", "", "does not apply"},
		{"the end", "0 1 a b c d", "@@ -2,2 +2,2 @@\n b\n-c\n+C\n", "", "does not apply"},
		{"a new line without context", "0 1 a", "@@ -5,0 +6 @@\n+b\n", "", "past the end"},
		{"there already, and elsewhere not yet", "0 a B c 1 a b c d", "@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n", "", "the hunk's lines are at line 6"},
	} {
		d, err := gitpatch.Parse([]byte(head + c.diff))
		fatal(t, err)
		base := fstest.MapFS{"f": {Data: []byte(lines(c.file)), Mode: 0o644}}
		p, err := d.Moved().Resolve(base)
		says := ""
		switch {
		case err != nil:
			says = err.Error()
		case len(p.Offsets) > 0:
			says = gitpatch.Moved(p.Offsets[0])
		}
		if (err == nil) != (c.want != "") || err == nil && string(p.Changes[0].After.Data) != lines(c.want) || !strings.Contains(says, c.says) || c.says == "" && says != "" {
			t.Errorf("%s: %v, %q", c.name, p.Changes, says)
		}
		if _, strict := d.Resolve(base); err == nil && len(p.Offsets) > 0 && strict == nil {
			t.Errorf("%s: what is recorded moves", c.name)
		}
	}
}

// TestRepeatedLines: where lines repeat, a hunk is looked for in as many steps as the file has bytes,
// and not as many for each of its lines: that would be minutes here.
func TestRepeatedLines(t *testing.T) {
	const line, lines = "0123456789abcdefgh\n", 100_000
	for _, last := range []string{"X\n", line} {
		diff := fmt.Sprintf("diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,%d +1,%[1]d @@\n", lines+2) + strings.Repeat(" "+line, lines) + " " + last + "-Y\n+Z\n"
		d, err := gitpatch.Parse([]byte(diff))
		fatal(t, err)
		_, err = d.Moved().Resolve(fstest.MapFS{"f": {Data: []byte(strings.Repeat(line, 8*lines)), Mode: 0o644}})
		if err == nil || !strings.Contains(err.Error(), "is not what the patch expects") {
			t.Errorf("%q: %v", last, err)
		}
	}
}

// TestReverse: a diff taken back makes of what it made what was there, or says that it cannot be.
func TestReverse(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o644} }
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 9))
		var old, now strings.Builder
		for i := range r.IntN(30) {
			fmt.Fprintf(&old, "%d\n", i)
			if n := r.IntN(6); n > 0 {
				now.WriteString(strings.Repeat(fmt.Sprintf("%d\n", i), 1+n/5))
			}
		}
		cut := strings.Repeat("\n", r.IntN(2))
		was, is := strings.TrimSuffix(old.String(), cut), now.String()
		diff := unified(was, is, 3)
		if diff == "" || is == "" {
			continue
		}
		d, err := gitpatch.Parse([]byte(diff))
		fatal(t, err)
		back, ok := d.Reverse()
		p, err := back.Resolve(fstest.MapFS{"f": file(is)})
		if !ok || err != nil || string(p.Changes[0].After.Data) != was || len(p.Offsets) > 0 {
			t.Errorf("%v, %v, %+v of\n%s", ok, err, p.Changes, diff)
		}
	}
	for _, c := range []struct{ name, diff, want string }{
		{"new", "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n", "delete n "},
		{"deleted", "diff --git a/g b/g\ndeleted file mode 100644\n--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "add g "},
		{"renamed", "diff --git a/g b/n\nsimilarity index 100%\nrename from g\nrename to n\n", "rename g n"},
		{"mode", "diff --git a/s b/s\nold mode 100644\nnew mode 100755\n", "update s "},
		{"deleted, and there", "diff --git a/n b/n\ndeleted file mode 100644\n--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", "error"},
		{"removed without context", "diff --git a/n b/n\n--- a/n\n+++ b/n\n@@ -2 +1,0 @@\n-y\n", "error"},
		{"copied", "diff --git a/g b/n\nsimilarity index 100%\ncopy from g\ncopy to n\n", "error"},
	} {
		d, err := gitpatch.Parse([]byte(c.diff))
		if err != nil {
			t.Fatal(c.name, err)
		}
		got := "error"
		if back, ok := d.Reverse(); ok {
			script := file("s\n")
			script.Mode = 0o755
			if p, err := back.Resolve(fstest.MapFS{"n": file("x\n"), "s": script}); err == nil {
				got = fmt.Sprintf("%s %s %s", p.Changes[0].Kind, p.Changes[0].Path, p.Changes[0].From)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := gitpatch.Alike([]byte("a\nb\nc\nd\n"), []byte("a\nb\nx\nd\nd\n")); got != 60 {
		t.Errorf("alike: %d", got)
	}
}
