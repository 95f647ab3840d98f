package policy_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

func parse(t *testing.T, s string) policy.Policy {
	t.Helper()
	p, err := policy.Parse("x.yml", []byte(s))
	fatal(t, err)
	return p
}

// TestT20Tighten: a base branch's Policy may ask for more, and gets nothing by
// asking for less. Each row is the Policy, the base's, and what holds.
func TestT20Tighten(t *testing.T) {
	key := func(c string) string { return "age1" + fmt.Sprintf("%060s", c) }
	for _, c := range [][3]string{
		{"version: 1", "version: 1", "version: 1"},
		{"approvals: {required: 2}", "approvals: {required: 1}", "approvals: {required: 2}"},
		{"approvals: {required: 2}", "approvals: {required: 3}", "approvals: {required: 3}"},
		{"approvals: {permission: admin}", "approvals: {permission: read}", "approvals: {permission: admin}"},
		{"approvals: {permission: read}", "approvals: {permission: maintain}", "approvals: {permission: maintain}"},
		{"approvals: {allow_author: true}", "version: 1", "version: 1"},
		{"version: 1", "approvals: {allow_author: true}", "version: 1"},
		{"approvals: {independent: [requester]}", "version: 1", "approvals: {independent: [requester]}"},
		{"version: 1", "approvals: {independent: [proposer]}", "approvals: {independent: [proposer]}"},
		{"approvals: {independent: [requester]}", "approvals: {independent: [proposer]}", "approvals: {independent: [proposer, requester]}"},
		{"approvals: {same_head: true}", "version: 1", "approvals: {same_head: true}"},
		{"version: 1", "approvals: {same_head: true}", "approvals: {same_head: true}"},
		{"tickets: [A]", "tickets: [B]", "tickets: [A]"},
		{"exceptions: {review: 5d}", "exceptions: {review: 5m}", "exceptions: {review: 5d}"}, // only the default branch's counts
		{"approvals: {max_age: 2h}", "version: 1", "approvals: {max_age: 2h}"},
		{"version: 1", "approvals: {max_age: 2h}", "approvals: {max_age: 2h}"},
		{"approvals: {max_age: 1h}", "approvals: {max_age: 2h}", "approvals: {max_age: 1h}"},
		{"approvals: {drift: {commits: 2}}", "version: 1", "approvals: {drift: {commits: 2}}"},
		{"version: 1", "approvals: {drift: {commits: 2}}", "approvals: {drift: {commits: 2}}"},
		{"approvals: {drift: {commits: 2}}", "approvals: {drift: {commits: 3}}", "approvals: {drift: {commits: 2}}"},
		{"approvals: {drift: {commits: 2}}", "approvals: {drift: {commits: 0}}", "approvals: {drift: {commits: 0}}"},
		{"approvals: {drift: {commits: 2}}", "approvals: {drift: {same_directory: ask}}", "approvals: {drift: {commits: 2, same_directory: ask}}"},
		{"approvals: {drift: {same_directory: ask}}", "approvals: {drift: {commits: 2}}", "approvals: {drift: {commits: 2, same_directory: ask}}"},
		{"approvals: {local: true}", "version: 1", "version: 1"},
		{"version: 1", "approvals: {local: true}", "version: 1"},
		{"version: 1", "approvals: {local: false}", "approvals: {local: false}"},
		{"approvals: {break_glass: [a, b]}", "approvals: {break_glass: [b, c]}", "approvals: {break_glass: [b]}"},
		{"approvals: {keys: a}", "approvals: {keys: b}", "approvals: {keys: a}"},
		{"version: 1", "approvals: {keys: b}", "version: 1"},
		{"witnesses: {file: a}", "witnesses: {file: b, required: 2}", "witnesses: {file: a}"},
		{"version: 1", "witnesses: {file: b, required: 2}", "version: 1"},
		{"approvals: {forge_keys: true}", "version: 1", "approvals: {forge_keys: true}"},
		{"version: 1", "approvals: {forge_keys: true}", "version: 1"},
		{"approvals: {keys: a}", "approvals: {keys: a, forge_keys: true, signed: require}", "approvals: {keys: a, signed: require}"},
		{"approvals: {keys: a}", "approvals: {signed: require}", "approvals: {keys: a, signed: require}"},
		{"approvals: {keys: a, signed: require}", "approvals: {keys: a}", "approvals: {keys: a, signed: require}"},
		{"approvals: {keys: a, signed: require}", "approvals: {signed: off}", "approvals: {keys: a, signed: require}"},
		{"approvals: {keys: a}", "approvals: {signed: off}", "approvals: {keys: a}"},
		{"approvals: {keys: a, signed: off}", "approvals: {signed: accept}", "approvals: {keys: a, signed: accept}"},
		{"version: 1", "approvals: {keys: b, signed: require}", "approvals: {signed: require}"},
		{"approvals: {hardware: true}", "approvals: {pin: true}", "approvals: {hardware: true, pin: true}"},
		{"approvals: {passkeys: \"https://a.org\"}", "approvals: {passkeys: \"https://b.org\"}", "approvals: {passkeys: \"https://a.org\"}"},
		{"version: 1", "approvals: {passkeys: \"https://b.org\"}", "version: 1"},
		{"version: 1", "secrets: {signed: require}", "secrets: {signed: require}"},
		{"secrets: {signed: require}", "version: 1", "secrets: {signed: require}"},
		{"protected: [{paths: [a]}]", "protected: [{paths: [a], signed: require}]", "protected: [{paths: [a]}, {paths: [a], signed: require}]"},
		{"bots: [a]", "bots: [b, a]", "bots: [a, b]"},
		{"protected: [{paths: [a]}]", "protected: [{paths: [b]}, {paths: [a]}]", "protected: [{paths: [a]}, {paths: [b]}]"},
		{"protected: [{paths: [a]}]", "version: 1", "protected: [{paths: [a]}]"},
		{"sandbox: danger-full-access", "sandbox: read-only", "sandbox: read-only"},
		{"version: 1", "sandbox: danger-full-access", "version: 1"},
		{"version: 1", "secrets: refuse", "secrets: refuse"},
		{"secrets: refuse", "version: 1", "secrets: refuse"},
		{"secrets: {seal_to: [" + key("a") + ", " + key("b") + "]}", "secrets: {seal_to: [" + key("b") + ", " + key("c") + "]}", "secrets: {seal_to: [" + key("b") + "]}"},
		{"limits: {open: 9}", "limits: {open: 7}", "limits: {open: 7}"},
		{"limits: {open: 7}", "version: 1", "limits: {open: 7}"},
		{"version: 1", "limits: {open: 7}", "limits: {open: 7}"},
		{"approvals: {due: 2d}", "approvals: {due: 1d}", "approvals: {due: 2d}"}, // only the default branch's counts
		{"limits: {files: 9, bytes: 8}", "limits: {files: 7, bytes: 99}", "limits: {files: 7, bytes: 8}"},
		{"apply: {to: branch, sign: A}", "apply: {to: worktree, sign: B}", "apply: {to: branch, sign: A}"},
		{"apply: {to: pull_request, merge: auto}", "apply: {to: pull_request, merge: auto}", "apply: {to: pull_request, merge: auto}"},
		{"apply: {to: pull_request, merge: auto}", "apply: {merge: human}", "apply: {to: pull_request, merge: human}"},
		{"apply: {to: pull_request, merge: auto}", "apply: {to: pull_request}", "apply: {to: pull_request, merge: human}"},
		{"apply: {to: pull_request}", "apply: {to: pull_request, merge: auto}", "apply: {to: pull_request}"},
		{"apply: {to: pull_request, merge: human}", "apply: {merge: auto}", "apply: {to: pull_request, merge: human}"},
		{"gate: {bases: [main]}", "gate: {bases: [old]}", "gate: {bases: [main, old]}"},
		{"gate: {allow_force: true, allow_tags: true}", "gate: {allow_force: true, allow_delete: true}", "gate: {allow_force: true}"},
		{"version: 1", "gate: {bases: [old]}", "version: 1"},
		{"version: 1", "explained: {decisions: [signed]}", "explained: {decisions: [signed]}"},
		{"version: 1", "explained: {decisions: [local, signed]}", "explained: {decisions: [signed]}"}, // local may not account by default
		{"version: 1", "explained: {decisions: [signed, forge, local]}", "version: 1"},
		{"explained: {decisions: [signed]}", "version: 1", "explained: {decisions: [signed]}"},
		{"explained: {decisions: [signed, local]}", "explained: {decisions: [local, forge]}", "explained: {decisions: [local]}"},
		{"explained: {empty: false}", "version: 1", "explained: {empty: false}"},
		{"version: 1", "explained: {empty: false}", "explained: {empty: false}"},
		{"explained: {empty: false}", "explained: {empty: true}", "explained: {empty: false}"},
		{"explained: {bots: [{keys: k, paths: [a]}]}", "explained: {bots: [{keys: k, paths: [a], modes: true}, {keys: k, paths: [b]}]}", "explained: {bots: [{keys: k, paths: [a]}]}"},
		{"commands: {allow: [a, b]}", "commands: {allow: [b, c]}", "commands: {allow: [b]}"},
		{"commands: {allow: [{argv: [a], network: true, timeout: 5m, env: [X, Y]}]}", "commands: {allow: [{argv: [a], timeout: 1m, env: [Y, Z]}]}",
			"commands: {allow: [{argv: [a], timeout: 1m, env: [Y]}]}"},
		{"commands: {allow: [{argv: [a]}]}", "commands: {allow: [{argv: [a], shell: true}]}", "version: 1"},
		{"commands: {run: [a]}", "commands: {run: [{argv: [b], network: true, env: [TOKEN]}]}", "commands: {run: [a, b]}"},
		{"commands: {run: [{argv: [a b]}]}", "commands: {run: [{argv: [a b], shell: true}]}", "commands: {run: [{argv: [a b]}]}"},
		{"commands: {run: [{argv: [a], required: false}]}", "commands: {run: [a]}", "commands: {run: [a]}"},
		{"commands: {run: [a]}", "commands: {run: [{argv: [a], required: false, network: true, timeout: 1h}]}", "commands: {run: [a]}"},
	} {
		p, base, want := parse(t, c[0]), parse(t, c[1]), parse(t, c[2])
		before := string(p.JSON())
		got := policy.Tighten(p, base)
		if string(got.JSON()) != string(want.JSON()) {
			t.Errorf("%s, base %s\ngot  %swant %s", c[0], c[1], got.JSON(), want.JSON())
		}
		if string(p.JSON()) != before {
			t.Errorf("%s was changed", c[0])
		}
	}
}

