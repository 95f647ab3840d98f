package gitstore_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// somePaths picks paths that Git sorts otherwise than bytes do, none of which
// lies below another.
func somePaths(random *rand.Rand, n int) map[string]*patch.File {
	names := []string{"a", "a.b", "a-b", "a0", "ab", "b", "ü", "A"}
	out := map[string]*patch.File{}
	for range n {
		parts := make([]string, 1+random.IntN(3))
		for i := range parts {
			parts[i] = names[random.IntN(len(names))]
		}
		path := strings.Join(parts, "/")
		clash := false
		for other := range out {
			clash = clash || strings.HasPrefix(other+"/", path+"/") || strings.HasPrefix(path+"/", other+"/")
		}
		if !clash {
			mode := []patch.Mode{patch.Regular, patch.Executable}[random.IntN(2)]
			out[path] = &patch.File{Mode: mode, Data: fmt.Append(nil, random.IntN(5))}
		}
	}
	return out
}

// gitTree makes the tree that holds these files, with git.
func (w work) gitTree(files map[string]*patch.File) string {
	w.t.Helper()
	var info strings.Builder
	for path, f := range files {
		w.write(".git/blob", string(f.Data))
		fmt.Fprintf(&info, "%s %s\t%s\n", f.Mode, w.git("hash-object", "-w", ".git/blob"), path)
	}
	w.git("read-tree", "--empty")
	w.stdin(info.String(), "update-index", "--add", "--index-info")
	return w.git("write-tree")
}

// TestBuildCommitMakesGitsTrees: from any set of files to any other, files that
// become directories and the reverse among them.
func TestBuildCommitMakesGitsTrees(t *testing.T) {
	w := newWork(t, nil)
	repo := w.open()
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 0))
		old, next := somePaths(random, 12), somePaths(random, 12)
		for path, f := range old {
			if _, edited := next[path]; !edited && random.IntN(2) == 0 {
				next[path] = f
			}
		}
		for path := range next { // what was added may lie below, or above, another
			for other := range next {
				if strings.HasPrefix(other, path+"/") {
					delete(next, other)
				}
			}
		}
		if seed == 0 {
			next = nil
		}
		parent := w.git("commit-tree", "-m", "base", w.gitTree(old))
		var files []patch.Change
		for path, f := range next {
			if !f.Equal(old[path]) {
				files = append(files, patch.Change{Path: path, Before: old[path], After: f})
			}
		}
		for path, f := range old {
			if next[path] == nil {
				files = append(files, patch.Change{Path: path, Before: f})
			}
		}
		made, err := repo.BuildCommit(t.Context(), parent, files, code.Commit{Author: "A <x>\n", Email: "<a@example.org>", Message: "x\n"})
		if err != nil {
			t.Errorf("%v to %v: %v", slices.Sorted(maps.Keys(old)), slices.Sorted(maps.Keys(next)), err)
			continue
		}
		if got, want := w.git("rev-parse", made+"^{tree}"), w.gitTree(next); got != want {
			t.Errorf("%v to %v:\n%s\nwant\n%s", slices.Sorted(maps.Keys(old)), slices.Sorted(maps.Keys(next)),
				w.git("ls-tree", "-r", got), w.git("ls-tree", "-r", want))
		}
	}
	w.fsck()
}

// TestBuildCommitRefuses: nothing is lost from sight because it stands in the
// way.
func TestBuildCommitRefuses(t *testing.T) {
	w := newWork(t, map[string]string{"dir/a": "1\n", "dir/b": "1\n", "file": "1\n"})
	parent, f := w.git("rev-parse", "HEAD"), &patch.File{Mode: patch.Regular}
	for name, files := range map[string][]patch.Change{
		"a file over a directory":         {{Path: "dir", After: f}},
		"over what stays of a directory":  {{Path: "dir/a"}, {Path: "dir", After: f}},
		"a directory removed as a file":   {{Path: "dir"}},
		"a directory over a file":         {{Path: "file/x", After: f}},
		"a file and a directory":          {{Path: "new", After: f}, {Path: "new/x", After: f}},
		"a path twice":                    {{Path: "x", After: f}, {Path: "x", After: f}},
		"no path":                         {{Path: "", After: f}},
		"the root":                        {{Path: ".", After: f}},
		"outside":                         {{Path: "../x", After: f}},
		"an empty name":                   {{Path: "dir//x", After: f}},
		"below a file that is changed":    {{Path: "file", After: f}, {Path: "file/x", After: f}},
		"a parent that is no commit":      nil,
		"a parent that is not there":      nil,
		"a removal below what is no tree": {{Path: "file/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			parent := parent
			switch name {
			case "a parent that is no commit":
				parent = w.git("rev-parse", "HEAD^{tree}")
			case "a parent that is not there":
				parent = strings.Repeat("12", 20)
			}
			if made, err := w.open().BuildCommit(t.Context(), parent, files, code.Commit{Author: "A", Email: "a"}); err == nil {
				t.Errorf("made\n%s", w.git("ls-tree", "-r", made))
			}
		})
	}
	if out := w.git("count-objects"); !strings.HasPrefix(out, "4 ") {
		t.Errorf("objects were written: %s", out)
	}
}

// TestTreeFSAtOnce: several goroutines read one tree.
func TestTreeFSAtOnce(t *testing.T) {
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("d%d/e%d/f%d", i%7, i%3, i)] = strings.Repeat(fmt.Sprintln(i), i)
	}
	w := newWork(t, files)
	for range 2 {
		tree := headTree(t, w)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for name, want := range files {
					info, err := fs.Stat(tree, name)
					data, err2 := fs.ReadFile(tree, name)
					if err != nil || err2 != nil || string(data) != want || info.Size() != int64(len(want)) {
						t.Errorf("%s: %v %v", name, err, err2)
					}
					clear(data)
				}
			})
		}
		group.Wait()
		w.git("repack", "-adfq")
	}
}
