package input_test

import (
	"testing"

	"github.com/countersign-dev/countersign/pipeline/input"
)

// TestGHAWRequesters: whom a run of gh-aw names, nobody of a schedule; what cannot be read is an error.
func TestGHAWRequesters(t *testing.T) {
	for raw, want := range map[string]string{
		`{"actor": "ada", "event_name": "issues"}`: "ada", `{"actor": "ada"}`: "ada", `{"actor": "ada", "event_name": "schedule"}`: "", `{}`: "", `{"actor": 7}`: "", `[]`: "",
		`{`: "error", `{"actor": "@"}`: "error", `{"actor": "a\nb"}`: "error",
	} {
		all, err := input.GHAWRequesters([]byte(raw))
		got := ""
		for _, r := range all {
			got += r.Actor.Login
		}
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %q, %v", raw, got, err)
		}
	}
}
