package v1

import (
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A risks is the artifact of kind ledger.KindRisks.
type risks struct {
	Schema  string         `json:"schema"`
	PatchID string         `json:"patch_id"`
	More    map[string]int `json:"more"`
	Risks   []struct {
		Kind   string `json:"kind"`
		Path   string `json:"path"`
		From   string `json:"from,omitempty"`
		Lines  []int  `json:"lines,omitempty"`
		More   int    `json:"more,omitempty"`
		Detail string `json:"detail,omitempty"`
	} `json:"risks"`
}

// more is how many risks are not among those listed.
func (d risks) more() (n int) {
	for _, one := range d.More {
		n += max(one, 0)
	}
	return n
}

// has reports whether risks of a kind are listed.
func (d risks) has(kind string) bool {
	for _, r := range d.Risks {
		if r.Kind == kind {
			return true
		}
	}
	return false
}

// read reads a document beside the page.
func read[T any](dir fs.FS, name string) (doc T, err error) {
	raw, err := fs.ReadFile(dir, name)
	if err == nil {
		err = canon.Unmarshal(raw, &doc)
	}
	return doc, err
}

// lastFailed reports whether what a status is about did not succeed: of an applied change its last validate, else its
// last apply.
func lastFailed(payloads []ledger.Payload, status ledger.Status) bool {
	for _, p := range slices.Backward(payloads) {
		switch p := p.(type) {
		case *ledger.ValidateComplete:
			if status == ledger.Applied {
				return !p.Success
			}
		case *ledger.ApplyComplete:
			return status != ledger.Applied && !p.Success
		}
	}
	return false
}

func isTime(s string) bool {
	at, err := time.Parse(ledger.TimeFormat, s)
	return err == nil && at.UTC().Format(ledger.TimeFormat) == s
}

func isGitID(s string) bool { return canon.IsHex(s, 40) }

func isArtifact(s string) bool {
	id, ok := strings.CutPrefix(s, "artifacts/")
	id, json := strings.CutSuffix(id, ".json")
	return ok && json && canon.IsHex64(id)
}
