package packfile

import "sync"

const (
	// cacheSize is how many bytes of objects are kept, each of at most an
	// eighth of it.
	cacheSize = 16 << 20
	cacheItem = cacheSize / 8
)

type place struct {
	pack   *pack
	offset int64
}

// cache keeps objects of packs, which others are deltas on. It has two
// generations; when the young one fills its half, the old one goes.
type cache struct {
	mu         sync.Mutex
	young, old map[place]Object
	size       int // of the young
}

func newCache() *cache { return &cache{young: map[place]Object{}} }

// get returns an object whose content must not be modified.
func (c *cache) get(p *pack, offset int64) (Object, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := place{p, offset}
	if o, ok := c.young[at]; ok {
		return o, true
	}
	o, ok := c.old[at]
	if ok {
		c.add(at, o)
	}
	return o, ok
}

// put may take an object, whose content must not be modified any more.
func (c *cache) put(p *pack, offset int64, o Object) {
	if len(o.Data) > cacheItem {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(place{p, offset}, o)
}

func (c *cache) add(at place, o Object) {
	const overhead = 128 // of an entry, so that many empty objects count too
	if c.size += len(o.Data) + overhead; c.size > cacheSize/2 {
		c.young, c.old, c.size = map[place]Object{}, c.young, len(o.Data)+overhead
	}
	c.young[at] = o
}
