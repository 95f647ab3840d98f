package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// treeFiles is a tree in few words: a path and its content, which is a link for
// "-> target", executable for "+x …", a directory for "/", a submodule for "@",
// a device for "!".
type treeFiles map[string]string

func (f treeFiles) tree() fstest.MapFS {
	out := fstest.MapFS{}
	for name, content := range f {
		file := &fstest.MapFile{Data: []byte(content), Mode: 0o644}
		switch {
		case strings.HasPrefix(content, "-> "):
			file.Data, file.Mode = []byte(content[3:]), fs.ModeSymlink|0o777
		case strings.HasPrefix(content, "+x "):
			file.Data, file.Mode = []byte(content[3:]), 0o755
		case content == "/":
			file.Data, file.Mode = nil, fs.ModeDir|0o555
		case content == "@":
			file.Data, file.Mode = nil, fs.ModeIrregular
		case content == "!":
			file.Data, file.Mode = nil, fs.ModeDevice|0o666
		}
		out[name] = file
	}
	return out
}

// read is what lies in a directory, in the words of files. An empty directory
// is "@"; an odd mode stands before the content.
func read(t *testing.T, dir string) treeFiles {
	t.Helper()
	out := treeFiles{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, p)
		name = filepath.ToSlash(name)
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case d.IsDir():
			inside, err := os.ReadDir(p)
			if len(inside) == 0 && name != "." {
				out[name] = "@"
			}
			return err
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(p)
			out[name] = "-> " + target
			return err
		}
		b, err := os.ReadFile(p)
		switch out[name] = string(b); info.Mode() {
		case 0o644:
		case 0o755:
			out[name] = "+x " + string(b)
		default:
			out[name] = info.Mode().String() + " " + string(b)
		}
		return err
	})
	fatal(t, err)
	return out
}

// inside makes a directory for a copy in one that is to stay as it is.
func inside(t *testing.T) (outside, dir string) {
	t.Helper()
	outside = t.TempDir()
	dir = filepath.Join(outside, "copy")
	fatal(t, os.Mkdir(dir, 0o755))
	fatal(t, os.WriteFile(filepath.Join(outside, "precious"), []byte("as it was"), 0o644))
	return outside, dir
}

func untouched(t *testing.T, outside string) {
	t.Helper()
	names, err := os.ReadDir(outside)
	b, err2 := os.ReadFile(filepath.Join(outside, "precious"))
	if errors.Join(err, err2) != nil || len(names) != 2 || string(b) != "as it was" {
		t.Errorf("outside the copy: %v %q %v %v", names, b, err, err2)
	}
}

func TestCopy(t *testing.T) {
	for _, c := range []struct {
		name string
		tree treeFiles
	}{
		{"empty", treeFiles{}},
		{"a file", treeFiles{"a": "1\n"}},
		{"an empty file", treeFiles{"a": ""}},
		{"executable", treeFiles{"run": "+x #!/bin/sh\n", "d/run": "+x 2"}},
		{"directories", treeFiles{"a/b/c/d": "1", "a/b/e": "2", "f": "3"}},
		{"bytes", treeFiles{"a": "\x00\xff\r\n"}},
		{"a submodule", treeFiles{"vendor/lib": "@", "x": "1"}},
		{"links", treeFiles{"a": "-> b", "b": "1", "d": "-> c", "c/x": "2", "dangling": "-> nowhere"}},
		{"T31 a link that leads outside", treeFiles{"a": "-> ../precious", "b": "-> /etc/passwd", "c/d": "-> ../../.."}},
		{"names", treeFiles{"a b": "1", "-rf": "2", "ä€": "3", "*": "4", "a\\b": "5", "con": "6", "x.": "7"}},
		{"names that look like Git's", treeFiles{".gitattributes": "* filter=evil", ".gitmodules": "", ".github/x": "1", "git": "2", ".git2": "3", "a.git/x": "4", ".gitignore": "*"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && c.name == "names" {
				t.Skip("names that Windows does not have")
			}
			outside, dir := inside(t)
			fatal(t, Copy(c.tree.tree(), dir))
			if got := read(t, dir); !maps.Equal(got, c.tree) {
				t.Errorf("copied\n%q\nwant\n%q", got, c.tree)
			}
			untouched(t, outside)
		})
	}
}

// A crafted tree lists, beside what a real one could, entries of any name and
// type, and more than one of a name.
type crafted struct {
	fstest.MapFS
	more map[string][]fs.DirEntry // by directory; first in its listing
	last bool                     // or last
}

