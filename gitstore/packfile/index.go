package packfile

import (
	"encoding/binary"
	"slices"
)

// packed is one entry of a pack, as its index tells it.
type packed struct {
	id     ID
	crc    uint32
	offset int64
}

const idxMagic = "\xfftOc\x00\x00\x00\x02"

// encodeIndex makes an index of version 2.
func encodeIndex(f Format, entries []packed, packSum []byte) []byte {
	slices.SortFunc(entries, func(a, b packed) int {
		return a.id.Compare(b.id)
	})
	out := make([]byte, 0, len(idxMagic)+256*4+len(entries)*(f.Size()+16)+2*f.Size())
	out = append(out, idxMagic...)
	n := 0
	for first := range 256 {
		for n < len(entries) && int(entries[n].id.First()) == first {
			n++
		}
		out = binary.BigEndian.AppendUint32(out, uint32(n))
	}
	for _, e := range entries {
		out = e.id.Append(out)
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
	out = append(append(out, wide...), packSum...)
	sum := f.New()
	_, _ = sum.Write(out)
	return sum.Sum(out)
}
