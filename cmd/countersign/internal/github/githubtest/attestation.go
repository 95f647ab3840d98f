package githubtest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
)

// An Attestation is a Sigstore bundle that a repository has, and the SHA-256 digests of its
// statement's subjects, by which it is found.
type Attestation struct {
	ID      int64
	Bundle  map[string]any
	Digests []string
}

// createAttestation takes a bundle with an envelope of a statement; nobody verifies it.
func (s *Server) createAttestation(c *call) answer {
	bundle, _ := c.body["bundle"].(map[string]any)
	envelope, _ := bundle["dsseEnvelope"].(map[string]any)
	encoded, _ := envelope["payload"].(string)
	payload, err := base64.StdEncoding.DecodeString(encoded)
	var statement struct {
		Subject []struct{ Digest map[string]string }
	}
	if err != nil || json.Unmarshal(payload, &statement) != nil || len(statement.Subject) == 0 {
		return refuse(http.StatusUnprocessableEntity, "Invalid bundle")
	}
	a := Attestation{ID: s.nextID(), Bundle: bundle}
	for _, one := range statement.Subject {
		if digest := one.Digest["sha256"]; digest != "" {
			a.Digests = append(a.Digests, digest)
		}
	}
	c.repo.attested = append(c.repo.attested, a)
	return created(object{"id": a.ID})
}

// Attestations are the bundles of a repository that are about something with a SHA-256.
func (s *Server) Attestations(repository, sha256 string) (found []Attestation) {
	defer s.lock()()
	for _, a := range s.repo(repository).attested {
		if slices.Contains(a.Digests, sha256) {
			found = append(found, a)
		}
	}
	return found
}
