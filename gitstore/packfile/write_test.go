package packfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// blobs are n blobs of sizes from none to some megabytes.
func blobs(n int) []Object {
	random := rand.New(rand.NewPCG(3, uint64(n)))
	out := make([]Object, n)
	for i := range out {
		size := random.IntN(1 << random.IntN(12))
		if i == 7 {
			size = 3 << 20
		}
		data := make([]byte, size)
		for j := range data {
			data[j] = byte(random.IntN(1 + 255>>(i%8)))
		}
		out[i] = Object{plumbing.BlobObject, data}
	}
	return out
}

// TestWrite: git finds at once what is written, and nothing to complain of.
func TestWrite(t *testing.T) {
	for _, n := range []int{1, 20, 255, 256, 257, 3000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := newRepo(t)
			var b Batch
			objects := append(blobs(n-1), Object{plumbing.TreeObject, nil})
			ids, err := b.Add(objects...)
			if err != nil {
				t.Fatal(err)
			}
			s := r.open()
			if _, err := s.Read(ids[0]); !errors.Is(err, ErrMissing) {
				t.Errorf("before it is written: %v", err)
			}
			name, err := s.WritePack(&b)
			if err != nil {
				t.Fatal(err)
			}
			want := map[plumbing.Hash]Object{}
			for i, id := range ids {
				want[id] = objects[i]
			}
			if all := r.all(); len(all) != len(want) {
				t.Errorf("git has %d objects, want %d", len(all), len(want))
			}
			r.agrees(s, want)
			r.git("", "prune", "--expire=now")
			r.git("", "repack", "-adfnq")
			r.agrees(r.open(), want) // it is held
			s.Release(name)
			r.sound()
			r.git("", "repack", "-adfnq")
			if all := r.all(); len(all) != 0 {
				t.Errorf("%d objects that no ref names are kept", len(all))
			}
		})
	}
}

// sound fails the test unless git finds nothing wrong, and no file is left
// that somebody could write to or that is not done.
func (r repo) sound() {
	r.t.Helper()
	if out := r.git("", "fsck", "--strict", "--full", "--no-dangling", "--unreachable"); strings.Contains(out, "error") || strings.Contains(out, "warning") {
		r.t.Errorf("git fsck: %s", out)
	}
	err := filepath.WalkDir(r.objects(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(filepath.Base(filepath.Dir(path)), holdPrefix) && e.Name() == "lock" {
			return err
		}
		if info, err := e.Info(); err != nil || info.Mode()&0o222 != 0 && runtime.GOOS != "windows" || strings.HasPrefix(e.Name(), "tmp_") {
			r.t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
		if strings.HasSuffix(path, ".pack") {
			r.git("", "verify-pack", path)
			again := filepath.Join(r.t.TempDir(), "again.idx")
			r.git("", "index-pack", "--strict", "-o", again, path)
			ours, err1 := os.ReadFile(strings.TrimSuffix(path, ".pack") + ".idx")
			theirs, err2 := os.ReadFile(again)
			if err1 != nil || err2 != nil || !bytes.Equal(ours, theirs) {
				r.t.Errorf("git makes another index of %s: %v %v", path, err1, err2)
			}
		}
		return nil
	})
	if err != nil {
		r.t.Error(err)
	}
}

// TestSamePack: the bytes depend on the objects alone. Each time they are
// written is a file of its own: git may be about to delete the one before.
func TestSamePack(t *testing.T) {
	r := newRepo(t)
	var former []byte
	for i, cores := range []int{1, 2, 8} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		var b Batch
		for _, o := range append(blobs(2000), blobs(2000)...) {
			if _, err := b.Add(o); err != nil {
				t.Fatal(err)
			}
		}
		book := newBook(t)
		for range 100 {
			book.commit()
		}
		b.Join(book.batch)
		s := r.open()
		name, err := s.WritePack(&b)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(r.objects(), "pack", name+".pack"))
		if err != nil || former != nil && !bytes.Equal(data, former) {
			t.Errorf("another pack on %d cores: %v", cores, err)
		}
		former = data
		if names := r.packNames(s); len(names) != i+1 {
			t.Fatal(names)
		}
	}
	r.sound()
}

// TestWriteAgain: an object whose own file is damaged is mended by writing it,
// and one in both a pack and a file is there once.
func TestWriteAgain(t *testing.T) {
	r := newRepo(t)
	s := r.open()
	objects := []Object{{plumbing.BlobObject, []byte("a")}, {plumbing.BlobObject, []byte("b")}, {plumbing.BlobObject, []byte("c")}}
	for _, o := range objects {
		r.git(string(o.Data), "hash-object", "-w", "--stdin")
	}
	var b Batch
	ids, err := b.Add(objects...)
	if err != nil {
		t.Fatal(err)
	}
	file := s.dirs[0].loose(ids[1])
	if err := errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, []byte("junk"), 0o400), os.Chmod(file, 0o400)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(ids[1]); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
	if _, err := s.WritePack(&b); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{s, r.open()} {
		if _, err := s.Read(ids[1]); err != nil {
			t.Error(err)
		}
	}
	if all := r.all(); len(all) != len(ids) {
		t.Errorf("%d objects, want %d", len(all), len(ids))
	}
}

// TestWriteFails: an objects directory that cannot be written to.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	if _, err := b.Add(blobs(2)...); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WritePack(&b); err == nil {
		t.Error("written to nowhere")
	}
}

// TestIndexOf8ByteOffsets: git reads what we write for packs over 2 GiB.
func TestIndexOf8ByteOffsets(t *testing.T) {
	entries := []packed{
		{plumbing.NewHash("0f00000000000000000000000000000000000000"), 1, 1<<31 - 1},
		{plumbing.NewHash("ff00000000000000000000000000000000000000"), 2, 5 << 32},
		{plumbing.NewHash("1000000000000000000000000000000000000000"), 3, 1 << 31},
	}
	r := newRepo(t)
	data := encodeIndex(entries, plumbing.Hash{})
	x := &index{data: data}
	if err := x.parse(int64(len(data))); err != nil {
		t.Fatal(err)
	}
	shown := r.git(string(data), "show-index")
	for _, e := range entries {
		if got, err := x.find(e.id); got != e.offset || err != nil {
			t.Errorf("%s at %d (%v), want %d", e.id, got, err, e.offset)
		}
		if !strings.Contains(shown, fmt.Sprintf("%d %s (%08x)", e.offset, e.id, e.crc)) {
			t.Errorf("git shows\n%s", shown)
		}
	}
}
