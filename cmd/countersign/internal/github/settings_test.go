package github

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
)

// T67, T82: what protects a branch is told in full or not at all, and who can bypass it is unread where GitHub does not tell.
func TestT67Protection(t *testing.T) {
	const (
		open    = `{"protected":false,"protection":{"enabled":false}}`
		classic = `{"protected":true,"protection":{"enabled":true,"required_status_checks":{"enforcement_level":"everyone","contexts":["gate"],"checks":[{"context":"gate","app_id":15}]}}}`
		rules   = `[{"type":"pull_request","ruleset_id":7,"parameters":{"b":1,"a":[{"d":1,"c":2}]}},{"type":"deletion","ruleset_id":7}]`
	)
	no := step{status: 403, body: `{}`}
	for _, row := range []struct {
		name         string
		steps        []step
		want, unread string
		kind         rest.Kind
	}{
		{"nothing", []step{{body: open}, {body: "[]"}}, "", "", ""},
		{"a ruleset", []step{{body: open}, {body: rules}, {body: `{"id":7,"bypass_actors":[{"actor_id":5,"actor_type":"Team","bypass_mode":"always"},{"actor_id":null,"actor_type":"DeployKey","bypass_mode":"always"}]}`}},
			`DeployKey can bypass ruleset 7: always|Team 5 can bypass ruleset 7: always|deletion, by ruleset 7: null|pull_request, by ruleset 7: {"a":[{"c":2,"d":1}],"b":1}`, "", ""},
		{"nobody can bypass it", []step{{body: open}, {body: rules[:strings.Index(rules, ",{\"type\"")] + "]"}, {body: `{"id":7,"bypass_actors":[]}`}}, `pull_request, by ruleset 7: {"a":[{"c":2,"d":1}],"b":1}`, "", ""},
		{"who can bypass it is not told", []step{{body: open}, {body: `[{"type":"deletion","ruleset_id":7}]`}, {body: `{"id":7}`}}, "deletion, by ruleset 7: null", "who can bypass ruleset 7", ""},
		{"the ruleset is not told", []step{{body: open}, {body: `[{"type":"deletion","ruleset_id":7}]`}, {status: 404, body: "{}"}}, "deletion, by ruleset 7: null", "who can bypass ruleset 7", ""},
		{"a protection", []step{{body: classic}, {body: "[]"}}, `a protection of the branch|check "gate" of app 15, by the protection of the branch`, "what else the protection of the branch demands, and who can bypass it", ""},
		{"another ruleset", []step{{body: open}, {body: `[{"type":"deletion","ruleset_id":7}]`}, {body: `{"id":8,"bypass_actors":[]}`}}, "", "", rest.KindAnswer},
		{"rules are not told", []step{{body: open}, no}, "", "", rest.KindPermission},
		{"the protection is not told", []step{no}, "", "", rest.KindPermission},
		{"a rule of no ruleset", []step{{body: open}, {body: `[{"type":"deletion"}]`}}, "", "", rest.KindAnswer},
	} {
		got, err := newClient(t, newScript(t, row.steps...).URL, &pauses{}).Protection(t.Context(), "main")
		checkKind(t, err, row.kind)
		slices.Sort(got.Rules)
		if row.kind == "" && (strings.Join(got.Rules, "|") != row.want || strings.Join(got.Unread, "|") != row.unread) {
			t.Errorf("%s: %q, unread %q", row.name, got.Rules, got.Unread)
		}
	}
}
