package statements_test

import (
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/statements"
)

var long = strings.Repeat("n", 300)

// Each row is run dry and for real.
var operations = []struct {
	name  string
	tree  files
	patch []string
	want  string
	after files
}{
	{"no operations", nil, nil, "SUCCESS ", files{"t/": ""}},

	{"create", nil, []string{"create a x"}, "SUCCESS \ncreate a -→x# 1 ", files{"t/a": "x"}},
	{"create empty", nil, []string{"create a "}, "SUCCESS \ncreate a -→# 0 ", files{"t/a": ""}},
	{"create below", files{"t/d/": ""}, []string{"create d/e/f/a x"}, "SUCCESS \ncreate d/e/f/a -→x# 1 ", files{"t/d/e/f/a": "x"}},
	{"create where a file is", files{"t/a": "x"}, []string{"create a x"},
		"FAILED 1 operations failed\ncreate a x#→- 0 file already exists: a", files{"t/a": "x"}},
	{"create where a directory is", files{"t/a/": ""}, []string{"create a x"},
		"FAILED 1 operations failed\ncreate a -→- 0 file already exists: a", files{"t/a/": ""}},
	{"below a file", files{"t/a": "x"}, []string{"create a/b x", "delete a/c", "modify a/d/e x"},
		"FAILED 3 operations failed\ncreate a/b -→- 0 cannot write: a/b" +
			"\ndelete a/c -→- 0 file does not exist: a/c\nmodify a/d/e -→- 0 file does not exist: a/d/e", files{"t/a": "x"}},

	{"modify", files{"t/d/a": "x"}, []string{"modify d/a y"}, "SUCCESS \nmodify d/a x#→y# 1 ", files{"t/d/a": "y"}},
	{"modify to the same", files{"t/a": "x"}, []string{"modify a x"}, "SUCCESS \nmodify a x#→x# 1 ", files{"t/a": "x"}},
	{"modify what is not", nil, []string{"modify d/a x"},
		"FAILED 1 operations failed\nmodify d/a -→- 0 file does not exist: d/a", files{"t/": ""}},
	{"modify a directory", files{"t/a/b": "x"}, []string{"modify a x"},
		"FAILED 1 operations failed\nmodify a -→- 0 path is a directory: a", files{"t/a/b": "x"}},

	{"delete leaves the directory", files{"t/d/a": "x"}, []string{"delete d/a"}, "SUCCESS \ndelete d/a x#→- 0 ", files{"t/d/": ""}},
	{"delete what is not", nil, []string{"delete a"},
		"FAILED 1 operations failed\ndelete a -→- 0 file does not exist: a", files{"t/": ""}},
	{"delete a directory", files{"t/a/": ""}, []string{"delete a"},
		"FAILED 1 operations failed\ndelete a -→- 0 path is a directory: a", files{"t/a/": ""}},

	{"goes on after a failure", files{"t/b": "x"}, []string{"create a x", "create b y", "create c z"},
		"PARTIAL 1 operations failed\ncreate a -→x# 1 \ncreate b x#→- 0 file already exists: b\ncreate c -→z# 1 ",
		files{"t/a": "x", "t/b": "x", "t/c": "z"}},

	{"a file, then below it", nil, []string{"create a x", "create a/b y"},
		"PARTIAL 1 operations failed\ncreate a -→x# 1 \ncreate a/b -→- 0 cannot write: a/b", files{"t/a": "x"}},
	{"a file makes way", files{"t/a": "x"}, []string{"delete a", "create a/b y"},
		"SUCCESS \ndelete a x#→- 0 \ncreate a/b -→y# 1 ", files{"t/a/b": "y"}},
	{"a directory does not", files{"t/a/b": "x"}, []string{"create a y", "delete a/b"},
		"PARTIAL 1 operations failed\ncreate a -→- 0 file already exists: a\ndelete a/b x#→- 0 ", files{"t/a/": ""}},
	{"deleted from below", files{"t/a": "x"}, []string{"delete a", "delete a/b", "modify a/c x"},
		"PARTIAL 2 operations failed\ndelete a x#→- 0 \ndelete a/b -→- 0 file does not exist: a/b\nmodify a/c -→- 0 file does not exist: a/c",
		files{"t/": ""}},
	{"two names of one file", nil, []string{"create a/./b x", "modify a/b y"},
		"SUCCESS \ncreate a/./b -→x# 1 \nmodify a/b x#→y# 1 ", files{"t/a/b": "y"}},
	{"a directory made before", nil, []string{"create a/./b x", "create a/b/c x", "delete a/."},
		"PARTIAL 2 operations failed\ndelete a/. -→- 0 file does not exist: a/.\ncreate a/./b -→x# 1 \ncreate a/b/c -→- 0 cannot write: a/b/c",
		files{"t/a/b": "x"}},

	{"a name too long", files{"t/d/": ""}, []string{"create d/" + long + " x", "create e/" + long + "/a x", "modify " + long + " x"},
		"FAILED 3 operations failed\ncreate d/" + long + " -→- 0 cannot write: d/" + long + "\ncreate e/" + long + "/a -→- 0 cannot write: e/" + long +
			"/a\nmodify " + long + " -→- 0 file does not exist: " + long, files{"t/d/": ""}},
	{"our own temporary name", files{"t/.countersign-0.tmp": "x"}, []string{"create .countersign-1.tmp y", "create a z"},
		"SUCCESS \ncreate .countersign-1.tmp -→y# 1 \ncreate a -→z# 1 ",
		files{"t/.countersign-0.tmp": "x", "t/.countersign-1.tmp": "y", "t/a": "z"}},
	{"names", nil, []string{"create .git/hooks/x x", "create a\tb\nc x", "create ü/é x"},
		"SUCCESS \ncreate .git/hooks/x -→x# 1 \ncreate a\tb\nc -→x# 1 \ncreate ü/é -→x# 1 ",
		files{"t/.git/hooks/x": "x", "t/a\tb\nc": "x", "t/ü/é": "x"}},
	// Code units, not bytes: an emoji's surrogates sort before U+FF5E.
	{"order", nil, []string{"create ～ x", "create 😀 x", "create a-b x", "create a/b x", "create Z x"},
		"SUCCESS \ncreate Z -→x# 1 \ncreate a-b -→x# 1 \ncreate a/b -→x# 1 \ncreate 😀 -→x# 1 \ncreate ～ -→x# 1 ",
		files{"t/Z": "x", "t/a-b": "x", "t/a/b": "x", "t/😀": "x", "t/～": "x"}},
}

