package attest_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"testing"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"golang.org/x/crypto/ssh"

	"github.com/countersign-dev/countersign/pipeline/attest"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig/signing"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// plain verifies signatures without SSH, as cosign does with a public key.
type plain struct{ key crypto.PublicKey }

func (p plain) Verify(_ context.Context, data, sig []byte) error {
	ok := false
	switch key := p.key.(type) {
	case ed25519.PublicKey:
		ok = ed25519.Verify(key, data, sig)
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(data)
		ok = ecdsa.VerifyASN1(key, sum[:], sig)
	}
	if !ok {
		return errors.New("bad signature")
	}
	return nil
}
func (p plain) KeyID() (string, error)   { return "", nil }
func (p plain) Public() crypto.PublicKey { return p.key }

// sshKey is a private key as ssh-keygen writes it.
func sshKey(t *testing.T, private crypto.PrivateKey) signing.Signer {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(private, "")
	fatal(t, err)
	key, err := signing.ParseKey(pem.EncodeToMemory(block))
	fatal(t, err)
	return key
}

// TestBundle: a Sigstore bundle has a signature that the public key alone verifies, of
// exactly the statement.
func TestBundle(t *testing.T) {
	s, _ := approvalOf(t, storetest.Signed)
	statement, err := s.Bytes()
	fatal(t, err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	fatal(t, err)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fatal(t, err)
	for name, key := range map[string]crypto.Signer{"ed25519": edwards, "ecdsa": curve} {
		raw, err := attest.Bundle(s, sshKey(t, key).SignPlain)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var b struct {
			MediaType            string
			VerificationMaterial struct{ PublicKey struct{ Hint string } }
			DSSEEnvelope         dsse.Envelope
		}
		if err := json.Unmarshal(raw, &b); err != nil || !canon.IsLine(raw) {
			t.Fatalf("%s: %v", name, err)
		}
		id := sha256.Sum256(derOf(t, key.Public()))
		if b.MediaType != "application/vnd.dev.sigstore.bundle.v0.3+json" || b.VerificationMaterial.PublicKey.Hint != base64.StdEncoding.EncodeToString(id[:]) {
			t.Errorf("%s: %s, key %s", name, b.MediaType, b.VerificationMaterial.PublicKey.Hint)
		}
		verify := func(e dsse.Envelope) error {
			v, err := dsse.NewEnvelopeVerifier(plain{key.Public()})
			fatal(t, err)
			_, err = v.Verify(t.Context(), &e)
			return err
		}
		if err := verify(b.DSSEEnvelope); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if payload, err := b.DSSEEnvelope.DecodeB64Payload(); err != nil || !bytes.Equal(payload, statement) {
			t.Errorf("%s: another payload: %v", name, err)
		}
		forged := b.DSSEEnvelope
		forged.Payload = base64.StdEncoding.EncodeToString(append(statement[:len(statement)-1:len(statement)-1], ' ', '}'))
		if verify(forged) == nil {
			t.Errorf("%s: another payload verifies", name)
		}
		forged = b.DSSEEnvelope
		forged.PayloadType = "application/json"
		if verify(forged) == nil {
			t.Errorf("%s: another type verifies", name)
		}
		if _, err := attest.Open(raw); err == nil {
			t.Errorf("%s: a bundle is read as an envelope", name)
		}
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	fatal(t, err)
	if _, err := attest.Bundle(s, sshKey(t, other).SignPlain); !errors.Is(err, signing.ErrKey) {
		t.Errorf("RSA: %v", err)
	}
}
