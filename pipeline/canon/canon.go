// Package canon is the only encoder of anything that is hashed or stored.
//
// It writes the JSON Canonicalization Scheme (RFC 8785): keys sorted by UTF-16
// code unit, ECMAScript's string escapes and number forms, no white space:
//
//	{"b": 1.0, "a": "é"}   →   {"a":"é","b":1}
//
// Beyond the RFC it carries lone surrogates, which RFC 8785 3.2.2.2 leaves to
// the implementation, as ECMAScript's JSON.stringify does: "\ud800".
//
// A parsed document is made of nil, bool, float64, string, []any and
// map[string]any. A lone surrogate stands in a string as its three-byte
// generalised UTF-8 form (WTF-8), so it survives a round trip.
package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Marshal returns v's canonical JSON without a trailing newline. v is a parsed
// document, or any value that encoding/json can write.
func Marshal(v any) ([]byte, error) {
	return appendValue(make([]byte, 0, 256), v, 0)
}

// Line returns v's canonical JSON and one LF: the form in which a document is
// stored, and in which it is hashed.
func Line(v any) ([]byte, error) {
	b, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

// Unmarshal reads a record that we wrote into v, and refuses what we would not
// have written: another key order, white space, duplicate or unknown keys, a
// key that is missing or in the wrong case. One trailing LF is allowed. v is
// empty before, and after an error holds nothing to rely on.
func Unmarshal(data []byte, v any) error {
	body := bytes.TrimSuffix(data, []byte("\n"))
	if unmarshal(body, v) {
		return nil
	}
	return unmarshalSlowly(body, v)
}

// unmarshalSlowly is the definition of Unmarshal, and says what is wrong.
func unmarshalSlowly(body []byte, v any) error {
	doc, err := Parse(body)
	if err != nil {
		return err
	}
	if err := equals(body, doc, "not canonical JSON (RFC 8785)"); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("decoding JSON: %w", err)
	}
	// encoding/json is lax about letter case, missing keys, null and lone
	// surrogates; writing v again shows all of them.
	return equals(body, v, "not as this record is written")
}

func equals(body []byte, v any, otherwise string) error {
	again, err := Marshal(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, body) {
		return errors.New(otherwise)
	}
	return nil
}

// Hash is canonicalHash: the bare hex SHA-256 of v's canonical JSON and one LF.
func Hash(v any) (string, error) {
	b, err := Line(v)
	if err != nil {
		return "", err
	}
	return Hex(b), nil
}

// DeriveID is deriveId (PROPOSAL_INTERNAL_SPEC 4.3): prefix, "_" and the first
// 16 hex of Hash.
func DeriveID(prefix string, v any) (string, error) {
	h, err := Hash(v)
	if err != nil {
		return "", err
	}
	return prefix + "_" + h[:16], nil
}

// Hex is the SHA-256 of b as 64 lower-case hex digits.
func Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Sum is the SHA-256 of b in the form that the specifications call a hash:
// "sha256:" and 64 lower-case hex digits (APPLY_SPEC 7.2).
func Sum(b []byte) string { return "sha256:" + Hex(b) }

// IsSum reports whether s has the form that Sum gives.
func IsSum(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && IsHex64(digits)
}

// IsHex64 reports whether s is 64 lower-case hex digits.
func IsHex64(s string) bool { return IsHex(s, 64) }

// IsHex reports whether s is so many lower-case hex digits.
func IsHex(s string, digits int) bool {
	if len(s) != digits {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// IsCanonical reports whether data is a document as Marshal writes it, byte for
// byte: whether Parse takes it and Marshal gives it back. What our own records
// hold is decided in one pass and without allocation.
func IsCanonical(data []byte) bool {
	s := scanner{data: data}
	if s.value(0) && s.pos == len(data) {
		return true
	}
	return isCanonicalSlowly(data)
}

// IsLine reports whether data is a document as Line writes it: canonical, and one
// LF.
func IsLine(data []byte) bool {
	body, ended := bytes.CutSuffix(data, []byte("\n"))
	return ended && IsCanonical(body)
}

// isCanonicalSlowly is the definition of IsCanonical.
func isCanonicalSlowly(data []byte) bool {
	doc, err := Parse(data)
	return err == nil && equals(data, doc, "") == nil
}
