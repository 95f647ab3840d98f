package policy_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

// told is a need in one line.
func told(n policy.Need) string {
	s := fmt.Sprintf("%s %d", n.Kind, n.Required)
	if n.Signed {
		s += " signed"
	}
	if n.Names() {
		s += " of " + n.People()
	}
	if len(n.Paths) > 0 {
		s += " for " + strings.Join(n.Paths, " ") + " by " + strings.Join(n.Rules, " ")
	}
	return s
}

func TestNeeds(t *testing.T) {
	p := policy.Default()
	p.Approvals.Required = 2
	p.Protected = []policy.Rule{
		{Paths: []string{"/deploy/"}, Required: 2, Teams: []string{"acme/ops"}},
		{Paths: []string{"*.tf"}, Required: 1, Users: []string{"bob", "ada"}, Owners: true},
		{Paths: []string{"*.sql"}, Required: 3},
		{Paths: []string{"/deploy/keys"}, Required: 1, Teams: []string{"acme/ops"}},
		{Paths: []string{"CLAUDE.md"}, Required: 1, Owners: true},
		{Paths: []string{"/api/"}, Required: 1, Users: []string{"ada"}},
		{Paths: []string{"/api/"}, Required: 2, Users: []string{"bob"}},
		{Paths: []string{"*.sig"}, Required: 1, Signed: policy.SignedOnly},
	}
	p.Approvals.Keys, p.Witnesses.File = "keys/allowed", "keys/witnesses"
	for _, c := range []struct {
		paths  string
		secret bool
		want   string
	}{
		{"a.go", false, "fileChange 2"},
		{"a.go", true, "fileChange 2; secrets_override 1"},
		{"a.go AGENTS.md", false, "fileChange 2; protected_path 1 for AGENTS.md by built-in"},
		{"deploy/x", false, "fileChange 2; protected_path 2 of team acme/ops for deploy/x by protected[0]"},
		{"deploy/x deploy/keys a", false, "fileChange 2; protected_path 2 of team acme/ops for deploy/keys deploy/x by protected[0] protected[3]"},
		{"x.sql GEMINI.md", false, "fileChange 2; protected_path 3 for GEMINI.md x.sql by built-in protected[2]"},
		{"CLAUDE.md", false, "fileChange 2; protected_path 1 for CLAUDE.md by built-in; protected_path 1 of the code owners for CLAUDE.md by protected[4]"},
		{"api/x", false, "fileChange 2; protected_path 1 of ada for api/x by protected[5]; protected_path 2 of bob for api/x by protected[6]"},
		{"deploy/main.tf", true, "fileChange 2; secrets_override 1; protected_path 2 of team acme/ops for deploy/main.tf by protected[0]; " +
			"protected_path 1 of ada, bob, the code owners for deploy/main.tf by protected[1]"},
		{"deploy", false, "fileChange 2"},
		{"keys/allowed", false, "fileChange 2; protected_path 1 for keys/allowed by approvals.keys"},
		{"KEYS/witnesses", false, "fileChange 2; protected_path 1 for KEYS/witnesses by witnesses.file"},
		{"Keys/ALLOWED", false, "fileChange 2; protected_path 1 for Keys/ALLOWED by approvals.keys"},
		{"a.sig", true, "fileChange 2; secrets_override 1; protected_path 1 signed for a.sig by protected[7]"},
		{"a.sig CLAUDE.md", false, "fileChange 2; protected_path 1 signed for CLAUDE.md a.sig by built-in protected[7]; protected_path 1 of the code owners for CLAUDE.md by protected[4]"},
	} {
		var got []string
		for _, n := range p.Needs(strings.Fields(c.paths), c.secret) {
			got = append(got, told(n))
		}
		if joined := strings.Join(got, "; "); joined != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.paths, joined, c.want)
		}
	}
}

// TestT98NeedsOfAdvice: what a tool said adds the need of a rule for it and its level, or none; it never takes one away, and is no
// part of a need that stood without it.
func TestT98NeedsOfAdvice(t *testing.T) {
	p := policy.Default()
	p.Protected = []policy.Rule{
		{Paths: []string{"*.tf"}, Required: 1},
		{Advice: &policy.AdviceRule{Tool: "semgrep", Level: "warning"}, Required: 2},
		{Advice: &policy.AdviceRule{Tool: "model", Level: "error"}, Required: 1, Teams: []string{"acme/ops"}},
		{Advice: &policy.AdviceRule{Tool: "semgrep", Level: "error"}, Required: 3},
	}
	said := func(tool string, level policy.Level, at int) policy.Advice {
		return policy.Advice{Tool: tool, Level: level, Event: at}
	}
	for _, c := range []struct {
		said []policy.Advice
		want string
	}{
		{nil, ""},
		{[]policy.Advice{said("semgrep", "note", 3), said("Semgrep", "error", 4), said("model", "warning", 5), said("", "", 6)}, ""},
		{[]policy.Advice{said("semgrep", "note", 3), said("semgrep", "warning", 5), said("semgrep", "warning", 7)}, "; protected_path 2 for a b.tf by protected[1] after 7"},
		{[]policy.Advice{said("semgrep", "error", 3)}, "; protected_path 3 for a b.tf by protected[1] protected[3] after 3"},
		{[]policy.Advice{said("semgrep", "warning", 3), said("semgrep", "error", 4)}, "; protected_path 3 for a b.tf by protected[1] protected[3] after 4"},
		{[]policy.Advice{said("model", "error", 9)}, "; protected_path 1 of team acme/ops for a b.tf by protected[2] after 9"},
	} {
		got := ""
		for _, n := range p.Needs([]string{"b.tf", "a"}, false, c.said...) {
			if got += "; " + told(n); n.After > 0 {
				got += fmt.Sprintf(" after %d", n.After)
			}
		}
		if want := "; fileChange 1; protected_path 1 for b.tf by protected[0]" + c.want; got != want {
			t.Errorf("%v\ngot  %s\nwant %s", c.said, got, want)
		}
	}
	if needs := p.Needs(nil, false, said("model", "error", 9)); len(needs) != 2 {
		t.Errorf("of no known path: %v", needs)
	}
}

