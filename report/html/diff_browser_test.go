//go:build browser

package html

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/pagetest"
)

// TestBrowserDiff: a diff with a rename, a binary file, a long one and marked words is fit to be looked at, and a link to the
// bytes of a renamed file opens what they are folded in.
func TestBrowserDiff(t *testing.T) {
	diff, changes := patched(t, map[string]string{"a": "one two\n", "b/old.txt": lines(0, 100), "image.png": "\x00"}, map[string]string{
		"a": "one three\n", "c/new.txt": lines(20, 110), "image.png": "\x89PNG\r\n\x1a\n\x00", "large": lines(0, 500),
	})
	s := &sheet{Files: filesOf(diff, changes, nil)}
	s.T.Proposal, s.T.Patch = &ledger.Proposal{}, diff
	page := Layout(Head{Title: "A diff", Alone: true}, Part("<h1>A diff</h1>\n{}", s.fill("diff", s)))
	path := filepath.Join(t.TempDir(), "index.html")
	check(t, os.WriteFile(path, page, 0o666))
	b := pagetest.Start(t)
	for _, problem := range b.Problems(t, pagetest.File(t, path), pagetest.Rules{Screen: ".layout, .exact, .paper ~ pre"}) {
		t.Error(problem)
	}
	p := b.Open(t, pagetest.File(t, path)+"#file-2", pagetest.Look{})
	defer p.Close()
	var open bool
	if p.Eval("document.querySelector('.exact').open", &open); !open {
		t.Error("the bytes of the old file are still folded")
	}
}
