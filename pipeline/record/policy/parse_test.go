package policy_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

var update = flag.Bool("update", false, "rewrite testdata")

// sample is the file in the package comment.
func sample(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("policy.go")
	fatal(t, err)
	var b strings.Builder
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "//\t"); ok {
			b.WriteString(rest)
		}
	}
	return b.String()
}

func TestParseSample(t *testing.T) {
	got, err := policy.Parse("x.yml", []byte(sample(t)))
	fatal(t, err)
	commits := 20
	want := policy.Policy{
		Version: 1,
		Approvals: policy.Approvals{
			Required: 1, Permission: policy.CanWrite, MaxAge: policy.Duration(14 * 24 * time.Hour), Due: policy.Duration(48 * time.Hour),
			Drift:       &policy.Drift{Commits: &commits, SameDirectory: policy.Ask},
			Independent: []policy.Part{policy.Proposing, policy.Requesting},
			Local:       policy.LocalNever, BreakGlass: []string{"ada"}, Keys: ".github/allowed_signers", Signed: policy.SignedToo, Passkeys: "https://acme.github.io",
		},
		Bots: []string{"12345", "renovate"},
		Protected: []policy.Rule{
			{Paths: []string{"/deploy/", "*.tf"}, Required: 2, Teams: []string{"acme/security"}, Signed: policy.SignedOnly},
			{Advice: &policy.AdviceRule{Tool: "semgrep", Level: "error"}, Required: 2},
		},
		Sandbox: policy.WorkspaceWrite,
		Secrets: policy.Secrets{Mode: policy.RequireApproval},
		Limits:  policy.Limits{Files: 500, Bytes: 5 << 20, Open: 20},
		Commands: policy.Commands{
			Run: []policy.Check{{Command: policy.Command{Argv: []string{"go", "vet", "./..."}, Timeout: policy.DefaultTimeout}, Required: true}},
			Allow: []policy.Command{{
				Argv: []string{"go", "test", "./..."}, Timeout: policy.DefaultTimeout, Env: []string{"GOCACHE"},
			}},
		},
		Apply:      policy.Apply{To: policy.ToBranch, Sign: "COUNTERSIGN_SIGN_KEY"},
		Gate:       policy.Gate{Bases: []string{"main"}},
		Explained:  policy.CommitRules{Decisions: []policy.DecisionKind{policy.SignedDecision, policy.ForgeDecision}, Merges: policy.MergesCovered, Bots: []policy.VersionBot{{Keys: ".github/bot_keys", Paths: []string{"/go.mod", "/go.sum"}}}},
		Tickets:    []string{"[A-Z]+-[0-9]+", `#\d+`},
		Exceptions: policy.Exceptions{Review: policy.Duration(5 * 24 * time.Hour)},
		Ledger:     policy.Ledger{Repository: "acme/ledgers", Tip: "3f786850e387550fdab836ed7e6dc881de23001b", Since: "2026-01-05T12:00:00Z"},

		Witnesses: policy.Witnesses{File: ".github/witnesses", Required: 2},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", got.JSON(), want.JSON())
	}
}

