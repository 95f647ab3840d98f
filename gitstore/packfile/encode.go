package packfile

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// packed is one entry of a pack.
type packed struct {
	id     plumbing.Hash
	crc    uint32
	offset int64
}

// encodePack writes the pack. Entries are compressed on all cores; the bytes
// depend on the objects and their order alone.
func encodePack(to io.Writer, b *Batch) (entries []packed, sum plumbing.Hash, err error) {
	all := sha1.New()
	to = io.MultiWriter(all, to)
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(b.ids)))
	if _, err := to.Write(head); err != nil {
		return nil, sum, err
	}
	entries = make([]packed, 0, len(b.ids))
	offset := int64(packHeaderSize)
	var out []byte
	for _, chunks := range rounds(b.entries) {
		parts, errs := make([]part, len(chunks)), make([]error, len(chunks))
		Parallel(len(chunks), 1, func(i int) { parts[i], errs[i] = deflateAll(chunks[i]) })
		if err := errors.Join(errs...); err != nil {
			return nil, sum, err
		}
		for _, p := range parts {
			out = out[:0]
			for i := range p.ends {
				start, n := len(out), len(entries)
				at := offset + int64(start)
				out = append(entryHeader(out, b.entries[n], at, entries), p.stream(i)...)
				entries = append(entries, packed{b.ids[n], crc32.ChecksumIEEE(out[start:]), at})
			}
			if _, err := to.Write(out); err != nil {
				return nil, sum, err
			}
			offset += int64(len(out))
		}
	}
	all.Sum(sum[:0])
	_, err = to.Write(sum[:])
	return entries, sum, err
}

// Objects are compressed in chunks of one core each, the chunks of a round all
// at once. Both are bounded, so that memory is.
const (
	chunkObjects = 256
	chunkBytes   = 256 << 10
	roundBytes   = 8 << 20
)

// rounds cuts entries into chunks and those into rounds.
func rounds(entries []entry) (out [][][]entry) {
	var chunks [][]entry
	total, size, start := 0, 0, 0
	for i, e := range entries {
		size += len(e.data)
		last := i == len(entries)-1
		if !last && i+1-start < chunkObjects && size < chunkBytes {
			continue
		}
		chunks, total = append(chunks, entries[start:i+1]), total+size
		start, size = i+1, 0
		if last || total >= roundBytes {
			out, chunks, total = append(out, chunks), nil, 0
		}
	}
	return out
}

// part is the zlib streams of some entries, and where each ends.
type part struct {
	data []byte
	ends []int
}

func (p part) stream(i int) []byte {
	if i == 0 {
		return p.data[:p.ends[0]]
	}
	return p.data[p.ends[i-1]:p.ends[i]]
}

func deflateAll(entries []entry) (part, error) {
	w := getWriter()
	defer w.put()
	ends := make([]int, len(entries))
	for i, e := range entries {
		if err := w.deflate(Object{e.kind, e.data}); err != nil {
			return part{}, err
		}
		ends[i] = w.buf.Len()
	}
	return part{bytes.Clone(w.buf.Bytes()), ends}, nil
}

// entryHeader is what pack.entry reads. The entry's own place tells how far
// back its base is.
func entryHeader(b []byte, e entry, at int64, before []packed) []byte {
	kind := e.kind
	if e.depth > 0 {
		kind = plumbing.OFSDeltaObject
	}
	size := uint64(len(e.data))
	first := byte(kind)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		b = append(b, first|0x80)
		first = byte(size & 0x7f)
	}
	b = append(b, first)
	if e.depth == 0 {
		return b
	}
	back := at - before[e.base].offset
	var digits [10]byte // the highest first; each but the last counts from one
	i := len(digits) - 1
	digits[i] = byte(back & 0x7f)
	for back >>= 7; back > 0; back >>= 7 {
		back--
		i--
		digits[i] = 0x80 | byte(back&0x7f)
	}
	return append(b, digits[i:]...)
}

// encodeIndex makes an index of version 2.
func encodeIndex(entries []packed, packSum plumbing.Hash) []byte {
	slices.SortFunc(entries, func(a, b packed) int {
		if c := cmp.Compare(binary.BigEndian.Uint64(a.id[:]), binary.BigEndian.Uint64(b.id[:])); c != 0 {
			return c
		}
		return bytes.Compare(a.id[:], b.id[:])
	})
	out := make([]byte, 0, int(idxHeaderSize)+len(entries)*(idSize+16)+2*idSize)
	out = append(out, idxMagic...)
	n := 0
	for first := range 256 {
		for n < len(entries) && int(entries[n].id[0]) == first {
			n++
		}
		out = binary.BigEndian.AppendUint32(out, uint32(n))
	}
	for _, e := range entries {
		out = append(out, e.id[:]...)
	}
	for _, e := range entries {
		out = binary.BigEndian.AppendUint32(out, e.crc)
	}
	var wide []byte
	for _, e := range entries {
		offset := uint32(e.offset)
		if e.offset >= 1<<31 {
			offset = 1<<31 | uint32(len(wide)/8)
			wide = binary.BigEndian.AppendUint64(wide, uint64(e.offset))
		}
		out = binary.BigEndian.AppendUint32(out, offset)
	}
	out = append(append(out, wide...), packSum[:]...)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}
