package packfile

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

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