// TestParse: what each line changes in Default, told by canonical JSON.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		file string
		edit func(*policy.Policy)
	}{
		{"version: 1", func(*policy.Policy) {}},
		{"---\nversion: 1\n...\n", func(*policy.Policy) {}},
		{"{}", func(*policy.Policy) {}},
		{"approvals: {}", func(*policy.Policy) {}},
		{"# only\r\nversion: 1\r\n", func(*policy.Policy) {}},
		{"approvals:\n  required: 3", func(p *policy.Policy) { p.Approvals.Required = 3 }},
		{"approvals: {permission: admin}", func(p *policy.Policy) { p.Approvals.Permission = policy.CanAdmin }},
		{"approvals: {allow_author: true, same_head: true}", func(p *policy.Policy) { p.Approvals.AllowAuthor, p.Approvals.SameHead = true, true }},
		{"approvals: {local: true}", func(p *policy.Policy) { p.Approvals.Local = policy.LocalAlways }},
		{"approvals: {local: false}", func(p *policy.Policy) { p.Approvals.Local = policy.LocalNever }},
		{"approvals: {max_age: 72h}", func(p *policy.Policy) { p.Approvals.MaxAge = policy.Duration(72 * time.Hour) }},
		{"approvals: {drift: {commits: 0}}", func(p *policy.Policy) { p.Approvals.Drift = &policy.Drift{Commits: new(int)} }},
		{"approvals: {drift: {same_directory: ask}}", func(p *policy.Policy) { p.Approvals.Drift = &policy.Drift{SameDirectory: policy.Ask} }},
		{"approvals: {max_age: 2w}", func(p *policy.Policy) { p.Approvals.MaxAge = policy.Duration(14 * 24 * time.Hour) }},
		{"bots:\n- dependabot[bot]\n- 49699333\n- 'x'", func(p *policy.Policy) { p.Bots = []string{"dependabot[bot]", "49699333", "x"} }},
		{"approvals: {keys: .github/allowed_signers}", func(p *policy.Policy) { p.Approvals.Keys = ".github/allowed_signers" }},
		{"approvals: {independent: [requester, proposer]}", func(p *policy.Policy) {
			p.Approvals.Independent = []policy.Part{policy.Proposing, policy.Requesting}
		}},
		{"approvals: {signed: require, hardware: true, pin: true}", func(p *policy.Policy) {
			p.Approvals.Signed, p.Approvals.Hardware, p.Approvals.PIN = policy.SignedOnly, true, true
		}},
		{"secrets: {signed: require}", func(p *policy.Policy) { p.Secrets.Signed = policy.SignedOnly }},
		{"sandbox: read-only", func(p *policy.Policy) { p.Sandbox = policy.ReadOnly }},
		{"sandbox: danger-full-access", func(p *policy.Policy) { p.Sandbox = policy.FullAccess }},
		{"secrets: refuse", func(p *policy.Policy) { p.Secrets.Mode = policy.Refuse }},
		{"secrets: {mode: refuse}", func(p *policy.Policy) { p.Secrets.Mode = policy.Refuse }},
		{"secrets:\n  seal_to: [age1" + strings.Repeat("q", 58) + "]", func(p *policy.Policy) { p.Secrets.SealTo = []string{"age1" + strings.Repeat("q", 58)} }},
		{"limits: {files: 7, bytes: 99}", func(p *policy.Policy) { p.Limits = policy.Limits{Files: 7, Bytes: 99} }},
		{"approvals: {due: 2d}", func(p *policy.Policy) { p.Approvals.Due = policy.Duration(48 * time.Hour) }},
		{"limits: {open: 20}", func(p *policy.Policy) { p.Limits.Open = 20 }},
		{"limits: {bytes: 5MiB}", func(*policy.Policy) {}},
		{"limits: {bytes: 64 KiB}", func(p *policy.Policy) { p.Limits.Bytes = 64 << 10 }},
		{"limits: {bytes: 1 GiB}", func(p *policy.Policy) { p.Limits.Bytes = 1 << 30 }},
		{"limits: {bytes: 12 B}", func(p *policy.Policy) { p.Limits.Bytes = 12 }},
		{"apply: {to: ref}", func(p *policy.Policy) { p.Apply.To = policy.ToRef }},
		{"apply: {to: pull_request, merge: auto}", func(p *policy.Policy) { p.Apply.To, p.Apply.Merge = policy.ToPullRequest, policy.MergeAuto }},
		{"apply: {merge: human}", func(p *policy.Policy) { p.Apply.Merge = policy.MergeHuman }},
		{"ledger: {since: '2026-01-05T12:00:00Z'}", func(p *policy.Policy) { p.Ledger.Since = "2026-01-05T12:00:00Z" }},
		{"ledger: {repository: a/b}", func(p *policy.Policy) { p.Ledger.Repository = "a/b" }},
		{"ledger: {repository: Acme-1_x.y/the.ledgers-}", func(p *policy.Policy) { p.Ledger.Repository = "Acme-1_x.y/the.ledgers-" }},
		{"witnesses: {file: .github/witnesses}", func(p *policy.Policy) { p.Witnesses.File = ".github/witnesses" }},
		{"witnesses: {file: w, required: 0}", func(p *policy.Policy) { p.Witnesses.File = "w" }},
		{"witnesses: {required: 3, file: a/.w}", func(p *policy.Policy) { p.Witnesses = policy.Witnesses{File: "a/.w", Required: 3} }},
		{`tickets: ["[A-Z]+-\\d{2,}", "#[0-9]+"]`, func(p *policy.Policy) { p.Tickets = []string{`[A-Z]+-\d{2,}`, "#[0-9]+"} }},
		{"tickets: []", func(*policy.Policy) {}},
		{"exceptions: {review: 5d}", func(p *policy.Policy) { p.Exceptions.Review = policy.Duration(5 * 24 * time.Hour) }},
		{"gate: {allow_force: true, allow_delete: true, allow_tags: true}", func(p *policy.Policy) { p.Gate = policy.Gate{AllowForce: true, AllowDelete: true, AllowTags: true} }},
		{"gate: {bases: [main, release/1.x]}", func(p *policy.Policy) { p.Gate.Bases = []string{"main", "release/1.x"} }},
		{"explained: {decisions: [local, signed]}", func(p *policy.Policy) {
			p.Explained.Decisions = []policy.DecisionKind{policy.SignedDecision, policy.LocalDecision}
		}},
		{"explained: {empty: true}", func(*policy.Policy) {}},
		{"explained: {empty: false}", func(p *policy.Policy) { p.Explained.RefuseEmpty = true }},
		{"explained: {bots: [{keys: k, paths: [a], modes: true}, {keys: k, paths: [b], modes: false}]}", func(p *policy.Policy) {
			p.Explained.Bots = []policy.VersionBot{{Keys: "k", Paths: []string{"a"}, Modes: true}, {Keys: "k", Paths: []string{"b"}}}
		}},
		{"protected:\n- paths: ['/a b/**']\n  owners: true", func(p *policy.Policy) {
			p.Protected = []policy.Rule{{Paths: []string{"/a b/**"}, Required: 1, Owners: true}}
		}},
		{"commands:\n  run:\n  - {argv: ['make | tee x'], shell: true, required: false, network: true, timeout: 90s}", func(p *policy.Policy) {
			p.Commands.Run = []policy.Check{{Command: policy.Command{
				Argv: []string{"make | tee x"}, Shell: true, Network: true, Timeout: policy.Duration(90 * time.Second),
			}}}
		}},
		{"commands: {allow: [make   all]}", func(p *policy.Policy) {
			p.Commands.Allow = []policy.Command{{Argv: []string{"make", "all"}, Timeout: policy.DefaultTimeout}}
		}},
	} {
		want := policy.Default()
		c.edit(&want)
		got, err := policy.Parse("x.yml", []byte(c.file))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n%v\ngot  %s\nwant %s", c.file, err, got.JSON(), want.JSON())
			continue
		}
		again, err := policy.Parse("x.json", got.JSON())
		if err != nil || !reflect.DeepEqual(got, again) {
			t.Errorf("%s\ncanonical JSON %s reads as %s, %v", c.file, got.JSON(), again.JSON(), err)
		}
	}
}

