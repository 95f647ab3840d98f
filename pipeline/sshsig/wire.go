package sshsig

import (
	"encoding/binary"
	"math/big"
)

// A reader reads SSH's data types (RFC 4251, 5) from the front of what is left. After
// what is cut short, or not in its one form, it is bad, and reads nothing more.
type reader struct {
	left []byte
	bad  bool
}

// take reads n bytes.
func (r *reader) take(n uint32) []byte {
	if r.bad || uint64(n) > uint64(len(r.left)) {
		r.bad = true
		return nil
	}
	out := r.left[:n:n]
	r.left = r.left[n:]
	return out
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// bytes reads a string.
func (r *reader) bytes() []byte { return r.take(r.uint32()) }

// number reads an mpint that is not negative, and without needless bytes before it.
func (r *reader) number() *big.Int {
	b := r.bytes()
	if len(b) > 0 && (b[0] >= 0x80 || b[0] == 0 && (len(b) == 1 || b[1] < 0x80)) {
		r.bad = true
	}
	if r.bad {
		return new(big.Int)
	}
	return new(big.Int).SetBytes(b)
}

// done reports whether everything was read, and all of it was good.
func (r *reader) done() bool { return !r.bad && len(r.left) == 0 }

// appendString appends a string as reader.bytes reads it.
func appendString[S string | []byte](to []byte, s S) []byte {
	if uint64(len(s)) > 1<<32-1 {
		panic("sshsig: a string of more than 4 GiB")
	}
	return append(binary.BigEndian.AppendUint32(to, uint32(len(s))), s...)
}
