package policy

import (
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// A BuiltIn has Globs that are protected in every repository, for a Reason: one person must
// approve a change of what they match, whatever the file says.
type BuiltIn struct {
	Reason string
	Globs  []string
}

// builtIns names files and directories without a slash at the end: a file where
// a directory is expected is a change too.
var builtIns = []BuiltIn{
	{"who decides, and on what", []string{"/" + Path, "/.github/countersign.yaml", "/CODEOWNERS", "/docs/CODEOWNERS", "/.github/CODEOWNERS"}},
	{"the forge runs it", []string{"/.github/workflows", "/.github/actions", "/.gitea/workflows", "/.forgejo/workflows"}},
	{"Git obeys it", []string{".gitattributes", ".gitmodules"}},
	{"it excuses secrets from being found", []string{".gitleaks.toml", ".gitleaksignore"}},
	{"agents take it for instructions", []string{
		"AGENTS.md", "AGENTS.override.md", "AGENTS.local.md", "AGENT.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "QWEN.md",
		"CRUSH.md", "WARP.md", "replit.md", "SKILL.md", "/.github/copilot-instructions.md", "/.github/instructions", "/.github/prompts",
		"/.github/chatmodes", "/.github/agents", "/.github/skills", "/.github/hooks", ".cursorrules", ".windsurfrules", ".clinerules",
		".clinerules-*", ".continuerules", ".roorules", ".roorules-*", ".roomodes", ".kilocodemodes", ".goosehints", ".rules",
		".augment-guidelines", ".openhands_instructions", ".aider.conf.yml",
	}},
	{"it gives agents tools, or leave to use them", []string{
		".agent", ".agents", ".aiassistant", ".amazonq", ".augment", ".claude", ".claude-plugin", ".cline", ".codex", ".continue",
		".copilot", ".crush", ".cursor", ".devin", ".factory", ".gemini", ".goose", ".junie", ".kilocode", ".kiro", ".opencode",
		".openhands", ".qoder", ".qwen", ".roo", ".ruler", ".rulesync", ".trae", ".windsurf", ".zencoder", ".mcp.json", ".crush.json",
		"crush.json", "opencode.json", "opencode.jsonc", "**/.vscode/mcp.json", "**/.vscode/settings.json", "**/.vscode/tasks.json",
	}},
}

// BuiltIns lists what is always protected; docs/policy.md has the same list.
func BuiltIns() []BuiltIn { return builtIns }

// A NamedRule is a rule with its globs read. Its Name is "built-in", approvals.keys,
// explained.bots[n].keys, witnesses.file or protected[n].
type NamedRule struct {
	Name string
	Rule
	globs []Glob
	after int // where the Advice stands that meets it
}

var builtInRule = sync.OnceValue(func() NamedRule {
	rule := Rule{Required: 1}
	for _, b := range builtIns {
		rule.Paths = append(rule.Paths, b.Globs...)
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
	return r.find(strings.Split(patch.FoldName(path), "/"))
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
