package risk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

// TestWarnings: what can be got around, and what nobody can meet, is told.
func TestWarnings(t *testing.T) {
	const around, none, nothing = "gets around it", "no signature counts", "nothing can be approved"
	for file, want := range map[string][]string{
		"": nil,
		"approvals: {keys: k, signed: require, hardware: true, pin: true}":                             nil,
		"approvals: {keys: k, signed: accept}":                                                         nil,
		"approvals: {keys: k, passkeys: \"https://acme.github.io\"}":                                   nil,
		"approvals: {passkeys: \"https://acme.github.io\"}":                                            {"approvals.passkeys"},
		"approvals: {keys: k, signed: off, passkeys: \"https://acme.github.io\"}":                      {"approvals.passkeys"},
		"approvals: {forge_keys: true, signed: require}":                                               nil,
		"approvals: {keys: k, hardware: true}":                                                         {"approvals.hardware: who does not sign " + around},
		"approvals: {keys: k, signed: accept, hardware: true, pin: true}":                              {"approvals.hardware: ", "approvals.pin: who does not sign " + around},
		"approvals: {keys: k, signed: off, pin: true}":                                                 {"approvals.pin: " + none},
		"approvals: {hardware: true}":                                                                  {"approvals.hardware: " + none},
		"approvals: {signed: require}":                                                                 {"approvals.signed: require, and nothing says whose keys count: " + nothing},
		"approvals: {signed: accept}":                                                                  {"approvals.signed: accept, and nothing says whose keys count: " + none},
		"protected: [{paths: [a]}, {paths: [b], signed: require}]":                                     {"protected[1].signed: require, and " + none},
		"secrets: {signed: require}":                                                                   {"secrets.signed: require, and " + none},
		"approvals: {keys: k, signed: off}\nsecrets: {signed: require}":                                {"secrets.signed: require, and " + none},
		"approvals: {keys: k}\nprotected: [{paths: [b], signed: require}]\nsecrets: {signed: require}": nil,
		"explained: {decisions: [signed]}":                                                             {"explained.decisions: signed alone, and " + none},
		"explained: {decisions: [signed, forge]}":                                                      nil,
		"approvals: {keys: k}\nexplained: {decisions: [signed]}":                                       nil,
		"apply: {to: pull_request, merge: auto}":                                                       nil,
		"apply: {to: pull_request, merge: auto}\ncommands: {run: [go vet]}":                            {"apply.merge: auto merges nothing"},
		"apply: {to: pull_request, merge: human}\ncommands: {run: [go vet]}":                           nil,
		"apply: {to: branch, merge: auto}":                                                             {"apply.merge: it says nothing"},
		"approvals: {keys: k, hardware: true}\nprotected: [{paths: [b], signed: require}]":             {"approvals.hardware: who does not sign " + around},
	} {
		p, err := policy.Parse("p.yml", []byte("version: 1\n"+file+"\n"))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		got := risk.Warnings(p)
		if !slices.EqualFunc(got, want, strings.HasPrefix) {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

// TestExplainMerge: who merges is told only of what becomes a pull request, and is never settle
// where commands would have to run first.
func TestExplainMerge(t *testing.T) {
	for file, want := range map[string]policy.Merge{
		"": "", "apply: {to: branch, merge: auto}": "", "apply: {to: pull_request}": policy.MergeHuman,
		"apply: {to: pull_request, merge: human}":                           policy.MergeHuman,
		"apply: {to: pull_request, merge: auto}":                            policy.MergeAuto,
		"apply: {to: pull_request, merge: auto}\ncommands: {run: [go vet]}": policy.MergeHuman,
	} {
		p, err := policy.Parse("p.yml", []byte("version: 1\n"+file+"\n"))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if got := risk.ExplainPatch(p, "c", "aa", []string{"a"}, nil).Merge; got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}