// TestProblems: each NAME.yml in testdata/problems.txtar is refused with the
// errors in NAME.txt.
func TestProblems(t *testing.T) {
	file := filepath.Join("testdata", "problems.txtar")
	a, err := txtar.ParseFile(file)
	fatal(t, err)
	want := map[string]string{}
	for _, f := range a.Files {
		want[f.Name] = string(f.Data)
	}
	out := &txtar.Archive{Comment: a.Comment}
	for _, f := range a.Files {
		name, ok := strings.CutSuffix(f.Name, ".yml")
		if !ok {
			continue
		}
		got := problems(t, f.Name, f.Data)
		if got != want[name+".txt"] && !*update {
			t.Errorf("%s\n%s--- got\n%s--- want\n%s", f.Name, f.Data, got, want[name+".txt"])
		}
		out.Files = append(out.Files, f, txtar.File{Name: name + ".txt", Data: []byte(got)})
	}
	if *update {
		fatal(t, os.WriteFile(file, txtar.Format(out), 0o666))
	}
}

// problems are the errors of a file that must have some.
func problems(t *testing.T, name string, raw []byte) string {
	t.Helper()
	p, err := policy.Parse(name, raw)
	if err == nil {
		t.Errorf("%s: accepted\n%s", name, raw)
		return ""
	}
	if !reflect.DeepEqual(p, policy.Policy{}) {
		t.Errorf("%s: a Policy beside the error", name)
	}
	return err.Error() + "\n"
}

