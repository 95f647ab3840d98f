package packfile

import (
	"bytes"
	"runtime"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/pipeline/parallel"
)

// maxDepth is how many deltas this package puts on each other, as git does by
// itself.
const maxDepth = 50

// A Batch is objects to be written together. Each is there once. Its zero value
// is an empty one. Content that was added must not be modified any more.
type Batch struct {
	Format Format

	ids     []ID
	entries []entry
	texts
	at     map[ID]int32
	hints  map[int32]ID          // bases that are not in this batch: maybe in one that it joins
	recent Recent[int32, []byte] // the latest versions, whole
	pack   *encoded              // what Encode made of all of these
}

// entry is an object as a batch holds it: whole, or as a delta on one before
// it, since thousands of versions of one tree would not fit in memory.
type entry struct {
	kind   plumbing.ObjectType
	depth  uint8 // how many deltas stand on each other; 0: whole
	base   int32
	extent // of its content, or its delta
}

// texts are many, in few blocks: each is found by an extent, in which the garbage collector has nothing to
// look at. A ledger of 10,000 transactions has 760,000 objects.
type texts struct {
	blocks [][]byte
	room   int32 // the block that small ones are put into; 0: none
}

// An extent is where one of them is.
type extent struct {
	block      int32
	from, size uint32
}

// Texts of up to small bytes are put together.
const (
	small     = 16 << 10
	roomBlock = 1 << 20
)

func (c *texts) of(e extent) []byte {
	return c.blocks[e.block][e.from : e.from+e.size : e.from+e.size]
}

// keep takes a text as a block of its own.
func (c *texts) keep(text []byte) extent {
	c.blocks = append(c.blocks, text)
	return extent{int32(len(c.blocks) - 1), 0, uint32(len(text))}
}

// copy puts a copy of a small text together with others.
func (c *texts) copy(text []byte) extent {
	if len(c.blocks) == 0 {
		c.keep(make([]byte, 0, small)) // most packs that somebody sends are small
	} else if b := c.blocks[c.room]; cap(b)-len(b) < len(text) {
		c.room = int32(len(c.blocks))
		c.keep(make([]byte, 0, roomBlock))
	}
	b := &c.blocks[c.room]
	*b = append(*b, text...)
	return extent{c.room, uint32(len(*b) - len(text)), uint32(len(text))}
}

// Add names the objects, on all cores, and takes those that are new.
func (b *Batch) Add(objects ...Object) ([]ID, error) {
	ids := make([]ID, len(objects))
	err := parallel.Try(runtime.GOMAXPROCS(0), len(objects), func(i int) (err error) {
		ids[i], err = objects[i].ID(b.Format)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		b.add(objects[i], id, None)
	}
	return ids, nil
}

// AddOn adds one object that is a later version of base, on which it may become
// a delta. That is only a hint: base may be in no batch at all.
func (b *Batch) AddOn(o Object, base ID) (ID, error) {
	id, err := o.ID(b.Format)
	if err == nil {
		b.add(o, id, base)
	}
	return id, err
}

// Len is how many objects there are.
func (b *Batch) Len() int { return len(b.ids) }

// Count is how many objects have a type.
func (b *Batch) Count(kind plumbing.ObjectType) (n int) {
	for i := range b.entries {
		if b.entries[i].kind == kind {
			n++
		}
	}
	return n
}

// IDs returns the names of the objects in their order.
func (b *Batch) IDs() []ID { return slices.Clone(b.ids) }

// Get returns an object of the batch, whose content must not be modified. It
// may be called from several goroutines while none adds.
func (b *Batch) Get(id ID) (Object, bool) {
	i, ok := b.at[id]
	if !ok {
		return Object{}, false
	}
	return b.object(i), true
}

// Join takes what is new in another batch.
func (b *Batch) Join(other *Batch) {
	for i, id := range other.ids {
		e := other.entries[i]
		if _, old := b.at[id]; old {
			continue
		}
		if e.depth == 0 {
			b.add(Object{e.kind, other.of(e.extent)}, id, other.hints[int32(i)])
			continue
		}
		base := b.at[other.ids[e.base]] // it stands before
		if e.depth = b.entries[base].depth + 1; e.depth > maxDepth {
			b.add(other.object(int32(i)), id, None)
			continue
		}
		e.base, e.extent = base, b.keep(other.of(e.extent))
		if content, ok := other.recent.Get(int32(i)); ok {
			b.keepWhole(int32(len(b.ids)), base, content)
		}
		b.append(id, e)
	}
}

// add takes an object, as a delta on its base where that is clearly smaller.
func (b *Batch) add(o Object, id, base ID) {
	if _, old := b.at[id]; old {
		return
	}
	n := int32(len(b.ids))
	at, ok := b.at[base]
	switch {
	case ok:
		on := b.entries[at]
		if on.kind != o.Type || on.depth == maxDepth {
			break
		}
		if delta := makeDelta(b.object(at).Data, o.Data); delta != nil {
			b.keepWhole(n, at, o.Data)
			b.append(id, entry{o.Type, on.depth + 1, at, b.keep(delta)})
			return
		}
	case !base.IsZero():
		if b.hints == nil {
			b.hints = map[int32]ID{}
		}
		b.hints[n] = base
	}
	b.append(id, entry{kind: o.Type, extent: b.keep(o.Data)})
}

func (b *Batch) append(id ID, e entry) {
	if b.at == nil {
		b.at = map[ID]int32{}
	}
	b.at[id] = int32(len(b.ids))
	b.ids, b.entries, b.pack = append(b.ids, id), append(b.entries, e), nil
}

// object is the i-th object whole.
func (b *Batch) object(i int32) Object {
	last, content, known := i, []byte(nil), false
	var chain []int32 // the outermost first
	for b.entries[i].depth > 0 {
		if content, known = b.recent.Get(i); known {
			break
		}
		chain, i = append(chain, i), b.entries[i].base
	}
	if !known {
		content = b.of(b.entries[i].extent)
	}
	for _, i := range slices.Backward(chain) {
		var err error
		if content, err = applyDelta(content, b.of(b.entries[i].extent)); err != nil {
			panic("packfile: a delta of our own: " + err.Error())
		}
		b.keepWhole(i, none, content) // who goes back in time wants this one next
	}
	return Object{b.entries[last].kind, content}
}

// recentSize is far more than the trees that an append changes, and their
// siblings.
const recentSize = 8 << 20

// keepWhole keeps a version whole, in place of the one it is made on, if any: the next are made on it.
func (b *Batch) keepWhole(i, base int32, content []byte) {
	b.recent.Drop(base)
	b.recent.Put(i, content, len(content), recentSize/2)
}

// An encoded is a batch as the bytes that are written to the disk and sent to
// others.
type encoded struct {
	data    []byte
	entries []packed
	sum     []byte
}

// Encode returns the batch as the bytes of a pack, which must not be modified. The batch keeps
// them until more is added, so that to write what was sent, or to send what was written, does not
// compress it again.
func (b *Batch) Encode() ([]byte, error) {
	if b.pack == nil {
		var data bytes.Buffer
		entries, sum, err := encodePack(&data, b)
		if err != nil {
			return nil, err
		}
		b.pack = &encoded{data.Bytes(), entries, sum}
	}
	return b.pack.data, nil
}
