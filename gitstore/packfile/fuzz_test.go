package packfile

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	gogit "github.com/go-git/go-git/v5/plumbing/format/packfile"
)

func stored(tb testing.TB, data []byte) []byte {
	w := getWriter()
	defer w.put()
	fatal(tb, w.deflate(Object{plumbing.BlobObject, data}))
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
