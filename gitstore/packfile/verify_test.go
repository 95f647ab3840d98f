package packfile

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// TestVerify: packs of git and of this package are sound.
func TestVerify(t *testing.T) {
	r, _, names := packs(t, 3, 20)
	r.history(20)
	r.git("", "-c", "pack.packSizeLimit=1m", "repack", "-dfq")
	s := r.open()
	all := r.packNames(s)
	if len(all) <= len(names) {
		t.Fatalf("%d packs", len(all))
	}
	var most, total atomic.Int64
	if err := s.Verify(func(done, of int64) { most.Store(max(most.Load(), done)); total.Store(of) }); err != nil {
		t.Error(err)
	}
	if most.Load() != total.Load() || total.Load() == 0 {
		t.Errorf("%d bytes of %d", most.Load(), total.Load())
	}
	r.git("", "repack", "-adfq")
	r.wideOffsets()
	if err := s.Verify(nil); err != nil {
		t.Error(err)
	}
	var none Batch
	if _, err := s.WritePack(&none); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(nil); err != nil {
		t.Error(err)
	}
}

// verify writes the files and checks them.
func (d damage) verify(pack, idx []byte) error {
	base := filepath.Join(d.t.TempDir(), "pack-x")
	if err := errors.Join(os.WriteFile(base+".pack", pack, 0o666), os.WriteFile(base+".idx", idx, 0o666)); err != nil {
		d.t.Fatal(err)
	}
	return verifyFiles(base+".pack", base+".idx", func(int) {})
}

// TestVerifyBits: any bit that is flipped is found, with the file's name.
func TestVerifyBits(t *testing.T) {
	d := newDamage(t)
	if err := d.verify(d.pack, d.idx); err != nil {
		t.Fatal(err)
	}
	flip := func(file string, data []byte, verify func([]byte) error) {
		random := rand.New(rand.NewPCG(2, 2))
		for i := range data {
			if os.Getenv("COUNTERSIGN_LONG") == "" && i%7 != 0 {
				continue
			}
			data[i] ^= 1 << random.IntN(8)
			err := verify(data)
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), file) {
				t.Errorf("byte %d of %s: %v", i, file, err)
			}
			data[i] = d.original(file)[i]
		}
		for n := 0; n < len(data); n += 11 {
			if err := verify(data[:n]); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s of %d bytes: %v", file, n, err)
			}
		}
		if err := verify(append(bytes.Clone(data), 0)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s with a byte more: %v", file, err)
		}
	}
	flip("pack-x.pack", bytes.Clone(d.pack), func(pack []byte) error { return d.verify(pack, d.idx) })
	flip("pack-x", bytes.Clone(d.idx), func(idx []byte) error { return d.verify(d.pack, idx) })
}

func (d damage) original(file string) []byte {
	if strings.HasSuffix(file, ".pack") {
		return d.pack
	}
	return d.idx
}