// TestProblemBytes: what a text archive cannot hold.
func TestProblemBytes(t *testing.T) {
	for file, want := range map[string]string{
		"":                                     "x.yml:1:1: the file is empty; remove it for the defaults",
		"# nothing\n":                          "x.yml:1:1: the file is empty; remove it for the defaults",
		"\n---\n":                              "x.yml:1:1: the file is empty; remove it for the defaults",
		"version: 1\n\tapprovals: {}":          "x.yml:2:1: a tab; YAML is indented with spaces",
		"version: 1\rapprovals: {}":            "x.yml:1:11: the character U+000D does not show",
		"\ufeffversion: 1":                     "x.yml:1:1: the character U+FEFF does not show",
		"version: 1 # \u202e":                  "x.yml:1:14: the character U+202E does not show",
		"é: \u200b":                            "x.yml:1:4: the character U+200B does not show",
		"a: \u2800":                            "x.yml:1:4: the character U+2800 does not show",
		"version: \xff":                        "x.yml:1:10: the file is not UTF-8",
		"bots: [\"a\\u200bb\"]":                "x.yml:1:8: bots[0]: the character U+200B does not show",
		"bots: [\"a\\nb\"]":                    "x.yml:1:8: bots[0]: the character U+000A does not show",
		"#" + strings.Repeat("x", 64<<10):      "x.yml:1:1: the file has 65537 bytes, more than 65536",
		"bots: [" + strings.Repeat("a,", 9000): "x.yml:1:1: the file has too many keys and values",
		steps(70):                              "x.yml:65:65: nested too deep",
		"bots: [" + strings.Repeat("[", 8):     "x.yml:1:15: nested too deep",
		"protected: [{paths: [" + many(1001) + "]}]":                              "x.yml:1:13: protected[0]: more than 1000 globs",
		"protected: [{paths: [" + many(600) + "]}, {paths: [" + many(401) + "]}]": "x.yml:1:2916: protected[1]: more than 1000 globs",
	} {
		if _, err := policy.Parse("x.yml", []byte(file)); err == nil || err.Error() != want {
			t.Errorf("%.40q: %v, want %s", file, err, want)
		}
	}
}

// TestProblemsAreTyped: a caller can tell each of them.
func TestProblemsAreTyped(t *testing.T) {
	_, err := policy.Parse("x.yml", []byte("version: 0\nsandbox: none\n"))
	ps, ok := err.(policy.Problems)
	if !ok || len(ps) != 2 {
		t.Fatalf("%T %v", err, err)
	}
	if got := ps[1]; got.Line != 2 || got.Column != 10 || got.Key != "sandbox" || !slices.Equal(got.Allowed, []string{"read-only", "workspace-write", "danger-full-access"}) {
		t.Errorf("%+v", got)
	}
}

