package packfile

import "sync"

// Recent keeps values that were used lately, in two generations: what is not asked for while the young ones grow too large is let
// go of. Its zero value is empty. Several goroutines may use it.
type Recent[K comparable, V any] struct {
	mu         sync.Mutex
	young, old map[K]sized[V]
	size, most int // of the young ones
	closed     bool
}

type sized[V any] struct {
	value V
	size  int
}

// Get returns a value if it is kept.
func (r *Recent[K, V]) Get(key K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, kept := r.young[key]
	if !kept {
		if one, kept = r.old[key]; kept {
			r.put(key, one)
		}
	}
	return one.value, kept
}

// Put keeps a value of a size; most is how large all young ones together may be.
func (r *Recent[K, V]) Put(key K, value V, size, most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most = most
	r.put(key, sized[V]{value, size})
}

func (r *Recent[K, V]) put(key K, one sized[V]) {
	if r.closed {
		return
	}
	if r.young == nil || r.size > r.most {
		r.young, r.old, r.size = map[K]sized[V]{}, r.young, 0
	}
	r.size += one.size - r.young[key].size
	r.young[key] = one
}

// Drop lets go of a value.
func (r *Recent[K, V]) Drop(key K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size -= r.young[key].size
	delete(r.young, key)
	delete(r.old, key)
}

// Close lets go of all, for good.
func (r *Recent[K, V]) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.young, r.old, r.closed = nil, nil, true
}
