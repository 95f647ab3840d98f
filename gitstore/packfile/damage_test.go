package packfile

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// damage is a small repository of one pack, whose files are replaced.
type damage struct {
	t         *testing.T
	name      string // of the pack, without extension
	pack, idx []byte
	want      map[plumbing.Hash]Object
}

func newDamage(t *testing.T, args ...string) damage {
	r := newRepo(t)
	r.history(3)
	r.git("", append(args, "repack", "-adfq")...)
	packs, err := filepath.Glob(filepath.Join(r.objects(), "pack", "*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatal(packs, err)
	}
	d := damage{t: t, name: strings.TrimSuffix(packs[0], ".pack"), want: r.all()}
	if d.pack, err = os.ReadFile(d.name + ".pack"); err != nil {
		t.Fatal(err)
	}
	if d.idx, err = os.ReadFile(d.name + ".idx"); err != nil {
		t.Fatal(err)
	}
	return d
}

// read opens the files as they are now, and tells how many objects cannot be
// read. What can must be right.
func (d damage) read(pack, idx []byte) (bad int) {
	d.t.Helper()
	dir := d.t.TempDir()
	base := filepath.Join(dir, "pack", "pack-x")
	if err := errors.Join(os.Mkdir(filepath.Dir(base), 0o777), os.WriteFile(base+".pack", pack, 0o666), os.WriteFile(base+".idx", idx, 0o666)); err != nil {
		d.t.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _, _ = s.Close(), os.RemoveAll(dir) }()
	for id, want := range d.want {
		_, _, sizeErr := s.Size(id)
		o, err := s.Read(id)
		switch {
		case err == nil && (o.Type != want.Type || !bytes.Equal(o.Data, want.Data)):
			d.t.Errorf("%s is read with other content", id)
		case err != nil:
			bad++
		}
		for _, err := range []error{err, sizeErr} {
			if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrMissing) || errors.Is(err, fs.ErrNotExist) {
				d.t.Errorf("%s: %v", id, err)
			}
		}
	}
	return bad
}

// TestBitFlips: a flipped bit in a pack or index is an error or of no
// consequence, never other content and never a panic.
func TestBitFlips(t *testing.T) {
	for name, args := range map[string][]string{"offsets": nil, "hashes": {"-c", "repack.useDeltaBaseOffset=false"}} {
		t.Run(name, func(t *testing.T) {
			d := newDamage(t, args...)
			if bad := d.read(d.pack, d.idx); bad != 0 {
				t.Fatalf("%d of the sound objects cannot be read", bad)
			}
			found, step := 0, 41
			if os.Getenv("COUNTERSIGN_LONG") != "" {
				step = 5
			}
			flip := func(data []byte, read func([]byte) int) {
				for i := 0; i < len(data); i += step {
					changed := bytes.Clone(data)
					changed[i] ^= 1 << (i % 8)
					if read(changed) > 0 {
						found++
					}
				}
			}
			flip(d.pack, func(pack []byte) int { return d.read(pack, d.idx) })
			flip(d.idx, func(idx []byte) int { return d.read(d.pack, idx) })
			t.Logf("%d of %d flips stop an object from being read", found, (len(d.pack)+len(d.idx))/step)
		})
	}
}

// TestCutShort: at every length.
func TestCutShort(t *testing.T) {
	d := newDamage(t)
	for n := 0; n < len(d.pack); n += 13 {
		if d.read(d.pack[:n], d.idx) == 0 {
			t.Errorf("a pack of %d bytes is sound", n)
		}
	}
	for n := 0; n < len(d.idx); n += 13 {
		if d.read(d.pack, d.idx[:n]) != len(d.want) {
			t.Errorf("an index of %d bytes is sound", n)
		}
	}
}

// TestMissingOrDamaged: an object that may be in a pack whose index cannot be
// read is not known to be missing.
func TestMissingOrDamaged(t *testing.T) {
	r := newRepo(t)
	r.history(2)
	r.git("", "repack", "-adfq")
	s, none := r.open(), plumbing.NewHash("0123456789012345678901234567890123456789")
	if _, err := s.Read(none); !errors.Is(err, ErrMissing) || errors.Is(err, ErrDamaged) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	loose := plumbing.NewHash(r.git("more", "hash-object", "-w", "--stdin"))
	bad := filepath.Join(r.objects(), "pack", "pack-bad")
	if err := errors.Join(os.WriteFile(bad+".idx", []byte("junk"), 0o666), os.WriteFile(bad+".pack", nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(none); errors.Is(err, ErrMissing) || !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
	if _, err := s.Read(loose); err != nil {
		t.Errorf("a sound object: %v", err)
	}
	if err := os.Remove(bad + ".pack"); err != nil { // an index alone does not count
		t.Fatal(err)
	}
	if _, err := s.Read(none); !errors.Is(err, ErrMissing) {
		t.Errorf("%v", err)
	}
}

// TestLooseHeaders: what only looks like an object.
func TestLooseHeaders(t *testing.T) {
	for _, text := range []string{
		"", "blob", "blob 1", "blob 1\x00", "blob 1\x00ab", "blob -1\x00", "blob 01\x00a", "blob +1\x00a", "junk 1\x00a", " 1\x00a",
		"blob 99999999999999999999\x00a", "blob 4611686018427387903\x00a", "blob 2000000000\x00a", "ofs-delta 1\x00a", "blob  1\x00a", "blob 1 \x00a",
		strings.Repeat("blob", 100),
	} {
		var buf bytes.Buffer
		z := zlib.NewWriter(&buf)
		_, err := z.Write([]byte(text))
		err = errors.Join(err, z.Close())
		file := filepath.Join(t.TempDir(), "x")
		if err := errors.Join(err, os.WriteFile(file, buf.Bytes(), 0o666)); err != nil {
			t.Fatal(err)
		}
		if h, data, err := readLoose(file, true); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v %q %v", text, h, data, err)
		}
	}
}
