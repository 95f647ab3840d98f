package main

import (
	"go/ast"
	"go/parser"
	"go/token"
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
		"app.go": "Main finish errorText", "print.go": "say print printJSON giveBack style person tell columns long watch", "cmd_review.go": "showDryRun reviewAgain",
		"cmd_demo.go": "demo", "cmd_init.go": "showInit", "cmd_mcp.go": "mcp Warn", "cmd_look.go": "diffCommand list listCommand",
		"cmd_action.go": "action actionSite publish child", "cmd_checks.go": "Run", "cmd_settle.go": "HandOver", "cmd_run_all.go": "run", "attest_keyless.go": "actionAttest",
	}
	files, err := filepath.Glob("*.go")
	check(t, err)
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "main.go" {
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
				if !slices.Contains(strings.Fields(may[name]), f.Name.Name) {
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
