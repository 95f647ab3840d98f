//go:build browser

package verifier_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/verifier"
	"github.com/countersign-dev/countersign/report/pagetest"
)

// standIn is a checker that does what the allowed signers tell it to, in place of Go's.
const standIn = `globalThis.fs = {};
globalThis.Go = class {
	importObject = {};
	run() {
		return new Promise((end) => {
			onmessage = ({ data }) => {
				const act = JSON.parse(data.kind === "cheat" ? data.how : data.signers);
				for (const m of act.post || []) postMessage(m);
				if (act.throw) throw new Error(act.throw);
				if (act.end) end();
				while (act.hang) {}
			};
			postMessage({ kind: "ready", ways: [
				{ how: '{"post": [{"kind": "result", "changed": "A denial is gone.", "result": {"ok": true}}]}', title: "Uncaught" },
				{ how: '{"post": [{"kind": "result", "changed": "A denial is gone.", "result": {"ok": false, "count": 1, "findings": [{"rule_id": "L11"}]}}]}', title: "Caught" },
				{ how: '{"post": [{"kind": "result", "changed": "A commit is gone.", "result": {"ok": false, "count": 1, "findings": [{"rule_id": "L14"}]}}]}', title: "Rewind" },
				{ how: '{"post": [{"kind": "error", "error": "There is no denial."}]}', title: "Impossible" },
			] });
		});
	}
};`

// put writes a page and a file beside it that is to be checked, and returns both.
func put(t *testing.T, p verifier.Program) (page, bundle string) {
	t.Helper()
	dir := t.TempDir()
	page, bundle = filepath.Join(dir, "index.html"), filepath.Join(dir, verifier.BundleFile)
	check(t, os.WriteFile(page, []byte(write(t, p)), 0o666))
	check(t, os.WriteFile(bundle, []byte("# v2 git bundle\n"), 0o666))
	return page, bundle
}

const sound = `{"ok": true, "complete": true, "count": 0, "findings": [], "notes": [], "tip": "0123456789012345678901234567890123456789", "commits": 3, "transactions": 1, "signed": 0, "pages": {"ok": true, "count": 0, "findings": [], "not_checked": 0}}`

