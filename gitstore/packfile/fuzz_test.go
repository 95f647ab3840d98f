package packfile

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	gogit "github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// FuzzPack: whatever stands at an offset is read, or is an error that says it
// is damaged. The trailer is made right, so that the fuzzer gets past it.
func FuzzPack(f *testing.F) {
	var b Batch
	_, err := b.Add(Object{plumbing.BlobObject, []byte("hello")}, Object{plumbing.TreeObject, bytes.Repeat([]byte("x"), 300)})
	if err != nil {
		f.Fatal(err)
	}
	var made bytes.Buffer
	if _, _, err := encodePack(&made, &b); err != nil {
		f.Fatal(err)
	}
	body := made.Bytes()[packHeaderSize : made.Len()-idSize]
	f.Add(body, uint16(0))
	delta := []byte("\x05\x0a\x90\x05\x90\x05") // twice the base
	ofs := append([]byte{byte(plumbing.OFSDeltaObject)<<4 | byte(len(delta)), byte(len(body))}, stored(f, delta)...)
	f.Add(append(bytes.Clone(body), ofs...), uint16(len(body)))
	ref := append(append([]byte{byte(plumbing.REFDeltaObject)<<4 | byte(len(delta))}, b.ids[0][:]...), stored(f, delta)...)
	f.Add(append(bytes.Clone(body), ref...), uint16(len(body)))
	f.Add([]byte("\xff\xff\xff\xff\xff\x07\x78\x01"), uint16(0))
	f.Fuzz(func(t *testing.T, body []byte, at uint16) {
		whole := append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x02"), body...)
		sum := sha1.Sum(whole)
		file := filepath.Join(t.TempDir(), "x.pack")
		if err := os.WriteFile(file, append(whole, sum[:]...), 0o666); err != nil {
			t.Fatal(err)
		}
		// The second entry has the name of a base that a delta can ask for.
		idx := encodeIndex([]packed{{id: b.ids[0], offset: packHeaderSize}, {id: b.ids[1], offset: packHeaderSize + int64(at)}}, sum)
		x := &index{data: idx}
		if err := x.parse(int64(len(idx))); err != nil {
			t.Fatal(err)
		}
		p := &pack{name: "x", path: file, index: x}
		defer func() { _ = p.close() }()
		c := newCache()
		for range 2 {
			o, err := p.read(packHeaderSize+int64(at), c)
			h, sizeErr := p.size(packHeaderSize+int64(at), c)
			if err != nil && !errors.Is(err, ErrDamaged) {
				t.Errorf("%v", err)
			}
			if err == nil && (sizeErr != nil || h.size != int64(len(o.Data)) || h.kind != o.Type) {
				t.Errorf("%v %d, then %d: %v", o.Type, len(o.Data), h.size, sizeErr)
			}
		}
	})
}

func stored(tb testing.TB, data []byte) []byte {
	w := getWriter()
	defer w.put()
	if err := w.deflate(Object{plumbing.BlobObject, data}); err != nil {
		tb.Fatal(err)
	}
	return bytes.Clone(w.buf.Bytes())
}

// TestSameEnds: how far two texts are alike, from either end.
func TestSameEnds(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	for range 20000 {
		texts := [2][]byte{make([]byte, random.IntN(30)), make([]byte, random.IntN(30))}
		for _, text := range texts {
			for i := range text {
				text[i] = "aaaaab"[random.IntN(6)]
			}
		}
		a, b := texts[0], texts[1]
		prefix, suffix := 0, 0
		for prefix < min(len(a), len(b)) && a[prefix] == b[prefix] {
			prefix++
		}
		for suffix < min(len(a), len(b)) && a[len(a)-1-suffix] == b[len(b)-1-suffix] {
			suffix++
		}
		if p, s := samePrefix(a, b), sameSuffix(a, b); p != prefix || s != suffix {
			t.Fatalf("%q and %q: %d and %d, want %d and %d", a, b, p, s, prefix, suffix)
		}
	}
}

