package packfile

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// grown is content made of another's by a delta of copies and insertions.
func grown(r *rand.Rand, from []byte, size int) (delta, to []byte) {
	var ops []byte
	for len(to) < size {
		if n := min(size-len(to), len(from)); n > 0 && r.IntN(3) > 0 {
			n = 1 + r.IntN(n)
			at := r.IntN(len(from) - n + 1)
			ops, to = appendCopy(ops, at, n), append(to, from[at:at+n]...)
			continue
		}
		text := make([]byte, min(size-len(to), 1+r.IntN(100)))
		for i := range text {
			text[i] = byte(r.Uint32())
		}
		ops, to = append(append(ops, byte(len(text))), text...), append(to, text...)
	}
	delta = binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(from))), uint64(len(to)))
	return append(delta, ops...), to
}

// TestDecodeForest: whatever stands on what, in whatever order, by place or by name, and with bases elsewhere,
// every object is what its deltas make of its base alone.
func TestDecodeForest(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		thin, named := r.IntN(3) == 0, r.IntN(3) > 0
		sizes := []int{0, 1, 9, 30, 200, 201, 208, 1500, 3000, 70000}
		type planned struct {
			content, delta []byte
			id             ID
			base           int
			elsewhere      bool
		}
		var all []planned
		want, given := map[ID]Object{}, map[ID]Object{}
		for len(all) < 1+r.IntN(60) {
			p := planned{base: none}
			if len(all) == 0 || r.IntN(6) == 0 {
				_, p.content = grown(r, nil, sizes[r.IntN(len(sizes))])
				p.elsewhere = thin && r.IntN(2) == 0
			} else {
				p.base = r.IntN(len(all))
				if r.IntN(2) == 0 {
					p.base = len(all) - 1
				}
				p.delta, p.content = grown(r, all[p.base].content, sizes[r.IntN(len(sizes))])
			}
			p.id, _ = Object{plumbing.BlobObject, p.content}.ID(SHA1)
			if _, twice := want[p.id]; twice || given[p.id].Type != 0 {
				if named || thin {
					continue
				}
			}
			all = append(all, p)
			if o := (Object{plumbing.BlobObject, bytes.Clone(p.content)}); p.elsewhere {
				given[p.id] = o
			} else {
				want[p.id] = o
			}
		}
		order := []int{}
		for i, p := range all {
			if !p.elsewhere {
				order = append(order, i)
			}
		}
		if named || thin {
			r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		out := bytes.Clone([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00"))
		at := map[int]int64{}
		var entries [][]byte
		for _, i := range order {
			p := all[i]
			at[i] = int64(len(out))
			var e []byte
			if p.base == none {
				e = raw(t, plumbing.BlobObject, len(p.content), nil, p.content)
			} else if place, before := at[p.base]; before && (!named || r.IntN(2) == 0) {
				e = entryHeader(nil, entry{kind: plumbing.BlobObject, extent: extent{size: uint32(len(p.delta))}, depth: 1}, at[i], []packed{{offset: place}})
				e = append(e, stored(t, p.delta)...)
			} else {
				e = raw(t, plumbing.REFDeltaObject, len(p.delta), all[p.base].id.Append(nil), p.delta)
			}
			entries, out = append(entries, e), append(out, e...)
		}
		if len(entries) == 0 {
			continue
		}
		lent := map[ID]Object{}
		for id, o := range given {
			lent[id] = Object{o.Type, bytes.Clone(o.Data)}
		}
		pack := sealed(len(entries), entries...)
		decode := func(thin bool) (*Batch, error) {
			if thin {
				return decodeBytes(pack, func(id ID) (Object, error) {
					if o, ok := lent[id]; ok {
						return o, nil
					}
					return Object{}, ErrMissing
				})
			}
			return Decode(bytes.NewReader(pack), int64(len(pack)), SHA1, Limits{Held: 1 << 30, Made: 1 << 34}, nil)
		}
		for _, from := range []bool{true, false} {
			if len(given) > 0 && !from {
				continue
			}
			b, err := decode(from)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			ids := b.IDs()
			if len(ids) != len(want) {
				t.Fatalf("seed %d: %d objects, want %d", seed, len(ids), len(want))
			}
			r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			for _, id := range slices.Concat(ids, ids) {
				if o, ok := b.Get(id); !ok || !bytes.Equal(o.Data, want[id].Data) {
					t.Fatalf("seed %d: object %s is not as it was made", seed, id)
				}
			}
			for id, o := range given {
				if !bytes.Equal(lent[id].Data, o.Data) {
					t.Fatalf("seed %d: a base was written over", seed)
				}
			}
		}
	}
}
