// Package canon has what all recorded documents share: their canonical bytes,
// their version, the characters that a reader sees in their texts, and the report
// of which rules they break. It is the only encoder of anything that is hashed or stored.
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
//
// A document may have two members more than its version knows (docs/spec/versions.md):
//
//	extra          an object, for what a reader may ignore: it is kept, hashed and not looked into
//	needs_version  the least version, MAJOR.MINOR, of a reader that may go on
//
// What is of a newer version is a *NewerError: not damaged, never approved, never added to.
package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
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

// IsGitID reports whether s can be the whole ID of an object of Git: 40 digits, or 64.
func IsGitID(s string) bool { return IsHex(s, 40) || IsHex(s, 64) }

// IsHex reports whether s is so many lower-case hex digits.
func IsHex(s string, digits int) bool {
	return len(s) == digits && strings.Trim(s, "0123456789abcdef") == ""
}

// IsLine reports whether data is a document as Line writes it: canonical, and one
// LF.
func IsLine(data []byte) bool {
	body, ended := bytes.CutSuffix(data, []byte("\n"))
	return ended && IsCanonical(body)
}
