package gitpatch_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// FuzzParse: nothing panics, and what is accepted has canonical bytes that mean
// the same change.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, file := range files {
		a := readArchive(f, file)
		for _, kind := range []string{"diff", "canonical"} {
			if diff, ok := a.kind(f, kind)[""]; ok {
				f.Add(diff)
			}
		}
	}
	base := fstest.MapFS{
		"greet.txt":   {Data: []byte("hello\n"), Mode: 0o644},
		"other.txt":   {Data: []byte("hello\n"), Mode: 0o755},
		"a":           {Data: []byte("a\nb"), Mode: 0o644},
		"logo":        {Data: []byte("\x00old binary\n"), Mode: 0o644},
		"dir/crlf":    {Data: []byte("one\r\ntwo\r\n"), Mode: 0o644},
		"dir/numbers": {Data: []byte("one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"), Mode: 0o644},
		"dir/empty":   {Mode: 0o644},
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		checkCanonical(t, base, raw)
		d, err := gitpatch.Parse(raw)
		if err != nil {
			checkMessage(t, err)
			return
		}
		p, err := d.Resolve(base)
		if err != nil {
			checkMessage(t, err)
			return
		}
		checkStable(t, base, p)
	})
}

// checkCanonical: what is read as canonical bytes is read as a Git diff as well, and is the same change.
func checkCanonical(t *testing.T, base fs.FS, raw []byte) {
	t.Helper()
	d, err := patch.Parse(raw)
	if err != nil {
		checkMessage(t, err)
		return
	}
	p, err := code.Put(d, base)
	if err != nil {
		checkMessage(t, err)
		return
	}
	before, after := p.Hashes()
	if err := d.Agrees(p.Paths(), before, after, true); err != nil && p.ID() == canon.Hex(raw) {
		t.Errorf("it does not agree with itself:\n%s", raw)
	}
	other, err := gitpatch.Parse(raw)
	var q patch.Patchset
	if err == nil {
		q, err = other.Resolve(base)
	}
	if err != nil || q.ID() != p.ID() {
		t.Errorf("%v: another change than\n%s", err, raw)
	}
}

// checkMessage: an error is one line that a terminal can show.
func checkMessage(t *testing.T, err error) {
	t.Helper()
	if _, ok := err.(*patch.Error); !ok {
		t.Errorf("%T is not an *Error: %v", err, err)
	}
	if strings.ContainsFunc(err.Error(), func(r rune) bool { return r != '…' && (r < ' ' || r > '~') }) {
		t.Errorf("message %q", err)
	}
}

// FuzzPath: a path that may be touched can be added, and is read back from the
// canonical bytes as the same.
func FuzzPath(f *testing.F) {
	for _, name := range []string{"a", "a/b", `say "hi"`, "x b/x", "café", "-rf", "../x", ".git", "con", "a b", ":(top)", "GIT~1", "a\u200cb"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if err := patch.CheckPath(name); err != nil {
			checkMessage(t, err)
			return
		}
		if strings.ContainsAny(name, "\\:\x00\n\r") || !filepath.IsLocal(filepath.FromSlash(name)) {
			t.Errorf("%q is allowed", name)
		}
		base := fstest.MapFS{}
		p, err := patch.NewTree(base).Between(map[string]*patch.File{name: {Mode: patch.Regular, Data: []byte("x\n")}})
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		checkStable(t, base, p)
	})
}
