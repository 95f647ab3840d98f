package patch_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// golden is testdata/diff.json: old text, new text, and the edits as
// [OldStart, OldEnd, NewStart, NewEnd]. Another implementation wrote it from the
// package comment; it is never regenerated.
type golden struct {
	Name  string
	Old   string
	New   string
	Edits [][4]int
}

func readGolden(t testing.TB) []golden {
	t.Helper()
	raw, err := os.ReadFile("testdata/diff.json")
	fatal(t, err)
	var cases []golden
	fatal(t, json.Unmarshal(raw, &cases))
	return cases
}

func diff(old, new string) []patch.Edit {
	return patch.DiffLines(patch.Lines([]byte(old)), patch.Lines([]byte(new)))
}

func TestGolden(t *testing.T) {
	for _, c := range readGolden(t) {
		t.Run(c.Name, func(t *testing.T) {
			var want []patch.Edit
			for _, e := range c.Edits {
				want = append(want, patch.Edit{OldStart: e[0], OldEnd: e[1], NewStart: e[2], NewEnd: e[3]})
			}
			if got := diff(c.Old, c.New); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		data string
		want []string
	}{
		{"", nil},
		{"a", []string{"a"}},
		{"a\n", []string{"a\n"}},
		{"\n", []string{"\n"}},
		{"\n\na", []string{"\n", "\n", "a"}},
		{"a\r\nb\rc\n", []string{"a\r\n", "b\rc\n"}},
		{"a\x00\xffb\nc", []string{"a\x00\xffb\n", "c"}},
	} {
		var got []string
		for _, line := range patch.Lines([]byte(c.data)) {
			got = append(got, string(line))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("Lines(%q) = %q, want %q", c.data, got, c.want)
		}
	}
}

// A line may be appended to without a change of the next one.
func TestLinesDoNotOverlap(t *testing.T) {
	data := []byte("a\nb\n")
	_ = append(patch.Lines(data)[0], 'x')
	if string(data) != "a\nb\n" {
		t.Errorf("data is now %q", data)
	}
}

// TestBound has common lines in the middle. They are found when the script is
// exactly as long as the bound, and not when it is one longer.
func TestBound(t *testing.T) {
	for _, c := range []struct {
		name   string
		half   int // lines of its own before the common ones, and after them
		common int
	}{
		{"4096 edits", 1024, 1},
		{"2^29 work", 128, 1<<19 - 256},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, new := around("o", c.half, c.common), around("n", c.half, c.common)
			if got := len(diff(old, new)); got != 2 {
				t.Errorf("at the bound: %d edits, want 2", got)
			}
			got := diff(old, "further\n"+new)
			whole := []patch.Edit{{
				OldEnd: strings.Count(old, "\n"), NewEnd: strings.Count(new, "\n") + 1,
			}}
			if !slices.Equal(got, whole) {
				t.Errorf("over the bound: %v, want %v", got, whole)
			}
		})
	}
}

// around has half lines of its own, then common ones, then half more.
func around(own string, half, common int) string {
	return string(numbered(own, half)) + string(numbered("common", common)) + string(numbered(own+"x", half))
}

// checkApplies fails unless the edits are ascending, apart, not empty, and turn
// old into new.
func checkApplies(t testing.TB, old, new []byte, edits []patch.Edit) {
	t.Helper()
	a, b := patch.Lines(old), patch.Lines(new)
	var out []byte
	at := 0
	for i, e := range edits {
		if e.OldStart == e.OldEnd && e.NewStart == e.NewEnd || i > 0 && e.OldStart <= edits[i-1].OldEnd {
			t.Fatalf("edit %d of %d is empty or not apart from the last: %v", i, len(edits), e)
		}
		out = append(out, bytes.Join(a[at:e.OldStart], nil)...)
		out = append(out, bytes.Join(b[e.NewStart:e.NewEnd], nil)...)
		at = e.OldEnd
	}
	out = append(out, bytes.Join(a[at:], nil)...)
	if !bytes.Equal(out, new) {
		t.Fatalf("%d edits do not give the new text", len(edits))
	}
}
