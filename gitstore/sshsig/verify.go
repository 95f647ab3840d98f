package sshsig

import (
	"bytes"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Verify says who signed a message. The signature must be in its one form
// (see the package comment), for git, by a key that is listed and that was
// valid at the given time, which for a commit is its committer's. The
// principal is the first name on the key's line, which git prints, and may be
// a pattern; the fingerprint is the key's, as in [Signer.Fingerprint]. With an
// error both are empty.
func (a Allowed) Verify(message []byte, armored string, at time.Time) (principal, fingerprint string, err error) {
	e, err := dearmor(armored)
	if err != nil {
		return "", "", err
	}
	lines := a.keys[string(e.PublicKey)]
	if len(lines) == 0 {
		return "", "", fmt.Errorf("%w: %s, which the allowed signers do not list", ErrUnknownKey, blobFingerprint(e.PublicKey))
	}
	fingerprint = ssh.FingerprintSHA256(lines[0].key)
	if err := e.verify(lines[0].key, message); err != nil {
		return "", "", err
	}
	var refused []error
	for _, line := range lines {
		err := line.admits(at)
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
	e, err := dearmor(armored)
	if err != nil {
		return err
	}
	key, err := parsePublicKey(blobType(e.PublicKey), base64.StdEncoding.EncodeToString(e.PublicKey))
	if err != nil {
		return malformed("%v", err)
	}
	return e.verify(key, message)
}

// verify checks the signature itself. The key is the one that e names.
func (e envelope) verify(key ssh.PublicKey, message []byte) error {
	var sig ssh.Signature
	if err := ssh.Unmarshal(e.Signature, &sig); err != nil {
		return malformed("its innermost part is cut short")
	}
	if err := checkForm(key, &sig); err != nil {
		return err
	}
	if err := key.Verify(e.signed(message), &sig); err != nil {
		return fmt.Errorf("%w: %s did not sign this", ErrBadSignature, ssh.FingerprintSHA256(key))
	}
	return nil
}

// checkForm refuses the other encodings of a signature that the SSH library
// takes as well, by which anyone could make a second signed commit of one.
func checkForm(key ssh.PublicKey, sig *ssh.Signature) error {
	rest, want := 0, key.Type()
	switch {
	case key.Type() == ssh.KeyAlgoRSA:
		if sig.Format == ssh.KeyAlgoRSA {
			return fmt.Errorf("%w: RSA with SHA-1", ErrUnsupported)
		}
		want = ssh.KeyAlgoRSASHA512
		if sig.Format == ssh.KeyAlgoRSASHA256 {
			want = sig.Format
		}
		if len(sig.Blob) != key.(ssh.CryptoPublicKey).CryptoPublicKey().(*rsa.PublicKey).Size() {
			return malformed("its number is not as long as the RSA key")
		}
	case strings.HasPrefix(key.Type(), "sk-"):
		rest = 5 // flags and counter
	}
	if sig.Format != want {
		return malformed("it is a signature of %q by a key of %q", sig.Format, key.Type())
	}
	if len(sig.Rest) != rest {
		return malformed("something follows its innermost part")
	}
	if strings.Contains(want, "ecdsa") {
		var number struct{ R, S *big.Int }
		if ssh.Unmarshal(sig.Blob, &number) != nil || !bytes.Equal(ssh.Marshal(number), sig.Blob) {
			return malformed("its numbers are not in their shortest form")
		}
	}
	return nil
}
