package packfile

import (
	"crypto/sha1"
	"crypto/sha256"
	"hash"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
)

// An ID names an object.
type ID = history.ID

// None is the ID of nothing.
var None ID

// IsID reports whether a text is the whole ID of an object, or zeros.
func IsID(text string) bool {
	_, ok := history.ParseID(text)
	return ok
}

// ParseID is the ID that a text is, and None where it is none.
func ParseID(text string) ID {
	id, _ := history.ParseID(text)
	return id
}

// A Format is how a repository names its objects (git-config(1), extensions.objectFormat): how many bytes an ID has.
// The zero Format is SHA1.
type Format int

// What git has.
const (
	SHA1   Format = 20
	SHA256 Format = 32
)

// ParseFormat reads a format's name.
func ParseFormat(name string) (f Format, known bool) {
	f = map[string]Format{"sha1": SHA1, "sha256": SHA256}[name]
	return f, f != 0
}

// FormatOf is the format of an ID.
func FormatOf(id ID) Format { return Format(id.Size()) }

// String is its name.
func (f Format) String() string {
	if f == SHA256 {
		return "sha256"
	}
	return "sha1"
}

// Size is how many bytes an ID has.
func (f Format) Size() int {
	if f == SHA256 {
		return 32
	}
	return 20
}

// New returns the hash that ends packs and indexes. It does not notice SHA-1 collisions; the names of objects are
// packfile.Object.ID's, which does.
func (f Format) New() hash.Hash {
	if f == SHA256 {
		return sha256.New()
	}
	return sha1.New()
}

// Hex is an ID in the words of git, where the zero ID has as many digits as any other.
func (f Format) Hex(id ID) string {
	if id.IsZero() {
		return strings.Repeat("0", 2*f.Size())
	}
	return id.String()
}
