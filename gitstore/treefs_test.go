package gitstore_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

func headTree(t *testing.T, w work) fs.FS {
	t.Helper()
	repo := w.open()
	head, err := repo.Head(t.Context())
	fatal(t, err)
	tree, err := repo.Tree(t.Context(), head)
	fatal(t, err)
	return tree
}

func TestTreeFS(t *testing.T) {
	files := map[string]string{
		"README.md": "hello\n", "empty": "", "bin": "\x00\xff", "a/b/c": "c\n", "a.b": "x", "a-b": "y", "a/ü ö": "z", "dir/run.sh": "#!/bin/sh\n",
	}
	w := newWork(t, files)
	w.git("update-index", "--chmod=+x", "dir/run.sh")
	w.git("commit", "--quiet", "--message=more")
	var names []string
	for name := range files {
		names = append(names, name)
	}
	for _, packed := range []bool{false, true} {
		if packed {
			w.git("repack", "-a", "-d", "--quiet")
		}
		tree := headTree(t, w)
		if err := fstest.TestFS(tree, names...); err != nil {
			t.Errorf("packed %v: %v", packed, err)
		}
		for name, want := range files {
			if data, err := fs.ReadFile(tree, name); err != nil || string(data) != want {
				t.Errorf("%s: %q %v", name, data, err)
			}
		}
	}
}

func TestTreeFSEntries(t *testing.T) {
	w := newWork(t, map[string]string{"dir/file": "1", "run": "2"})
	w.git("update-index", "--chmod=+x", "run")
	if err := os.Symlink("dir", w.path("link")); err != nil {
		t.Skip(err)
	}
	w.git("add", "link")
	w.git("update-index", "--add", "--cacheinfo", "160000,"+w.git("rev-parse", "HEAD")+",sub")
	w.git("commit", "--quiet", "--message=more")
	tree := headTree(t, w)
	for _, c := range []struct {
		name string
		mode fs.FileMode
		err  error
	}{
		{".", fs.ModeDir | 0o555, nil},
		{"dir", fs.ModeDir | 0o555, nil},
		{"dir/file", 0o644, nil},
		{"run", 0o755, nil},
		{"link", fs.ModeSymlink | 0o777, nil},
		{"sub", fs.ModeIrregular, nil},
		{"none", 0, fs.ErrNotExist},
		{"dir/none", 0, fs.ErrNotExist},
		{"none/none", 0, fs.ErrNotExist},
		{"run/below", 0, fs.ErrNotExist},
		{"link/file", 0, fs.ErrNotExist},
		{"sub/file", 0, fs.ErrNotExist},
		{"/dir", 0, fs.ErrInvalid},
		{"dir/../run", 0, fs.ErrInvalid},
		{"", 0, fs.ErrInvalid},
	} {
		info, err := fs.Lstat(tree, c.name)
		if !errors.Is(err, c.err) || err == nil && info.Mode() != c.mode {
			t.Errorf("%q: %v %v", c.name, info, err)
		}
	}
	if to, err := fs.ReadLink(tree, "link"); to != "dir" || err != nil {
		t.Errorf("link to %q (%v)", to, err)
	}
	for _, name := range []string{"dir", "link", "sub", "none"} {
		if data, err := fs.ReadFile(tree, name); err == nil {
			t.Errorf("read %q from %s", data, name)
		}
	}
	if _, err := fs.ReadLink(tree, "run"); err == nil {
		t.Error("a file is no link")
	}
	var unfit *patch.Error
	for _, name := range []string{"link", "link/file", "sub", "sub/file"} {
		if f, err := patch.Lookup(tree, name); !errors.As(err, &unfit) {
			t.Errorf("T31 %s: %v %v", name, f, err)
		}
	}
}

// TestT61MissingObject: what was not fetched, or is damaged, must not read as
// absent: a file that looks absent could be "added", a denial be forgotten.
func TestT61MissingObject(t *testing.T) {
	for _, damage := range []struct {
		name string
		do   func(string) error
	}{
		{"missing", os.Remove},
		{"empty", func(file string) error { return errors.Join(os.Chmod(file, 0o600), os.Truncate(file, 0)) }},
		{"junk", func(file string) error {
			return errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, []byte("junk"), 0o600))
		}},
	} {
		for _, c := range []struct{ rev, read string }{
			{"HEAD:a/b", "a/b"}, {"HEAD:a", "a/b"}, {"HEAD^{tree}", "a/b"}, {"HEAD", "a/b"},
		} {
			t.Run(damage.name+" "+c.rev, func(t *testing.T) {
				w := newWork(t, map[string]string{"a/b": "1\n", "c": "2\n"})
				repo := w.open()
				head, err := repo.Head(t.Context())
				fatal(t, err)
				fatal(t, damage.do(w.object(c.rev)))
				tree, err := repo.Tree(t.Context(), head)
				if err == nil {
					_, err = fs.ReadFile(tree, c.read)
				}
				if err == nil || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("read: %v", err)
				}
				if tree == nil {
					return
				}
				if f, err := patch.Lookup(tree, c.read); f != nil || err == nil || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("lookup: %v %v", f, err)
				}
				if data, err := fs.ReadFile(tree, "c"); string(data) != "2\n" || err != nil {
					t.Errorf("a sound file: %q %v", data, err)
				}
			})
		}
	}
}

// TestT57WrongObject: an object that does not hash to its name is damaged.
func TestT57WrongObject(t *testing.T) {
	w := newWork(t, map[string]string{"a": "1\n", "b": "2\n"})
	good, err := os.ReadFile(w.object("HEAD:b"))
	fatal(t, err)
	file := w.object("HEAD:a")
	fatal(t, errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, good, 0o600)))
	if data, err := fs.ReadFile(headTree(t, w), "a"); err == nil {
		t.Errorf("read %q", data)
	}
}
