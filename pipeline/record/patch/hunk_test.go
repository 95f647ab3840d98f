package patch_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

func TestHunks(t *testing.T) {
	at := func(line int) patch.Edit { return patch.Edit{line, line + 1, line, line + 1} }
	grown := patch.Edit{10, 10, 10, 14} // four lines inserted before old line 10
	after := patch.Edit{17, 18, 21, 22}
	for _, c := range []struct {
		name            string
		edits           []patch.Edit
		old, new, lines int
		want            []patch.LineHunk
	}{
		{"none", nil, 9, 9, 3, nil},
		{"middle", []patch.Edit{at(10)}, 20, 20, 3, []patch.LineHunk{{7, 7, 7, 7, []patch.Edit{at(10)}}}},
		{"cut off at both ends", []patch.Edit{at(1)}, 3, 3, 3, []patch.LineHunk{{0, 3, 0, 3, []patch.Edit{at(1)}}}},
		{"no context", []patch.Edit{at(1), at(3)}, 9, 9, 0, []patch.LineHunk{
			{1, 1, 1, 1, []patch.Edit{at(1)}}, {3, 1, 3, 1, []patch.Edit{at(3)}},
		}},
		{"context below 0", []patch.Edit{at(1)}, 9, 9, -1, []patch.LineHunk{{1, 1, 1, 1, []patch.Edit{at(1)}}}},
		{"six lines between share", []patch.Edit{at(10), at(17)}, 30, 30, 3, []patch.LineHunk{
			{7, 14, 7, 14, []patch.Edit{at(10), at(17)}},
		}},
		{"seven lines between part", []patch.Edit{at(10), at(18)}, 30, 30, 3, []patch.LineHunk{
			{7, 7, 7, 7, []patch.Edit{at(10)}}, {15, 7, 15, 7, []patch.Edit{at(18)}},
		}},
		{"new side moves", []patch.Edit{grown, after}, 20, 24, 3, []patch.LineHunk{
			{7, 6, 7, 10, []patch.Edit{grown}}, {14, 6, 18, 6, []patch.Edit{after}},
		}},
		{"created", []patch.Edit{{0, 0, 0, 2}}, 0, 2, 3, []patch.LineHunk{{0, 0, 0, 2, []patch.Edit{{0, 0, 0, 2}}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := patch.LineHunks(c.edits, c.old, c.new, c.lines); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestGitApplies gives our hunks to the real git.
func TestGitApplies(t *testing.T) {
	for _, c := range readGolden(t) {
		applyWithGit(t, []byte(c.Old), []byte(c.New))
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		old := random(r.Uint64(), 5, 100)
		applyWithGit(t, old, mutate(r, old))
	}
}

func applyWithGit(t *testing.T, old, new []byte) {
	t.Helper()
	if bytes.Equal(old, new) || len(old) == 0 || len(new) == 0 {
		return // git has other headers for these
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	fatal(t, os.WriteFile(file, old, 0o600))
	teststand.Git(t, dir, string(unified(patch.Lines(old), patch.Lines(new))), "apply")
	if got, _ := os.ReadFile(file); !bytes.Equal(got, new) {
		t.Fatalf("git made %q of %q, want %q", got, old, new)
	}
}

// unified writes a diff of the file f with three lines of context.
func unified(a, b [][]byte) []byte {
	out := []byte("--- a/f\n+++ b/f\n")
	for _, h := range patch.LineHunks(patch.DiffLines(a, b), len(a), len(b), 3) {
		out = fmt.Appendf(out, "@@ -%s +%s @@\n", side(h.OldStart, h.OldLines), side(h.NewStart, h.NewLines))
		at := h.OldStart
		for _, e := range h.Edits {
			out = appendLines(out, " ", a[at:e.OldStart])
			out = appendLines(out, "-", a[e.OldStart:e.OldEnd])
			out = appendLines(out, "+", b[e.NewStart:e.NewEnd])
			at = e.OldEnd
		}
		out = appendLines(out, " ", a[at:h.OldStart+h.OldLines])
	}
	return out
}

// side counts lines from 1; an empty side names the line before it.
func side(start, lines int) string {
	if lines == 0 {
		return fmt.Sprintf("%d,0", start)
	}
	return fmt.Sprintf("%d,%d", start+1, lines)
}

func appendLines(out []byte, sign string, lines [][]byte) []byte {
	for _, line := range lines {
		out = append(append(out, sign...), line...)
		if !bytes.HasSuffix(line, []byte("\n")) {
			out = append(out, "\n\\ No newline at end of file\n"...)
		}
	}
	return out
}
