package packfile

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	gogit "github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/memory"
)

// limits are those of decodeBytes.
var limits = Limits{Held: 1 << 30, Made: 16 << 30}

// decodeBytes is Decode of a pack in memory.
func decodeBytes(pack []byte, base func(ID) (Object, error)) (*Batch, error) {
	return Decode(bytes.NewReader(pack), int64(len(pack)), SHA1, limits, base)
}

func noBase(ID) (Object, error) { return Object{}, ErrMissing }

// packObjects makes a pack of what git rev-list lists.
func (r repo) packObjects(revs string, args ...string) []byte {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "pack.threads=1"}, append(args, "--stdout", "--revs", "-q")...)...)
	cmd.Dir, cmd.Stdin, cmd.Stderr = r.dir, strings.NewReader(revs), os.Stderr
	out, err := cmd.Output()
	fatal(r.t, err)
	return out
}

// same fails the test unless the batch has these objects, as it is and when it
// was written, and git makes them of the pack too.
func (r repo) same(b *Batch, want map[ID]Object) {
	r.t.Helper()
	got := b.contents()
	if !maps.EqualFunc(got, want, func(a, b Object) bool { return a.Type == b.Type && bytes.Equal(a.Data, b.Data) }) {
		r.t.Errorf("%d objects, want %d, or others", len(got), len(want))
	}
	r.write(b)
	r.sound()
	r.agrees(want)
}

