package policy

import (
	"fmt"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/patch/casefold"
)

// signedOnly is the one word that a rule may say: it asks for more, never for less.
var signedOnly = []Signing{SignedOnly}

// protected reads the rules; globs are counted over all of them, as each is
// asked about each path.
func protected(dst *[]Rule) read {
	globs := 0
	return list(func(r *reader, n node, key string) {
		rule := Rule{Required: 1}
		ok := r.mapping(n, key,
			field{"paths", paths(&rule.Paths)},
			field{"required", number(&rule.Required, 1, mostApprovals)},
			field{"users", filled(accounts(&rule.Users), "which lets anybody approve; leave it out for that")},
			field{"teams", filled(texts(&rule.Teams, teamForm), "which lets anybody approve; leave it out for that")},
			field{"owners", boolean(&rule.Owners)},
			field{"signed", word(&rule.Signed, signedOnly)},
		)
		globs += len(rule.Paths)
		switch {
		case ok && !n.has("paths"):
			r.problem(n.mark, key, "has no paths")
		case globs > mostGlobs && !r.joined:
			r.problem(n.mark, key, fmt.Sprintf("more than %d globs", mostGlobs))
		}
		*dst = append(*dst, rule)
	})
}

// has reports whether a mapping has a key.
func (n node) has(key string) bool {
	for _, k := range n.keys {
		if k.text == key {
			return true
		}
	}
	return false
}

// filled refuses an empty list, which would mean less than it seems to.
func filled(list read, why string) read {
	return func(r *reader, n node, key string) {
		list(r, n, key)
		if n.kind == isSequence && len(n.values) == 0 {
			r.problem(n.mark, key, "is an empty list, "+why)
		}
	}
}

func paths(dst *[]string) read {
	return func(r *reader, n node, key string) {
		filled(texts(dst, anyText(mostGlob)), "which protects nothing")(r, n, key)
		if n.kind != isSequence {
			return
		}
		for i, v := range n.values {
			if _, err := ParseGlob(v.text); err != nil && v.kind == isText {
				r.problem(v.mark, fmt.Sprintf("%s[%d]", key, i), err.Error())
			}
		}
	}
}

// A BuiltIn is a Glob that is protected in every repository: one person must
// approve a change of it, whatever the file says.
type BuiltIn struct {
	Glob   string
	Reason string
}

// The reasons of BuiltIns.
const (
	reasonPolicy = "who decides, and on what"
	reasonRuns   = "the forge runs it"
	reasonGit    = "Git obeys it"
	reasonScan   = "it excuses secrets from being found"
	reasonAgent  = "agents take it for instructions"
	reasonTools  = "it gives agents tools, or leave to use them"
)

// builtIns names files and directories without a slash at the end: a file where
// a directory is expected is a change too.
var builtIns = []struct {
	reason string
	globs  []string
}{
	{reasonPolicy, []string{"/" + Path, "/.github/countersign.yaml", "/CODEOWNERS", "/docs/CODEOWNERS", "/.github/CODEOWNERS"}},
	{reasonRuns, []string{"/.github/workflows", "/.github/actions", "/.gitea/workflows", "/.forgejo/workflows"}},
	{reasonGit, []string{".gitattributes", ".gitmodules"}},
	{reasonScan, []string{".gitleaks.toml", ".gitleaksignore"}},
	{reasonAgent, []string{
		"AGENTS.md", "AGENTS.override.md", "AGENTS.local.md", "AGENT.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "QWEN.md",
		"CRUSH.md", "WARP.md", "replit.md", "SKILL.md", "/.github/copilot-instructions.md", "/.github/instructions", "/.github/prompts",
		"/.github/chatmodes", "/.github/agents", "/.github/skills", "/.github/hooks", ".cursorrules", ".windsurfrules", ".clinerules",
		".clinerules-*", ".continuerules", ".roorules", ".roorules-*", ".roomodes", ".kilocodemodes", ".goosehints", ".rules",
		".augment-guidelines", ".openhands_instructions", ".aider.conf.yml",
	}},
	{reasonTools, []string{
		".agent", ".agents", ".aiassistant", ".amazonq", ".augment", ".claude", ".claude-plugin", ".cline", ".codex", ".continue",
		".copilot", ".crush", ".cursor", ".devin", ".factory", ".gemini", ".goose", ".junie", ".kilocode", ".kiro", ".opencode",
		".openhands", ".qoder", ".qwen", ".roo", ".ruler", ".rulesync", ".trae", ".windsurf", ".zencoder", ".mcp.json", ".crush.json",
		"crush.json", "opencode.json", "opencode.jsonc", "**/.vscode/mcp.json", "**/.vscode/settings.json", "**/.vscode/tasks.json",
	}},
}

// BuiltIns lists what is always protected; docs/policy.md has the same list.
func BuiltIns() []BuiltIn {
	var out []BuiltIn
	for _, group := range builtIns {
		for _, glob := range group.globs {
			out = append(out, BuiltIn{glob, group.reason})
		}
	}
	return out
}

// A NamedRule is a rule with its globs read. Its Name is "built-in", approvals.keys,
// explained.bots[n].keys, witnesses.file or protected[n].
type NamedRule struct {
	Name string
	Rule
	globs []Glob
}

var builtInRule = sync.OnceValue(func() NamedRule {
	rule := Rule{Required: 1}
	for _, b := range BuiltIns() {
		rule.Paths = append(rule.Paths, b.Glob)
	}
	return namedRule("built-in", rule)
})

// namedRule panics on a glob that ParseGlob refuses: Parse let none through.
func namedRule(name string, rule Rule) NamedRule {
	r := NamedRule{Name: name, Rule: rule}
	for _, s := range rule.Paths {
		g, err := ParseGlob(s)
		if err != nil {
			panic("policy: " + err.Error())
		}
		r.globs = append(r.globs, g)
	}
	return r
}

// Match returns the first glob that is about a path.
func (r NamedRule) Match(path string) (glob string, ok bool) {
	return r.find(strings.Split(casefold.Name(path), "/"))
}

// find is Match of the names of a folded path.
func (r NamedRule) find(names []string) (glob string, ok bool) {
	for i, g := range r.globs {
		if g.match(names) {
			return r.Paths[i], true
		}
	}
	return "", false
}
