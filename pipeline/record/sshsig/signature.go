package sshsig

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// The first and the last line of a signature's text.
const (
	Begin = "-----BEGIN SSH SIGNATURE-----\n"
	End   = "-----END SSH SIGNATURE-----\n"
)

// Armor puts the base64 of a signature between these lines, itself in lines of 70 characters.
func Armor(text string) string {
	var b strings.Builder
	b.WriteString(Begin)
	for line := range slices.Chunk([]byte(text), 70) {
		b.Write(append(line, '\n'))
	}
	return b.String() + End
}

// An Envelope is what the armor holds, in the order and encoding of SSH.
type Envelope struct {
	Magic     [6]byte
	Version   uint32
	PublicKey []byte
	Namespace string
	Reserved  string
	Hash      string
	Signature []byte
}

var magic = [6]byte{'S', 'S', 'H', 'S', 'I', 'G'}

// NewEnvelope is one of a key for a namespace, which lacks its signature.
func NewEnvelope(key ssh.PublicKey, namespace string) Envelope {
	return Envelope{Magic: magic, Version: 1, PublicKey: key.Marshal(), Namespace: namespace, Hash: "sha512"}
}

// Armor is the envelope's text, the only one.
func (e Envelope) Armor() string { return Armor(base64.StdEncoding.EncodeToString(ssh.Marshal(e))) }

// Signed is what the key signs: the message's hash, with all of the envelope
// that gives it a meaning.
func (e Envelope) Signed(message []byte) []byte {
	sum := sha512.Sum512(message)
	hash := sum[:]
	if e.Hash == "sha256" {
		sum := sha256.Sum256(message)
		hash = sum[:]
	}
	return ssh.Marshal(struct {
		Magic                     [6]byte
		Namespace, Reserved, Hash string
		Sum                       []byte
	}{e.Magic, e.Namespace, e.Reserved, e.Hash, hash})
}

// dearmor reads only what Armor writes, for one namespace: one envelope has one text.
func dearmor(armored, namespace string) (e Envelope, err error) {
	if armored == "" {
		return e, ErrNoSignature
	}
	text := strings.TrimSuffix(strings.TrimPrefix(armored, Begin), End)
	blob, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(text, "\n", ""))
	switch {
	case err != nil || ssh.Unmarshal(blob, &e) != nil || e.Armor() != armored:
		return e, malformed("it is not the text that ssh-keygen writes")
	case e.Magic != magic || e.Version != 1 || e.Reserved != "":
		return e, malformed("it does not hold an SSH signature of version 1")
	case e.Namespace != namespace:
		return e, fmt.Errorf("%w: it is made for the namespace %q", ErrNamespace, e.Namespace)
	case e.Hash != "sha256" && e.Hash != "sha512":
		return e, malformed("it is of the hash %q, neither sha256 nor sha512", e.Hash)
	}
	return e, nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// formats are the types of keys that verify here, and of their signatures. The SSH library reads more: DSA,
// certificates, RSA with SHA-1.
var formats = map[string][]string{
	ssh.KeyAlgoED25519:    {ssh.KeyAlgoED25519},
	ssh.KeyAlgoECDSA256:   {ssh.KeyAlgoECDSA256},
	ssh.KeyAlgoECDSA384:   {ssh.KeyAlgoECDSA384},
	ssh.KeyAlgoECDSA521:   {ssh.KeyAlgoECDSA521},
	ssh.KeyAlgoRSA:        {ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256},
	ssh.KeyAlgoSKED25519:  {ssh.KeyAlgoSKED25519},
	ssh.KeyAlgoSKECDSA256: {ssh.KeyAlgoSKECDSA256, webauthn},
}

// KeyType is the algorithm that a public key in SSH's encoding begins with.
func KeyType(public []byte) string {
	var key struct {
		Type string
		Rest []byte `ssh:"rest"`
	}
	_ = ssh.Unmarshal(public, &key)
	return key.Type
}

// MinRSABits is how long an RSA key must be. The SSH library takes none of more than 16,384 bits.
const MinRSABits = 2048

// parseKey reads a public key in SSH's encoding, in its only form.
func parseKey(blob []byte) (ssh.PublicKey, error) {
	kind := KeyType(blob)
	if formats[kind] == nil {
		return nil, fmt.Errorf("unknown type of key %q", kind)
	}
	key, err := ssh.ParsePublicKey(blob)
	if err != nil || !bytes.Equal(key.Marshal(), blob) {
		return nil, fmt.Errorf("the %s key is damaged", kind)
	}
	if n := rsaModulus(key); n != nil && (n.Sign() < 0 || n.BitLen() < MinRSABits) {
		return nil, fmt.Errorf("RSA key of %d bits; at least %d are needed", n.BitLen(), MinRSABits)
	}
	return key, nil
}

// rsaModulus is the modulus of an RSA key, nil of another.
func rsaModulus(key ssh.PublicKey) *big.Int {
	if public, ok := key.(ssh.CryptoPublicKey).CryptoPublicKey().(*rsa.PublicKey); ok {
		return public.N
	}
	return nil
}

// verify checks that the key signed the data, and before that the form of the signature: with a second form of
// one, anybody could make a second signed commit of one. The flags are a security key's, and the origin is that of the page
// that asked a passkey.
func verify(key ssh.PublicKey, data, signature []byte) (flags byte, origin string, err error) {
	var sig ssh.Signature
	if ssh.Unmarshal(signature, &sig) != nil {
		return 0, "", malformed("its innermost part is cut short")
	}
	if sig.Format == webauthn && key.Type() == ssh.KeyAlgoSKECDSA256 {
		if data, sig, origin, err = fromBrowser(data, sig); err != nil {
			return 0, "", err
		}
	} else if isHardware(key) && !strings.HasPrefix(relyingParty(key), "ssh:") { // OpenSSH makes none of a website
		return 0, "", fmt.Errorf("%w: no browser asked the passkey", ErrUnsupported)
	}
	n, counter, numbers := rsaModulus(key), 0, struct{ R, S *big.Int }{}
	if isHardware(key) {
		counter = 5
	}
	switch {
	case !slices.Contains(formats[key.Type()], sig.Format):
		return 0, "", fmt.Errorf("%w: it is of %q, by a key of %q", ErrUnsupported, sig.Format, key.Type())
	case n != nil && len(sig.Blob) != (n.BitLen()+7)/8:
		return 0, "", malformed("its number is not as long as the RSA key")
	case len(sig.Rest) != counter:
		return 0, "", malformed("something follows its innermost part")
	case strings.Contains(sig.Format, "ecdsa") && (ssh.Unmarshal(sig.Blob, &numbers) != nil || !bytes.Equal(ssh.Marshal(numbers), sig.Blob)):
		return 0, "", malformed("its numbers are not in their shortest form")
	case key.Verify(data, &sig) != nil: // also where a security key was not touched
		return 0, "", fmt.Errorf("%w: %s did not sign this", ErrBadSignature, ssh.FingerprintSHA256(key))
	case counter > 0:
		flags = sig.Rest[0]
	}
	return flags, origin, nil
}

func isHardware(key ssh.PublicKey) bool { return strings.HasPrefix(key.Type(), "sk-") }
