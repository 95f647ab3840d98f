package packfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

const ledgerRef = "refs/agent/ledger"

// packs makes a repository with a ledger of n packs of so many commits each.
func packs(t testing.TB, n, each int) (repo, *book, []string) {
	t.Helper()
	r, book := newRepo(t), newBook(t)
	var names []string
	for range n {
		for range each {
			book.commit()
		}
		names = append(names, book.flush(r.open()))
	}
	r.git("", "update-ref", ledgerRef, book.tip.String())
	return r, book, names
}

func (r repo) packNames(s *Store) []string {
	r.t.Helper()
	names, err := s.PackNames()
	if err != nil {
		r.t.Fatal(err)
	}
	return names
}

// TestMerge: one pack has everything, whatever the plan says of it.
func TestMerge(t *testing.T) {
	noPlan := func([]plumbing.Hash, func(plumbing.Hash) (Object, error)) ([]Version, error) { return nil, nil }
	for _, c := range []struct {
		name string
		plan func(*book) Plan
		most int64 // percent of what the packs had
	}{
		{"a good plan", func(b *book) Plan { return b.plan }, 90},
		{"no plan", func(*book) Plan { return noPlan }, 250},
		{"a bad plan", func(b *book) Plan {
			return func(ids []plumbing.Hash, _ func(plumbing.Hash) (Object, error)) ([]Version, error) {
				out := []Version{{plumbing.Hash{1}, ids[0]}, {ids[3], plumbing.Hash{2}}, {ids[4], ids[4]}, {ids[5], ids[6]}}
				for i, id := range ids {
					out = append(out, Version{id, ids[(i+1)%len(ids)]}, Version{id, ids[0]})
				}
				clear(ids)
				return out, nil
			}
		}, 250},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, book, names := packs(t, 20, 10)
			other := newBook(t)
			for range 5 { // a pack that is not to be merged, with some of the same
				other.commit()
			}
			s := r.open()
			left := other.flush(s)
			want, before := r.all(), r.packSize()
			r.agrees(s, want)
			merged, err := s.Merge(names, c.plan(book))
			if err != nil {
				t.Fatal(err)
			}
			now := []string{merged, left}
			slices.Sort(now)
			if got := r.packNames(s); !slices.Equal(got, now) {
				t.Errorf("there are %v, want %v", got, now)
			}
			r.sound()
			r.agrees(s, want)
			r.agrees(r.open(), want)
			if size := r.packSize(); size > before*c.most/100 {
				t.Errorf("%d bytes, before %d", size, before)
			}
			if all := r.all(); len(all) != len(want) {
				t.Errorf("%d objects, before %d", len(all), len(want))
			}
			if again, err := s.Merge([]string{merged}, noPlan); again != "" || err != nil {
				t.Errorf("one pack is merged: %q, %v", again, err)
			}
			r.sound()
		})
	}
}

// TestMergeLeaves: packs that are more than their objects, that are gone, or
// that are no packs, are left alone.
func TestMergeLeaves(t *testing.T) {
	for _, c := range []struct {
		name   string
		mark   func(r repo, pack string) error
		fine   bool
		needed int
	}{
		{"none", func(repo, string) error { return nil }, true, 3},
		{"keep", func(_ repo, p string) error { return os.WriteFile(p+".keep", nil, 0o666) }, false, 3},
		{"promisor", func(_ repo, p string) error { return os.WriteFile(p+".promisor", nil, 0o666) }, false, 3},
		{"mtimes", func(_ repo, p string) error { return os.WriteFile(p+".mtimes", nil, 0o666) }, false, 3},
		{"a multi-pack index", func(r repo, p string) error {
			r.git(filepath.Base(p)+".idx\n", "multi-pack-index", "write", "--stdin-packs")
			return nil
		}, false, 3},
		{"gone", func(_ repo, p string) error { return errors.Join(os.Remove(p+".idx"), os.Remove(p+".pack")) }, false, 2},
		{"no index", func(_ repo, p string) error { return os.Rename(p+".idx", p+".old") }, false, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, book, names := packs(t, 4, 3)
			dir := filepath.Join(r.objects(), "pack")
			if err := c.mark(r, filepath.Join(dir, names[1])); err != nil {
				t.Fatal(err)
			}
			s := r.open()
			before := r.packNames(s)
			aside := filepath.Join(r.objects(), "aside")
			if err := os.CopyFS(aside, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			asked := append([]string{"../aside/" + names[0], "", "pack-none", names[3]}, names...)
			merged, err := s.Merge(asked, book.plan)
			if err != nil || merged == "" {
				t.Fatal(merged, err)
			}
			if _, err := os.Stat(filepath.Join(aside, names[0]+".pack")); err != nil {
				t.Error(err)
			}
			want := []string{merged}
			if slices.Contains(before, names[1]) && !c.fine {
				want = append(want, names[1])
			}
			slices.Sort(want)
			if got := r.packNames(s); !slices.Equal(got, want) {
				t.Errorf("there are %v, want %v", got, want)
			}
			if c.name == "a multi-pack index" {
				r.git("", "multi-pack-index", "verify")
			}
		})
	}
}

