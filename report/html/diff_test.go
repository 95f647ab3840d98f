package html

import (
	"strings"
	"testing"
)

// TestLongLine: a line of ordinary length has colours, a long one has none: a browser chokes on them.
func TestLongLine(t *testing.T) {
	s := &sheet{}
	s.writeDiff([]byte("diff --git a/x.go b/x.go\n--- a/x.go\n+++ b/x.go\n@@ -1 +1,3 @@\n x\n+return 1\n+"+strings.Repeat("return 1 ", 1000)+"\n"), []string{"x.go"})
	if n := strings.Count(string(s.b), `<i class="k">`); n != 1 {
		t.Errorf("%d keywords have a colour, want that of the short line", n)
	}
}

// TestWebWithin: an address of the record leads to what lies below the repository, wherever its dots lead.
func TestWebWithin(t *testing.T) {
	const web = "https://github.com/acme/app"
	for address, links := range map[string]bool{
		web + "/pull/1#issuecomment-2": true, web + "/../../evil/app/pull/1": false, web + "/%2e%2E/%2e./evil/app": false, web + "/..": false, web + "x/pull/1": false, web: false,
	} {
		s := &sheet{o: Options{Web: web}}
		if s.web(address); strings.Contains(string(s.b), "<a") != links {
			t.Errorf("%s: %s", address, s.b)
		}
	}
}
