package attest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
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

// A Bundled statement is one of a Sigstore bundle that could be read. Nothing says yet whose
// it is.
type Bundled struct {
	Statement Statement
	Payload   []byte // the statement's bytes
	KeyID     string // of the key that the bundle names: base64 of the SHA-256 of its DER; "" where a certificate does
	signature []byte
	issued    json.RawMessage // the certificate, as the bundle has it
}

// Claims returns whom the bundle's certificate names, as in
// "https://github.com/…/attest.yml@refs/heads/main"; "" where there is none, or it names several or
// nobody. Nothing of it is verified: anybody can have written it.
func (o Bundled) Claims() string {
	var c struct {
		Raw []byte `json:"rawBytes"`
	}
	if json.Unmarshal(o.issued, &c) != nil {
		return ""
	}
	certificate, err := x509.ParseCertificate(c.Raw)
	if err != nil || len(certificate.URIs) != 1 {
		return ""
	}
	return certificate.URIs[0].String()
}

// IsBundle reports whether a file says that it is a Sigstore bundle, and no envelope.
func IsBundle(raw []byte) bool {
	var h struct {
		MediaType string `json:"mediaType"`
	}
	return json.Unmarshal(raw, &h) == nil && h.MediaType != ""
}

// OpenBundle reads a Sigstore bundle, version 0.3, of a statement of this program's. One that
// names a key must be written as Bundle writes it, to the byte. One that has a certificate may
// be of any program; whoever verifies it has to say which payload that was.
func OpenBundle(raw []byte) (Bundled, error) {
	doc, err := canon.Parse(raw)
	if err != nil {
		return Bundled{}, fmt.Errorf("it is not a Sigstore bundle: %w", err)
	}
	canonical, err := canon.Marshal(doc)
	if err != nil {
		return Bundled{}, fmt.Errorf("it is not a Sigstore bundle: %w", err)
	}
	var b struct {
		MediaType            string                     `json:"mediaType"`
		VerificationMaterial map[string]json.RawMessage `json:"verificationMaterial"`
		DSSEEnvelope         Envelope                   `json:"dsseEnvelope"`
	}
	d := json.NewDecoder(bytes.NewReader(canonical))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		return Bundled{}, fmt.Errorf("it is not a Sigstore bundle of a statement: %w", err)
	}
	switch {
	case b.MediaType != bundleType:
		return Bundled{}, fmt.Errorf("it is %.100q, not %s", b.MediaType, bundleType)
	case b.DSSEEnvelope.PayloadType != PayloadType:
		return Bundled{}, fmt.Errorf("its payload is %.100q, not %s", b.DSSEEnvelope.PayloadType, PayloadType)
	case len(b.DSSEEnvelope.Signatures) != 1:
		return Bundled{}, fmt.Errorf("it has %d signatures, not one", len(b.DSSEEnvelope.Signatures))
	}
	o := Bundled{}
	if o.Payload, err = decode(b.DSSEEnvelope.Payload); err != nil {
		return Bundled{}, fmt.Errorf("its payload: %w", err)
	}
	if o.signature, err = decode(b.DSSEEnvelope.Signatures[0].Sig); err != nil {
		return Bundled{}, fmt.Errorf("its signature: %w", err)
	}
	if o.Statement, err = ParseStatement(o.Payload); err != nil {
		return Bundled{}, err
	}
	if issued, certified := b.VerificationMaterial["certificate"]; certified {
		o.issued = issued
		return o, nil
	}
	var exact bundle
	if err := canon.Unmarshal(raw, &exact); err != nil || exact.VerificationMaterial.PublicKey.KeyID == "" || !bytes.HasSuffix(raw, []byte("\n")) {
		return Bundled{}, errors.New("it has no certificate, and is not written as this program writes a bundle that names a key")
	}
	o.KeyID = exact.VerificationMaterial.PublicKey.KeyID
	return o, nil
}

// VerifyKey says whether the key whose SubjectPublicKeyInfo is public, in DER, has signed the
// statement: Ed25519, or ECDSA on P-256 with SHA-256 in ASN.1.
func (o Bundled) VerifyKey(public []byte) error {
	id := sha256.Sum256(public)
	if o.KeyID != base64.StdEncoding.EncodeToString(id[:]) {
		return errors.New("it names another key")
	}
	key, err := x509.ParsePKIXPublicKey(public)
	if err != nil {
		return err
	}
	good, message := false, PAE(PayloadType, o.Payload)
	switch key := key.(type) {
	case ed25519.PublicKey:
		good = ed25519.Verify(key, message, o.signature)
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(message)
		good = key.Curve == elliptic.P256() && ecdsa.VerifyASN1(key, sum[:], o.signature)
	}
	if !good {
		return errors.New("it does not verify with the key")
	}
	return nil
}