// TestMergeSame: one of the packs already is what all of them together are; it
// goes too, for it may be about to be deleted.
func TestMergeSame(t *testing.T) {
	r := newRepo(t)
	s := r.open()
	var names []string
	for _, n := range []int{100, 30} {
		var b Batch
		if _, err := b.Add(blobs(100)[:n]...); err != nil {
			t.Fatal(err)
		}
		name, err := s.WritePack(&b)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	noPlan := func([]plumbing.Hash, func(plumbing.Hash) (Object, error)) ([]Version, error) { return nil, nil }
	if merged, err := s.Merge(names, noPlan); merged != "" || err != nil {
		t.Errorf("packs that are held are merged: %q, %v", merged, err)
	}
	s.Release(names...)
	merged, err := s.Merge(names, noPlan)
	if err != nil || slices.Contains(names, merged) {
		t.Error(merged, err)
	}
	if left := r.packNames(s); !slices.Equal(left, []string{merged}) {
		t.Errorf("%v, want %v", left, merged)
	}
	r.sound()
}

// TestMergeFiles: what belongs to a pack goes with it.
func TestMergeFiles(t *testing.T) {
	r, book, names := packs(t, 3, 3)
	dir := filepath.Join(r.objects(), "pack")
	for _, name := range names {
		r.git("", "index-pack", "--rev-index", filepath.Join(dir, name+".pack"))
		if err := os.WriteFile(filepath.Join(dir, name+".bitmap"), nil, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	merged, err := r.open().Merge(names, book.plan)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	want := []string{filepath.Join(dir, merged+".idx"), filepath.Join(dir, merged+".pack")}
	if err != nil || !slices.Equal(files, want) {
		t.Errorf("%v, want %v: %v", files, want, err)
	}
	r.sound()
}

// TestMergeStops: wherever a merge ends, everything is there.
func TestMergeStops(t *testing.T) {
	defer func() { remove = os.Remove }()
	for stop := range 9 {
		r, book, names := packs(t, 2, 5)
		want, s, calls := r.all(), r.open(), 0
		remove = func(name string) error {
			if calls++; calls > stop {
				return fmt.Errorf("removal %d", calls)
			}
			return os.Remove(name)
		}
		merged, err := s.Merge(names, book.plan)
		if merged == "" || (err == nil) != (stop >= 8) {
			t.Fatalf("%q, %v", merged, err)
		}
		r.agrees(s, want)
		r.agrees(r.open(), want)
		indexes, _ := filepath.Glob(filepath.Join(r.objects(), "pack", "*.idx"))
		for _, idx := range indexes {
			if _, err := os.Stat(strings.TrimSuffix(idx, ".idx") + ".pack"); err != nil {
				t.Errorf("after %d removals an index has no pack", stop)
			}
		}
		if out := r.git("", "fsck", "--strict", "--full"); strings.Contains(out, "error") {
			t.Errorf("%s", out)
		}
	}
}

// TestMergeDamaged: of packs that cannot be read none is removed.
func TestMergeDamaged(t *testing.T) {
	planErr := errors.New("no plan")
	for _, c := range []struct {
		name  string
		spoil func(path string) error
		plan  Plan
		want  error
	}{
		{"pack", func(p string) error { return flipByte(p+".pack", 5) }, nil, ErrDamaged},
		{"idx", func(p string) error { return flipByte(p+".idx", 3) }, nil, ErrDamaged},
		{"idx count", func(p string) error { return os.Truncate(p+".idx", 1000) }, nil, ErrDamaged},
		{"plan", func(string) error { return nil }, func([]plumbing.Hash, func(plumbing.Hash) (Object, error)) ([]Version, error) {
			return nil, planErr
		}, planErr},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, book, names := packs(t, 3, 4)
			file := filepath.Join(r.objects(), "pack", names[1])
			if err := errors.Join(os.Chmod(file+".pack", 0o600), os.Chmod(file+".idx", 0o600), c.spoil(file)); err != nil {
				t.Fatal(err)
			}
			s := r.open()
			before := r.packNames(s)
			if c.plan == nil {
				c.plan = book.plan
			}
			if merged, err := s.Merge(names, c.plan); merged != "" || !errors.Is(err, c.want) {
				t.Errorf("%q, %v", merged, err)
			}
			if after := r.packNames(s); !slices.Equal(before, after) {
				t.Errorf("%v became %v", before, after)
			}
			if left, _ := filepath.Glob(filepath.Join(r.objects(), "pack", "tmp_*")); len(left) > 0 {
				t.Errorf("%v", left)
			}
		})
	}
}

func flipByte(file string, part int) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	data[len(data)*(part-1)/part] ^= 0x10
	return os.WriteFile(file, data, 0o600)
}

