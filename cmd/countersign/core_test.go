package main

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// core are the packages that decide, below pipeline/record/ (see the package comment of pipeline/record).
var core = []string{
	"approval", "audit", "audit/history", "canon", "format", "lazyregexp", "ledger", "patch", "patch/casefold", "patch/linediff", "patch/regular", "policy",
	"result", "rule", "signed", "sshsig", "visible",
}

// listed are the lines that "go list" prints at the root.
func listed(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir, cmd.Stderr = "../..", os.Stderr
	out, err := cmd.Output()
	check(t, err)
	return strings.Fields(string(out))
}

// codeLines counts the lines of packages of this module that are neither blank nor a
// comment alone.
func codeLines(t *testing.T, packages ...string) (n int) {
	t.Helper()
	for _, file := range listed(t, append([]string{"-f", `{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}} {{end}}`}, packages...)...) {
		raw, err := os.ReadFile(file)
		check(t, err)
		for s := bufio.NewScanner(bytes.NewReader(raw)); s.Scan(); {
			if line := strings.TrimSpace(s.Text()); line != "" && !strings.HasPrefix(line, "//") {
				n++
			}
		}
	}
	return n
}

// TestCore: what decides is small, and imports nothing that could tell it anything but
// what it is given.
func TestCore(t *testing.T) {
	var packages []string
	for _, name := range core {
		packages = append(packages, module+"pipeline/record/"+name)
	}
	if n := codeLines(t, packages...); n > 10_000 {
		t.Errorf("the core has %d lines of code", n)
	}
	libraries := []string{"golang.org/x/crypto/", "golang.org/x/text/", "github.com/bluekeyes/go-gitdiff/", "github.com/goccy/go-yaml"}
	outside := regexp.MustCompile(`^(os|net|syscall|plugin|unsafe|log|testing|io/ioutil|runtime/debug|math/rand|crypto/rand|html|text/template)(/|$)`)
	for _, name := range listed(t, append([]string{"-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}}>{{.}} {{end}}`}, packages...)...) {
		from, to, _ := strings.Cut(name, ">")
		switch std := !strings.Contains(strings.Split(to, "/")[0], "."); {
		case std && outside.MatchString(to), strings.HasPrefix(to, module) && !slices.Contains(packages, to):
			t.Errorf("%s imports %s", from, to)
		case !std && !strings.HasPrefix(to, module) && !slices.ContainsFunc(libraries, func(l string) bool { return strings.HasPrefix(to, l) }):
			t.Errorf("%s imports %s", from, to)
		}
	}
	clock := regexp.MustCompile(`\btime\.(Now|Since|Until|After|NewTimer|Sleep|Tick)\(`)
	for _, name := range core {
		files, err := filepath.Glob("../../pipeline/record/" + name + "/*.go")
		check(t, err)
		for _, file := range files {
			raw, err := os.ReadFile(file)
			check(t, err)
			if !strings.HasSuffix(file, "_test.go") && clock.Match(raw) {
				t.Errorf("%s reads the clock", file)
			}
		}
	}
}

// TestGateAndApply: who reviews how a change gets from an approval into a branch reads at
// most so much.
func TestGateAndApply(t *testing.T) {
	closure := slices.DeleteFunc(listed(t, "-deps", "./pipeline", "./gitstore"), func(name string) bool { return !strings.HasPrefix(name, module) })
	if n := codeLines(t, closure...); n > 30_000 {
		t.Errorf("gate and apply need %d lines of code, in %d packages", n, len(closure))
	}
}

// TestPromised: the API that is promised has at most 40 names, each told of, and an
// example of each of its functions.
func TestPromised(t *testing.T) {
	const dir = "../../pipeline/record"
	files := token.NewFileSet()
	var parsed []*ast.File
	names, err := filepath.Glob(dir + "/*.go")
	check(t, err)
	for _, name := range names {
		f, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		check(t, err)
		parsed = append(parsed, f)
	}
	p, err := doc.NewFromFiles(files, parsed, module+"pipeline/record")
	check(t, err)
	var exported, untold []string
	tell := func(name, text string) {
		if exported = append(exported, name); text == "" {
			untold = append(untold, name)
		}
	}
	examples := len(p.Examples)
	for _, f := range p.Funcs {
		tell(f.Name, f.Doc)
		examples += min(1, len(f.Examples))
	}
	functions := len(p.Funcs)
	for _, v := range slices.Concat(p.Vars, p.Consts) {
		for _, name := range v.Names {
			tell(name, v.Doc)
		}
	}
	for _, typ := range p.Types {
		tell(typ.Name, typ.Doc)
		for _, f := range slices.Concat(typ.Funcs, typ.Methods) {
			if f.Name == "Error" {
				continue // as error has it
			}
			tell(typ.Name+"."+f.Name, f.Doc)
		}
		for _, f := range typ.Funcs {
			functions++
			examples += min(1, len(f.Examples))
		}
	}
	if len(exported) > 40 || len(exported) < 10 || untold != nil {
		t.Errorf("%d names are promised: %q; of %q nothing is said", len(exported), exported, untold)
	}
	if examples < functions {
		t.Errorf("%d functions have %d examples", functions, examples)
	}
}
