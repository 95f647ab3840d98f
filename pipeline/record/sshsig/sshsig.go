// Package sshsig verifies signatures of SSH keys, as git does with
// gpg.format=ssh, but without git, ssh-keygen, files or a clock: the caller
// reads lists and signatures, and says what time it is. Package signing, in it,
// signs, and takes signed commits apart.
//
// [Allowed.Verify] promises that the payload is what the holder of a listed
// key signed, for git, at a time for which the list allows that key. Beside
// signing.Split it promises more than git: the one commit, to the bit. A signature
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
//	the same: webauthn-sk-ecdsa-sha2-nistp256@openssh.com, of a passkey
//	                                                verifies, of decisions alone
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
//	              A time is YYYYMMDDZ, YYYYMMDDHHMMZ or YYYYMMDDHHMMSSZ, in UTC,
//	              after 19700101Z.
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
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// ForGit is the namespace of commits.
const ForGit = "git"

// A Proof is what the signature of a message shows beside that the key made it.
// Hardware says that the key is one of a security key (FIDO/U2F), which signs only
// when it is touched, and which no passkey is that can be copied to another device; Verified that it says to have
// verified the person, by a PIN or a finger. A passkey was asked by a page of Origin, "" for any other key, and answers pages of Host.
type Proof struct {
	Fingerprint        string // of the key, "SHA256:…"
	Line               string // of the allowed signers, which lists the key
	Principal          string // the one of the names that the line has
	Hardware, Verified bool
	Origin, Host       string
}

// MadeWith refuses what is no signature of a message for a namespace, whoever may have
// made it: it must be in its one form, and made with the key that it names. Whose key that
// is, only [Allowed.Verify] says. It returns the key's fingerprint.
func MadeWith(namespace string, message []byte, armored string) (fingerprint string, err error) {
	proof, err := check(namespace, message, armored)
	return proof.Fingerprint, err
}

func check(namespace string, message []byte, armored string) (Proof, error) {
	e, err := dearmor(armored, namespace)
	if err != nil {
		return Proof{}, err
	}
	key, err := parseKey(e.PublicKey)
	if err != nil {
		return Proof{}, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	flags, origin, err := verify(key, e.Signed(message), e.Signature)
	if err == nil && origin != "" && namespace != ForDecisions {
		err = fmt.Errorf("%w: a passkey signs decisions alone", ErrUnsupported)
	}
	if err != nil {
		return Proof{}, err
	}
	return Proof{
		Fingerprint: ssh.FingerprintSHA256(key), Hardware: isHardware(key) && flags&backupEligible == 0, Verified: flags&flagVerified != 0,
		Origin: origin, Host: relyingParty(key),
	}, nil
}

// Verify says who signed a message. The signature must be in its one form
// (see the package comment), for a namespace, by a key that is listed and that was
// valid at the given time, which for a commit is its committer's. The
// principal is the first name on the key's line, which git prints, and may be
// a pattern; the fingerprint is the key's. With an error both are empty.
func (a Allowed) Verify(namespace string, message []byte, armored string, at time.Time) (principal, fingerprint string, err error) {
	proof, err := a.prove(namespace, message, armored, func(line Line) (string, error) {
		return line.principal(), line.admits(namespace, at)
	})
	return proof.Principal, proof.Fingerprint, err
}

// Prove is [Allowed.Verify] for one signer: a line of the list must have one of these
// names among its principals, negate none of them, and admit the key at a time and at each of some more.
func (a Allowed) Prove(namespace string, message []byte, armored string, names []string, at time.Time, more ...time.Time) (Proof, error) {
	return a.prove(namespace, message, armored, func(line Line) (string, error) {
		listed := slices.IndexFunc(names, func(name string) bool { return name != "" && matchList(line.Principals, name) })
		if listed < 0 || slices.ContainsFunc(names, func(name string) bool { return excludes(line.Principals, name) }) {
			return "", fmt.Errorf("%w: line %d of the allowed signers lists the key for %s", ErrUnknownKey, line.Number, strings.Join(line.Principals, ","))
		}
		return names[listed], line.admits(namespace, append([]time.Time{at}, more...)...)
	})
}

// prove takes a signature for which one of the key's lines takes it, and gives the principal.
func (a Allowed) prove(namespace string, message []byte, armored string, takes func(Line) (principal string, err error)) (Proof, error) {
	proof, err := check(namespace, message, armored)
	if err != nil {
		return Proof{}, err
	}
	var refused []error
	for _, line := range a.lines {
		if line.Fingerprint != proof.Fingerprint {
			continue
		}
		principal, err := takes(line)
		if err == nil {
			proof.Line, proof.Principal = line.Text, principal
			return proof, nil
		}
		refused = append(refused, err)
	}
	if refused != nil {
		return Proof{}, errors.Join(refused...)
	}
	err = fmt.Errorf("%w: %s, which the allowed signers do not list", ErrUnknownKey, proof.Fingerprint)
	if len(a.unread) > 0 {
		err = fmt.Errorf("%w, of which %s", err, strings.Replace(a.unread[0].Error(), ":", " cannot be read:", 1))
	}
	return Proof{}, err
}

// What can be wrong with a signature. Every error of signing.Split and of
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
