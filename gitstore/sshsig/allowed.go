package sshsig

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"
)

// Allowed is a list of who may sign, with which keys. The zero Allowed allows
// nobody. It is safe for use by several goroutines.
type Allowed struct {
	keys map[string][]signerLine // by the public key's bytes, in the file's order
}

// A LineError is what is wrong with one line of a file of allowed signers.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong, without the line.
func (e *LineError) Unwrap() error { return e.Err }

// A signerLine is one line of the file.
type signerLine struct {
	number        int
	principals    []string // patterns
	namespaces    []string // patterns; nil: any
	after, before time.Time
	key           ssh.PublicKey
}

// ParseAllowedSigners reads a file of allowed signers (ssh-keygen(1), ALLOWED
// SIGNERS). It is stricter than ssh-keygen, which passes over lines that it
// cannot read: every such line is a [LineError], and all of them are joined.
// See the package comment for the form of a line.
func ParseAllowedSigners(data []byte) (Allowed, error) {
	a := Allowed{keys: map[string][]signerLine{}}
	var errs []error
	number := 0
	for text := range bytes.SplitSeq(data, []byte("\n")) {
		number++
		trimmed := strings.TrimLeft(strings.TrimSuffix(string(text), "\r"), blank)
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		line, err := parseSignerLine(trimmed)
		if err != nil {
			errs = append(errs, &LineError{number, err})
			continue
		}
		line.number = number
		blob := string(line.key.Marshal())
		a.keys[blob] = append(a.keys[blob], line)
	}
	if len(errs) > 0 {
		return Allowed{}, errors.Join(errs...)
	}
	return a, nil
}

const blank = " \t"

func parseSignerLine(text string) (signerLine, error) {
	var line signerLine
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }) {
		return line, errors.New("it holds characters that cannot be seen")
	}
	principals, rest, err := cutPrincipals(text)
	if err != nil {
		return line, err
	}
	if line.principals, err = parsePatterns(principals); err != nil {
		return line, fmt.Errorf("principals %q: %w", principals, err)
	}
	if line.principal() == "" {
		return line, fmt.Errorf("principals %q: they match nobody", principals)
	}
	if word, _ := cutField(rest); keyTypes[word] == 0 {
		var options string
		if options, rest, err = cutOptions(rest); err == nil {
			err = line.parseOptions(options)
		}
		if err != nil {
			return line, err
		}
	}
	kind, rest := cutField(rest)
	line.key, err = parsePublicKey(kind, rest)
	return line, err
}

// cutField cuts a field and the blanks behind it.
func cutField(text string) (field, rest string) {
	i := strings.IndexAny(text, blank)
	if i < 0 {
		return text, ""
	}
	return text[:i], strings.TrimLeft(text[i:], blank)
}

func cutPrincipals(text string) (principals, rest string, err error) {
	quoted, ok := strings.CutPrefix(text, `"`)
	if !ok {
		principals, rest = cutField(text)
		if strings.Contains(principals, `"`) {
			return "", "", fmt.Errorf("principals %q: quotes must be around all of them", principals)
		}
		return principals, rest, nil
	}
	principals, rest, ok = strings.Cut(quoted, `"`)
	if !ok {
		return "", "", errors.New("the quote around the principals is not closed")
	}
	if rest != "" && !strings.ContainsAny(rest[:1], blank) {
		return "", "", errors.New("a blank must follow the quoted principals")
	}
	return principals, strings.TrimLeft(rest, blank), nil
}

// How a type of key is taken where it is written in a list.
type support int

const (
	signs    support = iota + 1 // signs here, and verifies
	verifies                    // of a security key
	refused
)

var keyTypes = map[string]support{
	ssh.KeyAlgoED25519:             signs,
	ssh.KeyAlgoECDSA256:            signs,
	ssh.KeyAlgoECDSA384:            signs,
	ssh.KeyAlgoECDSA521:            signs,
	ssh.KeyAlgoRSA:                 signs,
	ssh.KeyAlgoSKED25519:           verifies,
	ssh.KeyAlgoSKECDSA256:          verifies,
	"ssh-dss":                      refused,
	ssh.CertAlgoED25519v01:         refused,
	ssh.CertAlgoECDSA256v01:        refused,
	ssh.CertAlgoECDSA384v01:        refused,
	ssh.CertAlgoECDSA521v01:        refused,
	ssh.CertAlgoRSAv01:             refused,
	ssh.CertAlgoSKED25519v01:       refused,
	ssh.CertAlgoSKECDSA256v01:      refused,
	"ssh-dss-cert-v01@openssh.com": refused,
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
	case keyTypes[kind] == refused:
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

// principal is the name that git gives this line's signatures: its first
// pattern that, taken as a name, the line matches. (Git may also print one
// that is negated, "!a@b" before "*", which is nobody's name.)
func (l signerLine) principal() string {
	for _, name := range l.principals {
		if name[0] != '!' && matchList(l.principals, name) {
			return name
		}
	}
	return ""
}

// admits tells why the line's key may not sign commits at a time, in seconds
// as ssh-keygen compares them.
func (l signerLine) admits(at time.Time) error {
	const layout = "2006-01-02 15:04:05Z"
	if l.namespaces != nil && !matchList(l.namespaces, namespace) {
		return fmt.Errorf("%w: line %d of the allowed signers allows the key only for %s", ErrNamespace, l.number, strings.Join(l.namespaces, ","))
	}
	when := at.Unix()
	if !l.after.IsZero() && when < l.after.Unix() {
		return fmt.Errorf("%w: %s is before %s (line %d of the allowed signers)", ErrExpired, at.UTC().Format(layout), l.after.Format(layout), l.number)
	}
	if !l.before.IsZero() && when > l.before.Unix() {
		return fmt.Errorf("%w: %s is after %s (line %d of the allowed signers)", ErrExpired, at.UTC().Format(layout), l.before.Format(layout), l.number)
	}
	return nil
}

// blobFingerprint is [ssh.FingerprintSHA256] of a key that was not parsed.
func blobFingerprint(public []byte) string {
	sum := sha256.Sum256(public)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}