// TestVerifyIndex: an index whose checksum is right but which is not this
// pack's.
func TestVerifyIndex(t *testing.T) {
	d := newDamage(t)
	entries, err := (&index{data: d.idx}).verify()
	if err != nil {
		t.Fatal(err)
	}
	sum := plumbing.Hash(d.pack[len(d.pack)-idSize:])
	for name, change := range map[string]func(e []packed) ([]packed, plumbing.Hash){
		"nothing":            func(e []packed) ([]packed, plumbing.Hash) { return e, sum },
		"another pack":       func(e []packed) ([]packed, plumbing.Hash) { return e, plumbing.Hash{} },
		"crc":                func(e []packed) ([]packed, plumbing.Hash) { e[2].crc++; return e, sum },
		"crc of the first":   func(e []packed) ([]packed, plumbing.Hash) { e[0].crc++; return e, sum },
		"crc of the last":    func(e []packed) ([]packed, plumbing.Hash) { e[len(e)-1].crc++; return e, sum },
		"offset":             func(e []packed) ([]packed, plumbing.Hash) { e[2].offset++; return e, sum },
		"first offset":       func(e []packed) ([]packed, plumbing.Hash) { e[0].offset++; return e, sum },
		"two in one place":   func(e []packed) ([]packed, plumbing.Hash) { e[2].offset = e[1].offset; return e, sum },
		"two at the end":     func(e []packed) ([]packed, plumbing.Hash) { e[len(e)-2].offset = e[len(e)-1].offset; return e, sum },
		"outside the pack":   func(e []packed) ([]packed, plumbing.Hash) { e[2].offset = 1 << 33; return e, sum },
		"on the checksum":    func(e []packed) ([]packed, plumbing.Hash) { e[2].offset = int64(len(d.pack) - 20); return e, sum },
		"one object missing": func(e []packed) ([]packed, plumbing.Hash) { return e[1:], sum },
		"no object":          func(e []packed) ([]packed, plumbing.Hash) { return nil, sum },
	} {
		changed, packSum := change(slices.Clone(entries))
		err := d.verify(d.pack, encodeIndex(changed, packSum))
		if (err == nil) != (name == "nothing") || err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	outside := slices.Clone(entries)
	last, before := len(outside)-1, outside[len(outside)-2].offset
	outside[last].offset = 1 << 40
	outside[last-1].crc = crc32.ChecksumIEEE(d.pack[before : len(d.pack)-idSize])
	if err := d.verify(d.pack, encodeIndex(outside, sum)); !errors.Is(err, ErrDamaged) {
		t.Errorf("outside: %v", err)
	}
	gap := slices.Clone(entries)
	gap[0].offset++
	gap[0].crc = crc32.ChecksumIEEE(d.pack[gap[0].offset:gap[1].offset])
	if err := d.verify(d.pack, encodeIndex(gap, sum)); !errors.Is(err, ErrDamaged) {
		t.Errorf("a gap: %v", err)
	}
	other, crcs := bytes.Clone(d.pack), slices.Clone(entries)
	other[crcs[1].offset-1] ^= 1
	crcs[0].crc = crc32.ChecksumIEEE(other[crcs[0].offset:crcs[1].offset])
	if err := d.verify(other, encodeIndex(crcs, sum)); !errors.Is(err, ErrDamaged) {
		t.Errorf("another content: %v", err)
	}
	for _, change := range []int{-1, 1} { // a name counts for the byte before its own, or after it
		fanout := bytes.Clone(d.idx)
		at := func(k int) []byte { return fanout[len(idxMagic)+4*k:] }
		for k := 1; k < 256; k++ {
			n, below := binary.BigEndian.Uint32(at(k)), binary.BigEndian.Uint32(at(k-1))
			if n > below && change < 0 && k < 255 {
				binary.BigEndian.PutUint32(at(k), n-1)
				break
			}
			if n > below && change > 0 {
				binary.BigEndian.PutUint32(at(k-1), below+1)
				break
			}
		}
		if err := d.verify(d.pack, sealIndex(fanout)); !errors.Is(err, ErrDamaged) {
			t.Errorf("fan-out: %v", err)
		}
	}
	unsorted := bytes.Clone(d.idx)
	names := unsorted[idxHeaderSize:]
	for i := range len(entries) - 1 {
		a, b := names[i*idSize:(i+1)*idSize], names[(i+1)*idSize:(i+2)*idSize]
		if a[0] == b[0] {
			swap := bytes.Clone(a)
			copy(a, b)
			copy(b, swap)
			break
		}
	}
	if err := d.verify(d.pack, sealIndex(unsorted)); !errors.Is(err, ErrDamaged) {
		t.Errorf("not sorted: %v", err)
	}
}

// sealIndex makes the checksum of an index right.
func sealIndex(idx []byte) []byte {
	body := idx[:len(idx)-idSize]
	sum := sha1.Sum(body)
	return append(bytes.Clone(body), sum[:]...)
}

// FuzzVerify: an index is sound, or damaged.
func FuzzVerify(f *testing.F) {
	f.Add(encodeIndex(nil, plumbing.Hash{}))
	f.Add(encodeIndex([]packed{{id: plumbing.Hash{1}, offset: 12}, {id: plumbing.Hash{1, 2}, offset: 1 << 40}, {id: plumbing.Hash{255}, offset: 99}}, plumbing.Hash{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > idSize {
			data = sealIndex(data)
		}
		x := &index{data: data}
		entries, err := x.verify()
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
			return
		}
		for _, e := range entries {
			if _, err := x.find(e.id); err != nil {
				t.Error(err)
			}
		}
	})
}
