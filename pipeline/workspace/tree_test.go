package workspace

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// files are what a directory holds: content by path, "+x " before the content
// of an executable, "-> " before the target of a link, and "/" for a directory
// that is empty.
type files map[string]string

func (f files) plus(more files) files {
	out := maps.Clone(f)
	maps.Copy(out, more)
	return out
}

// put makes the files below dir.
func (f files) put(t testing.TB, dir string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		data, executable := strings.CutPrefix(f[name], "+x ")
		perm := fs.FileMode(0o644)
		if executable {
			perm = 0o755
		}
		err := os.MkdirAll(filepath.Dir(file), 0o777)
		switch target, link := strings.CutPrefix(data, "-> "); {
		case err != nil:
		case link:
			err = os.Symlink(target, file)
		case data == "/":
			err = os.Mkdir(file, 0o777)
		default:
			err = os.WriteFile(file, []byte(data), perm)
		}
		fatal(t, err)
	}
}

// get reads everything below dir.
func get(t testing.TB, dir string) files {
	t.Helper()
	out := files{}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || file == dir {
			return err
		}
		name, _ := filepath.Rel(dir, file)
		name = filepath.ToSlash(name)
		switch {
		case d.IsDir():
			entries, err := os.ReadDir(file)
			if len(entries) == 0 {
				out[name] = "/"
			}
			return err
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(file)
			out[name] = "-> " + target
			return err
		}
		data, err := os.ReadFile(file)
		out[name] = string(data)
		if info, statErr := d.Info(); statErr == nil && info.Mode()&0o100 != 0 {
			out[name] = "+x " + string(data)
		}
		return err
	})
	fatal(t, err)
	return out
}

func same(t testing.TB, dir string, want files) {
	t.Helper()
	if got := get(t, dir); !maps.Equal(got, want) {
		t.Errorf("the tree is %v, want %v", got, want)
	}
}

// changes are what turns one tree into another, sorted by path.
func changes(before, after files) []patch.Change {
	var out []patch.Change
	for _, name := range slices.Sorted(maps.Keys(before.plus(after))) {
		if c := (patch.Change{Path: name, Before: file(before, name), After: file(after, name)}); !c.Before.Equal(c.After) {
			out = append(out, c)
		}
	}
	return out
}

func file(f files, name string) *patch.File {
	data, ok := f[name]
	if !ok {
		return nil
	}
	data, executable := strings.CutPrefix(data, "+x ")
	if executable {
		return &patch.File{Mode: patch.Executable, Data: []byte(data)}
	}
	return &patch.File{Mode: patch.Regular, Data: []byte(data)}
}

func open(t *testing.T, dir string) *Tree {
	t.Helper()
	return openWith(t, dir, t.TempDir())
}

func openWith(t *testing.T, dir, state string) *Tree {
	t.Helper()
	tree, err := Open(dir, state, false)
	fatal(t, err)
	t.Cleanup(func() { _ = tree.root.Close() })
	return tree
}

func inspect(t *testing.T, tree *Tree, cs []patch.Change, want effect.State) {
	t.Helper()
	states, err := tree.Inspect(cs)
	fatal(t, err)
	for i, s := range states {
		if s != want {
			t.Errorf("%s is in state %d, want %d", cs[i].Path, s, want)
		}
	}
}

// outcome is the ApplyResult's outcome of a report.
func outcome(ops []ledger.Operation) ledger.Outcome {
	return effect.NewResult(".", ledger.PatchSource{}, false, ops).Outcome
}
