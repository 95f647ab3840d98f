package packfile

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// packed is one entry of a pack, as its index tells it.
type packed struct {
	id     plumbing.Hash
	crc    uint32
	offset int64
}

const (
	idSize   = len(plumbing.Hash{})
	idxMagic = "\xfftOc\x00\x00\x00\x02"
)

// encodeIndex makes an index of version 2.
func encodeIndex(entries []packed, packSum plumbing.Hash) []byte {
	slices.SortFunc(entries, func(a, b packed) int {
		if c := cmp.Compare(binary.BigEndian.Uint64(a.id[:]), binary.BigEndian.Uint64(b.id[:])); c != 0 {
			return c
		}
		return bytes.Compare(a.id[:], b.id[:])
	})
	out := make([]byte, 0, len(idxMagic)+256*4+len(entries)*(idSize+16)+2*idSize)
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