func with(name, value string) string {
	var r map[string]json.RawMessage
	if err := json.Unmarshal([]byte(sound), &r); err != nil {
		panic(err)
	}
	if r[name] = json.RawMessage(value); value == "" {
		delete(r, name)
	}
	out, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// TestT78BrowserNoVerdict: whatever the checker does, the page calls a ledger sound only if the result says
// so in every field.
func TestT78BrowserNoVerdict(t *testing.T) {
	b := pagetest.Start(t)
	page, bundle := put(t, verifier.Program{Wasm: pack(t, wasm), Exec: []byte(standIn), Go: "go1.26.8"})
	p := b.Open(t, pagetest.File(t, page), pagetest.Look{})
	result := func(r string) string { return `{"post": [{"kind": "result", "result": ` + r + `}]}` }
	set(p, "signers", result(sound))
	p.Choose("#file", bundle)
	for _, c := range []struct{ name, act, want string }{
		{"sound", result(sound), "Sound, and signed by keys that you allowed"},
		{"error", `{"post": [{"kind": "error", "error": "no pack"}]}`, "No verdict\n\nNo pack."},
		{"crash", `{"throw": "out of memory"}`, "No verdict\n\nThe checker stopped: Uncaught Error: out of memory"},
		{"end", `{"end": true}`, "No verdict\n\nThe checker ended without a verdict: exit code 0"},
		{"unknown", `{"post": [{"kind": "verdict", "ok": true}]}`, "No verdict\n\nThe checker ended without a verdict: it said something unknown"},
		{"nothing", `{"post": [null]}`, "No verdict\n\nThe checker ended without a verdict: it said something unknown"},
		{"no result", `{"post": [{"kind": "result"}]}`, "No verdict"},
		{"null", result("null"), "No verdict"},
		{"text", result(`"sound"`), "No verdict"},
		{"only ok", result(`{"ok": true}`), "No verdict"},
		{"no ok", result(with("ok", "")), "No verdict"},
		{"ok a text", result(with("ok", `"true"`)), "No verdict"},
		{"ok 1", result(with("ok", "1")), "No verdict"},
		{"incomplete", result(with("complete", "false")), "No verdict"},
		{"a count", result(with("count", "1")), "No verdict"},
		{"no count", result(with("count", "")), "No verdict"},
		{"no commits", result(with("commits", "0")), "No verdict"},
		{"no tip", result(with("tip", `""`)), "No verdict"},
		{"no findings", result(with("findings", "")), "No verdict"},
		{"nothing of pages", result(with("pages", "")), "No verdict"},
		{"pages that differ", result(with("pages", `{"ok": false, "count": 1, "findings": [{"rule_id": "L23", "commit": "0123456789012345", "path": "a", "message": "m"}], "not_checked": 0}`)), "Sound, and signed by keys that you allowed, but pages in it differ from the record"},
		{"a finding", result(with("findings", `[{"rule_id": "L9"}]`)), "No verdict"},
		{"not ok, without a finding", result(with("ok", "false")), "No verdict"},
		{"not sound", result(`{"ok": false, "complete": true, "count": 1, "findings": [{"rule_id": "L9", "commit": "0123456789012345", "path": "a", "message": "m"}]}`), "Not sound"},
		{"not here", result(`{"ok": false, "count": 1, "findings": [{"rule_id": "HISTORY", "commit": "", "path": "", "message": "m"}]}`), "Not all here, and so not verified"},
		{"a result after the result", `{"post": [{"kind": "result", "result": {"ok": false, "complete": true, "count": 1, "findings": [{"rule_id": "L9"}]}}, {"kind": "result", "result": ` + sound + `}]}`, "Not sound"},
		{"an end after the result", `{"end": true, "post": [{"kind": "result", "result": ` + sound + `}]}`, "No verdict"},
		{"stopped", `{"hang": true, "post": [{"kind": "progress", "what": "commits", "done": 3, "total": 10}]}`, "No verdict\n\nYou stopped the check."},
	} {
		set(p, "signers", c.act)
		p.Wait("document.getElementById('verdict').innerText === ''", patience)
		p.Click("#again")
		if c.name == "stopped" {
			p.Wait("document.getElementById('step').textContent === 'Step 3 of 4, commits: 3 of 10'", patience)
			p.Click("#stop")
		}
		if c.name == "an end after the result" {
			p.Wait("document.getElementById('verdict').innerText.startsWith('No verdict')", patience)
		}
		p.Wait("document.getElementById('verdict').innerText !== ''", patience)
		if got := text(p, "verdict"); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: the page says %q, want %q", c.name, got, c.want)
		}
		var good int
		if p.Eval("document.querySelectorAll('.good').length", &good); good > 0 != (c.name == "sound") {
			t.Errorf("%s: %d elements look good", c.name, good)
		}
	}
	for unknown, want := range map[string]string{"0": "countersign audit” holds. ", "2": "holds that a bundle can tell of: whether the Policy’s commits list the keys of 2 signed decisions, "} {
		set(p, "signers", result(with("signed_decisions", `{"count": 2, "listed": 0, "registered": 0, "unknown": `+unknown+`}`)))
		p.Wait("document.getElementById('verdict').innerText === ''", patience)
		p.Click("#again")
		p.Wait("document.getElementById('verdict').innerText !== ''", patience)
		if got := text(p, "verdict"); !strings.HasPrefix(got, "Sound") || !strings.Contains(got, want) {
			t.Errorf("%s unknown: the page says %q", unknown, got)
		}
	}
	if seen := p.Seen(); len(seen.Dialogs) > 0 || len(b.Left()) > 0 {
		t.Errorf("seen: %+v, left: %q", seen, b.Left())
	}
}

// TestT78BrowserCheated: a change that was not noticed is not called caught, and one that cannot be
// made says so; neither touches the verdict.
func TestT78BrowserCheated(t *testing.T) {
	b := pagetest.Start(t)
	page, bundle := put(t, verifier.Program{Wasm: pack(t, wasm), Exec: []byte(standIn), Go: "go1.26.8"})
	p := b.Open(t, pagetest.File(t, page), pagetest.Look{})
	set(p, "signers", `{"post": [{"kind": "result", "result": `+sound+`}]}`)
	p.Choose("#file", bundle)
	p.Wait("document.getElementById('verdict').innerText !== ''", patience)
	p.Eval("(() => { document.getElementById('cheat').open = true; return 0 })()", nil)
	for i, want := range []string{"A denial is gone.\n\nNot caught", "A denial is gone.\n\nCaught by L11\n\nThe ledger itself", "A commit is gone.\n\nCaught by L14\n\nOnly because the tip was known", "There is no denial."} {
		p.Eval(fmt.Sprintf("(() => { document.querySelectorAll('#cheats button')[%d].click(); return 0 })()", i), nil)
		p.Wait("document.getElementById('cheated').innerText !== ''", patience)
		if got := text(p, "cheated"); !strings.HasPrefix(got, want) {
			t.Errorf("the page says %q, want %q", got, want)
		}
		if got := text(p, "verdict"); !strings.HasPrefix(got, "Sound") {
			t.Errorf("the verdict is %q", got)
		}
		var good int
		if p.Eval("document.querySelectorAll('#cheated .good').length", &good); good > 0 != strings.Contains(want, "Caught by") {
			t.Errorf("%q: %d elements look good", want, good)
		}
	}
}

