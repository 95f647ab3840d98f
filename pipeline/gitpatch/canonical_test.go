package gitpatch_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// TestCanonical pins the canonical bytes (docs/formats.md) of the changes in
// testdata/canonical: base/ and exec/ before, after/ and afterexec/ afterwards,
// gone/ for a path that goes. They never change: approvals name their hash.
func TestCanonical(t *testing.T) {
	files, err := filepath.Glob("testdata/canonical/*.txtar")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a := readArchive(t, file)
			base := a.base(t)
			p := a.change(t, base)
			a.want(t, "canonical.quoted", escapeText(string(p.Bytes())))
			a.want(t, "id", p.ID()+"\n")
			checkStable(t, base, p)
			if !newRepo(t).judge(base, p.Bytes()) {
				t.Error("git apply refuses it")
			}
		})
	}
}

// checkStable reads the canonical bytes again, as such and as any Git diff: they are those of one change.
func checkStable(t *testing.T, base fs.FS, p patch.Patchset) {
	t.Helper()
	any, err1 := gitpatch.Parse(p.Bytes())
	canonical, err2 := patch.Parse(p.Bytes())
	if err := errors.Join(err1, err2); err != nil {
		t.Fatalf("canonical bytes: %v\n%s", err, p.Bytes())
	}
	one, err1 := any.Resolve(base)
	again, err2 := code.Put(canonical, base)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatalf("canonical bytes: %v\n%s", err, p.Bytes())
	}
	if string(again.Bytes()) != string(p.Bytes()) || again.ID() != p.ID() || one.ID() != p.ID() {
		t.Fatalf("canonical bytes of canonical bytes:\n%s\nwere\n%s", again.Bytes(), p.Bytes())
	}
	before, after := p.Hashes()
	if err := canonical.Agrees(p.Paths(), before, after, true); err != nil {
		t.Fatalf("canonical bytes do not agree with their own hashes:\n%s", p.Bytes())
	}
}

// escapeText is the inverse of unescapeText for a text that ends in a newline.
func escapeText(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		q := strconv.QuoteToASCII(strings.TrimSuffix(line, "\n"))
		q = strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
		if strings.HasPrefix(q, "-- ") {
			q = `\x2d` + q[1:] // else it might be a section of the txtar file
		}
		b.WriteString(strings.ReplaceAll(q, `\t`, "\t") + "\n")
	}
	return b.String()
}
