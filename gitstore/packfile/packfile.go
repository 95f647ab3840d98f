// Package packfile reads and writes streams of Git objects: packs (gitformat-pack(5)), and
// the content of the commits and trees in them. It knows bytes alone: what objects mean to a
// ledger is not said here, and a repository's own are git's to find (package git).
//
// A [Batch] is what is to be written or sent: objects that a program made, each maybe as a
// delta on an earlier version, or those of a pack that was received ([Decode]). A pack that is
// not sound is an error and never a panic, or an allocation that it merely claims to need. What
// [Write] writes is complete on the disk before it gets its name, and `git gc` leaves it alone
// until [Held.Release].
//
//	pack-<40 hex>.pack, whose name is a random one: no two packs are ever the same file
//	    "PACK", version 2, number of objects       4 bytes each, big-endian
//	    entries: type and size, base, zlib(content or delta)
//	    hash of all of the above
//	pack-<40 hex>.idx, version 2
//	    "\377tOc", 2
//	    256 x 4 bytes: how many names begin with this byte or a lower one
//	    sorted names (20 bytes, or 32), CRC-32 of entries (4), offsets (4)
//	    offsets of 8 bytes, for those whose 4 bytes have the first bit set
//	    hash of the pack, hash of all of the above
//
// An entry's delta is put on a base in the same pack, named by how far back it
// lies (OFS_DELTA) or by its hash (REF_DELTA). A delta says the sizes of its
// base and of what it makes, and then what to copy of the base and what to
// insert. This package writes only OFS_DELTA, at most 50 on each other, each of
// which copies the beginning, inserts once and copies the end: an append changes
// a tree in one place, so a search would find nothing better. Small content
// stands in zlib streams that do not compress, since to do so takes longer than
// all else that happens to it.
package packfile

import (
	"crypto"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/hash"

	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
)

// What reading an object may return.
var (
	ErrMissing = errors.New("the object is not here")
	ErrDamaged = errors.New("damaged")
)

const (
	packHeaderSize = 12

	// maxChain is how many deltas may stand on each other; git writes at most 4095.
	maxChain = 4096
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// An Object is a commit, tree, blob or tag.
type Object struct {
	Type plumbing.ObjectType
	Data []byte
}

// ID is the object's name, the hash of "<type> <size>\0<content>". Content
// that was made to share its SHA-1 with another's is an error (ErrDamaged), as
// in git itself (sha1dc).
func (o Object) ID(f Format) (ID, error) {
	pool := &hashers
	if f == SHA256 {
		pool = &hashers256
	}
	h := pool.Get().(hash.Hash)
	defer pool.Put(h)
	h.Reset()
	var head [32]byte
	text := append(append(head[:0], o.Type.Bytes()...), ' ')
	_, _ = h.Write(append(strconv.AppendInt(text, int64(len(o.Data)), 10), 0))
	_, _ = h.Write(o.Data)
	var sum [32]byte
	if safe, ok := h.(interface {
		CollisionResistantSum([]byte) ([]byte, bool)
	}); ok {
		raw, attack := safe.CollisionResistantSum(sum[:0])
		if attack {
			return None, damaged("its content is one half of a SHA-1 collision")
		}
		return history.NewID(raw), nil
	}
	return history.NewID(h.Sum(sum[:0])), nil
}

var (
	hashers    = sync.Pool{New: func() any { return hash.New(crypto.SHA1) }}
	hashers256 = sync.Pool{New: func() any { return SHA256.New() }}
)
