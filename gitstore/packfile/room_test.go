package packfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// TestDecodeRoom: content that is written over longer content counts as the memory that it keeps. On each level
// stand a long leaf, a short version, which takes the leaf's place, and one more, for which the level is kept.
func TestDecodeRoom(t *testing.T) {
	const (
		short  = 64 << 10
		long   = 8 * short
		levels = 20
	)
	base := bytes.Repeat([]byte("x"), short)
	pack := raw(t, plumbing.BlobObject, short, nil, base)
	count, parent := 1, int64(0)
	on := func(parent int64, copies, name, level byte) (at int64) {
		delta := binary.AppendUvarint(binary.AppendUvarint(nil, short), uint64(copies)*short)
		delta = appendCopy(append(delta, 2, name, level), 0, short-2)
		for range copies - 1 {
			delta = appendCopy(delta, 0, short)
		}
		at, count = int64(len(pack)), count+1
		pack = append(entryHeader(pack, entry{kind: plumbing.BlobObject, extent: extent{size: uint32(len(delta))}, depth: 1}, at, []packed{{offset: parent}}), stored(t, delta)...)
		return at
	}
	for level := range byte(levels) {
		on(parent, long/short, 'l', level)
		next := on(parent, 1, 's', level)
		on(parent, 1, 'e', level)
		parent = next
	}
	pack = sealed(count, pack)
	for held, fine := range map[int64]bool{levels * long / 2: false, levels * long * 2: true} {
		_, err := Decode(bytes.NewReader(pack), int64(len(pack)), SHA1, Limits{Held: held, Made: 1 << 40}, nil)
		if (err == nil) != fine || err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%d bytes: %v", held, err)
		}
	}
}
