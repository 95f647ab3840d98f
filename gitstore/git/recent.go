package git

import (
	"sync"

	"github.com/countersign-dev/countersign/gitstore/object"
	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// recent are small objects that were read lately: who judges commits asks for the same trees again and again.
type recent struct {
	mu         sync.Mutex
	young, old map[object.ID]packfile.Object
	bytes      int  // of the young ones
	closed     bool // nothing is kept
}

// maxRecent is how many bytes of objects are kept, and as many again of those before; one of more than maxSmall is not.
const (
	maxRecent = 4 << 20
	maxSmall  = 32 << 10
	overhead  = 100 // of each, about
)

func (r *recent) get(id object.ID) (o packfile.Object, is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o, is = r.young[id]; is {
		return o, true
	}
	if o, is = r.old[id]; is {
		r.add(id, o)
	}
	return o, is
}

func (r *recent) put(id object.ID, o packfile.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(o.Data) <= maxSmall && !r.closed {
		r.add(id, o)
	}
}

func (r *recent) add(id object.ID, o packfile.Object) {
	if r.young == nil || r.bytes > maxRecent {
		r.young, r.old, r.bytes = map[object.ID]packfile.Object{}, r.young, 0
	}
	r.young[id] = o
	r.bytes += len(o.Data) + overhead
}

// close lets go of all of them, for good.
func (r *recent) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.young, r.old, r.closed = nil, nil, true
}
