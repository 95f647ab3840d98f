package gitpatch_test

import (
	"flag"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

var update = flag.Bool("update", false, "write the expected results into testdata")

// An archive is a txtar file. A section KIND/NAME or KIND holds the bytes as they
// are; KIND.quoted/NAME holds them with Go's escapes, where a backslash at a
// line's end takes its newline away.
type archive struct {
	*txtar.Archive
	file string
}

func readArchive(t testing.TB, file string) archive {
	t.Helper()
	a, err := txtar.ParseFile(file)
	fatal(t, err)
	return archive{a, file}
}

// kind returns the sections of one kind by name.
func (a archive) kind(t testing.TB, kind string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, f := range a.Files {
		k, name, _ := strings.Cut(f.Name, "/")
		switch k {
		case kind:
			out[name] = f.Data
		case kind + ".quoted":
			out[name] = unescapeText(t, string(f.Data))
		}
	}
	return out
}

func unescapeText(t testing.TB, s string) []byte {
	t.Helper()
	var out []byte
	for line := range strings.Lines(s) {
		line = strings.TrimSuffix(line, "\n")
		for line != "" && line != `\` {
			c, multibyte, rest, err := strconv.UnquoteChar(line, 0)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if multibyte {
				out = append(out, string(c)...)
			} else {
				out = append(out, byte(c))
			}
			line = rest
		}
		if line == "" {
			out = append(out, '\n')
		}
	}
	return out
}

// base is the tree of the sections base/, exec/, link/ (its text is the target)
// and module/.
func (a archive) base(t testing.TB) fstest.MapFS {
	tree := fstest.MapFS{}
	for kind, mode := range map[string]fs.FileMode{"base": 0o644, "exec": 0o755, "link": fs.ModeSymlink | 0o777, "module": fs.ModeIrregular} {
		for name, data := range a.kind(t, kind) {
			if kind == "link" {
				data = []byte(strings.TrimSpace(string(data)))
			}
			tree[name] = &fstest.MapFile{Data: data, Mode: mode}
		}
	}
	return tree
}

// change is what the sections after/, afterexec/ and gone/ make of the base.
func (a archive) change(t testing.TB, base fs.FS) patch.Patchset {
	t.Helper()
	after := map[string]*patch.File{}
	for kind, mode := range map[string]patch.Mode{"after": patch.Regular, "afterexec": patch.Executable, "gone": 0} {
		for name, data := range a.kind(t, kind) {
			if after[name] = nil; mode != 0 {
				after[name] = &patch.File{Mode: mode, Data: data}
			}
		}
	}
	p, err := patch.NewTree(base).Between(after)
	fatal(t, err)
	return p
}

// want compares a section with what it should be, or writes it with -update.
func (a archive) want(t *testing.T, section, got string) {
	t.Helper()
	i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == section })
	if i >= 0 && string(a.Files[i].Data) == got {
		return
	}
	if !*update {
		t.Errorf("%s: got %q", section, got)
		return
	}
	if i < 0 {
		a.Files = append(a.Files, txtar.File{Name: section})
		i = len(a.Files) - 1
	}
	a.Files[i].Data = []byte(got)
	fatal(t, os.WriteFile(a.file, txtar.Format(a.Archive), 0o666))
}
