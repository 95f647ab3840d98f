package main

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// A packFile is a file, a directory or a link of a recorded case.
type packFile struct {
	File    []byte
	Dir     bool
	Symlink string
}

// A packCase is a run of "pack apply" that was recorded.
type packCase struct {
	Name      string
	Tree      map[string]packFile // below target
	Outside   map[string]packFile // beside it
	Patch     []byte              `json:"patch_b64"` // null: there is none
	DryRun    bool                `json:"dry_run"`
	Target    string
	ExtraArgs []string `json:"extra_args"`
	Expected  struct {
		Exit   int
		Stdout string
		After  map[string]string
	}
}

func TestPackApplyVectors(t *testing.T) {
	for _, c := range packCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			c.build(t)
			code, out, errs := inProcess("", c.args()...)
			if code != c.Expected.Exit || out != c.Expected.Stdout {
				t.Errorf("exit %d, want %d\n got %s\nwant %s\nstderr %s", code, c.Expected.Exit, out, c.Expected.Stdout, errs)
			}
			if (code == 0) == strings.Contains(errs, "countersign: error: pack apply: ") {
				t.Errorf("exit %d with stderr %q", code, errs)
			}
			got, want := packTree(t, "target"), c.Expected.After
			if !maps.Equal(got, want) {
				t.Errorf("afterwards %v, want %v", got, want)
			}
		})
	}
}

func packCases(t *testing.T) []packCase {
	raw, err := os.ReadFile("testdata/vectors/apply.json")
	check(t, err)
	var cases []packCase
	check(t, json.Unmarshal(raw, &cases))
	return cases
}

func (c packCase) args() []string {
	args := append([]string{"pack", "apply", "--pack", "pack", "--target", c.Target}, c.ExtraArgs...)
	if c.DryRun {
		args = append(args, "--dry-run")
	}
	return args
}

// build makes the case's files in a new directory and goes there.
func (c packCase) build(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"target", "pack"} {
		check(t, os.Mkdir(dir, 0o777))
	}
	for name, f := range c.Tree {
		f.make(t, filepath.Join("target", name))
	}
	for name, f := range c.Outside {
		f.make(t, name)
	}
	if c.Patch != nil {
		check(t, os.WriteFile("pack/patch.json", c.Patch, 0o666))
	}
}

func (f packFile) make(t *testing.T, name string) {
	check(t, os.MkdirAll(filepath.Dir(name), 0o777))
	switch {
	case f.Dir:
		check(t, os.MkdirAll(name, 0o777))
	case f.Symlink != "":
		check(t, os.Symlink(f.Symlink, name))
	default:
		check(t, os.WriteFile(name, f.File, 0o666))
	}
}

// packTree is the hash of every file in a directory; a link's is "symlink".
func packTree(t *testing.T, dir string) map[string]string {
	got := map[string]string{}
	check(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if d.Type() == fs.ModeSymlink {
			got[name] = "symlink"
			return nil
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		got[name] = canon.Hex(data)
		return err
	}))
	return got
}

func TestPackApplyErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	check(t, os.Mkdir("target", 0o777))
	check(t, os.WriteFile("file", nil, 0o666))
	for _, c := range []struct {
		args string
		code int
		errs string
	}{
		{"--target target", 2, "no pack or no target given"},
		{"--pack pack", 2, "no pack or no target given"},
		{"--pack file --target target x", 2, `unexpected argument "x"`},
		{"--pack nowhere --target target", 3, "pack apply: reading the pack: stat nowhere: no such file"},
		{"--pack file --target target", 3, "pack apply: reading the pack: open file: not a directory"},
	} {
		code, out, errs := inProcess("", append([]string{"pack", "apply"}, strings.Fields(c.args)...)...)
		if code != c.code || out != "" || !strings.Contains(errs, "countersign: error: "+c.errs) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", c.args, code, out, errs)
		}
	}
}
