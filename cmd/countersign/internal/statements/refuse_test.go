package statements_test

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/statements"
)

// A refusal attempts nothing. A target "/…" is made absolute.
var refusals = []struct {
	name   string
	tree   files
	target string
	root   string // target_root
	want   string // told; empty is success
}{
	{"plain", nil, "t", "t", ""},
	{"slash at the end", nil, "t/", "t/", ""},
	{"dots", nil, "./t/.", "./t/.", ""},
	{"double slash", files{"d/t/": ""}, "d//t", "d//t", ""},
	{"absolute", nil, "/t", "t", ""},
	{"absolute, slash at the end", nil, "/t/", ".", ""},
	{"dots in a name", files{"..t/": "", "t../": ""}, "..t", "..t", ""},

	{"AS5 traversal", nil, "t/../t", "t/../t", "target root contains path traversal"},
	{"AS5 traversal, backslash", nil, `t\..\t`, `t\..\t`, "target root contains path traversal"},
	{"AS5 traversal, last", nil, "..", "..", "target root contains path traversal"},
	{"AS5 traversal first of all", nil, "../nowhere", "../nowhere", "target root contains path traversal"},
	{"AS5 missing", nil, "nowhere", "nowhere", "target root is not a directory"},
	{"AS5 a file", files{"f": "x"}, "f", "f", "target root is not a directory"},
	{"AS5 a file, slash at the end", files{"f": "x"}, "f/", "f/", "target root is not a directory"},
	{"AS5 below a file", files{"f": "x"}, "f/t", "f/t", "target root is not a directory"},
	{"AS5 a link", files{"l": "→t"}, "l", "l", "target root is a symbolic link"},
	{"AS5 a link, slash at the end", files{"l": "→t"}, "l/", "l/", "target root is a symbolic link"},
	{"AS5 a link to a file", files{"f": "x", "l": "→f"}, "l", "l", "target root is a symbolic link"},
	{"AS5 a link to nowhere", files{"l": "→nowhere"}, "l", "l", "target root is not a directory"},
	{"AS5 a link to itself", files{"l": "→l"}, "l", "l", "target root is not a directory"},
	{"AS5 a link to the top", files{"l": "→/"}, "l", "l", "target root is a symbolic link"},
	{"AS5 under a link", files{"d/t/": "", "l": "→d"}, "l/t", "l/t", "target root is under a symbolic link"},
	{"AS5 under a link, absolute", files{"d/e/t/": "", "l": "→d"}, "/l/e/t", "t", "target root is under a symbolic link"},
	{"AS5 missing under a link", files{"d/": "", "l": "→d"}, "l/t", "l/t", "target root is not a directory"},
	{"AS5 link below", files{"t/a/b": "x", "t/a/l": "→b", "t/a.l": "→b"}, "t", "t", "symlink found in target tree: a/l"},
	{"AS5 the first link", files{"t/b": "→x", "t/a": "→x"}, "t", "t", "symlink found in target tree: a"},
	{"AS5 before AS3", files{"p/patch.json/": "", "t/l": "→x"}, "t", "t", "symlink found in target tree: l"},
}

func TestTargets(t *testing.T) {
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if _, ok := r.tree["p/patch.json/"]; !ok {
				files{"p/patch.json": patchOf(t, "create new x")}.make(t, ".")
			}
			files{"t/": ""}.make(t, ".")
			r.tree.make(t, ".")
			target := r.target
			if strings.HasPrefix(target, "/") {
				target = here(t) + target
			}
			before := read(t, ".")
			got := apply(t, "p", target)
			if got.TargetRoot != r.root {
				t.Errorf("target_root %q, want %q", got.TargetRoot, r.root)
			}
			if r.want == "" {
				if got.Outcome != "SUCCESS" || read(t, target)["new"] != "x" {
					t.Errorf("%s, and then %v", told(got), read(t, "."))
				}
				return
			}
			if !strings.HasPrefix(told(got), "REFUSED "+r.want+"\nAS5 ") || len(got.Violations) != 1 || got.Violations[0].Message != r.want {
				t.Errorf("got %s, want %s", told(got), r.want)
			}
			if after := read(t, "."); !maps.Equal(before, after) {
				t.Errorf("a refusal changed %v into %v", before, after)
			}
		})
	}
}