func (c crafted) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := c.MapFS.ReadDir(name)
	if c.last {
		return slices.Concat(list, c.more[name]), err
	}
	return slices.Concat(c.more[name], list), err
}

// fake is a directory entry that is only listed; what is there is found by its
// name.
type fake struct {
	name string
	mode fs.FileMode
}

func (f fake) Name() string               { return f.name }
func (f fake) IsDir() bool                { return f.mode.IsDir() }
func (f fake) Type() fs.FileMode          { return f.mode.Type() }
func (f fake) Info() (fs.FileInfo, error) { return nil, errors.New("not asked for") }

// TestT31HostileTrees: whatever a tree says, nothing outside the copy changes.
func TestT31HostileTrees(t *testing.T) {
	at := func(dir string, e ...fs.DirEntry) map[string][]fs.DirEntry { return map[string][]fs.DirEntry{dir: e} }
	for _, c := range []struct {
		name string
		tree treeFiles
		more map[string][]fs.DirEntry
		want string
	}{
		{"a link, then a directory of its name", treeFiles{"a/x": "1"}, at(".", fake{"a", fs.ModeSymlink}), ""},
		{"a link, then a file of its name", treeFiles{"a": "-> ../precious"}, at(".", fake{"a", 0}), ""},
		{"a directory twice", treeFiles{"a/x": "1"}, at(".", fake{"a", fs.ModeDir}), "exists"},
		{"an empty directory twice", treeFiles{"a": "/"}, at(".", fake{"a", fs.ModeDir}), "exists"},
		{"a submodule twice", treeFiles{"a": "@"}, at(".", fake{"a", fs.ModeIrregular}), "exists"},
		{"a file twice", treeFiles{"a": "1"}, at(".", fake{"a", 0}), "exists"},
		{"a link twice", treeFiles{"a": "-> ../precious"}, at(".", fake{"a", fs.ModeSymlink}), "exists"},
		{"..", treeFiles{"a": "1"}, at(".", fake{"..", fs.ModeDir}), "not a file name"},
		{". in a directory", treeFiles{"a/b": "1"}, at("a", fake{".", fs.ModeDir}), "not a file name"},
		{"no name", treeFiles{}, at(".", fake{"", 0}), "not a file name"},
		{"traversal", treeFiles{}, at(".", fake{"../precious", 0}), "not a file name"},
		{"absolute", treeFiles{}, at(".", fake{"/tmp/x", 0}), "not a file name"},
		{"a slash", treeFiles{"a/b": "1"}, at(".", fake{"a/b", 0}), "not a file name"},
		{"NUL", treeFiles{}, at(".", fake{"a\x00b", 0}), "not a file name on this platform"},
		{"not there", treeFiles{}, at(".", fake{"l", 0}), "does not exist"},
		{"a device", treeFiles{"null": "!"}, nil, "neither a file, a link, a directory nor a submodule"},
		{"a pipe", treeFiles{}, at(".", fake{"p", fs.ModeNamedPipe}), "neither a file"},
		{"an empty link", treeFiles{"a": "-> "}, nil, "cannot be a path"},
		{"a link with NUL", treeFiles{"a": "-> x\x00y"}, nil, "cannot be a path"},
		{"a name that is too long", treeFiles{strings.Repeat("n", 300): "1"}, nil, "name too long"},
	} {
		for _, last := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, " ", last), func(t *testing.T) {
				outside, dir := inside(t)
				err := Copy(crafted{c.tree.tree(), c.more, last}, dir)
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "copying the tree: ") {
					t.Errorf("error %v, want %q", err, c.want)
				}
				if err != nil && strings.Contains(err.Error(), outside) {
					t.Errorf("the error names where the copy is: %v", err)
				}
				untouched(t, outside)
			})
		}
	}
}

// lying lists everything as a regular file.
type lying struct{ fstest.MapFS }

func (l lying) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := l.MapFS.ReadDir(name)
	for i, e := range list {
		list[i] = fake{e.Name(), 0}
	}
	return list, err
}

func TestT31ListedAsFile(t *testing.T) {
	for _, tree := range []treeFiles{{"a": "-> b", "b": "1"}, {"a": "@"}, {"a": "!"}, {"a/b": "1"}} {
		outside, dir := inside(t)
		if err := Copy(lying{tree.tree()}, dir); err == nil || !strings.Contains(err.Error(), "listed as a file, but is not one") {
			t.Errorf("%q: %v", tree, err)
		}
		untouched(t, outside)
	}
}