// TestNewer: a file of a later version is that, whatever else is in it, and is never read; what is no version is a
// problem.
func TestNewer(t *testing.T) {
	for file, needs := range map[string]string{
		"version: 2": "2.0", "version: 1.1": "1.1", "version: \"1.2\"": "1.2", "sandbox: mars\nversion: 3\nunheard: of": "3.0",
		"version: 1\nversion: 2": "2.0", "{version: 2, approvals: {required: 0}}": "2.0",
		"version: 1.0": "", "version: -2": "", "version: 2.x": "", "version: 02": "", "version: [2]": "", "version: 1.1.1": "", "version: \"\"": "",
		"approvals: {version: 2}": "", "version: 99999999999999999999": "",
	} {
		var newer *canon.NewerError
		p, err := policy.Parse("x.yml", []byte(file))
		if is := errors.As(err, &newer); err == nil || is != (needs != "") || is && newer.Needs != needs || !reflect.DeepEqual(p, policy.Policy{}) {
			t.Errorf("%q: %v", file, err)
		}
	}
}

// TestT42Bombs: hostile files are refused, and soon.
func TestT42Bombs(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 10; i++ {
		n := string(rune('0' + i))
		laughs.WriteString("a" + n + ": &a" + n + " [" + strings.TrimSuffix(strings.Repeat("*a"+string(rune('0'+i-1))+",", 9), ",") + "]\n")
	}
	for name, file := range map[string]string{
		"alias bomb": laughs.String(), "alias of itself": "bots: &a [*a]", "merge": "approvals: &a {<<: *a}",
		"brackets": strings.Repeat("[", 60000), "braces": strings.Repeat("{", 60000), "dashes": strings.Repeat("- ", 30000),
		"question marks": strings.Repeat("? ", 30000), "colons": strings.Repeat("a: ", 20000), "anchors": strings.Repeat("&a ", 20000),
		"tags": strings.Repeat("!a ", 20000), "one key": strings.Repeat("a: \n", 16000), "blocks": strings.Repeat("|\n", 30000),
		"quotes": strings.Repeat("\"\n", 30000), "documents": strings.Repeat("---\n", 16000), "steps": steps(300),
		"flow": "{" + strings.Repeat("a,", 30000) + "}", "globs": "protected: [{paths: [" + strings.Repeat("a,", 7000) + "]}]",
	} {
		if _, err := policy.Parse("x.yml", []byte(file)); err == nil || len(err.Error()) > 20000 {
			t.Errorf("%s: accepted, or a long error: %.100v", name, err)
		}
	}
}

// many is n globs.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d,", i)
	}
	return b.String()
}

// steps is a mapping in a mapping, n deep.
func steps(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// FuzzParse: no input makes it panic or hang; every place of an error is in the
// file; what is accepted is written back as a file that says the same.
func FuzzParse(f *testing.F) {
	a, err := txtar.ParseFile(filepath.Join("testdata", "problems.txtar"))
	fatal(f, err)
	for _, file := range a.Files {
		if strings.HasSuffix(file.Name, ".yml") {
			f.Add(file.Data)
		}
	}
	raw, err := os.ReadFile("policy.go")
	fatal(f, err)
	f.Add([]byte(strings.ReplaceAll(string(raw[:3000]), "//\t", "")))
	f.Add(policy.Default().JSON())
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := policy.Parse("x.yml", raw)
		if err == nil {
			again, err := policy.Decode(p.JSON())
			if err == nil && len(p.JSON()) < 10000 {
				again, err = policy.Parse("x.json", p.JSON())
			}
			if err != nil || !reflect.DeepEqual(p, again) || p.Sum() != again.Sum() {
				t.Errorf("%s reads as %s, %v", p.JSON(), again.JSON(), err)
			}
			p.Needs([]string{"a/b", ".github/workflows/x.yml"}, true)
			return
		}
		lines := strings.Count(string(raw), "\n") + 1
		problems, ok := err.(policy.Problems)
		if !ok && !errors.As(err, new(*canon.NewerError)) {
			t.Fatalf("%T", err)
		}
		for _, problem := range problems {
			if problem.Line < 1 || problem.Line > lines || problem.Column < 1 || strings.Contains(problem.Error(), "\n") {
				t.Errorf("%+v in a file of %d lines", problem, lines)
			}
		}
	})
}
