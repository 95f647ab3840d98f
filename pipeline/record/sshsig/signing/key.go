// Package signing signs with SSH keys what package sshsig verifies, and puts signatures into
// Git commits, and takes them out, as git does.
package signing

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// What can be wrong with a private key. No error of [ParseKey] quotes any of
// its input.
var (
	// ErrEncrypted: a passphrase is needed and none was given.
	ErrEncrypted = errors.New("private key is encrypted: its passphrase is needed")
	// ErrPassphrase: the passphrase does not decrypt the key.
	ErrPassphrase = errors.New("wrong passphrase for the private key")
	// ErrKey: not a private key that can sign here; the text says why.
	ErrKey = errors.New("private key cannot be used")
)

// A Signer signs commits with one private key. It is safe for use by several
// goroutines, and however it is printed shows its public key alone.
type Signer struct {
	key       ssh.AlgorithmSigner
	algorithm string
}

// ParseKey reads a private key that ssh-keygen or OpenSSL wrote: Ed25519,
// ECDSA on P-256, P-384 or P-521, or RSA of 2048 bits or more, in PEM. The
// passphrase, at most one, is used where the key is encrypted. Errors are
// [ErrEncrypted], [ErrPassphrase] or [ErrKey], and hold nothing of the key.
func ParseKey(data []byte, passphrase ...[]byte) (Signer, error) {
	if len(passphrase) > 1 {
		panic("signing: more than one passphrase")
	}
	block, rest := pem.Decode(data)
	if block == nil {
		if _, _, _, _, err := ssh.ParseAuthorizedKey(data); err == nil {
			return Signer{}, unusable("it is a public key; the private key is the file without .pub")
		}
		return Signer{}, unusable("there is no whole PEM block in it")
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return Signer{}, unusable("something follows the key")
	}
	held, err := describe(block)
	if err != nil {
		return Signer{}, err
	}
	var raw any
	switch {
	case !held.encrypted:
		raw, err = ssh.ParseRawPrivateKey(data)
	case len(passphrase) == 0 || len(passphrase[0]) == 0:
		return Signer{}, ErrEncrypted
	default:
		raw, err = ssh.ParseRawPrivateKeyWithPassphrase(data, passphrase[0])
	}
	// OpenSSL's format has no sure sign of a wrong passphrase: what it decrypts
	// to is then not a key.
	if errors.Is(err, x509.IncorrectPasswordError) || err != nil && held.encrypted && held.public == nil {
		return Signer{}, ErrPassphrase
	}
	if err != nil {
		// What the parser says may quote what it read.
		return Signer{}, unusable("it is damaged, or of a kind that is not known here")
	}
	return newSigner(raw, held.public)
}

func unusable(why string) error { return fmt.Errorf("%w: %s", ErrKey, why) }

// A holding is what a PEM block shows of its key while it is still encrypted.
type holding struct {
	encrypted bool
	public    []byte // nil where the format does not hold it
}

// describe refuses the keys that cannot sign here, encrypted or not.
func describe(block *pem.Block) (holding, error) {
	switch block.Type {
	case "OPENSSH PRIVATE KEY":
	case "RSA PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY":
		return holding{encrypted: block.Headers["DEK-Info"] != ""}, nil
	case "DSA PRIVATE KEY":
		return holding{}, unusable("DSA is not supported")
	case "ENCRYPTED PRIVATE KEY":
		return holding{}, unusable(`encryption of PKCS #8 is not supported; "ssh-keygen -p" writes OpenSSH's own format`)
	default:
		return holding{}, unusable("its PEM block is not a private key")
	}
	var file struct { // what is in the clear (OpenSSH's PROTOCOL.key)
		Cipher, KDF, KDFOptions string
		Keys                    uint32
		Public, Private         []byte
	}
	data, ok := bytes.CutPrefix(block.Bytes, []byte("openssh-key-v1\x00"))
	if !ok || ssh.Unmarshal(data, &file) != nil || file.Keys != 1 {
		return holding{}, unusable("its OpenSSH format is damaged")
	}
	switch algorithm := sshsig.KeyType(file.Public); {
	case strings.HasPrefix(algorithm, "sk-"):
		return holding{}, unusable("it is of a security key (sk-), whose device must sign, and that cannot be done here")
	case algorithm == "ssh-dss":
		return holding{}, unusable("DSA is not supported")
	}
	return holding{encrypted: file.Cipher != "none", public: file.Public}, nil
}

var signs = []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSA}

