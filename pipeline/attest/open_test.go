package attest_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"math/big"
	"net/url"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/attest"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

func derOf(t *testing.T, key crypto.PublicKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	fatal(t, err)
	return der
}

// TestT79OpenBundle: a bundle of a key verifies with that key and no other, and what is not
// written as this program writes it is none.
func TestT79OpenBundle(t *testing.T) {
	s, _ := approvalOf(t, storetest.Signed)
	statement, err := s.Bytes()
	fatal(t, err)
	public, edwards, err := ed25519.GenerateKey(rand.Reader)
	fatal(t, err)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fatal(t, err)
	large, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	fatal(t, err)
	for name, key := range map[string]crypto.Signer{"ed25519": edwards, "ecdsa": curve} {
		raw, err := attest.Bundle(s, sshKey(t, key).SignPlain)
		fatal(t, err)
		o, err := attest.OpenBundle(raw)
		if err != nil || !attest.IsBundle(raw) || !bytes.Equal(o.Payload, statement) || o.KeyID == "" {
			t.Fatalf("%s: %v %+v", name, err, o)
		}
		if err := o.VerifyKey(derOf(t, key.Public())); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, other := range [][]byte{derOf(t, large.Public()), derOf(t, public)[:10], nil} {
			if o.VerifyKey(other) == nil {
				t.Errorf("%s: it verifies with another key", name)
			}
		}
		text := string(raw)
		part := func(name string) string {
			_, after, _ := strings.Cut(text, `"`+name+`":"`)
			return after[:strings.Index(after, `"`)]
		}
		for what, forged := range map[string]string{
			"no newline":       strings.TrimSuffix(text, "\n"),
			"a blank":          " " + text,
			"another type":     strings.Replace(text, "vnd.in-toto", "vnd.in-tutu", 1),
			"version 0.2":      strings.Replace(text, "v0.3", "v0.2", 1),
			"a second member":  strings.Replace(text, `{"dsseEnvelope"`, `{"dsseEnvelope":{},"dsseEnvelope"`, 1),
			"another member":   strings.Replace(text, `"mediaType"`, `"logs":[],"mediaType"`, 1),
			"a key's id":       strings.Replace(text, `{"sig"`, `{"keyid":"x","sig"`, 1),
			"no hint":          strings.Replace(text, part("hint"), "", 1),
			"no key":           strings.Replace(text, `{"publicKey":{"hint":"`+part("hint")+`"}}`, "{}", 1),
			"two signatures":   strings.Replace(text, `[{"sig":"`+part("sig")+`"}]`, `[{"sig":"`+part("sig")+`"},{"sig":"`+part("sig")+`"}]`, 1),
			"no signature":     strings.Replace(text, `[{"sig":"`+part("sig")+`"}]`, `[]`, 1),
			"another envelope": strings.Replace(text, `"dsseEnvelope"`, `"DsseEnvelope"`, 1),
			"two lines":        text + text,
		} {
			if _, err := attest.OpenBundle([]byte(forged)); err == nil || forged == text {
				t.Errorf("%s, %s: it is read, or was not changed", name, what)
			}
		}
		// What names the key, and was changed, does not verify with it.
		for what, forged := range map[string]string{
			"payload":   strings.Replace(text, part("payload"), base64.StdEncoding.EncodeToString(bytes.Replace(statement, []byte(`"exact"`), []byte(`"replay"`), 1)), 1),
			"signature": strings.Replace(text, part("sig"), base64.StdEncoding.EncodeToString([]byte("no")), 1),
		} {
			o, err := attest.OpenBundle([]byte(forged))
			if forged == text || err == nil && o.VerifyKey(derOf(t, key.Public())) == nil {
				t.Errorf("%s, %s: it verifies", name, what)
			}
		}
		// With a certificate the caller has to verify, and no key does.
		certified := strings.Replace(text, `{"publicKey":{"hint":"`+part("hint")+`"}}`, `{"certificate":{"rawBytes":"AA=="},"publicKey":{"hint":"`+part("hint")+`"}}`, 1)
		if o, err := attest.OpenBundle([]byte(certified)); err != nil || o.KeyID != "" || o.VerifyKey(derOf(t, key.Public())) == nil {
			t.Errorf("%s: one with a certificate: %v %q", name, err, o.KeyID)
		}
	}
}

