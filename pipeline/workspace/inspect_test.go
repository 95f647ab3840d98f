package workspace

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// TestInspect: what is neither as it was nor as it should be.
func TestInspect(t *testing.T) {
	add, update, gone := files{"a": "2\n"}, files{"a": "1\n"}, files{}
	for _, c := range []struct {
		name          string
		before, after files
		disk          files
		want          effect.State
	}{
		{"update: before", update, add, files{"a": "1\n"}, effect.Before},
		{"update: after", update, add, files{"a": "2\n"}, effect.After},
		{"update: other content", update, add, files{"a": "3\n"}, effect.Other},
		{"update: other mode", update, add, files{"a": "+x 1\n"}, effect.Other},
		{"update: gone", update, add, files{}, effect.Other},
		{"update: a directory", update, add, files{"a/b": "1\n"}, effect.Other},
		{"update: an empty directory", update, add, files{"a": "/"}, effect.Other},
		{"T44 update: a link to the same bytes", update, add, files{"a": "-> b", "b": "1\n"}, effect.Other},
		{"add: free", gone, add, files{}, effect.Before},
		{"add: there already", gone, add, files{"a": "2\n"}, effect.After},
		{"add: something else is there", gone, add, files{"a": "1\n"}, effect.Other},
		{"add: an empty directory is there", gone, add, files{"a": "/"}, effect.Before},
		{"add: empty directories are there", gone, add, files{"a/b/c": "/"}, effect.Before},
		{"add: a directory of untracked files is there", gone, add, files{"a/b/c": "1\n"}, effect.Other},
		{"T44 add: a dangling link is there", gone, add, files{"a": "-> nowhere"}, effect.Other},
		{"T44 add: a link that leads outside is there", gone, add, files{"a": "-> ../outside"}, effect.Other},
		{"delete: there", update, gone, files{"a": "1\n"}, effect.Before},
		{"delete: gone", update, gone, files{}, effect.After},
		{"delete: changed", update, gone, files{"a": "3\n"}, effect.Other},
		{"delete: a link", update, gone, files{"a": "-> b", "b": "1\n"}, effect.Other},
		{"T31 below a link", files{"x/a": "1\n"}, files{"x/a": "2\n"}, files{"x": "-> y", "y/a": "1\n"}, effect.Other},
		{"T31 below a link that leads outside", gone, files{"x/a": "2\n"}, files{"x": "-> .."}, effect.Other},
		{"below a file", gone, files{"x/a": "2\n"}, files{"x": "1\n"}, effect.Other},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.disk.put(t, dir)
			inspect(t, open(t, dir), changes(c.before, c.after), c.want)
			same(t, dir, c.disk)
		})
	}
}

// TestLocal: what Git takes for a file of a commit is that file; with a filter only what
// it prints is what a change leaves.
func TestLocal(t *testing.T) {
	upper := git.Filter{Clean: "lower", Smudge: "upper"}
	run := func(command, path string, in []byte) ([]byte, error) {
		switch {
		case path != "a":
			return nil, errors.New("of " + path)
		case command == "upper":
			return bytes.ToUpper(in), nil
		}
		return bytes.ReplaceAll(bytes.ToLower(in), []byte("hidden\n"), nil), nil
	}
	gitDir := filepath.Join(t.TempDir(), ".git")
	if _, err := git.Run(t.Context(), filepath.Dir(gitDir), "init", "--quiet"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, attributes, before, after, disk string
		want                                  effect.State
	}{
		{"crlf: before", "a eol=crlf", "x\ny\n", "z\n", "x\r\ny\r\n", effect.Before},
		{"crlf: after", "a eol=crlf", "x\ny\n", "z\n", "z\r\n", effect.After},
		{"crlf: before, to Git", "a eol=crlf", "x\ny\n", "z\n", "x\ny\r\n", effect.Before},
		{"crlf: after, to Git", "a eol=crlf", "x\ny\n", "z\n", "z\n", effect.After},
		{"crlf: neither", "a eol=crlf", "x\ny\n", "z\n", "x \r\n", effect.Other},
		{"lf: before, to Git", "a text=auto", "x\n", "z\n", "x\r\n", effect.Before},
		{"no attribute", "b text=auto", "x\n", "z\n", "x\r\n", effect.Other},
		{"filter: before", "a filter=f", "x\n", "z\n", "X\n", effect.Before},
		{"filter: before, to Git", "a filter=f", "x\n", "z\n", "x\nhidden\n", effect.Before},
		{"filter: after", "a filter=f", "x\n", "z\n", "Z\n", effect.After},
		{"filter: after, to Git", "a filter=f", "x\n", "z\n", "Z\nHIDDEN\n", effect.Other},
		{"filter: the bytes of the commit", "a filter=f", "x\n", "z\n", "z\n", effect.Other},
	} {
		dir := t.TempDir()
		files{"a": c.disk}.put(t, dir)
		tree := open(t, dir)
		tree.Attributes = git.Attributes{GitDir: gitDir, Filters: map[string]git.Filter{"f": upper}, Run: run}
		base := fstest.MapFS{".gitattributes": {Data: []byte(c.attributes)}, "a": {Data: []byte(c.before)}}
		cs := changes(files{"a": c.before}, files{"a": c.after})
		local, err := tree.Local(t.Context(), base, cs, true)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		inspect(t, tree, local, c.want)
		read, err := tree.Stored(t.Context(), base, cs)
		fatal(t, err)
		f, err := read("a", &patch.File{Mode: patch.Regular, Data: []byte(c.before)})
		if got := err == nil && string(f.Data) == c.after; got != (c.want == effect.After || c.disk == c.after) {
			t.Errorf("%s: read back as %q, %v", c.name, f.Data, err)
		}
		if t.Failed() {
			t.Fatal(c.name)
		}
	}
	files := changes(files{"a": "q\n"}, files{"a": "Q hidden\n"})
	tree := open(t, t.TempDir())
	tree.Attributes = git.Attributes{GitDir: gitDir, Filters: map[string]git.Filter{"f": upper}, Run: run}
	_, err := tree.Local(t.Context(), fstest.MapFS{".gitattributes": {Data: []byte("a filter=f")}}, files, true)
	if err == nil || !strings.HasSuffix(err.Error(), "it does not bring back the commit's content from what it writes") {
		t.Error(err)
	}
}
