package sshsig

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// minRSABits is the smallest RSA key that signs, or is believed, here.
const minRSABits = 2048

// How a type of key is taken where it is written in a list.
type support int

const (
	signs    support = iota + 1 // signs here, and verifies
	verifies                    // of a security key
	unsupported
)

var keyTypes = map[string]support{
	ssh.KeyAlgoED25519:             signs,
	ssh.KeyAlgoECDSA256:            signs,
	ssh.KeyAlgoECDSA384:            signs,
	ssh.KeyAlgoECDSA521:            signs,
	ssh.KeyAlgoRSA:                 signs,
	ssh.KeyAlgoSKED25519:           verifies,
	ssh.KeyAlgoSKECDSA256:          verifies,
	"ssh-dss":                      unsupported,
	ssh.CertAlgoED25519v01:         unsupported,
	ssh.CertAlgoECDSA256v01:        unsupported,
	ssh.CertAlgoECDSA384v01:        unsupported,
	ssh.CertAlgoECDSA521v01:        unsupported,
	ssh.CertAlgoRSAv01:             unsupported,
	ssh.CertAlgoSKED25519v01:       unsupported,
	ssh.CertAlgoSKECDSA256v01:      unsupported,
	"ssh-dss-cert-v01@openssh.com": unsupported,
}

// parsePublicKey reads what follows the type: the key, and a comment.
func parsePublicKey(kind, text string) (ssh.PublicKey, error) {
	switch {
	case kind == "":
		return nil, errors.New("there is no key")
	case keyTypes[kind] == 0:
		return nil, fmt.Errorf("unknown type of key %q", kind)
	case strings.Contains(kind, "-cert-"):
		return nil, errors.New("certificates are not supported")
	case keyTypes[kind] == unsupported:
		return nil, errors.New("DSA keys are not supported")
	}
	encoded, _ := cutField(text)
	blob, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || encoded == "" {
		return nil, fmt.Errorf("the %s key is not base64", kind)
	}
	key, err := ssh.ParsePublicKey(blob)
	if err != nil || key.Type() != kind || !bytes.Equal(key.Marshal(), blob) {
		return nil, fmt.Errorf("the %s key is damaged", kind)
	}
	if kind == ssh.KeyAlgoRSA {
		if bits := key.(ssh.CryptoPublicKey).CryptoPublicKey().(*rsa.PublicKey).N.BitLen(); bits < minRSABits {
			return nil, fmt.Errorf("RSA key of %d bits; at least %d are needed", bits, minRSABits)
		}
	}
	return key, nil
}

// blobType is the algorithm that a public key in SSH's encoding begins with.
func blobType(public []byte) string {
	var key struct {
		Type string
		Rest []byte `ssh:"rest"`
	}
	if ssh.Unmarshal(public, &key) != nil {
		return ""
	}
	return key.Type
}

// blobFingerprint is [ssh.FingerprintSHA256] of a key that was not parsed.
func blobFingerprint(public []byte) string {
	sum := sha256.Sum256(public)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}
