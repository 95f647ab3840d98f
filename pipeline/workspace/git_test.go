package workspace_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/workspace"
)

// fatal ends a test that has an error.
var fatal = teststand.Fatal

// A repo is a real repository, worked on with the real git.
type repo struct {
	*testing.T
	dir string
}

func newRepo(t *testing.T) repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	r := repo{t, t.TempDir()}
	r.git("", "init", "-q")
	return r
}

func (r repo) git(stdin string, args ...string) string {
	r.Helper()
	return strings.TrimSpace(teststand.Git(r, r.dir, stdin, args...))
}

func (r repo) blob(content string) string { return r.git(content, "hash-object", "-w", "--stdin") }

// rawTree makes a tree that git itself would not: entries are mode, name, id.
func (r repo) rawTree(entries ...[3]string) string {
	r.Helper()
	var b bytes.Buffer
	for _, e := range entries {
		id := make([]byte, 20)
		if _, err := fmt.Sscanf(e[2], "%x", &id); err != nil {
			r.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\x00%s", e[0], e[1], id)
	}
	return r.git(b.String(), "hash-object", "-w", "-t", "tree", "--literally", "--stdin")
}

// copied copies the tree of a commit, as the program does.
func (r repo) copied(tree string) (dir string, err error) {
	r.Helper()
	g, err := gitstore.Open(r.dir)
	if err != nil {
		r.Fatal(err)
	}
	served, err := g.Tree(context.Background(), r.git("", "commit-tree", "-m", "x", tree))
	if err != nil {
		return "", err
	}
	dir = filepath.Join(r.TempDir(), "copy")
	if err := os.Mkdir(dir, 0o755); err != nil {
		r.Fatal(err)
	}
	return dir, workspace.Copy(served, dir)
}

// TestT34FiltersDoNotRun: the copy has the commit's own bytes, and no filter,
// hook, line-end conversion or keyword of the repository had a say.
func TestT34FiltersDoNotRun(t *testing.T) {
	r := newRepo(t)
	pwned := filepath.Join(t.TempDir(), "pwned")
	for _, c := range []string{"filter.evil.smudge", "filter.evil.process", "core.fsmonitor", "core.hooksPath"} {
		r.git("", "config", c, "touch "+pwned)
	}
	want := map[string]string{
		".gitattributes": "* filter=evil text eol=crlf ident working-tree-encoding=UTF-16 export-subst\nleft-out export-ignore\n",
		"a.txt":          "one\n$Id$ $Format:%H$\n",
		"left-out":       "is there\n",
	}
	var tree [][3]string
	for _, name := range []string{".gitattributes", "a.txt", "left-out"} {
		tree = append(tree, [3]string{"100644", name, r.blob(want[name])})
	}
	dir, err := r.copied(r.rawTree(tree...))
	fatal(t, err)
	for name, content := range want {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != content {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	if _, err := os.Lstat(pwned); err == nil {
		t.Error("something ran")
	}
}

// TestT31CraftedTrees: trees that git never writes, as objects of a real
// repository.
func TestT31CraftedTrees(t *testing.T) {
	r := newRepo(t)
	file, outside := r.blob("evil\n"), t.TempDir()
	link := r.blob(outside)
	below := r.rawTree([3]string{"100644", "x", file})
	for name, entries := range map[string][][3]string{
		"a link and a directory of its name": {{"120000", "a", link}, {"40000", "a", below}},
		"a directory and a link of its name": {{"40000", "a", below}, {"120000", "a", link}},
		"..":                                 {{"40000", "..", below}},
		"a slash":                            {{"100644", "a/b", file}},
		".git":                               {{"40000", ".git", below}},
		".GIT in a directory":                {{"40000", "d", r.rawTree([3]string{"40000", ".GIT", below})}},
		"a blob that is not there":           {{"100644", "a", strings.Repeat("1", 40)}},
		"a tree that is not there":           {{"40000", "a", strings.Repeat("1", 40)}},
	} {
		if _, err := r.copied(r.rawTree(entries...)); err == nil {
			t.Errorf("%s: copied", name)
		}
		if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
			t.Fatalf("%s: outside is %v %v", name, left, err)
		}
	}
}

// TestCopyAsGit: a copy is what git itself checks out.
func TestCopyAsGit(t *testing.T) {
	r := newRepo(t)
	file, run := r.blob("1\n"), r.blob("#!/bin/sh\n")
	tree := r.rawTree(
		[3]string{"120000", "away", r.blob("/etc/passwd")},
		[3]string{"40000", "d", r.rawTree([3]string{"100644", "x", file}, [3]string{"100755", "y", run})},
		[3]string{"120000", "l", r.blob("d/x")},
		[3]string{"100755", "run", run},
		[3]string{"160000", "sub", strings.Repeat("2", 40)},
	)
	dir, err := r.copied(tree)
	fatal(t, err)
	r.git("", "read-tree", tree)
	r.git("", "checkout-index", "-a")
	fatal(t, os.RemoveAll(filepath.Join(r.dir, ".git")))
	_ = os.Mkdir(filepath.Join(r.dir, "sub"), 0o755) // only git checkout makes it
	want, got := list(t, r.dir), list(t, dir)
	if got != want {
		t.Errorf("copied\n%swant\n%s", got, want)
	}
}

func list(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, p)
		info, err := d.Info()
		content, target := []byte(nil), ""
		switch {
		case d.Type() == fs.ModeSymlink:
			target, err = os.Readlink(p)
		case d.Type().IsRegular():
			content, err = os.ReadFile(p)
		}
		fmt.Fprintf(&out, "%s %s %t %q %s\n", name, info.Mode().Type(), info.Mode()&0o100 != 0, content, target)
		return err
	})
	fatal(t, err)
	return out.String()
}
