package lazyregexp

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

func TestNew(t *testing.T) {
	if rx := New(`^a+$`); !rx().MatchString("aa") || rx().MatchString("ab") {
		t.Error("the expression does not match what it should")
	}
	rx := New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("an expression that is not valid compiles")
		}
	}()
	rx()
}

// TestExpressions compiles the literals that the program gives New, whether they are used or not.
func TestExpressions(t *testing.T) {
	n := 0
	err := filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(raw), "lazyregexp.New(") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, raw, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			if of, ok := call.Fun.(*ast.SelectorExpr); !ok || of.Sel.Name != "New" {
				return true
			}
			for _, arg := range call.Args {
				literal, ok := arg.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					continue
				}
				text, err := strconv.Unquote(literal.Value)
				if err == nil && strings.Contains(string(raw), "lazyregexp.New("+literal.Value+")") {
					n++
					_, err = regexp.Compile(text)
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || n < 40 {
		t.Errorf("%d expressions, %v", n, err)
	}
}
