package attest

import (
	"crypto/sha256"
	"encoding/base64"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

// bundleType is the mediaType of a Sigstore bundle, version 0.3.
const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// A bundle is a Sigstore bundle of a signature by a key that its reader has.
type bundle struct {
	MediaType            string `json:"mediaType"`
	VerificationMaterial struct {
		PublicKey struct {
			KeyID string `json:"hint"`
		} `json:"publicKey"`
	} `json:"verificationMaterial"`
	DSSEEnvelope struct {
		Payload     string           `json:"payload"`
		PayloadType string           `json:"payloadType"`
		Signatures  []plainSignature `json:"signatures"`
	} `json:"dsseEnvelope"`
}

type plainSignature struct {
	Sig string `json:"sig"`
}

// A PlainSignFunc returns a signature of a message without a form of its own, and the
// public key in DER.
type PlainSignFunc func(message []byte) (signature, public []byte, err error)

// Bundle puts a statement into a Sigstore bundle, which cosign verifies with the public
// key: canonical JSON and one LF. The bytes that are signed begin with "DSSEv1 ", as
// nothing does that SSH signs: not a session, not what "ssh-keygen -Y sign" signs.
func Bundle(s Statement, sign PlainSignFunc) ([]byte, error) {
	payload, err := s.Bytes()
	if err != nil {
		return nil, err
	}
	signature, public, err := sign(PAE(PayloadType, payload))
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(public)
	b := bundle{MediaType: bundleType}
	b.VerificationMaterial.PublicKey.KeyID = base64.StdEncoding.EncodeToString(id[:])
	b.DSSEEnvelope.Payload, b.DSSEEnvelope.PayloadType = base64.StdEncoding.EncodeToString(payload), PayloadType
	b.DSSEEnvelope.Signatures = []plainSignature{{base64.StdEncoding.EncodeToString(signature)}}
	return canon.Line(b)
}
