package packfile

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// TestRepackMeanwhile: git moves every object while several goroutines read.
func TestRepackMeanwhile(t *testing.T) {
	r := newRepo(t)
	r.history(10)
	want := r.all()
	s := r.open()
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				r.agrees(s, want)
			}
		}
	})
	for range 5 {
		r.git("", "repack", "-adfq", "--depth=5")
		r.git("", "-c", "pack.packSizeLimit=1m", "-c", "pack.compression=0", "repack", "-adFq")
	}
	close(stop)
	group.Wait()
	r.agrees(s, want)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	r.agrees(s, want) // it opens what it needs
}

func TestAlternates(t *testing.T) {
	r := newRepo(t)
	r.history(3)
	want := r.all()
	for i, list := range []string{r.objects() + "\n", "# a comment\n\n../../../c0/.git/objects\n"} {
		name := filepath.Join(filepath.Dir(r.dir), []string{"c0", "c1"}[i])
		c := repo{t, name}
		r.git("", "init", "--quiet", name)
		if err := os.WriteFile(filepath.Join(c.objects(), "info", "alternates"), []byte(list), 0o666); err != nil {
			t.Fatal(err)
		}
		c.agrees(c.open(), want)
		if _, err := c.open().Read(plumbing.Hash{1}); !errors.Is(err, ErrMissing) {
			t.Error(err)
		}
	}
	loop := filepath.Join(r.objects(), "info", "alternates")
	if err := os.WriteFile(loop, []byte(".\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(r.objects()); err == nil {
		t.Error("a repository that borrows from itself")
	}
	if err := os.WriteFile(loop, []byte("none\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(r.objects()); err == nil {
		t.Error("a repository that borrows from nowhere")
	}
}

// An object that moves from pack to pack all the time is missing to nobody: a list that was
// read while packs came and went may have neither the old pack nor the new one.
func TestMovedMeanwhile(t *testing.T) {
	r := newRepo(t)
	all := blobs(3)
	packs := filepath.Join(r.objects(), "pack")
	var files [2]string
	var id plumbing.Hash
	for i := range files { // both have the first object
		s := r.open()
		var b Batch
		ids, err := b.Add(all[0], all[i+1])
		if err != nil {
			t.Fatal(err)
		}
		id = ids[0]
		name, err := s.WritePack(&b)
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		files[i] = filepath.Join(t.TempDir(), name)
		for _, end := range []string{".pack", ".idx"} {
			if err := os.Rename(filepath.Join(packs, name)+end, files[i]+end); err != nil {
				t.Fatal(err)
			}
		}
	}
	place := func(i int) error {
		to := filepath.Join(packs, filepath.Base(files[i]))
		return errors.Join(os.Link(files[i]+".pack", to+".pack"), os.Link(files[i]+".idx", to+".idx"))
	}
	take := func(i int) error {
		from := filepath.Join(packs, filepath.Base(files[i]))
		return errors.Join(os.Remove(from+".idx"), os.Remove(from+".pack"))
	}
	if err := place(0); err != nil {
		t.Fatal(err)
	}
	read := func() error {
		s := r.open()
		_, err := s.Read(id)
		return errors.Join(err, s.Close())
	}
	began := time.Now()
	for range 50 {
		if err := read(); err != nil {
			t.Fatal(err)
		}
	}
	pause := time.Since(began) / 10 // a merge takes longer than to read some objects
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for i := 1; ; i = 1 - i {
			select {
			case <-stop:
				return
			default:
				for began := time.Now(); time.Since(began) < pause; {
				}
				if err := errors.Join(place(i), take(1-i)); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	for range 3000 {
		if err := read(); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	group.Wait()
}
