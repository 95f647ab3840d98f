package main

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

	"github.com/rogpeppe/go-internal/testscript"
)

// literals are the program's string literals, and those of them that are hints: what a method Hint returns, what a field
// Hint or Try has, and what With, package fault,
// doctor's findings and the types of unkeyed hints are given.
func literals(t *testing.T) (all, hints map[string]string) {
	all, hints = map[string]string{}, map[string]string{}
	files := token.NewFileSet()
	note := func(in map[string]string, n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if lit, is := n.(*ast.BasicLit); is && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					in[text] = files.Position(lit.Pos()).String()
				}
			}
			return true
		})
	}
	for _, room := range []string{".", "../../pipeline", "../../report", "../../gitstore"} {
		check(t, filepath.WalkDir(room, func(name string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() && e.Name() == "testdata" {
				return fs.SkipDir
			}
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
			check(t, err)
			note(all, file)
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Name.Name == "Hint" {
						note(hints, n.Body)
					}
				case *ast.KeyValueExpr:
					if key, is := n.Key.(*ast.Ident); is && (key.Name == "Hint" || key.Name == "Try") {
						note(hints, n.Value)
					}
				case *ast.CompositeLit:
					of := n.Type
					if sel, is := of.(*ast.SelectorExpr); is {
						of = sel.Sel
					}
					if of, is := of.(*ast.Ident); is && len(n.Elts) > 1 && unkeyed[of.Name] {
						note(hints, n.Elts[len(n.Elts)-1])
					}
				case *ast.CallExpr:
					switch of := n.Fun.(type) {
					case *ast.SelectorExpr:
						if of.Sel.Name == "With" && len(n.Args) == 1 || of.Sel.Name == "RefuseIf" || of.Sel.Name == "Bar" || of.Sel.Name == "Refuse" || of.Sel.Name == "Fail" {
							note(hints, n.Args[len(n.Args)-1])
						}
					case *ast.Ident:
						switch of.Name {
						case "note", "fails":
							note(hints, n.Args[0])
						case "unopened", "anewRefused", "unplaced":
							note(hints, n.Args[2])
						}
					}
				}
				return true
			})
			return nil
		}))
	}
	return all, hints
}

// unkeyed are the types whose last field is a hint that need not be named.
var unkeyed = map[string]bool{"RefusedError": true, "UsageError": true}

// TestHintsAreTyped: a hint that begins with a program is its command line and nothing else, and every other is one
// sentence.
func TestHintsAreTyped(t *testing.T) {
	t.Parallel()
	_, hints := literals(t)
	if len(hints) < 200 {
		t.Errorf("only %d hints were found", len(hints))
	}
	for hint, place := range hints {
		hint, _, _ = strings.Cut(hint, "  # ")
		typed := regexp.MustCompile(`^(COUNTERSIGN_TOKEN=\$\(gh auth token\) )?(countersign|git|gh|ssh-keygen|openssl|sudo) `).MatchString(hint)
		if strings.ContainsAny(hint, "\n") || strings.Contains(hint, "; or") || strings.Contains(hint, " or: ") ||
			typed && regexp.MustCompile(`[;,]|(^| )(or|and|says|brings|makes|shows|prints) `).MatchString(hint) ||
			!typed && regexp.MustCompile(`(^|["( ])countersign [a-z]+ (?:[a-z]|--|[A-Z])`).MatchString(hint) {
			t.Errorf("%s: this cannot be typed: %s", place, hint)
		}
	}
}

// typedHint types the hint of the last command, or else the first command that it printed as what comes next, and compares
// it and its exit code: typed N HINT. What it prints can be matched afterwards.
func typedHint(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: typed N HINT")
	}
	said := regexp.MustCompile(`(?m)^(?:countersign: hint: |    )((?:[^ \n]| [^ \n])+)(?: +#.*)?$`).FindStringSubmatch(ts.ReadFile("stderr") + ts.ReadFile("stdout"))
	if said == nil || !regexp.MustCompile("^(?:"+args[1]+")$").MatchString(said[1]) {
		ts.Fatalf("the hint is %q, want %q", said, args[1])
	}
	exitCode(ts, false, []string{args[0], "sh", "-c", said[1]})
}

// TestTroubleshooting: what docs/troubleshooting.md quotes of the program, at the beginning of an entry, the program says.
func TestTroubleshooting(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/troubleshooting.md")
	check(t, err)
	all, _ := literals(t)
	quotes := regexp.MustCompile("(?m)^- `([^`]+)`").FindAllStringSubmatch(string(raw), -1)
	if len(quotes) < 20 {
		t.Errorf("only %d quotes", len(quotes))
	}
	for _, quote := range quotes {
		for part := range strings.SplitSeq(quote[1], "…") {
			found := false
			for text := range all {
				found = found || strings.Contains(text, strings.TrimSpace(part))
			}
			if !found {
				t.Errorf("docs/troubleshooting.md quotes what nothing says: %s", part)
			}
		}
	}
	if words := len(strings.Fields(string(raw))); words > 2000 {
		t.Errorf("docs/troubleshooting.md has %d words", words)
	}
}
