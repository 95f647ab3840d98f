package packfile

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"hash/adler32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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

// streams are zlib streams of all kinds, and the sizes of what is in them.
func streams(tb testing.TB) (out [][]byte, sizes []int) {
	text := []byte(strings.Repeat("to be or not to be", 20) + "that is the question\x00\x01\x02\xff")
	random := make([]byte, 3000)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(source.IntN(1 + source.IntN(256)))
	}
	for _, data := range [][]byte{nil, []byte("a"), text, random, make([]byte, 2000), []byte("abcabcabcabcabcabcabc")} {
		for _, level := range []int{zlib.NoCompression, zlib.BestSpeed, zlib.DefaultCompression, zlib.BestCompression, zlib.HuffmanOnly} {
			var b bytes.Buffer
			w, err := zlib.NewWriterLevel(&b, level)
			if err != nil {
				tb.Fatal(err)
			}
			_, err1 := w.Write(data)
			if err := errors.Join(err1, w.Flush(), w.Close()); err != nil {
				tb.Fatal(err)
			}
			out, sizes = append(out, b.Bytes()), append(sizes, len(data))
		}
	}
	return out, sizes
}

// alike holds our decompression to the standard library's: what it takes is the
// same, and so is where it ends.
func alike(t *testing.T, f *inflater, in []byte, size int) {
	t.Helper()
	out := make([]byte, size)
	n, ok := f.zlib(in, out)
	rest := bytes.NewReader(in)
	var want []byte
	r, err := zlib.NewReader(rest)
	if err == nil {
		want, err = io.ReadAll(io.LimitReader(r, 1<<17))
	}
	switch {
	case ok && (err != nil || !bytes.Equal(out, want) || len(in)-rest.Len() != n):
		t.Errorf("%q: %v; %d bytes of %d, want %d of %d", in, err, len(out), n, len(want), len(in)-rest.Len())
	case !ok && err == nil && len(want) == size:
		t.Errorf("%q of %d bytes is left to others", in, size)
	}
}

// mended is a stream with the checksum of what it makes, and its size.
func mended(in []byte) ([]byte, int) {
	r, err := zlib.NewReader(bytes.NewReader(in))
	if err != nil || len(in) < 6 {
		return in, 0
	}
	made, _ := io.ReadAll(io.LimitReader(r, 1<<16-1))
	return binary.BigEndian.AppendUint32(bytes.Clone(in[:len(in)-4]), adler32.Checksum(made)), len(made)
}

// TestInflate: whole streams, with each bit flipped, and cut short everywhere.
func TestInflate(t *testing.T) {
	f := &inflater{}
	all, sizes := streams(t)
	for i, in := range all {
		if n, ok := f.zlib(in, make([]byte, sizes[i])); !ok || n != len(in) {
			t.Errorf("stream %d: %d of %d bytes, %v", i, n, len(in), ok)
		}
		alike(t, f, in, sizes[i])
		if len(in) > 500 {
			continue
		}
		for bit := range 8 * len(in) {
			changed := bytes.Clone(in)
			changed[bit/8] ^= 1 << (bit % 8)
			alike(t, f, changed, sizes[i])
			again, size := mended(changed)
			alike(t, f, again, size)
		}
		for n := range in {
			alike(t, f, in[:n], sizes[i])
		}
	}
}

// TestInflateCodes: codes for more symbols than there are.
func TestInflateCodes(t *testing.T) {
	for _, c := range []struct{ literals, distances uint64 }{{286, 30}, {286, 32}, {288, 30}, {288, 32}, {257, 1}} {
		var b bitWriter
		b.add(1, 1)
		b.add(2, 2)
		b.add(c.literals-257, 5)
		b.add(c.distances-1, 5)
		b.add(15, 4)
		for _, symbol := range codeOrder { // of 0 and 18, one bit each
			if symbol == 0 || symbol == 18 {
				b.add(1, 3)
			} else {
				b.add(0, 3)
			}
		}
		for left := c.literals + c.distances; left > 0; {
			if left < 11 {
				b.add(0, 1)
				left--
				continue
			}
			n := min(left, 138)
			b.add(1, 1)
			b.add(n-11, 7)
			left -= n
		}
		in := append([]byte{0x78, 0x01}, b.bytes...)
		alike(t, &inflater{}, append(in, make([]byte, 20)...), 0)
	}
}

// bitWriter writes the lowest bit first.
type bitWriter struct {
	bytes []byte
	n     int
}

func (b *bitWriter) add(v uint64, n int) {
	for i := range n {
		if b.n%8 == 0 {
			b.bytes = append(b.bytes, 0)
		}
		b.bytes[b.n/8] |= byte(v>>i&1) << (b.n % 8)
		b.n++
	}
}

func FuzzInflate(f *testing.F) {
	all, sizes := streams(f)
	for i, in := range all {
		f.Add(in, uint16(sizes[i]))
	}
	used := &inflater{}
	f.Fuzz(func(t *testing.T, in []byte, size uint16) {
		alike(t, used, in, int(size))
		again, made := mended(in)
		alike(t, used, again, made)
	})
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
		o, err := readLoose(file)
		if err != nil && !errors.Is(err, ErrDamaged) || errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		h, sizeErr := sizeLoose(file)
		if err == nil && (sizeErr != nil || h.size != int64(len(o.Data)) || h.kind != o.Type) {
			t.Errorf("%v %d, then %d: %v", o.Type, len(o.Data), h.size, sizeErr)
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