// newSigner holds the key to the public one beside it, and to itself: a key
// that was damaged, or put together, must not sign.
func newSigner(raw any, public []byte) (Signer, error) {
	if key, ok := raw.(*rsa.PrivateKey); ok && key.N.BitLen() < sshsig.MinRSABits {
		return Signer{}, unusable(fmt.Sprintf("RSA of %d bits; at least %d are needed", key.N.BitLen(), sshsig.MinRSABits))
	}
	key, err := ssh.NewSignerFromKey(raw)
	if err != nil || !slices.Contains(signs, key.PublicKey().Type()) {
		return Signer{}, unusable("its algorithm is not supported")
	}
	s := Signer{key: key.(ssh.AlgorithmSigner), algorithm: key.PublicKey().Type()}
	if s.algorithm == ssh.KeyAlgoRSA {
		s.algorithm = ssh.KeyAlgoRSASHA512
	}
	probe := []byte("probe")
	made, err := s.key.SignWithAlgorithm(nil, probe, s.algorithm)
	if err != nil || key.PublicKey().Verify(probe, made) != nil {
		return Signer{}, unusable("its two halves do not belong together")
	}
	if public != nil && !bytes.Equal(public, key.PublicKey().Marshal()) {
		return Signer{}, unusable("its two halves do not belong together")
	}
	return s, nil
}

// Sign returns the signature of a message, which for a commit is its bytes
// without a signature, in the form that "ssh-keygen -Y sign -n git" writes,
// with the last newline. One key and message have one signature: ECDSA is
// deterministic here (RFC 6979).
func (s Signer) Sign(message []byte) (armored string, err error) {
	return s.SignFor(sshsig.ForGit, message)
}

// SignFor is [Signer.Sign] for another namespace.
func (s Signer) SignFor(namespace string, message []byte) (armored string, err error) {
	e := sshsig.NewEnvelope(s.public(), namespace)
	made, err := s.key.SignWithAlgorithm(nil, e.Signed(message), s.algorithm)
	if err != nil {
		return "", fmt.Errorf("signing with %s: %w", s.Fingerprint(), err)
	}
	e.Signature = ssh.Marshal(made)
	return e.Armor(), nil
}

// SignPlain signs without the form that SSH has for signatures, for programs that know
// nothing of SSH: Ed25519 of the message (RFC 8032), or ECDSA on P-256 of its SHA-256, in
// ASN.1. public is the key as SubjectPublicKeyInfo, in DER. A key of another algorithm is
// [ErrKey]. Nothing tells what such a signature is for but the message: it must begin as
// no other thing does that the key ever signs.
func (s Signer) SignPlain(message []byte) (signature, public []byte, err error) {
	made, err := s.key.SignWithAlgorithm(nil, message, s.algorithm)
	if err != nil {
		return nil, nil, fmt.Errorf("signing with %s: %w", s.Fingerprint(), err)
	}
	switch signature = made.Blob; s.algorithm {
	case ssh.KeyAlgoED25519:
	case ssh.KeyAlgoECDSA256:
		var number struct{ R, S *big.Int }
		if err := ssh.Unmarshal(made.Blob, &number); err != nil {
			return nil, nil, err
		}
		if signature, err = asn1.Marshal(number); err != nil {
			return nil, nil, err
		}
	default:
		return nil, nil, unusable("this kind of signature is made with Ed25519 or ECDSA on P-256")
	}
	public, err = x509.MarshalPKIXPublicKey(s.public().(ssh.CryptoPublicKey).CryptoPublicKey())
	return signature, public, err
}

// Ed25519 returns the public key and what signs with the private one as it is (RFC 8032), for formats
// that are not SSH's; ok is false for a key of another kind. What SSH signs begins with "SSHSIG"
// and a length in four bytes, the first of which is zero: a format whose messages never do can have the same key.
func (s Signer) Ed25519() (public ed25519.PublicKey, sign func(message []byte) ([]byte, error), ok bool) {
	key, isCrypto := s.public().(ssh.CryptoPublicKey)
	if !isCrypto {
		return nil, nil, false
	}
	if public, ok = key.CryptoPublicKey().(ed25519.PublicKey); !ok {
		return nil, nil, false
	}
	return public, func(message []byte) ([]byte, error) {
		made, err := s.key.SignWithAlgorithm(nil, message, s.algorithm)
		if err != nil {
			return nil, fmt.Errorf("signing with %s: %w", s.Fingerprint(), err)
		}
		return made.Blob, nil
	}, true
}

// Fingerprint is the SHA-256 of the public key as ssh-keygen writes it,
// "SHA256:" and 43 characters of base64.
func (s Signer) Fingerprint() string { return ssh.FingerprintSHA256(s.public()) }

// PublicKey is the public key as in a .pub file, "<type> <base64>", without a
// comment or a newline: what stands behind the name in a file of allowed
// signers.
func (s Signer) PublicKey() string {
	return strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(s.public())), "\n")
}

func (s Signer) public() ssh.PublicKey {
	if s.key == nil {
		panic("signing: a Signer that ParseKey did not return")
	}
	return s.key.PublicKey()
}

// Format writes the public key's type and fingerprint, whatever the verb, so
// that no log can hold the private key.
func (s Signer) Format(f fmt.State, _ rune) {
	if s.key == nil {
		_, _ = fmt.Fprint(f, "signing.Signer{}")
		return
	}
	_, _ = fmt.Fprintf(f, "signing.Signer{%s %s}", s.public().Type(), s.Fingerprint())
}