// TestLink: a link is made of an approval alone, and is canonical.
func TestLink(t *testing.T) {
	s, _ := approvalOf(t, storetest.Signed)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	fatal(t, err)
	name, raw, err := attest.Link(s, sshKey(t, key).SignPlain)
	if err != nil || !canon.IsLine(raw) || !strings.HasPrefix(name, "countersign.") || len(name) != len("countersign.12345678.link") {
		t.Errorf("%v %q %s", err, name, raw)
	}
	if _, err := attest.Open(raw); err == nil {
		t.Error("a link is read as a statement")
	}
	s.Predicate = &attest.Coverage{}
	if _, _, err := attest.Link(s, sshKey(t, key).SignPlain); err == nil {
		t.Error("a link is made of something else")
	}
}

// FuzzOpenBundle: what is read as a bundle of a key is what would be written.
func FuzzOpenBundle(f *testing.F) {
	f.Add([]byte(`{"dsseEnvelope":{"payload":"","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":""}]},"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"x"}}}` + "\n"))
	payload := base64.StdEncoding.EncodeToString([]byte(`{"predicate":{"fromID":"","targetID":"","targetRef":""},"predicate_type":"https://gittuf.dev/reference-authorization/v0.2","subject":[{"digest":{}}],"type":"https://in-toto.io/Statement/v1"}`))
	for _, material := range []string{`{"certificate":{}}`, `{"publicKey":{"hint":"x"}}`} {
		f.Add([]byte(`{"dsseEnvelope":{"payload":"` + payload + `","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"AA=="}]},"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":` + material + `}` + "\n"))
	}
	statement, _ := approvalOf(f, storetest.Signed)
	plain, err := statement.Bytes()
	fatal(f, err)
	f.Add([]byte(`{"dsseEnvelope":{"payload":"` + base64.StdEncoding.EncodeToString(plain) + `","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"AA=="}]},"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"certificate":{"rawBytes":"AAAA"}}}` + "\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := attest.OpenBundle(raw)
		if err != nil {
			return
		}
		if again, err := o.Statement.Bytes(); err != nil || !bytes.Equal(again, o.Payload) || !attest.IsBundle(raw) {
			t.Errorf("another statement: %v %s", err, again)
		}
		if o.KeyID != "" && o.Claims() != "" {
			t.Errorf("a key claims to be %q", o.Claims())
		}
		if o.KeyID != "" && !canon.IsLine(raw) {
			t.Errorf("not as it is written: %q", raw)
		}
	})
}

// TestClaims: a certificate's one URI is told as it stands, and nothing where there is none, or
// more than one.
func TestClaims(t *testing.T) {
	t.Parallel()
	statement, _ := approvalOf(t, storetest.Signed)
	plain, err := statement.Bytes()
	fatal(t, err)
	payload := base64.StdEncoding.EncodeToString(plain)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fatal(t, err)
	issued := func(names ...string) string {
		of := &x509.Certificate{SerialNumber: big.NewInt(1)}
		for _, name := range names {
			of.URIs = append(of.URIs, &url.URL{Scheme: "https", Host: "github.com", Path: name})
		}
		der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
		fatal(t, err)
		return `{"certificate":{"rawBytes":"` + base64.StdEncoding.EncodeToString(der) + `"}}`
	}
	for material, want := range map[string]string{
		issued("/a/b@refs/heads/main"): "https://github.com/a/b@refs/heads/main", issued(): "", issued("/a", "/b"): "",
		`{"certificate":{}}`: "", `{"certificate":null}`: "", `{"certificate":{"rawBytes":"AAAA"}}`: "", `{"certificate":{"rawBytes":7}}`: "",
	} {
		raw := `{"dsseEnvelope":{"payload":"` + payload + `","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"AA=="}]},"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":` + material + `}`
		o, err := attest.OpenBundle([]byte(raw))
		if err != nil || o.Claims() != want {
			t.Errorf("%.80s: %q, %v, want %q", material, o.Claims(), err, want)
		}
	}
}
