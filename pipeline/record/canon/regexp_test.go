package canon

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestRegexp(t *testing.T) {
	if rx := Regexp(`^a+$`); !rx().MatchString("aa") || rx().MatchString("ab") {
		t.Error("the expression does not match what it should")
	}
	rx := Regexp(`(`)
	defer func() {
		if recover() == nil {
			t.Error("an expression that is not valid compiles")
		}
	}()
	rx()
}

// TestExpressions compiles the literals that the program gives Regexp, whether they are used or not.
func TestExpressions(t *testing.T) {
	n := 0
	err := filepath.WalkDir("../../..", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == ".git" {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(raw), "Regexp(") {
			return err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, raw, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(tree, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			name, ok := call.Fun.(*ast.Ident) // in this package
			if of, other := call.Fun.(*ast.SelectorExpr); other {
				name, ok = of.Sel, true
			}
			if !ok || name.Name != "Regexp" {
				return true
			}
			for _, arg := range call.Args {
				literal, ok := arg.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					continue
				}
				text, err := strconv.Unquote(literal.Value)
				if err == nil {
					n++
					_, err = regexp.Compile(text)
				}
				if err != nil {
					t.Errorf("%s: %s: %v", file, literal.Value, err)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || n < 90 {
		t.Errorf("%d expressions, %v", n, err)
	}
}
