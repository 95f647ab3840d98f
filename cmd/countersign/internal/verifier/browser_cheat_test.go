//go:build browser

package verifier_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/verifier"
	"github.com/countersign-dev/countersign/report/pagetest"
)

// TestT78BrowserCheats: each way to cheat is caught, and the page says what was changed and by which
// rule it was noticed. The verdict on the ledger itself stays.
func TestT78BrowserCheats(t *testing.T) {
	x := newBench(t)
	bundle := x.bundle(verifier.BundleFile, x.tip)
	p := x.b.Open(t, pagetest.File(t, x.page), pagetest.Look{})
	choose(p, bundle)
	if got := read(p); got.Verdict != "Agrees with itself" {
		t.Fatalf("the demo's ledger: %+v", got)
	}
	var ways []string
	if p.Eval("[...document.querySelectorAll('#cheats button')].map(b => b.textContent)", &ways); len(ways) < 2 {
		t.Fatalf("ways to cheat: %q", ways)
	}
	p.Eval("document.getElementById('cheat').open = true, 0", nil)
	for i, way := range ways {
		p.Eval(fmt.Sprintf("document.querySelectorAll('#cheats button')[%d].click(), 0", i), nil)
		p.Wait("document.getElementById('cheated').innerText !== ''", patience)
		var said string
		p.Eval("document.getElementById('cheated').innerText", &said)
		changed, rest, _ := strings.Cut(said, "\n")
		if changed == "" || !strings.Contains(rest, "Caught by ") {
			t.Errorf("%s: the page says %q", way, said)
		}
		t.Logf("%s: %.200q", way, said)
	}
	if got := read(p); got.Verdict != "Agrees with itself" {
		t.Errorf("after cheating the page says of the ledger itself: %+v", got)
	}
	if broken := p.Violations(); len(broken) > 0 {
		t.Errorf("axe-core: %q", broken)
	}
	x.quiet(p, pagetest.File(t, x.page))
}
