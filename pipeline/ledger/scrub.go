package ledger

import (
	"bytes"
	"regexp"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

// A Scrubber takes secrets out of what is about to be stored, or shown. The
// same input gives the same output, and what it returned it returns again.
type Scrubber interface {
	Text(s string) string
	// Diff is Text for a canonical diff, which stays readable as one.
	Diff(diff []byte) []byte
	// JSON is Text for every string and key of a document, and returns canonical
	// JSON. typed strings are left alone: key is the name of the nearest member.
	JSON(doc []byte, typed func(key, value string) bool) ([]byte, error)
}

// scrubbed is an event's payload without secrets.
func scrubbed(scrub Scrubber, p Payload) (Payload, error) {
	raw, err := canon.Marshal(p)
	if err != nil {
		return nil, err
	}
	clean, err := scrub.JSON(raw, IsTyped)
	if err != nil || bytes.Equal(clean, raw) {
		return p, err
	}
	return Event{Type: p.Type(), Payload: clean}.Decode()
}

// typed are the members whose values this program makes: ids and hashes, which
// are no secrets however random they look. A value that has not the form is
// text like any other.
var typed = map[string]*regexp.Regexp{}

func init() {
	const hash = `^(sha256:[0-9a-f]{64})?$`
	forms := map[string][]string{
		hash: {
			"stored_sha256", "policy_sha256", "body_sha256", "patch_redacted_sha256", "patch_sealed_sha256", "sha256",
			"before_hash", "after_hash", "source_proposal_hash", "proposal_hash",
		},
		`^([0-9a-f]{40})?$`: {"base_commit", "policy_commit", "commit", "commit_before", "commit_after", "tree"},
		`^[0-9a-f]{64}$`:    {"patch_id", "patchId", "patch_ids", "artifact_id"},
		`^((secret|protected):)?patchset:[0-9a-f]{64}$`: {"fingerprint", "patch_fingerprint"},
		`^tx_[0-9A-Z]{26}$`:                             {"transaction_id"},
		`^(artifacts/[0-9a-f]{64}\.json)?$`:             {"path", "apply_artifact", "checks"},
		`^prop_[0-9a-f]{16}$`:                           {"proposal_id", "source_proposal_id"},
	}
	for form, keys := range forms {
		for _, key := range keys {
			typed[key] = regexp.MustCompile(form)
		}
	}
}

// IsTyped tells whether a value stands where ids and hashes do, and is one: such
// a string is never taken for a secret (T48).
func IsTyped(key, value string) bool {
	form, ok := typed[key]
	return ok && form.MatchString(value)
}
