package packfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/pipeline/parallel"
)

// Limits say how much a received pack may make of itself, and who is told how far it is. A few bytes can claim to be a
// gigabyte, and deltas can copy that over and over.
type Limits struct {
	Held int64 // bytes in memory at one time
	Made int64 // bytes of all objects together
	// Progress, which may be nil, is told how many objects are read, and then named, of how
	// many; on several goroutines.
	Progress func(what string, done, total int)
}

// minEntry is the least that an entry takes: a byte, and an empty zlib stream.
const minEntry = 9

// Decode reads a pack of size bytes that somebody sent, once, from its beginning. It must be whole and sound.
// What a delta is based on and is not in the pack is asked of base; with nil, every one must be in the pack. Every
// object of the batch has the name that its content has.
func Decode(pack io.Reader, size int64, f Format, limits Limits, base func(ID) (Object, error)) (b *Batch, err error) {
	d := &decoder{format: f, from: pack, limits: limits}
	if base == nil {
		base = func(ID) (Object, error) { return Object{}, ErrMissing }
	}
	if err = d.scan(size - int64(f.Size())); err == nil {
		err = d.resolve(base)
	}
	if err == nil {
		b, err = d.batch()
	}
	if err != nil {
		return nil, fmt.Errorf("reading a pack: %w", err)
	}
	return b, nil
}

// decoder reads a pack in three steps: all entries in their order, then every
// delta from its base, then all into a batch.
type decoder struct {
	format  Format
	from    io.Reader
	limits  Limits
	entries []received
	texts
	byName bool // some deltas name their base

	mu      sync.Mutex
	waiting map[ID][]int32 // deltas by the name of their base
	held    atomic.Int64
	made    atomic.Int64
	done    atomic.Int64
}

// received is an entry of the pack.
type received struct {
	offset int64
	kind   plumbing.ObjectType // of the object, once it is known
	id     ID
	extent // of what the entry says: whole, or a delta

	base         int32 // the entry it is a delta on; none: -1
	first, other int32 // the first delta on this one by offset, and the next on the same base
}

const none = -1

const packMagic = "PACK\x00\x00\x00\x02"

var errNoPack = damaged("not a pack of version 2")

// scan reads the header, every entry up to end, and then the checksum.
func (d *decoder) scan(end int64) error {
	if end < packHeaderSize {
		return errNoPack
	}
	sum := d.format.New()
	r := newReader(io.TeeReader(d.from, sum), end)
	var head [packHeaderSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return readError(err)
	}
	if string(head[:8]) != packMagic {
		return errNoPack
	}
	count := int64(binary.BigEndian.Uint32(head[8:]))
	if count > (end-packHeaderSize)/minEntry {
		return damaged("%d objects do not fit in %d bytes", count, end+int64(d.format.Size()))
	}
	d.entries, d.waiting = make([]received, 0, count), map[ID][]int32{}
	room := make([]byte, small)
	for range count {
		if err := d.entry(r, end-r.left(), room); err != nil {
			return fmt.Errorf("entry %d: %w", len(d.entries), err)
		}
		if d.limits.Progress != nil {
			d.limits.Progress("objects read", len(d.entries), int(count))
		}
	}
	if r.left() > 0 {
		return damaged("more than its %d objects", count)
	}
	want := make([]byte, d.format.Size())
	if _, err := io.ReadFull(d.from, want); err != nil {
		return readError(err)
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return damaged("its content is not what its checksum says")
	}
	return nil
}

// entry reads the next entry, which begins at an offset, a small one over room. Its base by offset must be one before it.
func (d *decoder) entry(r *reader, at int64, room []byte) error {
	n := int32(len(d.entries))
	kind, size, err := r.typeAndSize()
	if err != nil {
		return err
	}
	e := received{offset: at, kind: kind, base: none, first: none, other: none}
	switch kind {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	case plumbing.OFSDeltaObject:
		back, err := r.distance()
		if err != nil {
			return err
		}
		i, ok := slices.BinarySearchFunc(d.entries, at-back, func(e received, at int64) int { return cmp.Compare(e.offset, at) })
		if !ok {
			return damaged("a delta's base is no entry before it")
		}
		e.base, e.other = int32(i), d.entries[i].first
		d.entries[i].first = n
	case plumbing.REFDeltaObject:
		id, err := r.id(d.format)
		if err != nil {
			return err
		}
		d.waiting[id], d.byName = append(d.waiting[id], n), true
	default:
		return damaged("no object has type %d", kind)
	}
	if err := d.hold(size); err != nil {
		return err
	}
	data, err := r.inflate(room, size)
	if size <= small {
		e.extent = d.copy(data)
	} else {
		e.extent = d.keep(data)
	}
	d.entries = append(d.entries, e)
	return err
}

func (d *decoder) hold(size int64) error {
	if d.held.Add(size) > d.limits.Held {
		return damaged("its objects are larger than %d bytes together", d.limits.Held)
	}
	return nil
}

