package packfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	packHeaderSize = 12

	// maxChain is how many deltas may stand on each other; git writes at most
	// 4095.
	maxChain = 4096
)

// pack is a pack with its index. The pack itself is opened when it is read.
type pack struct {
	name, path string
	index      *index

	mu   sync.Mutex
	file *os.File
	end  int64 // where the trailer begins
}

func (p *pack) isOpen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.file != nil
}

func (p *pack) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.index.close()
	if p.file != nil {
		err = errors.Join(err, p.file.Close())
		p.file = nil
	}
	return err
}

func (p *pack) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s.pack: %w", p.name, err)
}

// open opens the file, and holds it to its index.
func (p *pack) open() (*os.File, int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		return p.file, p.end, nil
	}
	f, err := os.Open(p.path)
	if err != nil {
		return nil, 0, err
	}
	end, err := p.checkFile(f)
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	p.file, p.end = f, end
	return f, end, nil
}

func (p *pack) checkFile(f *os.File) (end int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	end = info.Size() - int64(idSize)
	if end < packHeaderSize {
		return 0, damaged("too short for a pack")
	}
	var head [packHeaderSize]byte
	var sum plumbing.Hash
	_, err1 := f.ReadAt(head[:], 0)
	_, err2 := f.ReadAt(sum[:], end)
	if err := errors.Join(err1, err2); err != nil {
		return 0, err
	}
	version := binary.BigEndian.Uint32(head[4:])
	switch {
	case string(head[:4]) != "PACK" || version != 2 && version != 3:
		return 0, damaged("not a pack of version 2 or 3")
	case int64(binary.BigEndian.Uint32(head[8:])) != p.index.count || sum != p.index.packSum:
		return 0, damaged("the index is not this pack's")
	}
	return end, nil
}

// header is an object's type and size. For a delta it is the delta's, with
// where its base is.
type header struct {
	kind plumbing.ObjectType
	size int64
	base int64 // 0: not a delta
}

func (p *pack) size(offset int64, c *cache) (header, error) {
	f, end, err := p.open()
	if err != nil {
		return header{}, err
	}
	r := getReader()
	defer r.put()
	h, err := p.entry(r.at(f, offset, end), offset)
	if err != nil || h.base == 0 {
		return h, err
	}
	// The size stands in the delta, the type at the end of the chain. Whoever
	// asks for it reads the object next, which is in the cache then.
	o, err := p.read(offset, c)
	return header{kind: o.Type, size: int64(len(o.Data))}, err
}

// read returns the object at an offset. Its content is shared with the cache.
func (p *pack) read(offset int64, c *cache) (Object, error) {
	o, known := c.get(p, offset)
	if known {
		return o, nil
	}
	f, end, err := p.open()
	if err != nil {
		return Object{}, err
	}
	r := getReader()
	defer r.put()
	type delta struct {
		offset int64
		data   []byte
	}
	var deltas []delta // the outermost first, until one that is whole or known
	for {
		h, err := p.entry(r.at(f, offset, end), offset)
		if err != nil {
			return Object{}, err
		}
		data, err := r.inflate(nil, h.size)
		if err != nil {
			return Object{}, err
		}
		if h.base == 0 {
			o = Object{h.kind, data}
			if len(deltas) > 0 || h.kind == plumbing.TreeObject { // the rest is seldom read twice
				c.put(p, offset, o)
			}
			break
		}
		if deltas = append(deltas, delta{offset, data}); len(deltas) > maxChain {
			return Object{}, damaged("more than %d deltas on each other", maxChain)
		}
		offset = h.base
		if o, known = c.get(p, offset); known {
			break
		}
	}
	for _, d := range slices.Backward(deltas) {
		if o.Data, err = applyDelta(o.Data, d.data); err != nil {
			return Object{}, err
		}
		c.put(p, d.offset, o)
	}
	return o, nil
}

// entry reads what stands before an entry's content.
func (p *pack) entry(r *reader, offset int64) (header, error) {
	kind, size, err := r.typeAndSize()
	if err != nil {
		return header{}, err
	}
	h := header{kind: kind, size: size}
	switch kind {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	case plumbing.OFSDeltaObject:
		back, err := r.distance()
		if err != nil {
			return header{}, err
		}
		if back <= 0 || back > offset-packHeaderSize {
			return header{}, damaged("a delta's base is outside the pack")
		}
		h.base = offset - back
	case plumbing.REFDeltaObject:
		id, err := r.id()
		if err != nil {
			return header{}, err
		}
		if h.base, err = p.index.find(id); err != nil {
			return header{}, err
		}
		if h.base == 0 {
			return header{}, damaged("a delta's base %s is not in the pack", id)
		}
	default:
		return header{}, damaged("no object has type %d", kind)
	}
	return h, nil
}

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
