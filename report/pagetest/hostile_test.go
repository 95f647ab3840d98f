package pagetest

import (
	"slices"
	"testing"
)

func TestTexts(t *testing.T) {
	all := HostileTexts()
	for i, text := range all {
		if text == "" || slices.Contains(all[:i], text) {
			t.Errorf("text %d is empty, or there twice: %.80q", i, text)
		}
	}
	if len(all) < 130 || !slices.Contains(all, "\x00") || !slices.Contains(all, `" onmouseover="alert('double')" x="`) {
		t.Errorf("%d texts, or one is read otherwise than it is meant", len(all))
	}
	if got := ShownRuns("<b>\x1b[0m \xff é "); !slices.Equal(got, []string{"<b>", "[0m"}) {
		t.Errorf("runs: %q", got)
	}
}