// FuzzIndex: an index finds what is in it, or is damaged.
func FuzzIndex(f *testing.F) {
	f.Add(encodeIndex(nil, plumbing.Hash{}))
	f.Add(encodeIndex([]packed{{id: plumbing.Hash{1}, offset: 12}, {id: plumbing.Hash{1, 2}, offset: 1 << 40}, {id: plumbing.Hash{255}, offset: 99}}, plumbing.Hash{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		x := &index{data: data}
		if err := x.parse(int64(len(data))); err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
			return
		}
		for first := range 256 {
			if _, err := x.find(plumbing.Hash{byte(first)}); err != nil && !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
		}
		for i := range x.count {
			if _, err := x.offset(i); err != nil && !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
		}
	})
}

// FuzzDelta holds applyDelta to go-git's, which refuses an empty base, as git
// does not, and takes sizes that are cut short.
func FuzzDelta(f *testing.F) {
	f.Add([]byte("hello"), []byte("\x05\x0a\x90\x05\x90\x05"))
	f.Add([]byte("hello"), []byte("\x05\x06\x01x\x90\x05"))
	f.Add([]byte(""), []byte("\x00\x01\x01x"))
	f.Add([]byte("hello"), []byte("\x05\xff\xff\xff\xff\x07\x80"))
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := applyDelta(base, delta)
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - before.TotalAlloc; err != nil && made > 1<<20 {
			t.Errorf("%d bytes taken for nothing", made)
		}
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
		_, rest, ok1 := deltaSize(delta)
		_, _, ok2 := deltaSize(rest)
		if len(base) == 0 || !ok1 || !ok2 || len(got) > 1<<20 {
			return
		}
		want, wantErr := gogit.PatchDelta(base, delta)
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Errorf("%q %v, go-git makes %q %v", got, err, want, wantErr)
		}
	})
}

// FuzzMakeDelta: a delta makes what it was made for, as go-git applies it too.
func FuzzMakeDelta(f *testing.F) {
	f.Add([]byte("a long text that is kept"), []byte("a long text that was kept"), 1)
	f.Add([]byte("abcabcabc"), []byte("abcabc"), 70000)
	f.Add([]byte(""), []byte("x"), 1)
	f.Fuzz(func(t *testing.T, from, to []byte, times int) {
		if times = min(times, 1<<18/(len(from)+len(to)+1)); times > 1 {
			middle := bytes.Repeat(append(bytes.Clone(from), to...), times) // past the length of one copy
			from, to = append(middle, from...), append(append(bytes.Clone(to), middle...), to...)
		}
		delta := makeDelta(from, to)
		if delta == nil {
			return
		}
		if len(delta) >= len(to)/2 {
			t.Errorf("%d bytes instead of %d", len(delta), len(to))
		}
		got, err := applyDelta(from, delta)
		if err != nil || !bytes.Equal(got, to) {
			t.Errorf("%q on %q makes %q: %v", delta, from, got, err)
		}
		if len(from) == 0 {
			return
		}
		if want, err := gogit.PatchDelta(from, delta); err != nil || !bytes.Equal(want, to) {
			t.Errorf("%q on %q: go-git makes %q: %v", delta, from, want, err)
		}
	})
}

// FuzzLoose: a file is an object, or damaged.
func FuzzLoose(f *testing.F) {
	for _, text := range []string{"blob 5\x00hello", "tree 0\x00", "commit 18446744073709551615\x00", "blob 4000000000\x00x"} {
		f.Add(stored(f, []byte(text)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(file, data, 0o666); err != nil {
			t.Fatal(err)
		}
		h, content, err := readLoose(file, true)
		if err != nil && !errors.Is(err, ErrDamaged) || errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		alone, _, sizeErr := readLoose(file, false)
		if err == nil && (sizeErr != nil || alone.size != int64(len(content)) || alone != h) {
			t.Errorf("%v %d, then %v: %v", h, len(content), alone, sizeErr)
		}
	})
}

// TestClaims: no memory is taken because a header says so.
func TestClaims(t *testing.T) {
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), 1)
	body := append(append(head, "\xbf\xff\xff\xff\x7f"...), stored(t, []byte("x"))...) // a blob of 2 GiB
	sum := sha1.Sum(body)
	file := filepath.Join(t.TempDir(), "x.pack")
	if err := os.WriteFile(file, append(body, sum[:]...), 0o666); err != nil {
		t.Fatal(err)
	}
	p := &pack{path: file, index: &index{count: 1, packSum: sum}}
	defer func() { _ = p.close() }()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := p.read(packHeaderSize, newCache())
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrDamaged) || made > 4<<20 {
		t.Errorf("%v after %d bytes", err, made)
	}
}
