package audit_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// TestT53NewerHidesNothing: an artifact that only a newer program can judge hides nothing of what is found in the history beside it: a
// denial that is in no index, another outcome in a message, events that were written anew.
func TestT53NewerHidesNothing(t *testing.T) {
	id, err := writing.NewID(at(0), bytes.NewReader(make([]byte, 10)))
	fatal(t, err)
	for by, want := range map[string][]string{"1": {"L11", "L15"}, "2": {"L10", "L11", "L12", "L15", "L8", "L8"}} {
		for _, newer := range []bool{false, true} {
			review := proposed(at(0), id, took{file: "a", by: "1", kind: "patch"}, "")
			entries := []writing.Entry{entry(t, review, "review", true)}
			s := writing.NewStage(proposed(at(0), id, took{file: "a", by: by, kind: "patch"}, "").Log, at(1), secret.Default())
			if newer {
				s.Artifact("drift", map[string]any{"needs_version": "9.0"})
				want = append(slices.Clone(want), canon.Newer)
			}
			s.Status(ledger.Denied, "x")
			e, err := s.Entry(writing.Title{Stage: "gate", Outcome: "approved", Subject: "x"}, false)
			fatal(t, err)
			r, err := audit.Run(newWritten(append(entries, *e), 0), audit.Options{})
			fatal(t, err)
			var told []string
			for _, f := range r.Findings {
				told = append(told, f.RuleID)
			}
			if slices.Sort(told); !slices.Equal(told, want) || r.Undecidable() != nil {
				t.Errorf("by %s, newer %t: %q, want %q", by, newer, told, want)
			}
		}
	}
}
