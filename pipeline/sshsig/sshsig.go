// Package sshsig signs Git commits with SSH keys, and verifies such commits,
// as git does with gpg.format=ssh, but without git, ssh-keygen, files or a
// clock: the caller reads keys, lists and commits, and says what time it is.
//
// [Allowed.Verify] promises that the payload is what the holder of a listed
// key signed, for git, at a time for which the list allows that key. Beside
// [Split] it promises more than git: the one commit, to the bit. A signature
// has one text, and a text one place in its commit; whatever git or ssh-keygen
// would also take (other line lengths, a header elsewhere, a number with
// zeros before it) is refused, so nobody without the key can make a second
// commit of a signed one. ECDSA is the exception that cannot be closed: for
// the signature (r, s) anyone can compute (r, -s), which is as good, and
// ssh-keygen itself makes either. The payload is the same in both.
//
// # A signed commit (git's gitformat-signature(5))
//
// The signature is the header gpgsig, the last before the blank line; every
// line after its first has a space before it. What is signed is the commit
// without this header.
//
//	tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904
//	author Alice <alice@example.com> 1767571200 +0000
//	committer Alice <alice@example.com> 1767571200 +0000
//	gpgsig -----BEGIN SSH SIGNATURE-----
//	 U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgqFZ5qF+5zYFjv6+KUlM/2ro2rl
//	 eGbFpzlSv+3x5bHxMAAAADZ2l0AAAAAAAAAAZzaGE1MTIAAABTAAAAC3NzaC1lZDI1NTE5
//	 AAAAQNd6/l5zzQBTABtvf+R2AdxaIL962RdOHZCfQPLeuFwdesM7Zbz397RiS6ZUF6uAOa
//	 OJzkA0DjRjfxzEKoJL7AM=
//	 -----END SSH SIGNATURE-----
//
//	hello
//
// # The signature (OpenSSH's PROTOCOL.sshsig)
//
// Between the first and the last line stands, in base64 with lines of 70
// characters, the last one shorter, each with a newline:
//
//	"SSHSIG"                    6 bytes
//	version                     uint32: 1
//	public key                  string, as in RFC 4253, 6.6
//	namespace                   string: "git"
//	reserved                    string: empty
//	hash                        string: "sha512", or "sha256", which is read only
//	signature                   string of: string algorithm, string bytes;
//	                            of a security key also a byte of flags and a
//	                            uint32 counter
//
// A uint32 is big-endian, a string its length as a uint32 and its bytes. What
// the key signs is
//
//	"SSHSIG", namespace, reserved, hash, string H(message)
//
// with these algorithms:
//
//	ssh-ed25519                                     signs and verifies
//	ecdsa-sha2-nistp256, -nistp384, -nistp521       signs and verifies
//	ssh-rsa of 2048 bits or more: rsa-sha2-512      signs and verifies
//	                              rsa-sha2-256      verifies
//	sk-ssh-ed25519@openssh.com,
//	sk-ecdsa-sha2-nistp256@openssh.com              verifies, if it was touched
//
// Never: RSA with SHA-1, DSA, certificates.
//
// # The allowed signers (ssh-keygen(1), ALLOWED SIGNERS)
//
// One key on a line, in UTF-8. A line that is empty or begins with # says
// nothing; blanks before a line and a CR after it are passed over.
//
//	# who may sign the ledger
//	alice@example.com namespaces="git",valid-after="20260101Z" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKhWeahfuc2BY7+vilJTP9q6Nq5Xhmxac5Ur/t8eWx8T laptop
//
// The fields, with blanks (spaces, tabs) between them, are
//
//	principals    names with commas between them, all in quotes if one of them
//	              holds a blank. A name is a pattern: * is any characters, ?
//	              one, and ! before it negates.
//	options       may be left out. With commas between them, each at most once,
//	              in any case, their values in quotes:
//	                namespaces="git,..."     patterns; without it, all
//	                valid-after="<time>"     the key is valid from this second
//	                valid-before="<time>"    the key is valid to this second
//	              A time is YYYYMMDDZ, YYYYMMDDHHMMZ or YYYYMMDDHHMMSSZ, in UTC.
//	              Without the Z ssh-keygen takes the zone of the machine that
//	              reads it; here the key is valid when it is in every zone.
//	key           its type, and its bytes in base64
//	comment       may be left out
//
// A key may be on several lines, of which any allows it. Passed over and told,
// with its number, is a line that ssh-keygen would read otherwise or not at all,
// and what is not supported: certificates, DSA and RSA below 2048 bits. One with
// cert-authority is passed over too: it lists no signer's own key.
package sshsig

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verify says who signed a message. The signature must be in its one form
// (see the package comment), for git, by a key that is listed and that was
// valid at the given time, which for a commit is its committer's. The
// principal is the first name on the key's line, which git prints, and may be
// a pattern; the fingerprint is the key's, as in [Signer.Fingerprint]. With an
// error both are empty.
func (a Allowed) Verify(message []byte, armored string, at time.Time) (principal, fingerprint string, err error) {
	return a.VerifyFor(forGit, message, armored, at)
}

