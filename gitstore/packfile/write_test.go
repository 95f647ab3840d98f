package packfile

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

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
	for i, n := range []int{1, 255, 256, 257, 800} {
		if i%2 > 0 && os.Getenv("COUNTERSIGN_LONG") == "" {
			continue
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := newRepo(t)
			var b Batch
			objects := append(blobs(n-1), Object{plumbing.TreeObject, nil})
			ids, err := b.Add(objects...)
			fatal(t, err)
			held := r.write(&b)
			want := map[ID]Object{}
			for i, id := range ids {
				want[id] = objects[i]
			}
			r.agrees(want)
			r.git("", "prune", "--expire=now")
			r.git("", "repack", "-adfnq")
			r.agrees(want) // it is held
			held.Release()
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
		if err != nil || e.IsDir() {
			return err
		}
		if info, err := e.Info(); err != nil || info.Mode()&0o222 != 0 && runtime.GOOS != "windows" || slices.Contains([]string{".new", ""}, filepath.Ext(path)) && strings.Contains(path, "pack") {
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
		for _, o := range append(blobs(500), blobs(500)...) {
			if _, err := b.Add(o); err != nil {
				t.Fatal(err)
			}
		}
		book := newBook(t)
		for range 100 {
			book.commit()
		}
		b.Join(book.batch)
		data, err := os.ReadFile(string(r.write(&b)) + ".pack")
		if err != nil || former != nil && !bytes.Equal(data, former) {
			t.Errorf("another pack on %d cores: %v", cores, err)
		}
		former = data
		if names := r.packs(); len(names) != i+1 {
			t.Fatal(names)
		}
	}
	r.sound()
}

// TestWriteFails: an objects directory that cannot be written to, and objects that cannot be packed.
func TestWriteFails(t *testing.T) {
	var b Batch
	if _, err := b.Add(blobs(2)...); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	fatal(t, os.WriteFile(file, nil, 0o666))
	if _, err := Write(file, &b); err == nil {
		t.Error("written to nowhere")
	}
	dir := t.TempDir()
	if _, err := Take(dir, file); err == nil {
		t.Error("taken from nowhere")
	}
	if left, err := os.ReadDir(filepath.Join(dir, "pack")); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

// T80 What killed processes left is let go after a day, and removed if it was not done; a .keep of
// somebody else's stays, and so does what a process holds that may be alive.
func TestT80Sweep(t *testing.T) {
	r := newRepo(t)
	var packs [4]Held
	for i := range packs {
		var b Batch
		if _, err := b.Add(Object{plumbing.BlobObject, fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
		packs[i] = r.write(&b)
	}
	killed, young, theirs, unfinished := packs[0], packs[1], packs[2], packs[3]
	must := func(err error) {
		t.Helper()
		fatal(t, err)
	}
	must(os.Chmod(string(theirs)+".keep", 0o600))
	must(os.WriteFile(string(theirs)+".keep", []byte("mine\n"), 0o600))
	must(os.Rename(string(unfinished)+".idx", string(unfinished)+".new"))
	old := time.Now().Add(-25 * time.Hour)
	for _, h := range []Held{killed, theirs, unfinished} {
		must(os.Chtimes(string(h)+".keep", old, old))
	}
	dir := filepath.Join(r.objects(), TempPrefix+"1")
	must(os.Mkdir(dir, 0o700))
	must(os.WriteFile(filepath.Join(dir, "new.pack"), nil, 0o600))
	must(os.Chtimes(dir, old, old))
	r.git("", "gc", "--prune=now", "--quiet")
	Sweep(r.objects(), time.Now())
	if _, err := os.Stat(dir); err == nil {
		t.Error("an old directory is left")
	}
	for h, want := range map[Held][]string{killed: {".idx", ".pack"}, young: {".idx", ".keep", ".pack"}, theirs: {".idx", ".keep", ".pack"}, unfinished: nil} {
		var left []string
		files, err := filepath.Glob(string(h) + ".*")
		for _, file := range files {
			if ext := filepath.Ext(file); ext != ".rev" {
				left = append(left, ext)
			}
		}
		if err != nil || !slices.Equal(left, want) {
			t.Errorf("%v are left, want %v, %v", left, want, err)
		}
	}
}

// TestIndexOf8ByteOffsets: git reads what we write for packs over 2 GiB.
func TestIndexOf8ByteOffsets(t *testing.T) {
	entries := []packed{
		{ParseID("0f00000000000000000000000000000000000000"), 1, 1<<31 - 1},
		{ParseID("ff00000000000000000000000000000000000000"), 2, 5 << 32},
		{ParseID("1000000000000000000000000000000000000000"), 3, 1 << 31},
	}
	r := newRepo(t)
	data := encodeIndex(SHA1, entries, make([]byte, 20))
	shown := r.git(string(data), "show-index")
	for _, e := range entries {
		if !strings.Contains(shown, fmt.Sprintf("%d %s (%08x)", e.offset, e.id, e.crc)) {
			t.Errorf("git shows\n%s", shown)
		}
	}
}
