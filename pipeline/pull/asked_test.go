package pull

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// T68: who asked for what a run proposes, or hands over, is what the event says, and nobody of a schedule.
func TestT68Asked(t *testing.T) {
	t.Parallel()
	const run = `"workflow_run": {"event": "issue_comment", "actor": {"id": 1, "login": "ada", "type": "User"}, "triggering_actor": {"id": 2, "login": "bob", "type": "User"}}`
	for _, c := range []struct{ name, raw, login, id, started, handed string }{
		{"issues", `{"sender": {"id": 1, "login": "ada", "type": "User"}}`, "ada", "1", "user 1 ada actions.sender", ""},
		{"issues", `{"sender": {"id": 1, "login": "ada", "type": "User"}}`, "bob", "", "user 1 ada actions.sender, user  bob actions.triggering_actor", ""},
		{"issues", `{"sender": {"id": 3, "login": "helper[bot]", "type": "Bot"}}`, "helper[bot]", "3", "bot 3 helper[bot] actions.sender", ""},
		{"issues", `{}`, "helper[bot]", "3", "bot 3 helper[bot] actions.triggering_actor", ""},
		{"push", `{"sender": {}}`, "", "", "", ""},
		{"schedule", `{"sender": {"id": 1, "login": "ada"}}`, "", "", "", ""},
		{"schedule", `{}`, "bob", "", "user  bob actions.triggering_actor", ""},
		{"workflow_run", `{` + run + `}`, "", "", "user 1 ada workflow_run.actor, user 2 bob workflow_run.triggering_actor", "user 1 ada workflow_run.actor, user 2 bob workflow_run.triggering_actor"},
		{"workflow_run", `{` + strings.Replace(run, `"id": 2`, `"id": 1`, 1) + `}`, "", "", "user 1 ada workflow_run.actor", "user 1 ada workflow_run.actor"},
		{"workflow_run", `{` + strings.Replace(run, "issue_comment", "schedule", 1) + `}`, "", "", "user 2 bob workflow_run.triggering_actor", "user 2 bob workflow_run.triggering_actor"},
		{"workflow_run", `{"workflow_run": {"event": "push"}}`, "", "", "", ""},
	} {
		e, err := forge.ReadEvent(c.name, "refs/heads/main", strings.NewReader(c.raw))
		if err != nil {
			t.Fatal(err)
		}
		said := func(all []ledger.Requester) string {
			var out []string
			for _, r := range all {
				out = append(out, fmt.Sprintf("%s %s %s %s", r.Actor.Kind, r.Actor.ID, r.Actor.Login, r.Source))
			}
			return strings.Join(out, ", ")
		}
		if got := said(e.StartedBy(c.login, c.id)); got != c.started {
			t.Errorf("%s %s by %s: %s, want %s", c.name, c.raw, c.login, got, c.started)
		}
		if got := said(e.HandedOverFor()); got != c.handed {
			t.Errorf("%s %s: %s, want %s", c.name, c.raw, got, c.handed)
		}
	}
}

// TestT68BundleAsked: a bundle may name who asked, by its own word alone.
func TestT68BundleAsked(t *testing.T) {
	t.Parallel()
	diff := []byte("diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n")
	given := ledger.Requester{Actor: ledger.Actor{Kind: "user", ID: "1", Login: "ada"}, Source: ledger.AskedBySender}
	b := NewBundle(input.Change{Kind: input.KindPatch, RequestedBy: []ledger.Requester{given}}, diff, nil)
	for names, want := range map[string]string{"": "ada", "Bob bob@example.org": "Bob bob@example.org", "@": "error", strings.Repeat("a", 101): "error"} {
		if names != "" {
			b.RequestedBy = strings.Fields(names)
		}
		raw, err := canon.Line(b)
		if err != nil {
			t.Fatal(err)
		}
		in, err := readBundle(raw, policy.Default())
		var got []string
		for _, r := range in.RequestedBy {
			if got = append(got, r.Actor.Login); r.Source != ledger.AskedByFlag || r.Actor.Kind != "user" || r.Actor.ID == "1" {
				t.Errorf("%+v", r)
			}
		}
		if want == "error" && err == nil || want != "error" && (err != nil || names != "" && len(got) != len(strings.Fields(want))) {
			t.Errorf("%q: %v, %v", names, got, err)
		}
		b.RequestedBy = []string{"ada"}
	}
}