// TestT20TightenAgain: a Policy tightens itself by nothing, and a base branch
// tightens once.
func TestT20TightenAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 1000 {
		p, base := randomPolicy(r), randomPolicy(r)
		if got := policy.Tighten(p, p); got.Sum() != p.Sum() {
			t.Fatalf("%s\nbecame\n%s", p.JSON(), got.JSON())
		}
		once := policy.Tighten(p, base)
		if got := policy.Tighten(once, base); got.Sum() != once.Sum() {
			t.Fatalf("%s\nbecame\n%s", once.JSON(), got.JSON())
		}
		again, err := policy.Decode(once.JSON())
		if err != nil || !reflect.DeepEqual(again, once) {
			t.Fatalf("%s: %v", once.JSON(), err)
		}
	}
}

// randomPolicy is any that Parse could give.
func randomPolicy(r *rand.Rand) policy.Policy {
	p := policy.Default()
	p.Approvals = policy.Approvals{
		Required: 1 + r.IntN(3), Permission: pick(r, policy.CanRead, policy.CanWrite, policy.CanAdmin), AllowAuthor: r.IntN(2) == 0,
		SameHead: r.IntN(3) == 0, MaxAge: pick(r, 0, policy.Duration(time.Hour), policy.Duration(48*time.Hour)),
		Local: pick(r, policy.LocalNever, policy.LocalAlone, policy.LocalAlways),
		Keys:  pick(r, "", "keys"), Signed: pick(r, "", policy.SignedOff, policy.SignedToo, policy.SignedOnly), Hardware: r.IntN(3) == 0, PIN: r.IntN(3) == 0,
	}
	p.Secrets.Signed = pick(r, "", "", policy.SignedOnly)
	p.Explained.RefuseEmpty = r.IntN(3) == 0
	p.Explained.Decisions = pick(r, nil, nil, []policy.DecisionKind{policy.SignedDecision}, []policy.DecisionKind{policy.SignedDecision, policy.LocalDecision},
		[]policy.DecisionKind{policy.ForgeDecision}, []policy.DecisionKind{policy.SignedDecision, policy.ForgeDecision, policy.LocalDecision})
	if r.IntN(2) == 0 {
		few := r.IntN(3)
		p.Approvals.Drift = pick(r, &policy.Drift{Commits: &few}, &policy.Drift{SameDirectory: policy.Ask}, &policy.Drift{Commits: &few, SameDirectory: policy.Ask})
	}
	p.Secrets.Mode = pick(r, policy.RequireApproval, policy.RequireApproval, policy.Refuse)
	p.Sandbox = pick(r, policy.ReadOnly, policy.WorkspaceWrite)
	p.Limits = policy.Limits{Files: 1 + r.IntN(9), Bytes: 1 + r.Int64N(9)}
	for _, login := range []string{"ada", "2", "eve"} {
		if r.IntN(4) == 0 {
			p.Bots = append(p.Bots, login)
		}
	}
	for range r.IntN(3) {
		p.Protected = append(p.Protected, randomRule(r))
	}
	if r.IntN(2) == 0 {
		argv := []string{pick(r, "a", "b")}
		p.Commands.Run = []policy.Check{{Command: policy.Command{Argv: argv, Timeout: policy.DefaultTimeout, Network: r.IntN(2) == 0}}}
		p.Commands.Allow = []policy.Command{{Argv: argv, Timeout: policy.DefaultTimeout, Network: r.IntN(2) == 0}}
	}
	return p
}

