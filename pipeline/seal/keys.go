package seal

import (
	"fmt"
	"strings"

	"filippo.io/age"
)

// CheckRecipient reports whether Seal accepts a recipient: an X25519 public key as
// age-keygen prints it, age1 and 58 characters. Refused are post-quantum keys,
// which age does not mix with others, SSH keys, which need one more library, and
// plugins, which are other programs. The error is an *Error.
func CheckRecipient(s string) error {
	if _, why := parseRecipient(s); why != "" {
		return &Error{BadRecipient, "the recipient " + why}
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
			return nil, &Error{BadIdentity, fmt.Sprintf("reading the identities: line %d is not an age identity (AGE-SECRET-KEY-1…)", n)}
		}
		out = append(out, id)
	}
	if len(out) == 0 {
		return nil, &Error{BadIdentity, "reading the identities: there is none"}
	}
	return out, nil
}
