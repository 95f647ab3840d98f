//go:build browser

package workpaper

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-dev/countersign/report/pagetest"
)

// TestBrowserT76Workpaper: the pages are fit to be looked at, also where every text is hostile.
func TestBrowserT76Workpaper(t *testing.T) {
	b := pagetest.Start(t)
	for name, text := range map[string]string{"plain": "x", "hostile": "\"><script>alert(1)</script><img src=x onerror=alert(1)>=1\u202e"} {
		dir := t.TempDir()
		for file, data := range Pages(reportOf(text)) {
			check(t, os.WriteFile(filepath.Join(dir, file), data, 0o666))
		}
		rules := pagetest.Rules{Below: pagetest.File(t, dir)} // its style and its icon
		for _, width := range []int{390, 768, 1440} {         // nothing is off-screen, nor in a box that scrolls
			p := b.Open(t, pagetest.File(t, filepath.Join(dir, "index.html")), pagetest.Look{Width: width, Height: 900})
			var off []string
			p.Eval("[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))", &off)
			if len(off) > 0 {
				t.Errorf("%s, %d pixels wide: off-screen: %q", name, width, off)
			}
			p.Close()
		}
		for _, file := range []string{"index.html", "total-exceptions.html", "repository-1.html"} {
			p := b.Open(t, pagetest.File(t, filepath.Join(dir, file)), pagetest.Phone)
			for _, broken := range p.Everywhere() {
				t.Errorf("%s, %s: %s", name, file, broken)
			}
			p.Close()
			for _, problem := range b.Problems(t, pagetest.File(t, filepath.Join(dir, file)), rules) {
				t.Errorf("%s, %s: %s", name, file, problem)
			}
		}
	}
}
