package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/policy"
)

// TestBeyond: which files a bot's paths cover; after a bar those that are none of its paths,
// and after another those that are protected.
func TestBeyond(t *testing.T) {
	for rule, files := range map[string]string{
		"/go.mod":     "go.mod GO.MOD | go.mod/evil.sh x/go.mod",
		"go.mod":      "go.mod x/go.mod | go.mod/evil.sh x/go.mod/evil.sh",
		"/go.*":       "go.mod go.sum | go.mod/evil.sh",
		"/vendor/*":   "vendor/a | vendor/a/b vendor | vendor/CODEOWNERS",
		"*":           "a x/y || AGENTS.md x/.claude/a .github/workflows/x.yml",
		"a/**/b":      "a/b a/x/y/b | a/b/c",
		"[d]eps/go.?": "deps/go.x | deps/go.x/y",
		"/deps/**":    "deps/a deps/a/b deps/workflows/x.yml | deps xdeps/a | deps/CODEOWNERS",
		"/deps/": "deps/a deps/a/b deps/github/workflows/x.yml deps/countersign.yml | deps | deps/CODEOWNERS deps/codeowners deps/docs/CODEOWNERS " +
			"deps/.github/workflows/x.yml deps/a/b/.GitHub/workflow\u017f/x deps/.github/countersign.yml deps/.github/agents/x deps/.gitea/workflows " +
			"deps/Bot_Keys deps/.github/bot_keys/x deps/deploy/x deps/a/deploy/x/y deps/.gitattributes deps/a/.gitmodules/b",
		".github":  ".github | .github/a .github/workflows/x.yml | x/bot_keys/.github",
		".github/": ".github/a || .github/workflows/x.yml .github/countersign.yml",
	} {
		p := parse(t, "protected: [{paths: [/deploy/]}]\nexplained: {bots: [{keys: bot_keys, paths: [a]}, {keys: .github/bot_keys, paths: [a]}]}")
		for i, want := range []string{"", "is none of its paths", "is protected"} {
			for _, file := range strings.Fields(append(strings.Split(files, "|"), "", "")[i]) {
				got, why := p.Beyond(policy.VersionBot{Keys: "bot_keys", Paths: []string{"/first", rule}}, []string{"first", file})
				if why != want || want != "" && got != file {
					t.Errorf("%s: %s %q, want %s %q", rule, got, why, file, want)
				}
			}
		}
	}
}

// TestAccounts: which decisions account for commits, and which where a forge gates pull requests.
func TestAccounts(t *testing.T) {
	const all, no = "[signed forge local]", "[signed forge]"
	for file, want := range map[string][2]string{
		"version: 1":                            {all, no},
		"approvals: {keys: k, signed: require}": {no, no},
		"approvals: {keys: k}":                  {all, no},
		"approvals: {hardware: true}":           {no, no},
		"approvals: {pin: true}":                {no, no},
		"approvals: {local: false}":             {no, no},
		"approvals: {local: true}":              {all, no},
		"gate: {bases: [main]}":                 {no, no},
		"apply: {to: pull_request}":             {no, no},
		"apply: {to: branch}":                   {all, no},
		"explained: {decisions: [local]}":       {"[local]", "[local]"},
		"explained: {decisions: [local, forge]}\ngate: {bases: [main]}": {"[forge local]", "[forge local]"},
		"explained: {merges: covered}":                                  {all, no},
	} {
		p := parse(t, file)
		if got := [2]string{fmt.Sprint(p.Accounts(false)), fmt.Sprint(p.Accounts(true))}; got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
	neither := policy.Tighten(parse(t, "explained: {decisions: [local]}"), parse(t, "explained: {decisions: [signed]}"))
	again, err := policy.Decode(neither.JSON())
	if err != nil || len(neither.Accounts(false))+len(again.Accounts(false)) != 0 {
		t.Errorf("%s: %v, %v", neither.JSON(), again.Accounts(false), err)
	}
}
