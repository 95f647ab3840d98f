package history

import (
	"bytes"
	"encoding/hex"
)

// An ID names an object of Git: 20 bytes in a repository of SHA-1 objects, 32 in one of
// SHA-256 objects. The zero ID names nothing, and so do zeros in git's own words.
type ID struct {
	raw  [32]byte
	size uint8
}

// NewID is the ID of so many bytes, and zero where they are zeros, or of another number.
func NewID(raw []byte) (id ID) {
	if len(raw) != 20 && len(raw) != 32 {
		return ID{}
	}
	copy(id.raw[:], raw)
	if id.raw != [32]byte{} {
		id.size = uint8(len(raw))
	}
	return id
}

// ParseID reads 40 or 64 hex digits. All zeros are the zero ID.
func ParseID(text string) (id ID, ok bool) {
	var raw [32]byte
	if len(text) != 40 && len(text) != 64 {
		return ID{}, false
	}
	n, err := hex.Decode(raw[:], []byte(text))
	return NewID(raw[:n]), err == nil
}

// Append appends the bytes of the ID.
func (id ID) Append(to []byte) []byte { return append(to, id.raw[:id.size]...) }

// Size is how many bytes it has; 0 of the zero ID.
func (id ID) Size() int { return int(id.size) }

// String is 40 or 64 hex digits; of the zero ID, 40 zeros.
func (id ID) String() string { return hex.EncodeToString(id.raw[:max(int(id.size), 20)]) }

// IsZero reports whether this names nothing.
func (id ID) IsZero() bool { return id.size == 0 }

// Compare is the order of IDs in an index.
func (id ID) Compare(other ID) int { return bytes.Compare(id.raw[:], other.raw[:]) }

// First is the first byte.
func (id ID) First() byte { return id.raw[0] }