// VerifyFor is [Allowed.Verify] for another namespace.
func (a Allowed) VerifyFor(namespace string, message []byte, armored string, at time.Time) (principal, fingerprint string, err error) {
	e, err := dearmor(armored, namespace)
	if err != nil {
		return "", "", err
	}
	lines := a.keys[string(e.PublicKey)]
	if len(lines) == 0 {
		return "", "", a.unlisted(e.PublicKey)
	}
	fingerprint = lines[0].key.fingerprint()
	if _, err := e.verify(lines[0].key, message); err != nil {
		return "", "", err
	}
	var refused []error
	for _, line := range lines {
		err := line.admits(namespace, at)
		if err == nil {
			return line.principal(), fingerprint, nil
		}
		refused = append(refused, err)
	}
	return "", "", errors.Join(refused...)
}

// Check refuses what is no signature of a message, whoever may have made it: it
// must be in its one form, for git, and made with the key that it names. Whose
// key that is, only [Allowed.Verify] says.
func Check(message []byte, armored string) error {
	_, err := MadeWith(forGit, message, armored)
	return err
}

// MadeWith is [Check] for a namespace, and returns the fingerprint of the key that the
// signature names and was made with.
func MadeWith(namespace string, message []byte, armored string) (fingerprint string, err error) {
	e, err := dearmor(armored, namespace)
	if err != nil {
		return "", err
	}
	key, err := parsePublicKey(blobType(e.PublicKey), base64.StdEncoding.EncodeToString(e.PublicKey))
	if err != nil {
		return "", malformed("%v", err)
	}
	if _, err := e.verify(key, message); err != nil {
		return "", err
	}
	return key.fingerprint(), nil
}

// A Proof is what the signature of a message shows beside that the key made it.
// Hardware says that the key is one of a security key (FIDO/U2F), which signs only
// when it is touched; Verified that it says to have verified the person, by a PIN or
// a finger (OpenSSH's PROTOCOL.u2f, bit 2 of the flags).
type Proof struct {
	Fingerprint        string // of the key, "SHA256:…"
	Line               string // of the allowed signers, which lists the key
	Principal          string // the one of the names that the line has
	Hardware, Verified bool
}

// Prove is [Allowed.Verify] for another namespace and one signer: a line of the
// list must have one of these names among its principals, negate none of them, and
// admit the key at a time and at each of some more.
func (a Allowed) Prove(namespace string, message []byte, armored string, names []string, at time.Time, more ...time.Time) (Proof, error) {
	e, err := dearmor(armored, namespace)
	if err != nil {
		return Proof{}, err
	}
	lines := a.keys[string(e.PublicKey)]
	if len(lines) == 0 {
		return Proof{}, a.unlisted(e.PublicKey)
	}
	proof := Proof{Fingerprint: lines[0].key.fingerprint(), Hardware: lines[0].key.hardware()}
	flags, err := e.verify(lines[0].key, message)
	if err != nil {
		return Proof{}, err
	}
	proof.Verified = proof.Hardware && flags&userVerified != 0
	var refused []error
	for _, line := range lines {
		var err error
		listed := slices.IndexFunc(names, func(name string) bool { return name != "" && matchList(line.principals, name) })
		if listed < 0 || slices.ContainsFunc(names, func(name string) bool { return excludes(line.principals, name) }) {
			err = fmt.Errorf("%w: line %d of the allowed signers lists the key for %s", ErrUnknownKey, line.number, strings.Join(line.principals, ","))
		}
		for _, t := range append([]time.Time{at}, more...) {
			if err == nil {
				err = line.admits(namespace, t)
			}
		}
		if err == nil {
			proof.Line, proof.Principal = line.text, names[listed]
			return proof, nil
		}
		refused = append(refused, err)
	}
	return Proof{}, errors.Join(refused...)
}

// verify checks the signature itself, and returns a security key's flags. The key is
// the one that e names.
func (e envelope) verify(key *publicKey, message []byte) (flags byte, err error) {
	sig, err := parseRawSignature(e.Signature)
	if err != nil {
		return 0, err
	}
	if err := key.verify(e.signed(message), sig); err != nil {
		return 0, err
	}
	if key.hardware() {
		flags = sig.counter[0]
	}
	return flags, nil
}

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
	// ErrNamespace: made for something else, such as a file, or by a key that is
	// allowed only for something else.
	ErrNamespace = errors.New("signature is not for this use")
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