// TestNeedsOfNothing: no Policy value asks for no approval.
func TestNeedsOfNothing(t *testing.T) {
	needs := policy.Policy{}.Needs(nil, false)
	if len(needs) != 1 || needs[0].Kind != policy.KindFileChange || needs[0].Required != 1 {
		t.Errorf("%+v", needs)
	}
}

func TestFingerprint(t *testing.T) {
	want := []string{"patchset:x", "secret:patchset:x", "protected:patchset:x"}
	if got := policy.Fingerprints("x"); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	for _, n := range policy.Default().Needs([]string{"AGENTS.md"}, true) {
		if got := policy.Fingerprint(n.Kind, "x"); got != n.Prefix+"patchset:x" {
			t.Errorf("%s: %s", n.Kind, got)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a fingerprint of an unknown kind")
		}
	}()
	policy.Fingerprint("break-glass", "x")
}

// TestT35BuiltIns: workflow, Policy and agent-instruction files are protected in
// any case and any form that some file system takes for them, whatever the file
// says.
func TestT35BuiltIns(t *testing.T) {
	for _, path := range strings.Fields(`
		.github/countersign.yml .github/workflows/ci.yml .github/workflows/a/b.yml .github/workflows .github/actions/x/action.yml
		CODEOWNERS docs/CODEOWNERS .github/CODEOWNERS .gitmodules .gitattributes a/b/.gitattributes .gitleaks.toml .gitleaksignore
		AGENTS.md a/b/AGENTS.md CLAUDE.md x/CLAUDE.local.md GEMINI.md .cursorrules .cursor/rules/x.mdc pkg/.cursor/x .windsurfrules
		.github/copilot-instructions.md .github/instructions/go.instructions.md .github/prompts/x.prompt.md .claude/settings.json
		.codex/config.toml .mcp.json sub/.mcp.json .vscode/settings.json sub/.vscode/mcp.json .clinerules .clinerules/a.md .roo/rules/x`) {
		for _, spelt := range []string{path, strings.ToUpper(path), strings.ToLower(path), swapCase(path)} {
			if len(policy.Default().Needs([]string{"x", spelt}, false)) != 2 {
				t.Errorf("%s is not protected", spelt)
			}
		}
	}
	for _, path := range []string{ // K and s of other alphabets, and a ligature
		".github/wor\u212Aflows/ci.yml", ".github/work\uFB02ows/ci.yml", "AGENT\u017F.md", ".gitattribute\u017F",
	} {
		if len(policy.Default().Needs([]string{path}, false)) != 2 {
			t.Errorf("%q is not protected", path)
		}
	}
	for _, path := range strings.Fields(`
		a.go .github/dependabot.yml a/.github/workflows/ci.yml sub/CODEOWNERS AGENTS.md.txt agents/x CLAUDE.mdx docs/countersign.yml .vscode/launch.json
		github/workflows/ci.yml .gitignore`) {
		if len(policy.Default().Needs([]string{path}, false)) != 1 {
			t.Errorf("%s is protected", path)
		}
	}
}

