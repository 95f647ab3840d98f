package main

import (
	"bufio"
	"bytes"
	"cmp"
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
	"approval", "audit", "audit/history", "canon", "ledger", "patch", "policy", "sshsig",
}

// beside are the packages below pipeline/record/ that decide nothing.
var beside = []string{"sshsig/signing"}

// pure are the packages of the standard library that the core may import: none reads a clock but time, and none a file, a
// variable or a socket.
var pure = strings.Fields(`bytes cmp crypto/rsa crypto/sha1 crypto/sha256 crypto/sha512 embed encoding encoding/base64
	encoding/binary encoding/hex encoding/json errors fmt hash/adler32 hash/maphash io/fs maps math math/big math/bits path
	reflect regexp slices sort strconv strings sync sync/atomic time unicode unicode/utf16 unicode/utf8`)

// promised are the names of the API that stays as it is until version 2.
var promised = strings.Fields(`PatchID ErrNewer ErrOpen ErrRedacted Decision Finding Finding.String Known Need Need.Needs Record
	Record.Open Record.Base Record.Exactly Record.Files Record.Patch Record.PatchID Record.State Record.Verdict Report
	Report.Audit UnsoundError Verdict`)

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
	t.Parallel()
	var packages []string
	for _, name := range core {
		packages = append(packages, module+"pipeline/record/"+name)
	}
	if n := codeLines(t, packages...); n > 10_000 {
		t.Errorf("the core has %d lines of code", n)
	}
	for _, name := range listed(t, "./pipeline/record/...") {
		below := strings.TrimPrefix(name, module+"pipeline/record")
		if below != "" && !slices.Contains(packages, name) && !slices.Contains(beside, below[1:]) {
			t.Errorf("%s is below pipeline/record, and nobody counts it", name)
		}
	}
	libraries := []string{"golang.org/x/crypto/", "golang.org/x/text/", "github.com/goccy/go-yaml"}
	for _, name := range listed(t, append([]string{"-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}}>{{.}} {{end}}`}, packages...)...) {
		from, to, _ := strings.Cut(name, ">")
		if !slices.Contains(packages, to) && !slices.Contains(pure, to) && !slices.ContainsFunc(libraries, func(l string) bool { return strings.HasPrefix(to, l) }) {
			t.Errorf("%s imports %s", from, to)
		}
	}
	clock := regexp.MustCompile(`\btime\.(Now|Since|Until|After|AfterFunc|NewTimer|NewTicker|Sleep|Tick|Local|LoadLocation)\b`)
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
	t.Parallel()
	closure := slices.DeleteFunc(listed(t, "-deps", "./pipeline", "./gitstore"), func(name string) bool { return !strings.HasPrefix(name, module) })
	if n := codeLines(t, closure...); n > 30_000 {
		t.Errorf("gate and apply need %d lines of code, in %d packages", n, len(closure))
	}
}

// TestPromised: the API has the names that are promised, at most 40, each told of, an example of each of its functions, and
// one that uses each other name.
func TestPromised(t *testing.T) {
	const dir = "../../pipeline/record"
	files := token.NewFileSet()
	var parsed []*ast.File
	used := map[string]bool{} // by examples
	names, err := filepath.Glob(dir + "/*.go")
	check(t, err)
	for _, name := range names {
		f, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		check(t, err)
		parsed = append(parsed, f)
		for _, decl := range f.Decls {
			if example, is := decl.(*ast.FuncDecl); is && strings.HasPrefix(example.Name.Name, "Example") {
				ast.Inspect(example, func(n ast.Node) bool {
					if s, is := n.(*ast.SelectorExpr); is {
						used[s.Sel.Name] = true
					}
					return true
				})
			}
		}
	}
	p, err := doc.NewFromFiles(files, parsed, module+"pipeline/record")
	check(t, err)
	var exported, untold []string
	tell := func(name, text string) {
		if exported = append(exported, name); text == "" {
			untold = append(untold, name)
		}
	}
	functions := p.Funcs
	for _, f := range p.Funcs {
		tell(f.Name, f.Doc)
	}
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
		functions = append(functions, typ.Funcs...)
		used[typ.Name] = used[typ.Name] || len(typ.Funcs) > 0
	}
	for _, name := range exported {
		if _, last, _ := strings.Cut(name, "."); !used[cmp.Or(last, name)] {
			t.Errorf("no example uses %s", name)
		}
	}
	if len(exported) > 40 || !slices.Equal(exported, promised) || untold != nil {
		t.Errorf("%d names are exported: %q, promised are %q; of %q nothing is said", len(exported), exported, promised, untold)
	}
	for _, f := range functions {
		if len(f.Examples) == 0 {
			t.Errorf("%s has no example", f.Name)
		}
	}
}
