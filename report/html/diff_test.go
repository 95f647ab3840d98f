package html

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

// TestDiffLines: each line of a diff is one element whatever it says, with its numbers, and a change has two halves.
func TestDiffLines(t *testing.T) {
	s := &sheet{}
	s.writeDiff([]byte("diff --git a/x.go b/x.go\n@@ -4,2 +4,3 @@\n return 1\n-\"a\" // b\n+<i>\u202e\n+\n"), []string{"x.go"})
	const want = `<span class="g">@@ -4,2 +4,3 @@
</span><span class="u" data-o="4" data-n="4"> return 1
</span><span class="ch"><span class="o"><span class="d" data-o="5">-&#34;a&#34; // b
</span></span><span class="w"><span class="a" data-n="5">+&lt;i&gt;<span class="hidden">\u202e</span>
</span><span class="a" data-n="6">+
</span></span></span></code></pre>`
	if !strings.Contains(string(s.b), want) {
		t.Errorf("got %s", s.b)
	}
}

// TestWebWithin: an address of the record leads to what lies below the repository, wherever its dots lead.
func TestWebWithin(t *testing.T) {
	const web = "https://github.com/acme/app"
	for address, links := range map[string]bool{
		web + "/pull/1#issuecomment-2": true, web + "/../../evil/app/pull/1": false, web + "/%2e%2E/%2e./evil/app": false, web + "/..": false, web + "x/pull/1": false, web: false,
	} {
		s := &sheet{o: Options{Links: forge.Links{Web: web}}}
		if s.web(address); strings.Contains(string(s.b), "<a") != links {
			t.Errorf("%s: %s", address, s.b)
		}
	}
}

// TestPullPage: the page of a pull request is linked where it is known how the forge calls it: from its name, by who knows
// it, or from where somebody decided on this one.
func TestPullPage(t *testing.T) {
	const github, own = "https://github.com/acme/app", "https://git.example.org/acme/app"
	for _, c := range []struct {
		links   forge.Links
		decided string
		want    string
	}{
		{forge.Links{}, own + "/pulls/7#issuecomment-1", ""},
		{forge.Links{Web: github}, "", github + "/pull/7"},
		{forge.Links{Web: github}, github + "/pulls/7#issuecomment-1", github + "/pull/7"},
		{forge.Links{Web: own}, "", ""},
		{forge.Links{Web: own, Gitea: true}, "", own + "/pulls/7"},
		{forge.Links{Web: own, GitHub: true}, own + "/pulls/7#issuecomment-1", own + "/pull/7"},
		{forge.Links{Web: own}, own + "/pulls/7#issuecomment-1", own + "/pulls/7"},
		{forge.Links{Web: own}, own + "/pull/7#issuecomment-1", own + "/pull/7"},
		{forge.Links{Web: own}, own + "/pulls/70#issuecomment-1", ""},
		{forge.Links{Web: own}, own + "/pulls/8#issuecomment-1", ""},
		{forge.Links{Web: own}, own + "/../../evil/app/pulls/7#issuecomment-1", ""},
		{forge.Links{Web: own}, "https://evil.example/acme/app/pulls/7#issuecomment-1", ""},
		{forge.Links{Web: own}, "javascript:alert(1)//pulls/7#", ""},
	} {
		d := &ledger.ApprovalDecision{}
		d.Source.URL = c.decided
		s := &sheet{o: Options{Links: c.links}, t: Transaction{Summary: Summary{PullRequest: 7}, events: []event{{payload: d}}}}
		if s.pull(); c.want == "" && string(s.b) != "#7" || c.want != "" && !strings.Contains(string(s.b), `href="`+c.want+`"`) {
			t.Errorf("%+v, %q: %s", c.links, c.decided, s.b)
		}
	}
}

// TestRedacted: a redacted page has no word of the diff or of what commands printed, wherever the record quotes them: the
// message of a check and the reason of a failure end with the last line, and look-alikes are told with the word.
func TestRedacted(t *testing.T) {
	const stored, ran, said = "artifacts/checks.json", "artifacts/ran.json", "what it printed"
	command := &ledger.CommandItem{Item: ledger.Command{AggregatedOutput: said}}
	other := &ledger.CommandItem{Item: ledger.Command{Metadata: ledger.CommandMetadata{Artifact: ledger.ArtifactRef{Path: ran}}}}
	tx := Transaction{
		risks: &risk.List{Risks: []risk.Risk{
			{Kind: risk.Lookalike, Path: "a", Lines: []int{1}, Detail: said}, {Kind: risk.Hidden, Path: "a", Lines: []int{1}, Detail: "it is read as " + said},
		}},
		noPolicy: "none",
		asides: map[string]json.RawMessage{
			stored: json.RawMessage(`{"checks":[{"type":"command","target":"make","message":"exit code 1: ` + said + `"}]}`),
			ran:    json.RawMessage(`{"execution":{"stdout":"` + said + `","stderr":"` + said + `","error":"` + said + `"}}`),
		},
		events: []event{
			{payload: &ledger.ArtifactStored{Kind: "validation", Path: stored}}, {payload: command}, {payload: other},
			{payload: &ledger.StatusChange{To: ledger.Failed, Reason: "command make: exit code 1: " + said}},
		},
	}
	for redact, want := range map[bool]int{false: 8, true: 0} {
		s := &sheet{t: tx, o: Options{Redact: redact}}
		s.risks()
		s.timeline()
		s.commands()
		if n := strings.Count(string(s.b), said); n != want {
			t.Errorf("redacted %t: %d times, want %d: %s", redact, n, want, s.b)
		}
	}
}
