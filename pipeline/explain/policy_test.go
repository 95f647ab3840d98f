package explain_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
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
		p := parsePolicy(t, "protected: [{paths: [/deploy/]}]\nexplained: {bots: [{keys: bot_keys, paths: [a]}, {keys: .github/bot_keys, paths: [a]}]}")
		for i, want := range []string{"", "is none of its paths", "is protected"} {
			for _, file := range strings.Fields(append(strings.Split(files, "|"), "", "")[i]) {
				got, why := explain.Beyond(p, policy.VersionBot{Keys: "bot_keys", Paths: []string{"/first", rule}}, []string{"first", file})
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
		p := parsePolicy(t, file)
		if got := [2]string{fmt.Sprint(explain.Accounts(p, false)), fmt.Sprint(explain.Accounts(p, true))}; got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
	neither := policy.Tighten(parsePolicy(t, "explained: {decisions: [local]}"), parsePolicy(t, "explained: {decisions: [signed]}"))
	again, err := policy.Decode(neither.JSON())
	if err != nil || len(explain.Accounts(neither, false))+len(explain.Accounts(again, false)) != 0 {
		t.Errorf("%s: %v, %v", neither.JSON(), explain.Accounts(again, false), err)
	}
}

func parsePolicy(t *testing.T, file string) policy.Policy {
	t.Helper()
	p, err := policy.Parse(policy.Path, []byte(file))
	fatal(t, err)
	return p
}

func workflow(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// broken fails to open one name.
type broken struct {
	fs.FS
	name string
}

func (b broken) Open(name string) (fs.File, error) {
	if name == b.name {
		return nil, errors.New("input/output error")
	}
	return b.FS.Open(name)
}

// TestGatesPullRequests: which trees gate pull requests. What cannot be read is an error.
func TestGatesPullRequests(t *testing.T) {
	const plain = "on:\n  workflow_run:\njobs:\n  a:\n    if: >-\n      github.event_name == 'merge_group'\n      || (github.event_name == 'pull_request_target' && true)\n"
	for name, c := range map[string]struct {
		tree fstest.MapFS
		want string
	}{
		"nothing":          {fstest.MapFS{}, "false <nil>"},
		"another workflow": {fstest.MapFS{".github/workflows/ci.yml": workflow("on: pull_request_target\n")}, "false <nil>"},
		"without the gate": {fstest.MapFS{".github/workflows/countersign.yml": workflow(plain)}, "false <nil>"},
		"a merge queue":    {fstest.MapFS{".github/workflows/countersign.yml": workflow(strings.Replace(plain, "on:\n", "on:\n  merge_group:\n", 1))}, "true <nil>"},
		"a list of events": {fstest.MapFS{".github/workflows/countersign.yml": workflow("on: [push, 'pull_request_target']\r\n")}, "true <nil>"},
		"Gitea":            {fstest.MapFS{".gitea/workflows/countersign.yml": workflow("")}, "true <nil>"},
		"Forgejo":          {fstest.MapFS{".forgejo/workflows/countersign.yml": workflow(plain)}, "true <nil>"},
		"Gitea in .github": {fstest.MapFS{".github/workflows/countersign.yml": workflow("  TOKEN: ${{ secrets.COUNTERSIGN_TOKEN }}\n")}, "true <nil>"},
		"the events alone": {fstest.MapFS{".gitea/workflows/countersign-events.yml": workflow("")}, "false <nil>"},
		"a directory":      {fstest.MapFS{".gitea/workflows/countersign.yml/x": workflow("")}, "false <nil>"},
		"a link":           {fstest.MapFS{".github/workflows/countersign.yml": {Data: []byte("x"), Mode: fs.ModeSymlink}}, "false .github/workflows/countersign.yml: is a symbolic link or submodule"},
		"below a link":     {fstest.MapFS{".gitea": {Data: []byte("x"), Mode: fs.ModeSymlink}}, "false .gitea/workflows/countersign.yml: is under a symbolic link or submodule"},
	} {
		gates, err := explain.GatesPullRequests(c.tree)
		if got := fmt.Sprint(gates, " ", err); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	const name = ".gitea/workflows/countersign.yml"
	if gates, err := explain.GatesPullRequests(broken{fstest.MapFS{name: workflow("")}, name}); gates || err == nil {
		t.Errorf("a tree that cannot be read: %v %v", gates, err)
	}
}
