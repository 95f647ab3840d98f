package teststand

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
)

// A Signer signs as one program or device does. Public is as in a .pub file.
type Signer struct {
	Name, Public string
	Sign         func(namespace string, message []byte) string
}

// Signs returns a statement with this signer's signature.
func (s Signer) Signs(statement approval.SignedDecision) approval.Signature {
	return approval.Signature{Statement: statement, Armored: s.Sign(approval.Namespace, statement.Bytes())}
}

// Fingerprint is that of the key, "SHA256:…".
func (s Signer) Fingerprint() string {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(s.Public))
	if err != nil {
		panic(err)
	}
	return ssh.FingerprintSHA256(key)
}

// Ed25519 is a software key that is always the same for a seed.
func Ed25519(seed byte) Signer {
	key, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)))
	if err != nil {
		panic(err)
	}
	public := key.PublicKey()
	return Signer{"ed25519", strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public))), func(namespace string, message []byte) string {
		return Envelope(public.Marshal(), namespace, func(toSign []byte) []byte {
			made, err := key.Sign(nil, toSign)
			if err != nil {
				panic(err)
			}
			return ssh.Marshal(made)
		}, message)
	}}
}

// The flags of a security key's signature (OpenSSH's PROTOCOL.u2f).
const (
	Touched  = 1
	Verified = 4
)

// SecurityKey signs as a FIDO key does (OpenSSH's PROTOCOL.u2f), with these flags. A
// name that begins with sk-ecdsa is one of ECDSA, any other one of Ed25519.
func SecurityKey(name string, flags byte) Signer { return SecurityKeyFor("ssh:", name, flags) }

// SecurityKeyFor is SecurityKey with another application: OpenSSH's begin with "ssh:".
func SecurityKeyFor(application, name string, flags byte) Signer {
	app := sha256.Sum256([]byte(application))
	over := func(toSign []byte) []byte {
		text := sha256.Sum256(toSign)
		return slices.Concat(app[:], []byte{flags, 0, 0, 0, 9}, text[:])
	}
	kind := ssh.KeyAlgoSKED25519
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	public := ssh.Marshal(struct{ Type, Key, Application string }{kind, string(private.Public().(ed25519.PublicKey)), application})
	sign := func(b []byte) []byte { return ed25519.Sign(private, b) }
	if strings.HasPrefix(name, "sk-ecdsa") {
		kind = ssh.KeyAlgoSKECDSA256
		public, sign = ecdsaKey(7, application)
	}
	return Signer{name, kind + " " + base64.StdEncoding.EncodeToString(public), func(namespace string, message []byte) string {
		return Envelope(public, namespace, func(toSign []byte) []byte {
			return ssh.Marshal(ssh.Signature{Format: kind, Blob: sign(over(toSign)), Rest: []byte{flags, 0, 0, 0, 9}})
		}, message)
	}}
}

// ecdsaKey is a security key's, for an application.
func ecdsaKey(seed byte, application string) (public []byte, sign func([]byte) []byte) {
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		panic(err)
	}
	point, err := private.PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	public = ssh.Marshal(struct{ Type, Curve, Point, Application string }{ssh.KeyAlgoSKECDSA256, "nistp256", string(point), application})
	return public, func(b []byte) []byte {
		sum := sha256.Sum256(b)
		r, s, err := ecdsa.Sign(random{rand.NewChaCha8([32]byte{1})}, private, sum[:])
		if err != nil {
			panic(err)
		}
		return ssh.Marshal(struct{ R, S *big.Int }{r, s})
	}
}

// A Passkey signs as a browser has one sign for a page (OpenSSH's PROTOCOL.u2f, webauthn; WebAuthn, sections 5.8.1.1
// and 6.1). Each part of it may be wrong. Words are the browser's own, nil for those that Chromium writes.
type Passkey struct {
	Seed       byte
	Host       string // of the pages that may ask it
	Asked      string // the host that it believes to be asked by; Host if ""
	Origin     string // of the page that does, as the signature says
	Flags      byte
	Extensions string
	Format     string // of the signature; "" for the right one
	Words      func(challenge, origin string) string
	Over       func(signed []byte) []byte // changes what is signed
	More       string                     // behind the signature
}

// Signer is the passkey as a key.
func (p Passkey) Signer() Signer {
	public, sign := ecdsaKey(p.Seed, p.Host)
	if p.Words == nil {
		p.Words = func(challenge, origin string) string {
			return `{"type":"webauthn.get","challenge":"` + challenge + `","origin":"` + origin + `","crossOrigin":false}`
		}
	}
	app := sha256.Sum256([]byte(cmp.Or(p.Asked, p.Host)))
	return Signer{"passkey", ssh.KeyAlgoSKECDSA256 + " " + base64.StdEncoding.EncodeToString(public), func(namespace string, message []byte) string {
		return Envelope(public, namespace, func(toSign []byte) []byte {
			words := p.Words(base64.RawURLEncoding.EncodeToString(toSign), p.Origin)
			text := sha256.Sum256([]byte(words))
			over := slices.Concat(app[:], []byte{p.Flags, 0, 0, 0, 9}, []byte(p.Extensions), text[:])
			if p.Over != nil {
				over = p.Over(over)
			}
			return append(ssh.Marshal(struct {
				Format, Blob      string
				Flags             byte
				Counter           uint32
				Origin, Words, Ex string
			}{cmp.Or(p.Format, "webauthn-sk-ecdsa-sha2-nistp256@openssh.com"), string(sign(over)), p.Flags, 9, p.Origin, words, p.Extensions}), p.More...)
		}, message)
	}}
}

type random struct{ *rand.ChaCha8 }

// Envelope is PROTOCOL.sshsig's, around a signature.
func Envelope(public []byte, namespace string, sign func(signed []byte) []byte, message []byte) string {
	sum := sha512.Sum512(message)
	toSign := ssh.Marshal(struct {
		Magic                     [6]byte
		Namespace, Reserved, Hash string
		Sum                       []byte
	}{[6]byte([]byte("SSHSIG")), namespace, "", "sha512", sum[:]})
	blob := ssh.Marshal(struct {
		Magic                     [6]byte
		Version                   uint32
		PublicKey                 []byte
		Namespace, Reserved, Hash string
		Signature                 []byte
	}{[6]byte([]byte("SSHSIG")), 1, public, namespace, "", "sha512", sign(toSign)})
	text := base64.StdEncoding.EncodeToString(blob)
	var b strings.Builder
	b.WriteString("-----BEGIN SSH SIGNATURE-----\n")
	for line := range slices.Chunk([]byte(text), 70) {
		b.Write(append(line, '\n'))
	}
	return b.String() + "-----END SSH SIGNATURE-----\n"
}