// here is the present directory without links, which a system's directory for
// temporary files may have above it.
func here(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(".")
	must(t, err)
	dir, err = filepath.Abs(dir)
	must(t, err)
	dir, err = filepath.EvalSymlinks(dir)
	must(t, err)
	return dir
}

func TestFilesystemRoot(t *testing.T) {
	for target, root := range map[string]string{"/": ".", "//": ".", "/.": "."} {
		for _, dryRun := range []bool{true, false} {
			r, err := statements.Apply(t.TempDir(), target, dryRun)
			want := "REFUSED target root cannot be filesystem root\nAS5 : target root cannot be filesystem root"
			if err != nil || told(r) != want || r.TargetRoot != root {
				t.Errorf("%s: %s, %v, target_root %q", target, told(r), err, r.TargetRoot)
			}
		}
	}
	t.Chdir("/")
	if r, err := statements.Apply(t.TempDir(), ".", true); err != nil || r.Error != "target root cannot be filesystem root" {
		t.Errorf(". in /: %s, %v", told(r), err)
	}
}

func TestPatches(t *testing.T) {
	for _, c := range []struct {
		name  string
		patch string
		want  string
	}{
		{"AS3 missing", "", "pack has no patch.json\nAS3 : pack has no patch.json"},
		{"AS3 not JSON", "{", "invalid JSON in patch.json\nAS3 : invalid JSON in patch.json"},
		{"AS3 text after it", "{}{}", "invalid JSON in patch.json\nAS3 : invalid JSON in patch.json"},
		{"AS3 byte order mark", "\ufeff{}", "invalid JSON in patch.json\nAS3 : invalid JSON in patch.json"},
		{"AS3 not UTF-8", "\"\xff\"", "invalid JSON in patch.json\nAS3 : invalid JSON in patch.json"},
		{"AS4 null", "null", "patch verification failed: 1 violations\nAS4 : patch verification failed: 1 violations\n" +
			"AS4 $: [SCHEMA] patch must be object, got null"},
		{"AS4 list", "[]", "patch verification failed: 1 violations\nAS4 : patch verification failed: 1 violations\n" +
			"AS4 $: [SCHEMA] patch must be object, got object"},
		{"AS4 by path, not by rule", `{"patch_schema_version":"","source_proposal_id":1,"source_proposal_hash":2,"operations":[` +
			`{"op":"symlink","path":"/../b"},{"op":"delete","path":"b/"}],"total_bytes":true}`,
			"patch verification failed: 7 violations\nAS4 : patch verification failed: 7 violations\n" +
				"AS4 $.operations[0].op: [PS2] invalid operation type: symlink\n" +
				"AS4 $.operations[0].op: [PS9] symlink operations are not allowed\n" +
				"AS4 $.operations[0].path: [PS3] absolute path not allowed: /../b\n" +
				"AS4 $.operations[0].path: [PS4] path traversal or backslash not allowed: /../b\n" +
				"AS4 $.operations[1].path: [PS4] path not normalized: b/\n" +
				"AS4 $.patch_schema_version: [PS1] patch_schema_version cannot be empty\n" +
				"AS4 $.total_bytes: [PS7] total_bytes is missing or not a number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			files{"t/": "", "p/": ""}.make(t, ".")
			if c.patch != "" {
				files{"p/patch.json": c.patch}.make(t, ".")
			}
			if got := told(apply(t, "p", "t")); got != "REFUSED "+c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestPackThatCannotBeRead(t *testing.T) {
	t.Chdir(t.TempDir())
	files{"t/": "", "f": "x", "p/patch.json/": ""}.make(t, ".")
	for dir, want := range map[string]string{"nowhere": "no such file or directory", "f": "not a directory"} {
		_, err := statements.Apply(dir, "t", false)
		if err == nil || !strings.HasPrefix(err.Error(), "reading the pack: ") || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	// A directory named patch.json is no patch.json.
	if r, err := statements.Apply("p", "t", false); err != nil || r.Error != "pack has no patch.json" {
		t.Errorf("%s, %v", told(r), err)
	}
	// A bad target is worse than a missing pack.
	if r, err := statements.Apply("nowhere", "f", false); err != nil || r.Error != "target root is not a directory" {
		t.Errorf("%s, %v", told(r), err)
	}
	if _, err := statements.Apply("nowhere", "t", false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cause is lost: %v", err)
	}
}
