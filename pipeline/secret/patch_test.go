package secret_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// T46, T50: what a patch introduces, and what it does not.
func TestT46PatchPositions(t *testing.T) {
	lines := map[string]int{
		"added line": 6, "removed line": -1, "context": -1, "new file": 1, "deleted file": -1,
		"binary": 1, "wide binary": 1, "Latin-1": 2, "base64": 2,
	}
	for name, position := range positions {
		for _, s := range teststand.Samples() {
			before, after := position(s.Text())
			found := secret.Default().Patch(change(t, before, after))
			want := lines[name]
			if want < 0 && len(found) > 0 || want > 0 && (len(found) != 1 || found[0].Line != want) {
				t.Errorf("%s in %s: %v", s.Kind, name, found)
			}
		}
	}
}

// T50: a rename brings a secret to a new place.
func TestT50Rename(t *testing.T) {
	for _, s := range teststand.Samples() {
		text := "one\ntwo\n" + s.Text() + "\n"
		set := change(t, map[string]string{"old.txt": text}, map[string]string{"new.txt": text})
		found := secret.Default().Patch(set)
		if len(found) != 1 || found[0].Path != "new.txt" || found[0].Line != 3 {
			t.Errorf("%s: %v", s.Kind, found)
		}
	}
}

// T46: a change within a long key, whose ends are outside the hunk.
func TestT46WithinKey(t *testing.T) {
	key := pem() + "\n"
	lines := strings.SplitAfter(key, "\n")
	other := strings.Repeat("Zy9x", 16) + "\n"
	changed := strings.Join(lines[:5], "") + other + strings.Join(lines[6:], "")
	front := strings.Repeat("front\n", 20)
	set := change(t, map[string]string{"k": front + key}, map[string]string{"k": front + changed})
	f, found, _ := secret.Default().Learn(set)
	if len(found) != 1 || found[0].Kind != "private-key" || found[0].Line != 26 {
		t.Errorf("found %v", found)
	}
	out := redactDiff(t, f, set.Bytes())
	for _, line := range append(lines[1:9], other) {
		if strings.Contains(out, strings.TrimSpace(line)) {
			t.Errorf("%q is left in\n%s", line, out)
		}
	}
	if got := f.Text("it says " + lines[3]); strings.Contains(got, lines[3]) {
		t.Error("not known outside the diff")
	}
}

func pem() string {
	for _, s := range teststand.Samples() {
		if s.Kind == "private key" {
			return s.Value
		}
	}
	panic("no sample")
}

// T46: a secret near a change, in lines that stay, is not introduced.
func TestT46NotIntroduced(t *testing.T) {
	for _, s := range teststand.Samples() {
		for _, between := range []int{0, 5, 50} {
			before := s.Text() + "\n" + strings.Repeat("() \n", between) + "old\n" + strings.Repeat("() \n", between) + s.Text() + "\n"
			set := change(t, map[string]string{"a": before}, map[string]string{"a": strings.Replace(before, "old\n", "(1)\n(2)\n", 1)})
			if found := secret.Default().Patch(set); found != nil {
				t.Errorf("%s, %d lines away: %v", s.Kind, between, found)
			}
			again := change(t, map[string]string{"a": before}, map[string]string{"a": strings.Replace(before, "old\n", "new "+s.Text()+"\n", 1)})
			found := secret.Default().Patch(again)
			if want := 1 + strings.Count(s.Text()+"\n", "\n") + between; len(found) != 1 || found[0].Line != want {
				t.Errorf("%s, %d lines away, again in line %d: %v", s.Kind, between, want, found)
			}
		}
	}
}

// Two runs at once give what one gives: a Finder may be shared.
func TestConcurrent(t *testing.T) {
	f := secret.Default().Knowing("hunter2!")
	before, after := positions["added line"](teststand.Samples()[1].Text() + " hunter2!")
	diff := change(t, before, after).Bytes()
	want := f.Diff(diff)
	done := make(chan []byte)
	for range 8 {
		go func() { done <- f.Diff(diff) }()
	}
	for range 8 {
		if got := <-done; !bytes.Equal(got, want) {
			t.Errorf("%q", got)
		}
	}
}
