package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

// expected is what a bundle has to be: signed by exactly this identity of exactly this issuer,
// about something with this digest, as in "sha256:…".
type expected struct{ identity, issuer, digest string }

// answer is what is said of a bundle that verifies. Payload is the SHA-256 of the statement.
type answer struct {
	Identity string `json:"identity"`
	Issuer   string `json:"issuer"`
	Payload  string `json:"payload"`
	Time     string `json:"time"`
}

// verifyBundle demands all that the public instance gives: a certificate that a log of
// certificates has, an entry of a transparency log, and the time of a log or a timestamping
// authority, at which the certificate was valid.
func verifyBundle(raw []byte, want expected, i instance) ([]byte, error) {
	algorithm, text, _ := strings.Cut(want.digest, ":")
	digest, err := hex.DecodeString(text)
	if err != nil || algorithm == "" || len(digest) == 0 {
		return nil, usage("--digest %q is not one as in sha256:HEX", want.digest)
	}
	if want.identity == "" || want.issuer == "" {
		return nil, usage("--certificate-identity and --certificate-oidc-issuer are needed")
	}
	identity, err := verify.NewShortCertificateIdentity(want.issuer, "", want.identity, "")
	if err != nil {
		return nil, usage("%w", err)
	}
	trusted, err := i.trusted()
	if err != nil {
		return nil, err
	}
	verifier, err := verify.NewVerifier(trusted, verify.WithSignedCertificateTimestamps(1), verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1))
	if err != nil {
		return nil, err
	}
	var b bundle.Bundle
	if err := b.UnmarshalJSON(raw); err != nil {
		return nil, refused(err)
	}
	result, err := verifier.Verify(&b, verify.NewPolicy(verify.WithArtifactDigest(algorithm, digest), verify.WithCertificateIdentity(identity)))
	if err != nil {
		return nil, refused(err)
	}
	envelope := b.GetDsseEnvelope()
	if envelope == nil || len(result.VerifiedTimestamps) == 0 || result.VerifiedIdentity == nil {
		return nil, refused(errors.New("the bundle has no envelope, no time or no identity that was verified"))
	}
	payload := sha256.Sum256(envelope.Payload)
	return line(answer{want.identity, want.issuer, hex.EncodeToString(payload[:]), result.VerifiedTimestamps[0].Timestamp.UTC().Format(time.RFC3339)})
}

// line is JSON as it is read by countersign: with no escapes for HTML, and one LF.
func line(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return out.Bytes(), err
}
