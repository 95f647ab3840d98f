package packfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestT80Sweep: what a killed process held goes; what a living one holds stays,
// and so does whatever is somebody else's.
func TestT80Sweep(t *testing.T) {
	r := newRepo(t)
	alive := r.open()
	book := newBook(t)
	for range 3 {
		book.commit()
	}
	ours, err := alive.WritePack(book.batch)
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := filepath.Glob(filepath.Join(r.objects(), holdPrefix+"*"))
	if err != nil || len(dirs) != 1 {
		t.Fatal(dirs, err)
	}
	keep := func(name, text string) string {
		file := filepath.Join(r.objects(), "pack", name+".keep")
		if err := os.WriteFile(file, []byte(text), 0o444); err != nil {
			t.Fatal(err)
		}
		return file
	}
	dir := func(name string, files ...string) string {
		path := filepath.Join(r.objects(), name)
		errs := []error{os.Mkdir(path, 0o777)}
		for _, f := range files {
			errs = append(errs, os.WriteFile(filepath.Join(path, f), nil, 0o444))
		}
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return path
	}
	gone := []string{
		dir("countersign-1111111111111111", "lock", "pack1", "idx1"), keep("pack-1", "countersign-1111111111111111\n"), keep("pack-2", "countersign-1111111111111111\n"),
		dir("countersign-2222222222222222"), // killed before it was locked
		keep("pack-3", "countersign-3333333333333333\n"),
	}
	stay := []string{
		dirs[0], alive.keepFile(ours),
		keep("pack-4", ""), keep("pack-5", "fetch-pack 123 on host\n"), keep("pack-6", "countersign-1111111111111111"), keep("pack-7", "countersign-../pack\n"),
		dir("countersign-4444444444444444", "pack1"), // nothing says whose it is
	}
	for range 2 {
		if err := r.open().Sweep(); err != nil {
			t.Fatal(err)
		}
		for _, path := range gone {
			if _, err := os.Lstat(path); err == nil {
				t.Errorf("%s is still there", path)
			}
		}
		for _, path := range stay {
			if _, err := os.Lstat(path); err != nil {
				t.Error(err)
			}
		}
	}
	alive.Release(ours, "pack-4", ours)
	for _, path := range stay[:2] {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is still there after Release", path)
		}
	}
	if _, err := os.Lstat(stay[2]); err != nil {
		t.Error(err)
	}
}

// TestT80HeldFirst: a pack has its .keep before it can be seen, a merged one
// too, and as long as several are held there is one directory.
func TestT80HeldFirst(t *testing.T) {
	r, book, names := packs(t, 3, 4)
	s := r.open()
	seen := map[string]bool{}
	remove = func(file string) error {
		for _, name := range r.packNames(s) {
			if _, err := os.Lstat(s.keepFile(name)); err == nil {
				seen[name] = true
			}
		}
		return os.Remove(file)
	}
	defer func() { remove = os.Remove }()
	merged, err := s.Merge(names, book.plan)
	if err != nil || !seen[merged] || len(seen) != 1 {
		t.Errorf("while packs are removed these are held: %v, want %s: %v", seen, merged, err)
	}
	var held []string
	for range 3 {
		book.commit()
		name, err := s.WritePack(book.batch)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, name)
	}
	for len(held) > 0 {
		dirs, err := filepath.Glob(filepath.Join(r.objects(), holdPrefix+"*"))
		keeps, err2 := filepath.Glob(filepath.Join(r.objects(), "pack", "*.keep"))
		if len(dirs) != 1 || len(keeps) != len(held) || errors.Join(err, err2) != nil {
			t.Errorf("%v, %v, want %d", dirs, keeps, len(held))
		}
		s.Release(held[0])
		held = held[1:]
	}
	r.empty(t)
}

// TestT80TakePacks: packs that somebody else writes are taken whole, or not at
// all, and are held.
func TestT80TakePacks(t *testing.T) {
	from, _, _ := packs(t, 2, 3)
	want := from.all()
	r := newRepo(t)
	s := r.open()
	broken := errors.New("broken")
	fill := func(dir string) error { return os.CopyFS(filepath.Join(dir, "objects"), os.DirFS(from.objects())) }
	names, err := s.TakePacks(func(dir string) error { return errors.Join(fill(dir), broken) })
	if !errors.Is(err, broken) || len(names) != 0 {
		t.Error(names, err)
	}
	r.empty(t)
	if names, err = s.TakePacks(fill); err != nil || len(names) != 2 {
		t.Fatal(names, err)
	}
	r.git("", "repack", "-adnq")
	r.agrees(r.open(), want)
	s.Release(names...)
	r.empty(t)
}

// empty fails the test if anything is held.
func (r repo) empty(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(r.objects())
	if err != nil {
		t.Fatal(err)
	}
	keeps, err := filepath.Glob(filepath.Join(r.objects(), "pack", "*.keep"))
	held := slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), holdPrefix) })
	if held || len(keeps) > 0 || err != nil {
		t.Errorf("something is held: %v %v %v", entries, keeps, err)
	}
}
