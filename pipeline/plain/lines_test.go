package plain_test

import (
	"maps"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/plain"
)

func TestLines(t *testing.T) {
	got := plain.Lines([]byte("version: 1\n# who\napprovals:\n  required: 2\nprotected:\n  - paths: [a]\n    required: 1\n\n  - {paths: [b]}\n"))
	want := map[string]int{"version": 1, "approvals": 3, "protected": 5, "protected[0]": 6, "protected[1]": 9}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, raw := range []string{"", "a: [", "\x00", "- a"} {
		if got := plain.Lines([]byte(raw)); len(got) > 0 {
			t.Errorf("%q: %v", raw, got)
		}
	}
}
