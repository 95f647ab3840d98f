//go:build browser

package workpaper

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-dev/countersign/report/browsertest"
	"github.com/countersign-dev/countersign/report/html"
)

// TestBrowserT76Workpaper: the pages are fit to be looked at, also where every text is hostile.
func TestBrowserT76Workpaper(t *testing.T) {
	b := browsertest.Start(t)
	for name, text := range map[string]string{"plain": "x", "hostile": "\"><script>alert(1)</script><img src=x onerror=alert(1)>=1\u202e"} {
		dir := t.TempDir()
		for file, data := range Pages(reportOf(text)) {
			if err := os.WriteFile(filepath.Join(dir, file), data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		rules := browsertest.Rules{Below: browsertest.File(t, filepath.Join(dir, html.StyleFile))}
		for _, file := range []string{"index.html", "total-exceptions.html", "repository-1.html"} {
			for _, problem := range b.Problems(t, browsertest.File(t, filepath.Join(dir, file)), rules) {
				t.Errorf("%s, %s: %s", name, file, problem)
			}
		}
	}
}
