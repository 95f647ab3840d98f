package packfile

import (
	"crypto"
	"strconv"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/hash"
)

// ID is the object's name, the SHA-1 of "<type> <size>\0<content>". Content
// that was made to share its name with another's is an error (ErrDamaged), as
// in git itself (sha1dc).
func (o Object) ID() (plumbing.Hash, error) {
	h := hashers.Get().(hash.Hash)
	defer hashers.Put(h)
	h.Reset()
	var head [32]byte
	text := append(append(head[:0], o.Type.Bytes()...), ' ')
	_, _ = h.Write(append(strconv.AppendInt(text, int64(len(o.Data)), 10), 0))
	_, _ = h.Write(o.Data)
	var id plumbing.Hash
	if safe, ok := h.(interface {
		CollisionResistantSum([]byte) ([]byte, bool)
	}); ok {
		if _, attack := safe.CollisionResistantSum(id[:0]); attack {
			return id, damaged("its content is one half of a SHA-1 collision")
		}
		return id, nil
	}
	h.Sum(id[:0])
	return id, nil
}

var hashers = sync.Pool{New: func() any { return hash.New(crypto.SHA1) }}
