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
