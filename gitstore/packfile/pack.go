package packfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
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
	if o, known := c.get(p, offset); known {
		return o, nil
	}
	f, end, err := p.open()
	if err != nil {
		return Object{}, err
	}
	r := getReader()
	defer r.put()
	o, deltas, err := p.chain(r, f, offset, end, c)
	if err != nil {
		return Object{}, err
	}
	for i := len(deltas) - 1; i >= 0; i-- {
		if o.Data, err = applyDelta(o.Data, deltas[i].data); err != nil {
			return Object{}, err
		}
		c.put(p, deltas[i].offset, o)
	}
	return o, nil
}

// delta is one that was read, and where it is.
type delta struct {
	offset int64
	data   []byte
}

// chain reads the deltas of an object, the outermost first, until it comes to
// one that is whole or known.
func (p *pack) chain(r *reader, f *os.File, offset, end int64, c *cache) (base Object, deltas []delta, err error) {
	for {
		h, err := p.entry(r.at(f, offset, end), offset)
		if err != nil {
			return Object{}, nil, err
		}
		data, err := r.inflate(h.size)
		if err != nil {
			return Object{}, nil, err
		}
		if h.base == 0 {
			base = Object{h.kind, data}
			if len(deltas) > 0 || h.kind == plumbing.TreeObject { // the rest is seldom read twice
				c.put(p, offset, base)
			}
			return base, deltas, nil
		}
		if deltas = append(deltas, delta{offset, data}); len(deltas) > maxChain {
			return Object{}, nil, damaged("more than %d deltas on each other", maxChain)
		}
		offset = h.base
		if base, known := c.get(p, offset); known {
			return base, deltas, nil
		}
	}
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