func swapCase(s string) string {
	upper := false
	return strings.Map(func(r rune) rune {
		if upper = !upper; upper {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, s)
}

// TestExplain: path by path, and never at odds with Needs.
func TestExplain(t *testing.T) {
	p := policy.Default()
	p.Protected = []policy.Rule{
		{Paths: []string{"*.go", "/a/"}, Required: 2, Users: []string{"ada"}}, {Paths: []string{"/a/b"}, Required: 1, Owners: true},
	}
	got := risk.Explain(p, []string{"x", "a/y.go", "a/B/CLAUDE.md"})
	want := []risk.Explained{
		{Path: "x", Rules: []risk.Met{}},
		{Path: "a/y.go", Rules: []risk.Met{{Rule: "protected[0]", Glob: "*.go", Required: 2, Users: []string{"ada"}}}},
		{Path: "a/B/CLAUDE.md", Rules: []risk.Met{
			{Rule: "built-in", Glob: "CLAUDE.md", Required: 1},
			{Rule: "protected[0]", Glob: "/a/", Required: 2, Users: []string{"ada"}},
			{Rule: "protected[1]", Glob: "/a/b", Required: 1, Owners: true},
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		p := randomPolicy(r)
		paths := []string{randomPath(r), randomPath(r), "CLAUDE.md"}
		met, needed := map[string]bool{}, map[string]bool{}
		for _, e := range risk.Explain(p, paths) {
			for _, m := range e.Rules {
				met[m.Rule+" "+e.Path] = true
			}
		}
		for _, n := range p.Needs(paths, false) {
			for _, rule := range n.Rules {
				for _, e := range risk.Explain(p, n.Paths) {
					for _, m := range e.Rules {
						if m.Rule == rule {
							needed[rule+" "+e.Path] = true
						}
					}
				}
			}
		}
		if !reflect.DeepEqual(met, needed) {
			t.Fatalf("explained %v, needed %v", met, needed)
		}
	}
}

func TestIsAccount(t *testing.T) {
	for _, c := range []struct {
		entry, id, login string
		want             bool
	}{
		{"ada", "1", "ada", true},
		{"Ada", "1", "aDA", true},
		{"ada", "1", "bob", false},
		{"1", "1", "bob", true},
		{"1", "2", "1", false}, // a login that is another's id
		{"1", "11", "x", false},
		{"local:ada@example.org", "local:ada@example.org", "x", true},
		{"local:ada@example.org", "2", "local:ada@example.org", false},
		{"", "", "", false},
		{"dependabot[bot]", "49699333", "dependabot[bot]", true},
	} {
		if got := policy.IsAccount(c.entry, c.id, c.login); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestBreakGlass(t *testing.T) {
	if got := policy.Fingerprint(policy.KindBreakGlass, "x"); got != "patchset:x" {
		t.Error(got)
	}
	p := policy.Default()
	if p.BreaksGlass("1", "ada") {
		t.Error("anybody breaks the glass by default")
	}
	p.Approvals.BreakGlass = []string{"Ada", "2"}
	for _, c := range []struct {
		id, login string
		want      bool
	}{{"1", "ada", true}, {"2", "bob", true}, {"3", "2", false}, {"3", "eve", false}, {"", "", false}} {
		if p.BreaksGlass(c.id, c.login) != c.want {
			t.Errorf("%+v", c)
		}
	}
}

func TestLocalCounts(t *testing.T) {
	for l, want := range map[policy.Local][2]bool{
		policy.LocalNever: {false, false}, policy.LocalAlone: {true, false}, policy.LocalAlways: {true, true}, 7: {false, false},
	} {
		if got := [2]bool{l.Counts(false), l.Counts(true)}; got != want {
			t.Errorf("%d: %v, want %v", l, got, want)
		}
	}
}

func TestPermissionAtLeast(t *testing.T) {
	order := []policy.Permission{"read", "triage", "write", "maintain", "admin"}
	for i, p := range order {
		for k, least := range order {
			if p.AtLeast(least) != (i >= k) {
				t.Errorf("%s at least %s", p, least)
			}
		}
		for _, other := range []policy.Permission{"", "none", "local", "Admin", "WRITE"} {
			if other.AtLeast(p) || p.AtLeast(other) {
				t.Errorf("%q compares with %s", other, p)
			}
		}
	}
}

func TestCommandSame(t *testing.T) {
	words, line := policy.Command{Argv: []string{"go", "test"}}, policy.Command{Argv: []string{"make | tee x"}, Shell: true}
	for _, argv := range [][]string{{"go"}, {"go", "test", ""}, {"go", "Test"}, {"test", "go"}, {"go test"}, {"make", "|", "tee", "x"}, nil} {
		if words.Same(argv) || line.Same(argv) {
			t.Errorf("%q is the same", argv)
		}
	}
	if !line.Same([]string{"make | tee x"}) || !words.Same([]string{"go", "test"}) {
		t.Error("a command is not the same as itself")
	}
}

// TestSum pins the hash: it is recorded, and must not drift.
func TestSum(t *testing.T) {
	const want = `{"apply":{},"approvals":{"allow_author":false,"permission":"write","required":1,"same_head":false},` +
		`"commands":{},"gate":{},"limits":{"bytes":5242880,"files":500},"sandbox":"workspace-write","secrets":{"mode":"require-approval"},"version":1}` + "\n"
	if got := string(policy.Default().JSON()); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	seen := map[string]bool{policy.Default().Sum(): true}
	r := rand.New(rand.NewPCG(5, 6))
	texts := map[string]bool{}
	for range 200 {
		p := randomPolicy(r)
		texts[string(p.JSON())], seen[p.Sum()] = true, true
	}
	if len(seen) < len(texts) {
		t.Errorf("%d Sums of %d Policies", len(seen), len(texts))
	}
}
