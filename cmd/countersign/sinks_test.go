package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestT47OneDoor: nothing but emit writes to the program's outputs. These
// functions name them for other ends: the colour and width of a terminal, cobra's
// help, a line of progress that holds numbers alone, child runs of the program, the
// messages of MCP, whose results are redacted one by one,
// the workflow commands of a step (a mask is the secret itself), and canon, which
// gives back what it was given.
func TestT47OneDoor(t *testing.T) {
	may := map[string]string{
		"console/console.go": "Run finish errorText Command", "console/print.go": "Say Print PrintJSON GiveBack Colourful Person Columns LongWith watch",
		"session/print.go": "Tell", "session/checks.go": "Run", "change/review.go": "showDryRun reviewAgain", "change/run_all.go": "run",
		"change/agent.go": "attend",                                     // who writes there itself
		"setup/demo.go":   "runDemo run", "statements/helper.go": "run", // runs of this program; the answers of countersign-sigstore
		"console/git.go": "runGit", "console/ssh.go": "Sign", // what those programs print
		"setup/init.go": "showInit", "serve/mcp.go": "serveMCP Warn", "look/list.go": "diffCommand list listCommand",
		"console/terminal.go": "Page Browse", "pulls/action.go": "runAction actionSite actionAttest actionDigest",
	}
	files, err := filepath.Glob("internal/*/*.go")
	check(t, err)
	own := []string{"change", "console", "decide", "look", "proofs", "pulls", "serve", "session", "setup", "statements"}
	seen := 0
	for _, name := range files {
		name = filepath.ToSlash(name)
		if strings.HasSuffix(name, "_test.go") || !slices.Contains(own, path.Base(path.Dir(name))) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		check(t, err)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok || sel.Sel.Name != "Stdout" && sel.Sel.Name != "Stderr" {
					return true
				}
				seen++
				if !slices.Contains(strings.Fields(may[strings.TrimPrefix(name, "internal/")]), f.Name.Name) {
					t.Errorf("%s: %s uses %s", name, f.Name.Name, sel.Sel.Name)
				}
				return true
			})
		}
	}
	if seen < 10 {
		t.Errorf("only %d uses were seen", seen)
	}
}
