package sshsig

import "errors"

// What can be wrong with a signature. Every error of [Split] and of
// [Allowed.Verify] is exactly one of these, except where several lines list
// one key: then it is the reason of each line.
var (
	// ErrNoSignature: the commit, or the text, holds no signature at all.
	ErrNoSignature = errors.New("no signature")
	// ErrMalformed: not the one way in which ssh-keygen and git write it.
	ErrMalformed = errors.New("malformed signature")
	// ErrUnsupported: a signature of another kind: PGP, X.509, of the SHA-256
	// form of the commit, by a certificate, or RSA with SHA-1.
	ErrUnsupported = errors.New("unsupported signature")
	// ErrNamespace: made for something other than git, or by a key that is
	// allowed only for something else.
	ErrNamespace = errors.New("signature is not for git")
	// ErrUnknownKey: made by a key that the allowed signers do not list.
	ErrUnknownKey = errors.New("signed with an unknown key")
	// ErrBadSignature: the key did not sign these bytes.
	ErrBadSignature = errors.New("bad signature")
	// ErrExpired: the key was not valid at the time in question, which may lie
	// after its valid-before or before its valid-after.
	ErrExpired = errors.New("key is not valid at the time of the signature")
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