// TestReadBack: a new pack that lacks an object, or has another one's content,
// is not taken.
func TestReadBack(t *testing.T) {
	r, _, names := packs(t, 1, 5)
	path := filepath.Join(r.objects(), "pack", names[0])
	ids, err := idsOf(filepath.Dir(path), names)
	if err != nil {
		t.Fatal(err)
	}
	if err := readBack(path+".pack", path+".idx", ids); err != nil {
		t.Error(err)
	}
	if err := readBack(path+".pack", path+".idx", append(slices.Clone(ids), plumbing.Hash{1})); !errors.Is(err, ErrMissing) {
		t.Errorf("%v", err)
	}
	data, err := os.ReadFile(path + ".idx")
	if err != nil {
		t.Fatal(err)
	}
	x := &index{data: data}
	entries, err := x.verify()
	if err != nil {
		t.Fatal(err)
	}
	entries[0].id, entries[1].id = entries[1].id, entries[0].id
	swapped := filepath.Join(t.TempDir(), "x.idx")
	if err := os.WriteFile(swapped, encodeIndex(entries, x.packSum), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := readBack(path+".pack", swapped, ids); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
}

// TestMergeMeanwhile: neither a store, old or new, nor git ever misses an
// object while packs come and go.
func TestMergeMeanwhile(t *testing.T) {
	r, book, _ := packs(t, 2, 10)
	first := r.all()
	var group sync.WaitGroup
	stop := make(chan struct{})
	loop := func(do func()) {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					do()
				}
			}
		})
	}
	s, other := r.open(), r.open()
	loop(func() { r.agrees(s, first) })
	loop(func() { r.agrees(other, first) })
	loop(func() { r.agrees(r.open(), first) })
	var list strings.Builder
	for id := range first {
		fmt.Fprintf(&list, "%s\n", id)
	}
	loop(func() {
		if out := r.git(list.String(), "cat-file", "--batch-check"); strings.Contains(out, "missing") {
			t.Errorf("git: %s", out)
		}
	})
	for range 12 {
		for range 3 {
			book.commit()
			book.flush(s)
		}
		if _, err := s.Merge(r.packNames(s), book.plan); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	group.Wait()
	r.git("", "update-ref", ledgerRef, book.tip.String())
	r.sound()
	r.agrees(other, r.all())
}

// BenchmarkMerge merges 50 packs of 100 commits: 60,000 objects.
func BenchmarkMerge(b *testing.B) {
	var ours time.Duration
	var size int64
	for range b.N {
		b.StopTimer()
		r, book, names := packs(b, 50, 100)
		plan, s := book.plan, r.open()
		b.StartTimer()
		start := time.Now()
		if _, err := s.Merge(names, plan); err != nil {
			b.Fatal(err)
		}
		ours += time.Since(start)
		size += r.packSize()
		b.StopTimer()
		r.git("", "fsck", "--full")
		runtime.GC()
		b.StartTimer()
	}
	b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ms/ours")
	b.ReportMetric(float64(size)/float64(b.N), "B/pack")
}
