package gitpatch_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"strings"
	"testing"
	"time"
)

// objects reads a repository through one "git cat-file --batch".
type objects struct {
	t     *testing.T
	in    io.WriteCloser
	out   *bufio.Reader
	trees map[string]map[string]entry // by id
}

type entry struct{ name, mode, id string }

func openObjects(t *testing.T, dir string) *objects {
	cmd := exec.Command("git", "cat-file", "--batch")
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	return &objects{t, in, bufio.NewReaderSize(out, 1<<20), map[string]map[string]entry{}}
}

// read returns an object's id and content.
func (o *objects) read(name string) (string, []byte) {
	o.t.Helper()
	fmt.Fprintln(o.in, name)
	var id, kind string
	var size int
	if _, err := fmt.Fscanf(o.out, "%s %s %d\n", &id, &kind, &size); err != nil {
		o.t.Fatalf("object %s: %v", name, err)
	}
	data := make([]byte, size+1)
	if _, err := io.ReadFull(o.out, data); err != nil {
		o.t.Fatal(err)
	}
	return id, data[:size]
}

func (o *objects) tree(id string) map[string]entry {
	if t, ok := o.trees[id]; ok {
		return t
	}
	_, data := o.read(id)
	t := map[string]entry{}
	for len(data) > 0 {
		head, rest, _ := bytes.Cut(data, []byte{0})
		mode, name, _ := strings.Cut(string(head), " ")
		t[name] = entry{name, mode, fmt.Sprintf("%x", rest[:20])}
		data = rest[20:]
	}
	o.trees[id] = t
	return t
}

// treeFS is one tree of a repository as an fs.ReadLinkFS.
type treeFS struct {
	*objects
	root string
}

func (t treeFS) find(op, name string) (entry, error) {
	at := entry{".", "40000", t.root}
	if name == "." {
		return at, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		e, ok := entry{}, false
		if at.mode == "40000" {
			e, ok = t.tree(at.id)[part]
		}
		if !ok {
			return entry{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		at = e
	}
	return at, nil
}

func (t treeFS) Lstat(name string) (fs.FileInfo, error) {
	e, err := t.find("lstat", name)
	return e, err
}

func (t treeFS) ReadLink(name string) (string, error) {
	data, err := t.ReadFile(name)
	return string(data), err
}

func (t treeFS) ReadFile(name string) ([]byte, error) {
	e, err := t.find("read", name)
	if err != nil {
		return nil, err
	}
	_, data := t.read(e.id)
	return data, nil
}

func (t treeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	e, err := t.find("readdir", name)
	if err != nil {
		return nil, err
	}
	var out []fs.DirEntry
	for _, child := range t.tree(e.id) {
		out = append(out, fs.FileInfoToDirEntry(child))
	}
	return out, nil
}

func (t treeFS) Open(string) (fs.File, error) { return nil, fs.ErrInvalid }

func (e entry) Name() string       { return path.Base(e.name) }
func (e entry) Size() int64        { return 0 }
func (e entry) ModTime() time.Time { return time.Time{} }
func (e entry) IsDir() bool        { return e.mode == "40000" }
func (e entry) Sys() any           { return nil }
func (e entry) Mode() fs.FileMode {
	switch e.mode {
	case "40000":
		return fs.ModeDir | 0o755
	case "100755":
		return 0o755
	case "120000":
		return fs.ModeSymlink | 0o777
	case "160000":
		return fs.ModeIrregular
	}
	return 0o644
}