func randomRule(r *rand.Rand) policy.Rule {
	rule := policy.Rule{Paths: []string{pick(r, "a", "*b*", "/a/", "**/c", "?")}, Required: 1 + r.IntN(2)}
	switch r.IntN(4) {
	case 0:
		rule.Users = []string{pick(r, "ada", "2", "eve")}
	case 1:
		rule.Teams = []string{"acme/x"}
	case 2:
		rule.Owners = true
	}
	return rule
}

// TestT20TightenExplained: a base branch adds no rule by which a commit is explained, and
// the file of a bot's keys is protected.
func TestT20TightenExplained(t *testing.T) {
	base := policy.Default()
	base.Explained = policy.CommitRules{Merges: policy.MergesCovered, Bots: []policy.VersionBot{{Keys: "keys", Paths: []string{"*.lock"}}}}
	if got := policy.Tighten(policy.Default(), base).Explained; got.Merges != "" || got.Bots != nil {
		t.Errorf("%+v", got)
	}
	if got := policy.Tighten(base, policy.Default()); got.Sum() != base.Sum() {
		t.Errorf("%s", got.JSON())
	}
	if got := risk.Explain(base, []string{"KEYS", "a.lock"}); len(got[0].Rules) != 1 || got[0].Rules[0].Rule != "explained.bots[0].keys" || len(got[1].Rules) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestT20TightenAccounts: whatever a base says, no kind of decision accounts that did not before.
func TestT20TightenAccounts(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	none := 0
	for range 2000 {
		p, base := randomPolicy(r), randomPolicy(r)
		for _, gates := range []bool{true, false} {
			before, after := explain.Accounts(p, gates), explain.Accounts(policy.Tighten(p, base), gates)
			if slices.ContainsFunc(after, func(k policy.DecisionKind) bool { return !slices.Contains(before, k) }) {
				t.Fatalf("%s and base %s: %v accounts, %v before", p.JSON(), base.JSON(), after, before)
			}
			if len(after) == 0 {
				none++
			}
		}
	}
	if none == 0 {
		t.Error("no two that have nothing in common")
	}
}