func TestOperations(t *testing.T) {
	for _, r := range operations {
		t.Run(r.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			patch := patchOf(t, r.patch...)
			files{"t/": "", "p/patch.json": patch}.make(t, ".")
			r.tree.make(t, ".")
			got := apply(t, "p", "t")
			if told(got) != r.want {
				t.Errorf("\n got %s\nwant %s", told(got), r.want)
			}
			r.after["p/patch.json"] = patch
			if after := read(t, "."); !maps.Equal(after, r.after) {
				t.Errorf("afterwards %v, want %v", after, r.after)
			}
		})
	}
}

// AS11: what a second time does.
func TestAS11Twice(t *testing.T) {
	t.Chdir(t.TempDir())
	files{"t/b": "x", "t/c": "x", "p/patch.json": patchOf(t, "create a x", "delete b", "modify c y")}.make(t, ".")
	apply(t, "p", "t")
	want := "PARTIAL 2 operations failed\ncreate a x#→- 0 file already exists: a\n" +
		"delete b -→- 0 file does not exist: b\nmodify c y#→y# 1 "
	if got := told(apply(t, "p", "t")); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// A file that is replaced keeps its permissions, and one with a second name
// elsewhere (T32) is not written through.
func TestModifyReplaces(t *testing.T) {
	t.Chdir(t.TempDir())
	files{"t/run": "x", "outside": "x", "p/patch.json": patchOf(t, "modify hard y", "modify run y")}.make(t, ".")
	must(t, os.Chmod("t/run", 0o751))
	must(t, os.Link("outside", "t/hard"))
	apply(t, "p", "t")
	if info, err := os.Stat("t/run"); err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("permissions are %v, %v", info.Mode(), err)
	}
	if got := read(t, "."); got["outside"] != "x" || got["t/hard"] != "y" {
		t.Errorf("after: %v", got)
	}
}

// A lone surrogate has no UTF-8; the file is named as the reference names it,
// the report says it as the patch does.
func TestLoneSurrogateInPath(t *testing.T) {
	t.Chdir(t.TempDir())
	files{"t/": "", "p/patch.json": strings.Replace(patchOf(t, "create a x"), `"path":"a"`, `"path":"\ud800"`, 1)}.make(t, ".")
	if got := line(t, apply(t, "p", "t")); !strings.Contains(got, `"path":"\ud800","status":"success"`) {
		t.Error(got)
	}
	if got := read(t, "t"); got["\uFFFD"] != "x" {
		t.Errorf("after: %v", got)
	}
}

func TestExpectedHashIsIgnored(t *testing.T) {
	t.Chdir(t.TempDir())
	files{"t/": "", "p/patch.json": strings.Replace(patchOf(t, "create a x"), `"op":`, `"expected_hash":"sha256:0","op":`, 1)}.make(t, ".")
	if r, err := statements.Apply("p", "t", false); err != nil || r.Outcome != "SUCCESS" {
		t.Errorf("%v, %v", told(r), err)
	}
}