// batch puts all objects in the order of the pack, but bases before what
// stands on them. Deltas stay as they are, unless too many stand on each other.
func (d *decoder) batch() (*Batch, error) {
	n := len(d.entries)
	b := &Batch{Format: d.format, ids: make([]ID, 0, n), entries: make([]entry, 0, n), at: make(map[ID]int32, n), texts: d.texts}
	var chain []int32
	for i := range d.entries {
		for at := int32(i); at != none; at = d.entries[at].base {
			if _, done := b.at[d.entries[at].id]; done {
				break
			}
			chain = append(chain, at)
		}
		for ; len(chain) > 0; chain = chain[:len(chain)-1] {
			e := d.entries[chain[len(chain)-1]]
			if _, again := b.at[e.id]; again {
				continue
			}
			now := entry{kind: e.kind, extent: e.extent}
			if e.base != none {
				now.base = b.at[d.entries[e.base].id]
				now.depth = b.entries[now.base].depth + 1
			}
			if now.depth > maxDepth {
				data, err := applyDelta(b.object(now.base).Data, b.of(e.extent))
				if err != nil {
					return nil, err
				}
				if err := d.hold(int64(len(data))); err != nil {
					return nil, err
				}
				now = entry{kind: e.kind, extent: b.keep(data)}
			}
			b.append(e.id, now)
		}
	}
	if len(b.ids) < len(d.entries) && d.byName { // git refuses it: which of the two is a base?
		return nil, damaged("an object is there twice")
	}
	return b, nil
}

// resolve names every object: first those that are whole and all that stands
// on them, on all cores, then those whose bases are elsewhere.
func (d *decoder) resolve(base func(ID) (Object, error)) error {
	var whole []int32
	for i := range d.entries {
		if d.entries[i].kind <= plumbing.TagObject {
			whole = append(whole, int32(i))
		}
	}
	err := parallel.Try(runtime.GOMAXPROCS(0), len(whole), func(i int) error {
		e := d.entries[whole[i]]
		steps, err := d.name(nil, whole[i], 0, Object{e.kind, d.of(e.extent)})
		if err != nil {
			return err
		}
		return d.walk(steps)
	})
	if err != nil {
		return err
	}
	// A base that is missing may yet be made of another one's delta.
	ids := slices.Collect(maps.Keys(d.waiting))
	sort.Slice(ids, func(i, j int) bool { return d.waiting[ids[i]][0] < d.waiting[ids[j]][0] })
	for _, id := range ids {
		if len(d.waiting[id]) == 0 {
			continue
		}
		o, err := base(id)
		if errors.Is(err, ErrMissing) {
			continue
		}
		if err != nil {
			return fmt.Errorf("the base of a delta: %w", err)
		}
		if err := d.walk(d.named(nil, id, none, o)); err != nil {
			return err
		}
	}
	for id := range d.waiting {
		return fmt.Errorf("the base of a delta: object %s: %w", id, ErrMissing)
	}
	return nil
}

// step is a delta to apply. The last one on its base lets go of it.
type step struct {
	entry, parent int32
	depth         int
	base          Object
	release       int64
}

// walk applies deltas, the last first, and then those that stand on them.
func (d *decoder) walk(steps []step) error {
	var spare []byte // content that nothing stands on any more
	for len(steps) > 0 {
		s := steps[len(steps)-1]
		steps = steps[:len(steps)-1]
		if s.depth > maxChain {
			return damaged("more than %d deltas on each other", maxChain)
		}
		e := &d.entries[s.entry]
		delta := d.of(e.extent)
		if most := min(d.limits.Held, d.limits.Made-d.made.Load()); deltaTarget(delta) > most { // before room is made for it
			return damaged("its objects are larger than %d bytes together", most)
		}
		data, err := applyDeltaIn(spare, s.base.Data, delta)
		d.held.Add(-s.release)
		if err != nil {
			return err
		}
		o := Object{s.base.Type, data}
		if e.base = s.parent; e.base == none { // the batch has no base for it
			e.extent = d.keep(data)
			if err := d.hold(int64(cap(data))); err != nil {
				return err
			}
		}
		others := len(steps)
		if steps, err = d.name(steps, s.entry, s.depth, o); err != nil {
			return err
		}
		switch spare = nil; {
		case s.release > 0 && d.entries[s.parent].base != none: // else the batch has it whole
			spare = s.base.Data
		case len(steps) == others && e.base != none:
			spare = data
		}
	}
	return nil
}

// name names an entry and adds the deltas on it to the steps.
func (d *decoder) name(steps []step, i int32, depth int, o Object) ([]step, error) {
	if d.made.Add(int64(len(o.Data))) > d.limits.Made {
		return nil, damaged("its objects are larger than %d bytes together", d.limits.Made)
	}
	id, err := o.ID(d.format)
	if err != nil {
		return nil, err
	}
	e := &d.entries[i]
	e.id, e.kind = id, o.Type
	if done := int(d.done.Add(1)); d.limits.Progress != nil {
		d.limits.Progress("objects named", done, len(d.entries))
	}
	n := len(steps)
	for child := e.first; child != none; child = d.entries[child].other {
		steps = append(steps, step{child, i, depth + 1, o, 0})
	}
	steps = d.named(steps, id, i, o)
	for k := n; k < len(steps); k++ {
		steps[k].depth = depth + 1
	}
	if len(steps) > n && depth > 0 {
		steps[n].release = int64(cap(o.Data)) // longer content may have been there before
		err = d.hold(steps[n].release)
	}
	return steps, err
}

// named adds the deltas that wait for a name, once.
func (d *decoder) named(steps []step, id ID, parent int32, o Object) []step {
	if !d.byName {
		return steps
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, child := range d.waiting[id] {
		steps = append(steps, step{child, parent, 1, o, 0})
	}
	delete(d.waiting, id)
	return steps
}