// TestT76BrowserFindings: what a finding holds shows as text, and runs nothing.
func TestT76BrowserFindings(t *testing.T) {
	b := pagetest.Start(t)
	page, bundle := put(t, verifier.Program{Wasm: pack(t, wasm), Exec: []byte(standIn), Go: "go1.26.8"})
	p := b.Open(t, pagetest.File(t, page), pagetest.Phone)
	hostile := "<img src=http://elsewhere.example/ onerror=alert(1)><script>alert(2)</script>\u202e\x1b[31m"
	quoted, err := json.Marshal(hostile)
	check(t, err)
	h := string(quoted)
	set(p, "signers", `{"post": [{"kind": "progress", "what": `+h+`}, {"kind": "result", "result": {"ok": false, "complete": true, "count": 7, "commits": `+h+`, "transactions": `+h+
		`, "signed": `+h+`, "from": `+h+`, "tip": `+h+`, "signed_decisions": {"count": `+h+`, "listed": `+h+`},
		"notes": [{"commit": `+h+`, "path": `+h+`, "message": `+h+`}], "findings": [{"rule_id": `+h+`, "commit": `+h+`, "path": `+h+`, "message": `+h+`}]}}]}`)
	p.Choose("#file", bundle)
	p.Wait("document.getElementById('verdict').innerText !== ''", patience)
	if got := text(p, "details"); !strings.Contains(got, `<img src=http://elsewhere.example/ onerror=alert(1)><script>alert(2)</script>\u{202e}\u{1b}[31m`) {
		t.Errorf("the page says %q", got)
	}
	var images int
	if p.Eval("document.querySelectorAll('main img, main script:not([type])').length", &images); images > 0 {
		t.Error("a finding became markup")
	}
	if seen := p.Seen(); len(seen.Dialogs)+len(seen.Errors) > 0 || len(b.Left()) > 0 {
		t.Errorf("seen: %+v, left: %q", seen, b.Left())
	}
	if broken := p.Violations(); len(broken) > 0 {
		t.Errorf("axe-core: %q", broken)
	}
	var wide bool
	if p.Eval("document.documentElement.scrollWidth > innerWidth", &wide); wide {
		t.Error("a phone must scroll sideways")
	}
}

// TestBrowserAxe: axe-core finds nothing against the page on a phone, a tablet and a desk, light and dark: before a check, and
// with each verdict, everything unfolded.
func TestBrowserAxe(t *testing.T) {
	page, bundle := put(t, verifier.Program{Wasm: pack(t, wasm), Exec: []byte(standIn), Go: "go1.26.8"})
	p := pagetest.Start(t).Open(t, pagetest.File(t, page), pagetest.Look{})
	look := func(state string) {
		p.Eval("(() => { for (const d of document.querySelectorAll('details')) d.open = true; return 0 })()", nil)
		for _, broken := range p.Everywhere() {
			t.Errorf("%s: %s", state, broken)
		}
	}
	look("before")
	set(p, "signers", `{"post": [{"kind": "result", "result": `+sound+`}]}`)
	p.Choose("#file", bundle)
	for _, c := range []struct{ verdict, result string }{
		{"Sound", sound},
		{"Not sound", `{"ok": false, "complete": true, "count": 1, "findings": [{"rule_id": "L9", "commit": "0123456789012345", "path": "a", "message": "m"}]}`},
		{"No verdict", "null"},
	} {
		set(p, "signers", `{"post": [{"kind": "result", "result": `+c.result+`}]}`)
		p.Wait("document.getElementById('verdict').innerText === ''", patience)
		p.Click("#again")
		p.Wait("document.getElementById('verdict').innerText.startsWith('"+c.verdict+"')", patience)
		look(c.verdict)
	}
}
