package approval_test

import (
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// TestBreakGlass: who may, what it stands in for, and that it is never a vote.
func TestBreakGlass(t *testing.T) {
	const file = "approvals: {required: 2, break_glass: [ada, '2']}"
	const broken, unmet = "break-glass by ada: down", "0 of 2 approvals"
	byAda := func(said string) func(*approval.Case) {
		return func(c *approval.Case) { c.Log = record(t, people["ada"], spoken(t, said)) }
	}
	judgeAll(t, []situation{
		{"broken", file, "a", "ada glass=down", approved, broken, "+by breaking the glass", nil},
		{"by id", file, "a", "bob glass=down", approved, "break-glass by bob: down", "+by breaking the glass", nil},
		{"of protected paths", file, "CLAUDE.md", "ada glass=down", approved, broken, "+by breaking the glass", nil},
		{"no reason", file, "a", "ada glass=", pending, unmet, "-without a reason", nil},
		{"not listed", file, "a", "eve glass=down", pending, unmet, "-does not list its author under break_glass", nil},
		{"nobody is listed", "", "a", "ada glass=down", pending, none, "-under break_glass", nil},
		{"with little permission", file, "a", "ada glass=down perm=read", pending, unmet, "-has read permission, write needed", nil},
		{"locally, on a pull request", file, "a", "ada glass=down local", pending, unmet, "-does not allow local", nil},
		{"locally", file, "a", "ada glass=down local", approved, broken, "+by breaking the glass", alone},
		{"a machine account", "{bots: [ada], approvals: {break_glass: [ada]}}", "a", "ada glass=down", pending, none, "-under bots", nil},
		{"a bot", "approvals: {break_glass: [helper]}", "a", "app glass=down", pending, none, "-not a human account", nil},
		{"expired", "approvals: {break_glass: [ada], max_age: 1m}", "a", "ada glass=down", pending, none, "-expired", nil},
		{"of another patch", file, "a", "ada glass=down fingerprint=patchset:0", pending, unmet, "-names another patch", nil},
		{"of a kind alone", file, "CLAUDE.md", "ada glass=down protected", pending, "0 of 2 approvals; protected_path: 0 of 1", "-names another patch", nil},
		{"is no vote", file, "a", "eve glass=down; bob", pending, "1 of 2 approvals", "-under break_glass; +approved", nil},
		{"is not asked of an approval", file, "a", "ada; bob", approved, "2 of 2 approvals", "+approved; +approved", nil},
		{"and not needed", file, "a", "ada glass=down; ada; bob", approved, "2 of 2 approvals", "+breaking the glass; +approved; +approved", nil},
		{"and denied", file, "a", "ada glass=down; eve deny", denied, "denied by eve", "+breaking the glass; +denied", nil},
		{"a denial in answer to it", file, "a", "ada glass=down deny=down", denied, "denied by ada: down", "+denied", nil},
		{"by the proposer", file, "a", "", approved, broken, "+breaking the glass", byAda("ada glass=down")},
		{"gone", file, "a", "ada glass=down", pending, unmet, "-its comment is gone", func(c *approval.Case) {
			c.Stands = func(ledger.ApprovalDecision) string { return "its comment is gone" }
		}},
		{"T46 a secret is left", file, "!a", "ada glass=down", pending, broken + "; secrets_override: 0 of 1", "+breaking the glass", nil},
		{"T46 a secret is excused", file, "!a", "ada glass=down; eve secret", approved, broken + "; secrets_override: 1 of 1", "+breaking the glass; +approved", nil},
		{"T46 of the secret", file, "!a", "ada glass=down secret", pending, unmet + "; secrets_override: 0 of 1", "-names another patch", nil},
		{"T46 by the proposer, with a secret", file, "!a", "", pending, unmet + "; secrets_override: 1 of 1", "-cannot break the glass for a secret; +approved",
			byAda("ada glass=down; eve secret")},
		{"T46 secrets refused", "{secrets: refuse, approvals: {break_glass: [ada]}}", "!a", "ada glass=down; eve secret", pending,
			broken + "; secrets_override: 0 of 1", "+breaking the glass; -refuses secrets", nil},
	})
}

// TestBreakGlassVerdict: what apply/start records, and what is still asked for.
func TestBreakGlassVerdict(t *testing.T) {
	p := policy.Default()
	p.Approvals.BreakGlass = []string{"ada"}
	v := newCase(t, p, "!CLAUDE.md", "ada glass=down").Decide()
	want := []ledger.Approved{
		{Kind: "break_glass", Fingerprint: own, Required: 1}, {Kind: "secrets_override", Fingerprint: "secret:" + own, Required: 1},
	}
	if !v.BreakGlass || !slices.Equal(v.Approvals(), want) {
		t.Errorf("%v, %+v", v.BreakGlass, v.Approvals())
	}
	if missing := plain.Missing(v); len(missing) != 1 || missing[0].Kind != policy.KindSecret {
		t.Errorf("missing %v", missing)
	}
	if v := newCase(t, p, "a", "ada glass=down; bob").Decide(); v.BreakGlass || v.Approvals()[0].Kind != policy.KindFileChange {
		t.Errorf("the glass was broken for nothing: %+v", v)
	}
}

// TestT09Stands: approvals of the forge are asked about, nothing else is.
func TestT09Stands(t *testing.T) {
	saying := func(why string) func(*approval.Case) {
		return func(c *approval.Case) { c.Stands = func(ledger.ApprovalDecision) string { return why } }
	}
	judgeAll(t, []situation{
		{"gone", "", "a", "ada", pending, none, "-its comment is gone", saying("its comment is gone")},
		{"a review", "", "a", "ada source=review", pending, none, "-was dismissed", saying("was dismissed")},
		{"not asked", "", "a", "ada; bob source=review_comment", pending, none, "-was not read again; -was not read again", func(c *approval.Case) { c.Stands = nil }},
		{"a local one", "approvals: {local: true}", "a", "ada local", approved, one, "+approved", func(c *approval.Case) { c.Stands = nil }},
		{"a denial", "", "a", "ada deny", denied, "denied by ada", "+denied", func(c *approval.Case) { c.Stands = nil }},
	})
}

func TestT10BotsDeny(t *testing.T) {
	p := policy.Default()
	p.Bots = []string{"helper"}
	for _, c := range []struct {
		who, permission, author, want string
	}{
		{"ada", "write", "bob", ""},
		{"ada", "read", "bob", "has read permission, write needed"},
		{"ada", "none", "bob", "has no permission, write needed"},
		{"ada", "", "bob", "has no permission, write needed"},
		{"ada", "none", "ada", ""},
		{"renamed", "none", "ada", ""},
		{"reused", "none", "ada", "has no permission, write needed"}, // T11
		{"nobody", "none", "nobody", "has no permission, write needed"},
		{"app", "write", "bob", ""},
		{"app", "read", "bob", "has read permission, write needed"},
		{"agent", "none", "agent", ""},
	} {
		if got := forge.MayDeny(p, approval.Access{Permission: c.permission}, people[c.who], people[c.author]); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