// TestDecode: packs as git sends them.
func TestDecode(t *testing.T) {
	r := newRepo(t)
	r.history(40)
	all := r.all()
	for _, c := range []struct {
		name string
		pack []byte
	}{
		{"deltas by offset", r.packObjects("main\nv1", "pack-objects", "--delta-base-offset", "--no-reuse-delta")},
		{"deltas by name", r.packObjects("main\nv1", "pack-objects", "--no-reuse-delta")},
		{"deep chains", r.packObjects("main\nv1", "-c", "pack.depth=500", "pack-objects", "--delta-base-offset", "--no-reuse-delta", "--window=30")},
		{"deep chains by name", r.packObjects("main\nv1", "-c", "pack.depth=500", "pack-objects", "--no-reuse-delta", "--window=30")},
		{"not compressed", r.packObjects("main\nv1", "-c", "pack.compression=0", "pack-objects", "--no-reuse-object")},
		{"backwards", backwards(t, r.packObjects("main\nv1", "pack-objects", "--no-reuse-delta"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := decodeBytes(c.pack, noBase)
			fatal(t, err)
			newRepo(t).same(b, all)
		})
	}
	t.Run("none", func(t *testing.T) {
		b, err := decodeBytes(r.packObjects("", "pack-objects"), noBase)
		if err != nil || b.Len() != 0 {
			t.Error(b, err)
		}
	})
	t.Run("thin", func(t *testing.T) {
		pack := r.packObjects("main\n^main~10", "pack-objects", "--thin", "--delta-base-offset")
		if _, err := decodeBytes(pack, noBase); !errors.Is(err, ErrMissing) {
			t.Errorf("without its bases: %v", err)
		}
		asked := 0
		b, err := decodeBytes(pack, func(id ID) (Object, error) {
			asked++
			return all[id], nil
		})
		if err != nil || asked == 0 {
			t.Fatal(asked, err)
		}
		want := map[ID]Object{}
		for _, line := range strings.Split(r.git("", "rev-list", "--objects", "main", "^main~10"), "\n") {
			id := ParseID(line[:40])
			want[id] = all[id]
		}
		newRepo(t).lacking(b, want)
		broken := errors.New("broken")
		if _, err := decodeBytes(pack, func(ID) (Object, error) { return Object{}, broken }); !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
	})
}

// lacking is same for objects that name others which are not there.
func (r repo) lacking(b *Batch, want map[ID]Object) {
	r.t.Helper()
	r.git("", "verify-pack", string(r.write(b)))
	r.agrees(want)
}

// backwards puts the entries of a pack, whose deltas are by name, in the other
// order.
func backwards(t *testing.T, pack []byte) []byte {
	d := &decoder{format: SHA1, from: bytes.NewReader(pack), limits: limits}
	if err := d.scan(int64(len(pack) - sha1.Size)); err != nil || !d.byName {
		t.Fatal(err)
	}
	out := bytes.Clone(pack[:packHeaderSize])
	end := int64(len(pack) - sha1.Size)
	for _, e := range slices.Backward(d.entries) {
		out = append(out, pack[e.offset:end]...)
		end = e.offset
	}
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

// sealed is a pack of these entries.
func sealed(count int, entries ...[]byte) []byte {
	out := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(count))
	out = append(out, bytes.Join(entries, nil)...)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

// raw is an entry: its header says this size; base is what stands between it and
// the content.
func raw(tb testing.TB, kind plumbing.ObjectType, size int, base, data []byte) []byte {
	out := entryHeader(nil, entry{kind: kind, extent: extent{size: uint32(size)}}, 0, nil)
	return append(append(out, base...), stored(tb, data)...)
}

// TestDecodeRefuses: what git refuses too.
func TestDecodeRefuses(t *testing.T) {
	r := newRepo(t)
	hello := raw(t, plumbing.BlobObject, 5, nil, []byte("hello"))
	id, _ := Object{plumbing.BlobObject, []byte("hello")}.ID(SHA1)
	twice := []byte("\x05\x0a\x90\x05\x90\x05")
	ofs := func(back string, delta []byte) []byte {
		return raw(t, plumbing.OFSDeltaObject, len(delta), []byte(back), delta)
	}
	ref := func(id ID, delta []byte) []byte {
		return raw(t, plumbing.REFDeltaObject, len(delta), id.Append(nil), delta)
	}
	far := string([]byte{byte(len(hello))})
	good := sealed(2, hello, ofs(far, twice))
	tenID, _ := Object{plumbing.BlobObject, []byte("hellohello")}.ID(SHA1)
	flipped := bytes.Clone(good)
	flipped[20] ^= 1
	for _, c := range []struct {
		name string
		pack []byte
		fine bool
	}{
		{"good", good, true},
		{"by name", sealed(2, ref(id, twice), hello), true},
		{"the same twice", sealed(2, hello, hello), true},
		{"a delta that changes nothing", sealed(2, hello, ofs(far, []byte("\x05\x05\x90\x05"))), true},
		{"round and round", sealed(4, hello, ref(id, twice), ref(tenID, []byte("\x0a\x05\x90\x05")), ref(id, []byte("\x05\x05\x90\x05"))), false},
		{"empty", nil, false},
		{"a header alone", []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00"), false},
		{"a bit", flipped, false},
		{"cut short", good[:len(good)-1], false},
		{"longer", append(bytes.Clone(good), 0), false},
		{"fewer objects than it says", sealed(3, hello, ofs(far, twice)), false},
		{"more objects than it says", sealed(1, hello, ofs(far, twice)), false},
		{"no objects but it says so", sealed(1<<30, hello), false},
		{"version 4", func() []byte {
			p := bytes.Clone(good[:len(good)-sha1.Size])
			p[7] = 4
			sum := sha1.Sum(p)
			return append(p, sum[:]...)
		}(), false},
		{"type 0", sealed(1, raw(t, 0, 5, nil, []byte("hello"))), false},
		{"type 5", sealed(1, raw(t, 5, 5, nil, []byte("hello"))), false},
		{"too short", sealed(1, raw(t, plumbing.BlobObject, 6, nil, []byte("hello"))), false},
		{"too long", sealed(1, raw(t, plumbing.BlobObject, 4, nil, []byte("hello"))), false},
		{"on itself", sealed(1, ofs("\x00", twice)), false},
		{"on the middle of an entry", sealed(2, hello, ofs(string([]byte{byte(len(hello)) - 1}), twice)), false},
		{"before the pack", sealed(2, hello, ofs("\x7f", twice)), false},
		{"far before the pack", sealed(2, hello, ofs("\xff\xff\xff\xff\xff\xff\xff\xff\x7f", twice)), false},
		{"missing base", sealed(2, hello, ref(ParseID(strings.Repeat("1", 40)), twice)), false},
		{"on each other", sealed(2, ref(tenID, []byte("\x0a\x05\x90\x05")), ref(id, twice)), false},
		{"for another base", sealed(2, hello, ofs(far, []byte("\x06\x0a\x90\x05\x90\x05"))), false},
		{"a delta that makes less", sealed(2, hello, ofs(far, []byte("\x05\x0b\x90\x05\x90\x05"))), false},
		{"an empty delta", sealed(2, hello, ofs(far, nil)), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := decodeBytes(c.pack, noBase)
			if (err == nil) != c.fine || err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrMissing) {
				t.Fatalf("%v", err)
			}
			theirs := r.indexPack(c.pack)
			if (theirs == nil) == c.fine && len(theirs) == 0 {
				t.Fatalf("git takes it: %v", theirs != nil)
			}
			if err == nil && !slices.Equal(sortedIDs(b), theirs) {
				t.Errorf("%v, git finds %v", sortedIDs(b), theirs)
			}
		})
	}
}

func sortedIDs(b *Batch) (out []string) {
	for _, id := range b.IDs() {
		out = append(out, id.String())
	}
	slices.Sort(out)
	return out
}

// indexPack is what git finds in a pack, nil if it refuses it.
func (r repo) indexPack(pack []byte) []string {
	r.t.Helper()
	dir := r.t.TempDir()
	file := filepath.Join(dir, "x.pack")
	fatal(r.t, os.WriteFile(file, pack, 0o666))
	cmd := exec.Command("git", "index-pack", file)
	cmd.Dir = r.dir
	if cmd.Run() != nil {
		return nil
	}
	idx, err := os.ReadFile(filepath.Join(dir, "x.idx"))
	fatal(r.t, err)
	out := []string{}
	for _, line := range strings.Fields(r.git(string(idx), "show-index")) {
		if len(line) == 40 && !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

// TestDecodeBombs: a small pack may not take all the memory, nor all the time.
func TestDecodeBombs(t *testing.T) {
	defer func(was Limits) { limits = was }(limits)
	zeros := make([]byte, 1<<20)
	w := getWriter()
	fatal(t, w.deflate(Object{plumbing.BlobObject, zeros}))
	big := append(entryHeader(nil, entry{kind: plumbing.BlobObject, extent: extent{size: uint32(len(zeros))}}, 0, nil), w.buf.Bytes()...)
	w.put()
	bigID, _ := Object{plumbing.BlobObject, zeros}.ID(SHA1)
	var entries [][]byte
	entries = append(entries, big)
	for i := range 100 {
		delta := binary.AppendUvarint(binary.AppendUvarint(nil, 1<<20), 1<<20)
		for range 15 {
			delta = append(delta, 0x80)
		}
		delta = append(delta, 0x80|0x10|0x20, 0xf0, 0xff, 16)
		delta = append(delta, fmt.Sprintf("%016d", i)...)
		entries = append(entries, raw(t, plumbing.REFDeltaObject, len(delta), bigID.Append(nil), delta))
	}
	pack := sealed(len(entries), entries...)
	for _, c := range []struct {
		held, made int64
		fine       bool
	}{{2 << 20, 101 << 20, true}, {2 << 20, 50 << 20, false}, {1 << 19, 101 << 20, false}} {
		limits.Held, limits.Made = c.held, c.made
		b, err := decodeBytes(pack, noBase)
		if (err == nil) != c.fine || err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%v: %v", c, err)
		}
		if err == nil && b.Len() != 101 {
			t.Errorf("%d objects", b.Len())
		}
	}
	for _, c := range []struct {
		sides, levels int
		held          int64
		fine          bool
	}{{1, 40, 4 << 20, true}, {2, 12, 16 << 20, true}, {2, 12, 4 << 20, false}} {
		limits.Held, limits.Made = c.held, 1<<40
		pack := tree(t, big, zeros, c.levels, c.sides)
		if _, err := decodeBytes(pack, noBase); (err == nil) != c.fine || err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// tree is a pack of versions of a megabyte: each level has so many, all on the
// last one of the level above.
func tree(t *testing.T, big, zeros []byte, levels, sides int) []byte {
	entries := [][]byte{big}
	data := bytes.Clone(zeros)
	id, _ := Object{plumbing.BlobObject, data}.ID(SHA1)
	for i := range levels {
		for side := range sides {
			delta := binary.AppendUvarint(binary.AppendUvarint(nil, 1<<20), 1<<20)
			delta = append(delta, 0x80|0x10|0x20, 0xf0, 0xff)
			at := 65520
			delta = append(delta, 16)
			text := fmt.Sprintf("%08d%08d", i, side)
			delta = append(delta, text...)
			delta = appendCopy(delta, at+16, 1<<20-at-16)
			entries = append(entries, raw(t, plumbing.REFDeltaObject, len(delta), id.Append(nil), delta))
			copy(data[at:], text)
		}
		id, _ = Object{plumbing.BlobObject, data}.ID(SHA1)
	}
	return sealed(len(entries), entries...)
}

// TestDecodeChain: chains end somewhere.
func TestDecodeChain(t *testing.T) {
	for _, depth := range []int{60, maxChain, maxChain + 1} {
		data := bytes.Repeat([]byte("x"), 100)
		entries := [][]byte{raw(t, plumbing.BlobObject, len(data), nil, data)}
		for i := range depth {
			delta := append([]byte("\x64\x64\x90\x60\x04"), byte(i), byte(i>>8), 0, 0)
			back := int64(len(entries[i]))
			e := entryHeader(nil, entry{kind: plumbing.BlobObject, extent: extent{size: uint32(len(delta))}, depth: 1}, 1<<40, []packed{{offset: 1<<40 - back}})
			entries = append(entries, append(e, stored(t, delta)...))
		}
		b, err := decodeBytes(sealed(len(entries), entries...), noBase)
		if (err == nil) != (depth <= maxChain) {
			t.Fatal(err)
		}
		if err == nil {
			for i, e := range b.entries {
				if e.depth > maxDepth {
					t.Errorf("object %d stands on %d deltas", i, e.depth)
				}
			}
			newRepo(t).same(b, b.contents())
			b.pack = nil
			newRepo(t).same(b, b.contents())
		}
	}
}

// FuzzDecode: what is accepted is written and read again as it was, and every
// object has its name.
func FuzzDecode(f *testing.F) {
	hello := raw(f, plumbing.BlobObject, 5, nil, []byte("hello"))
	id, _ := Object{plumbing.BlobObject, []byte("hello")}.ID(SHA1)
	twice := []byte("\x05\x0a\x90\x05\x90\x05")
	other, _ := Object{plumbing.TreeObject, nil}.ID(SHA1)
	f.Add(2, append(bytes.Clone(hello), raw(f, plumbing.OFSDeltaObject, 6, []byte{byte(len(hello))}, twice)...))
	f.Add(2, append(raw(f, plumbing.REFDeltaObject, 6, id.Append(nil), twice), hello...))
	f.Add(2, append(bytes.Clone(hello), hello...))
	f.Add(1, raw(f, plumbing.REFDeltaObject, 6, other.Append(nil), []byte("\x00\x01\x01x")))
	defer func(was Limits) { limits = was }(limits)
	limits.Held = 16 << 20
	f.Fuzz(func(t *testing.T, count int, body []byte) {
		b, err := decodeBytes(sealed(count, body), func(id ID) (Object, error) {
			if id == other {
				return Object{plumbing.TreeObject, nil}, nil
			}
			return Object{}, ErrMissing
		})
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrMissing) {
				t.Error(err)
			}
			return
		}
		for id, o := range b.contents() {
			if got, err := o.ID(SHA1); got != id || err != nil {
				t.Errorf("%s is %s: %v", id, got, err)
			}
		}
		b.pack = nil
		data, err := b.Encode()
		fatal(t, err)
		again, err := decodeBytes(data, noBase)
		if err != nil || !slices.Equal(sortedIDs(again), sortedIDs(b)) {
			t.Errorf("%v, after writing %v: %v", b.IDs(), again, err)
		}
	})
}

// TestDecodeBits: no bit of a pack may change.
func TestDecodeBits(t *testing.T) {
	r := newRepo(t)
	r.history(3)
	pack := r.packObjects("main\nv1", "pack-objects", "--delta-base-offset")
	random := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		changed := bytes.Clone(pack)
		changed[random.IntN(len(pack))] ^= 1 << random.IntN(8)
		if _, err := decodeBytes(changed, noBase); !errors.Is(err, ErrDamaged) {
			t.Errorf("%v", err)
		}
		body := changed[packHeaderSize : len(changed)-sha1.Size] // with a new checksum
		if b, err := decodeBytes(sealed(int(binary.BigEndian.Uint32(pack[8:])), body), noBase); err == nil && r.indexPack(sealed(b.Len(), body)) == nil {
			t.Error("git refuses it")
		}
	}
}

// BenchmarkDecode reads the pack of 10,000 commits, beside go-git's parser.
func BenchmarkDecode(b *testing.B) {
	book := newBook(b)
	for range 10000 {
		book.commit()
	}
	pack, err := book.batch.Encode()
	fatal(b, err)
	var ours, theirs time.Duration
	for range b.N {
		start := time.Now()
		if got, err := decodeBytes(pack, noBase); err != nil || got.Len() != book.batch.Len() {
			b.Fatal(err)
		}
		ours += time.Since(start)
		start = time.Now()
		parser, err := gogit.NewParserWithStorage(gogit.NewScanner(bytes.NewReader(pack)), memory.NewStorage())
		fatal(b, err)
		if _, err := parser.Parse(); err != nil {
			b.Fatal(err)
		}
		theirs += time.Since(start)
	}
	b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ms/ours")
	b.ReportMetric(float64(ours)/float64(theirs), "x-go-git")
}