// TestT34DotGit: nothing in a tree can become the configuration of a repository.
func TestT34DotGit(t *testing.T) {
	for _, name := range []string{
		".git", ".GIT", ".Git", ".git.", ".git ", ".git . .", "git~1", "GIT~1", ".git:x", ".git::$INDEX_ALLOCATION",
		".g\u200cit", "\u200d.git", ".gi\ufefft", ".git\u202e",
	} {
		for _, full := range []string{name, name + "/config", "a/" + name + "/hooks/post-checkout"} {
			outside, dir := inside(t)
			err := Copy(treeFiles{full: "+x [core]\n\tfsmonitor = touch pwned\n"}.tree(), dir)
			if err == nil || !strings.Contains(err.Error(), "Git takes for its own") && runtime.GOOS != "windows" {
				t.Errorf("%+q: error %v", full, err)
			}
			if got := read(t, dir); len(got) > 1 || len(got) == 1 && got["a"] != "@" {
				t.Errorf("%+q: copied %q", full, got)
			}
			untouched(t, outside)
		}
	}
	for _, link := range []string{".git", "sub/.GIT"} {
		_, dir := inside(t)
		if err := Copy(treeFiles{link: "-> evil", "evil/config": "1"}.tree(), dir); err == nil {
			t.Errorf("a link %s is copied", link)
		}
		_, dir = inside(t)
		if err := Copy(treeFiles{link: "@"}.tree(), dir); err == nil {
			t.Errorf("a submodule %s is copied", link)
		}
	}
}

func TestT42CopyIsBounded(t *testing.T) {
	deep := strings.Repeat("d/", 5) + "x"
	for _, c := range []struct {
		name string
		tree treeFiles
		max  limits
		want string
	}{
		{"as many as allowed", treeFiles{"a": "12", "b/c": "34", "d": "-> 5"}, limits{4, 5, 1}, ""},
		{"one file more", treeFiles{"a": "12", "b/c": "34", "d": "-> 5"}, limits{3, 5, 1}, "more than 3 files and directories"},
		{"one byte more", treeFiles{"a": "12", "b": "345"}, limits{4, 4, 1}, "more than 4 bytes"},
		{"a link's bytes", treeFiles{"a": "12", "b": "-> 345"}, limits{4, 4, 1}, "more than 4 bytes"},
		{"deep enough", treeFiles{deep: "1"}, limits{10, 10, 5}, ""},
		{"too deep", treeFiles{deep: "1"}, limits{10, 10, 4}, "more than 4 directories deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := copyTree(context.Background(), c.tree.tree(), t.TempDir(), c.max)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if copyLimits.entries > 1e6 || copyLimits.bytes > 1<<33 || copyLimits.depth > 1000 {
		t.Errorf("the limits are %+v", copyLimits)
	}
}

// huge says of its one file that it is large, and fails when that is read.
type huge struct{ fstest.MapFS }

func (h huge) ReadFile(string) ([]byte, error) { panic("a file over the limit is read") }
func (h huge) Lstat(name string) (fs.FileInfo, error) {
	info, err := h.MapFS.Lstat(name)
	return largeInfo{info}, err
}

type largeInfo struct{ fs.FileInfo }

func (largeInfo) Size() int64 { return copyLimits.bytes + 1 }

func TestT42HugeFileIsNotRead(t *testing.T) {
	if err := Copy(huge{treeFiles{"a": "1"}.tree()}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Error(err)
	}
}

// A tree of links to itself has more paths than there are atoms.
type endless struct{ fstest.MapFS }

func (e endless) ReadDir(string) ([]fs.DirEntry, error) {
	return []fs.DirEntry{fake{"a", fs.ModeDir}, fake{"b", fs.ModeDir}}, nil
}

func TestT42EndlessTree(t *testing.T) {
	max := copyLimits
	max.entries = 1000
	if err := copyTree(context.Background(), endless{}, t.TempDir(), max); err == nil {
		t.Error("an endless tree is copied")
	}
}

func TestCopyInto(t *testing.T) {
	tree := treeFiles{"a": "1"}.tree()
	outside, _ := inside(t)
	if err := Copy(tree, outside); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Error(err)
	}
	untouched(t, outside)
	if err := Copy(tree, path.Join(outside, "missing")); err == nil {
		t.Error("copied into a directory that is not there")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := copyTree(ctx, tree, t.TempDir(), copyLimits); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
