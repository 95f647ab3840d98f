package packfile

import (
	"crypto"
	"strconv"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/hash"
)

// A Batch is objects to be written together. Each is there once.
type Batch struct {
	objects []Object
	ids     []plumbing.Hash
	has     map[plumbing.Hash]bool
}

// Add names the objects, on all cores, and takes those that are new. Their
// content must not be modified until the batch is written.
func (b *Batch) Add(objects ...Object) ([]plumbing.Hash, error) {
	ids, errs := make([]plumbing.Hash, len(objects)), make([]error, len(objects))
	Parallel(len(objects), 16, func(i int) { ids[i], errs[i] = objects[i].ID() })
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	b.take(objects, ids)
	return ids, nil
}

// Join takes what is new in another batch.
func (b *Batch) Join(other *Batch) { b.take(other.objects, other.ids) }

func (b *Batch) take(objects []Object, ids []plumbing.Hash) {
	if b.has == nil {
		b.has = make(map[plumbing.Hash]bool, len(objects))
	}
	for i, id := range ids {
		if !b.has[id] {
			b.has[id] = true
			b.objects, b.ids = append(b.objects, objects[i]), append(b.ids, id)
		}
	}
}

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
