//go:build browser

package html

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/report/pagetest"
)

// TestBrowserPaper: a change of four files is at most three pages on paper. What is left out stands there with its size and
// SHA-256.
func TestBrowserPaper(t *testing.T) {
	tree, ids := storetest.Recorded(t, storetest.Whole)
	tx, err := new(Reader).Read(tree, ids[0])
	check(t, err)
	patch, changes := patched(t, map[string]string{"a.go": lines(0, 20)}, map[string]string{
		"a.go": lines(0, 12), "c.go": lines(0, 8), "d.go": lines(0, 300), "e.png": "\x89PNG\r\n\x1a\n\x00",
	})
	tx.Proposal.BaseSHA256, tx.Proposal.AfterSHA256 = map[string]*string{}, map[string]*string{}
	for _, c := range changes {
		sum := canon.Sum([]byte(c.Path))
		tx.Proposal.BaseSHA256[c.Path], tx.Proposal.AfterSHA256[c.Path] = &sum, &sum
	}
	tx.Patch = patch
	tx.measure(changes)
	tx = tx.With()
	path := filepath.Join(t.TempDir(), "index.html")
	check(t, os.WriteFile(path, tx.Page(Options{Alone: true}), 0o666))
	p := pagetest.Start(t).Open(t, pagetest.File(t, path), pagetest.Look{Print: true, Width: 720, Height: 1000})
	pdf := p.PDF()
	if n := len(regexp.MustCompile(`/Type ?/Page[^s]`).FindAll(pdf, -1)); n < 1 || n > 3 {
		t.Errorf("%d pages", n)
	}
	text := p.Text()
	if n := strings.Count(text, "Left out on paper: "); n != 2 || strings.Contains(text, "this is line 250") {
		t.Errorf("%d diffs are left out of\n%s", n, text)
	}
}
