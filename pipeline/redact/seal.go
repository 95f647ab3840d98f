package redact

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"filippo.io/age"

	"github.com/countersign-dev/countersign/pipeline/fault"
)

const tryIdentity = "set COUNTERSIGN_AGE_IDENTITY to the age identity, AGE-SECRET-KEY-1…"

// Seal returns data so that each of the recipients, and nobody else, can Unseal
// it. Sealing twice gives different bytes.
//
// What it promises: Unseal gives back exactly what Seal was given, or an error and
// nothing; no error holds anything of the data, of an identity, or of what was
// given as a recipient, which may be an identity by mistake. What it does not: anyone can
// seal to a recipient, so who did is not known. The caller compares the hash of what Unseal
// returns with the one that it expects.
func Seal(data []byte, recipients []string) ([]byte, error) {
	if len(recipients) == 0 {
		return nil, fault.Refuse("sealing: there is no recipient", tryIdentity)
	}
	to := make([]age.Recipient, len(recipients))
	for i, s := range recipients {
		r, why := parseRecipient(s)
		if why != "" {
			return nil, fault.Refuse(fmt.Sprintf("sealing: recipient %d %s", i+1, why), tryIdentity)
		}
		to[i] = r
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to...)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil { // only a buffer is written to, and CheckRecipient has tried each key
		panic("seal: a checked recipient cannot be sealed to")
	}
	return out.Bytes(), nil
}

// Unseal returns what was sealed, which may be up to limit bytes. identities is
// the text of an age identity file: a secret key on a line, which begins with
// AGE-SECRET-KEY-1, empty lines, and comments after #.
func Unseal(sealed []byte, identities string, limit int64) ([]byte, error) {
	keys, err := parseIdentities(identities)
	if err != nil {
		return nil, err
	}
	r, err := age.Decrypt(bytes.NewReader(sealed), keys...)
	var none *age.NoIdentityMatchError
	if errors.As(err, &none) {
		return nil, fault.Refuse("opening what was sealed: it was not sealed to any of the identities given", tryIdentity)
	}
	var data []byte
	if err == nil {
		data, err = io.ReadAll(io.LimitReader(r, min(limit, math.MaxInt64-1)+1))
	}
	if err != nil {
		return nil, fault.Refuse("opening what was sealed: it is damaged: changed, cut short, added to, or not sealed by age at all", tryIdentity)
	}
	if int64(len(data)) > limit {
		return nil, fault.Refuse(fmt.Sprintf("opening what was sealed: it holds more than %d bytes", limit), tryIdentity)
	}
	return data, nil
}

// CheckRecipient reports whether Seal accepts a recipient: an X25519 public key as
// age-keygen prints it, age1 and 58 characters. Refused are post-quantum keys,
// which age does not mix with others, SSH keys, which need one more library, and
// plugins, which are other programs.
func CheckRecipient(s string) error {
	if _, why := parseRecipient(s); why != "" {
		return fault.Refuse("the recipient "+why, tryIdentity)
	}
	return nil
}

// parseRecipient says why a recipient is refused, never repeating it: it may be
// an identity by mistake.
func parseRecipient(s string) (r *age.X25519Recipient, why string) {
	switch {
	case strings.HasPrefix(strings.ToUpper(s), "AGE-SECRET-KEY-"):
		return nil, "is a secret key: it belongs nowhere but in the environment, and should be replaced now"
	case strings.HasPrefix(s, "ssh-"):
		return nil, "is an SSH key: only keys of age itself (age1…) can be sealed to"
	case strings.HasPrefix(s, "age1pq1"):
		return nil, "is a post-quantum key: only X25519 keys (age1…) can be sealed to"
	case strings.HasPrefix(s, "age1") && strings.Count(s, "1") > 1:
		return nil, "is a plugin's key: only keys of age itself (age1…) can be sealed to"
	}
	r, err := age.ParseX25519Recipient(s)
	if err != nil {
		return nil, "is not an age key: age1 and 58 characters, as age-keygen prints it"
	}
	if _, err := r.Wrap(make([]byte, 16)); err != nil {
		return nil, "is a key that protects nothing"
	}
	return r, ""
}

// parseIdentities reads an identity file. What the library says of a bad line
// may hold parts of it, so only the line's number is told.
func parseIdentities(text string) ([]age.Identity, error) {
	var out []age.Identity
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		id, err := age.ParseX25519Identity(line)
		if err != nil {
			return nil, fault.Refuse(fmt.Sprintf("reading the identities: line %d is not an age identity (AGE-SECRET-KEY-1…)", n), tryIdentity)
		}
		out = append(out, id)
	}
	if len(out) == 0 {
		return nil, fault.Refuse("reading the identities: there is none", tryIdentity)
	}
	return out, nil
}
