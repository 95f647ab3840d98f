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
	var offset int64
	write := func(p []byte) error {
		_, _ = all.Write(p)
		offset += int64(len(p))
		_, err := to.Write(p)
		return err
	}
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(b.ids)))
	if err := write(head); err != nil {
		return nil, sum, err
	}
	entries = make([]packed, 0, len(b.ids))
	for _, chunks := range rounds(b.objects) {
		parts, errs := make([]part, len(chunks)), make([]error, len(chunks))
		Parallel(len(chunks), 1, func(i int) { parts[i], errs[i] = encodeEntries(chunks[i]) })
		if err := errors.Join(errs...); err != nil {
			return nil, sum, err
		}
		for _, p := range parts {
			for i, start := range p.starts {
				entries = append(entries, packed{b.ids[len(entries)], p.crcs[i], offset + start})
			}
			if err := write(p.data); err != nil {
				return nil, sum, err
			}
		}
	}
	all.Sum(sum[:0])
	return entries, sum, write(slices.Clone(sum[:]))
}

// Objects are compressed in chunks of one core each, the chunks of a round all
// at once. Both are bounded, so that memory is.
const (
	chunkObjects = 256
	chunkBytes   = 256 << 10
	roundBytes   = 8 << 20
)

// rounds cuts objects into chunks and those into rounds.
func rounds(objects []Object) (out [][][]Object) {
	var chunks [][]Object
	total, size, start := 0, 0, 0
	for i, o := range objects {
		size += len(o.Data)
		last := i == len(objects)-1
		if !last && i+1-start < chunkObjects && size < chunkBytes {
			continue
		}
		chunks, total = append(chunks, objects[start:i+1]), total+size
		start, size = i+1, 0
		if last || total >= roundBytes {
			out, chunks, total = append(out, chunks), nil, 0
		}
	}
	return out
}

// part is a run of entries, where each starts, and its CRC-32.
type part struct {
	data   []byte
	starts []int64
	crcs   []uint32
}

func encodeEntries(objects []Object) (part, error) {
	w := getWriter()
	defer w.put()
	p := part{starts: make([]int64, len(objects)), crcs: make([]uint32, len(objects))}
	for i, o := range objects {
		start := w.buf.Len()
		w.buf.Write(entryHeader(w.buf.AvailableBuffer(), o))
		if err := w.deflate(o); err != nil {
			return part{}, err
		}
		p.starts[i], p.crcs[i] = int64(start), crc32.ChecksumIEEE(w.buf.Bytes()[start:])
	}
	p.data = bytes.Clone(w.buf.Bytes())
	return p, nil
}

// entryHeader is what reader.typeAndSize reads.
func entryHeader(b []byte, o Object) []byte {
	size := uint64(len(o.Data))
	first := byte(o.Type)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		b = append(b, first|0x80)
		first = byte(size & 0x7f)
	}
	return append(b, first)
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
