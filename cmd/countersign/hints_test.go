package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// hole stands in a hint for what is known only when it is printed.
const hole = "…"

// hintFields are the fields that hold a hint, by type, with the place that an unnamed one has.
var hintFields = map[string]struct {
	name  string
	place int
	room  string
}{
	"UsageError": {"Hint", 1, ""}, "RefusedError": {"Hint", 1, ""}, "OpenError": {"Hint", 2, ""}, "Obstacle": {"Instead", 2, ""}, "UnavailableError": {"Hint", 1, ""}, "placeError": {"Hint", 2, ""}, "UncommittableError": {"Hint", 1, ""},
}

// hintArguments are the functions that are given a hint, with its place.
var hintArguments = map[string]int{"always": 1, "when": 2, "ExactlyOne": 1, "note": 0, "fails": 0}

// handsOn are expressions that hand on a hint which is made elsewhere: an argument of hintArguments, a row of
// patchHints, a step of a report. So is a field of hintFields.
var handsOn = []string{"e.Obstacle.Instead", "h[1]", "report.PatchHint()", "next.Type"}

// A hintReader finds the hints of the program in its source.
type hintReader struct {
	t         *testing.T
	files     *token.FileSet
	functions map[string]*ast.FuncDecl // by name, a method's with its receiver's type
	within    *ast.FuncDecl            // whose expressions are read
	returned  *ast.BasicLit            // that a returned hint begins with
	depth     int
	hints     map[string]string // each with its place in the source
}

func readHints(t *testing.T) map[string]string {
	r := &hintReader{t: t, files: token.NewFileSet(), functions: map[string]*ast.FuncDecl{}, hints: map[string]string{}}
	var parsed []*ast.File
	for _, room := range []string{".", "../../pipeline", "../../report", "../../gitstore"} {
		check(t, filepath.WalkDir(room, func(name string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() && e.Name() == "testdata" {
				return fs.SkipDir
			}
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(r.files, name, nil, parser.SkipObjectResolution)
			parsed = append(parsed, file)
			return err
		}))
	}
	for _, file := range parsed {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				r.functions[functionName(f)] = f
			}
		}
	}
	for _, file := range parsed {
		for _, d := range file.Decls {
			r.within, _ = d.(*ast.FuncDecl)
			ast.Inspect(d, r.visit)
		}
	}
	return r.hints
}

// functionName is the name of a function, a method's with its type's before it.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	return of.(*ast.Ident).Name + "." + f.Name.Name
}

// lastName is what an expression that names something names: b of a.b, and of a.b[c].
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.IndexExpr:
		return lastName(e.X)
	}
	return ""
}

// visit notes the hints of one node: a hint is in a field, in an argument, in a row of the table of errors, or
// in a line of progress that says so.
func (r *hintReader) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CompositeLit:
		field, ok := hintFields[lastName(n.Type)]
		ok = ok && strings.Contains(r.files.Position(n.Pos()).Filename, field.room)
		if array, is := n.Type.(*ast.ArrayType); is && lastName(array.Elt) == "Obstacle" {
			for _, e := range n.Elts {
				if lit, is := e.(*ast.CompositeLit); is && lit.Type == nil {
					r.note(lit.Elts[2])
				}
			}
		}
		for i, e := range n.Elts {
			if !ok {
				break
			}
			keyed, is := e.(*ast.KeyValueExpr)
			if is && lastName(keyed.Key) == field.name {
				r.note(keyed.Value)
			} else if !is && i == field.place {
				r.note(e)
			}
		}
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if sel, ok := to.(*ast.SelectorExpr); ok && slices.Contains([]string{"hint", "Hint", "Instead"}, sel.Sel.Name) && i < len(n.Rhs) {
				r.note(n.Rhs[i])
			}
		}
	case *ast.ValueSpec:
		if n.Names[0].Name == "patchHints" {
			for _, e := range n.Values[0].(*ast.CompositeLit).Elts {
				r.note(e.(*ast.CompositeLit).Elts[1])
			}
		}
	case *ast.CallExpr:
		name := lastName(n.Fun)
		if sel, method := n.Fun.(*ast.SelectorExpr); method && name != "say" && source(sel.X) != "cli" {
			break
		}
		ours := !strings.HasPrefix(r.files.Position(n.Pos()).Filename, "..")
		if place, ok := hintArguments[name]; ok && ours && place < len(n.Args) {
			r.note(n.Args[place])
		}
		if (name == "on" || name == "value") && ours && len(n.Args) > 1 {
			last := n.Args[len(n.Args)-1]
			if f, ok := r.functions[strings.NewReplacer("(*", "", ")", "").Replace(source(last))]; ok {
				r.returns(f.Type, f.Body)
			} else {
				r.note(last)
			}
		}
		if name == "say" && len(n.Args) > 0 {
			if text, ok := n.Args[0].(*ast.BasicLit); ok && strings.Contains(text.Value, "hint: ") && !strings.Contains(text.Value, "not asked") {
				r.note(&ast.CallExpr{Fun: ast.NewIdent("Sprintf"), Args: n.Args})
			}
		}
	case *ast.ReturnStmt:
		for _, e := range n.Results {
			if lit := leftmost(e); lit != nil && strings.HasPrefix(lit.Value, `"hint: `) {
				r.returned = lit
				r.note(e)
			}
		}
	case *ast.FuncDecl:
		if n.Recv == nil && n.Name.Name == "explain" {
			r.returns(n.Type, n.Body)
		}
	case *ast.BasicLit:
		if strings.HasPrefix(n.Value, `"hint: `) && r.within != nil && !r.said(n) && r.returned != n {
			r.t.Errorf("%s: a hint that is printed in another way than by say or a return", r.files.Position(n.Pos()))
		}
	}
	return true
}

// leftmost is the literal that a sum of strings begins with, nil for none.
func leftmost(e ast.Expr) *ast.BasicLit {
	for {
		sum, ok := e.(*ast.BinaryExpr)
		if !ok {
			lit, _ := e.(*ast.BasicLit)
			return lit
		}
		e = sum.X
	}
}

// said reports whether a literal of the function that is read is said, and so noted.
func (r *hintReader) said(lit *ast.BasicLit) (found bool) {
	ast.Inspect(r.within, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && lastName(call.Fun) == "say" && len(call.Args) > 0 && call.Args[0] == lit
		return true
	})
	return found
}

// note notes what an expression may be as hints. One that is all holes must be known to be handed on.
func (r *hintReader) note(e ast.Expr) {
	place := "the source"
	if e.Pos().IsValid() {
		place = r.files.Position(e.Pos()).String()
	}
	if f, ok := e.(*ast.FuncLit); ok {
		r.returns(f.Type, f.Body)
		return
	}
	if slices.Contains(handsOn, source(e)) || r.handedOn(e) || source(e) == "hint" && r.within != nil && hintArguments[r.within.Name.Name] > 0 {
		return
	}
	for _, text := range r.texts(e) {
		switch text = strings.TrimSpace(strings.TrimPrefix(text, "hint: ")); {
		case text == "":
		case strings.Trim(text, hole+" ") == "":
			r.t.Errorf("%s: %s is a hint, and this test does not know its words", place, source(e))
		default:
			r.hints[text] = place
		}
	}
}

// handedOn reports whether an expression is the hint of a parameter, whose type is one of hintFields.
func (r *hintReader) handedOn(e ast.Expr) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || r.within == nil || r.within.Type.Params == nil {
		return false
	}
	for _, p := range r.within.Type.Params.List {
		of := p.Type
		if star, is := of.(*ast.StarExpr); is {
			of = star.X
		}
		if field, known := hintFields[lastName(of)]; known && len(p.Names) == 1 && p.Names[0].Name == source(sel.X) && field.name == sel.Sel.Name {
			return true
		}
	}
	return false
}

// returns notes what a function returns last, or as its only string.
func (r *hintReader) returns(of *ast.FuncType, body *ast.BlockStmt) {
	outer := r.within
	r.within = &ast.FuncDecl{Name: ast.NewIdent(""), Type: of, Body: body}
	defer func() { r.within = outer }()
	ast.Inspect(body, func(n ast.Node) bool {
		if _, inner := n.(*ast.FuncLit); inner {
			return false
		}
		if ret, ok := n.(*ast.ReturnStmt); ok && len(ret.Results) > 0 {
			r.note(ret.Results[len(ret.Results)-1])
		}
		return true
	})
}

// texts are the texts that an expression may be, with holes for what it takes from elsewhere.
func (r *hintReader) texts(e ast.Expr) []string {
	if r.depth > 8 {
		return []string{hole}
	}
	r.depth++
	defer func() { r.depth-- }()
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return []string{text}
		}
	case *ast.ParenExpr:
		return r.texts(e.X)
	case *ast.BinaryExpr:
		return product(r.texts(e.X), r.texts(e.Y), "")
	case *ast.Ident:
		return r.assigned(e)
	case *ast.CallExpr:
		return r.called(e)
	}
	return []string{hole}
}

// product is each text of one list with each of another behind it.
func product(a, b []string, between string) (out []string) {
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+between+y)
		}
	}
	return out
}

// assigned are the texts that a variable of the function may have, or a constant.
func (r *hintReader) assigned(name *ast.Ident) []string {
	if r.within == nil {
		return []string{hole}
	}
	var out []string
	ast.Inspect(r.within, func(n ast.Node) bool {
		if assign, ok := n.(*ast.AssignStmt); ok {
			for i, to := range assign.Lhs {
				if id, is := to.(*ast.Ident); is && id.Name == name.Name && len(assign.Lhs) == len(assign.Rhs) {
					texts := r.texts(assign.Rhs[i])
					if assign.Tok == token.ADD_ASSIGN {
						texts = product(out, texts, "")
					}
					out = append(out, texts...)
				}
			}
		}
		return true
	})
	if len(out) == 0 {
		return []string{hole}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// called are the texts that a call may give: of a command line, a format, or another function that makes a hint.
func (r *hintReader) called(call *ast.CallExpr) []string {
	switch name := lastName(call.Fun); name {
	case "again":
		out := []string{"countersign"}
		if call.Ellipsis.IsValid() {
			return []string{"countersign " + hole}
		}
		for _, arg := range call.Args {
			out = product(out, r.texts(arg), " ")
		}
		return out
	case "say": // of the table
		return r.texts(call.Args[0])
	case "LookFirst":
		decide := product(r.texts(call.Args[0]), []string{"in a terminal it shows the change and asks; elsewhere read "}, " (")
		return product(product(decide, r.texts(call.Args[1]), ""), []string{")"}, "")
	case "Sprintf":
		out := []string{""}
		rest, n := r.texts(call.Args[0])[0], 0
		for {
			verb := regexp.MustCompile(`%[+.0-9]*[a-zA-Z]`).FindStringIndex(rest)
			if verb == nil {
				return product(out, []string{rest}, "")
			}
			values := []string{hole}
			if n++; n < len(call.Args) {
				values = r.texts(call.Args[n])
			}
			if rest[verb[1]-1] == 'q' {
				values = product(product([]string{`"`}, values, ""), []string{`"`}, "")
			}
			out = product(product(out, []string{rest[:verb[0]]}, ""), values, "")
			rest = rest[verb[1]:]
		}
	case "append", "Join":
		return r.texts(call.Args[min(1, len(call.Args)-1)*map[string]int{"append": 1}[name]])
	case "HowToApprove", "SeeHelp", "nearFlag", "next", "hint":
		var out []string
		outer := r.within
		if r.within = r.functions[name]; name == "next" {
			r.within = r.functions["App.next"]
		}
		defer func() { r.within = outer }()
		ast.Inspect(r.within.Body, func(n ast.Node) bool {
			if ret, ok := n.(*ast.ReturnStmt); ok {
				out = append(out, r.texts(ret.Results[0])...)
			}
			return true
		})
		return out
	}
	return []string{hole}
}

// source is an expression as it is written.
func source(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return source(e.X) + "." + e.Sel.Name
	case *ast.ParenExpr:
		return "(" + source(e.X) + ")"
	case *ast.StarExpr:
		return "*" + source(e.X)
	case *ast.IndexExpr:
		return source(e.X) + "[" + source(e.Index) + "]"
	case *ast.CallExpr:
		return source(e.Fun) + "()"
	case *ast.BasicLit:
		return e.Value
	}
	return "an expression"
}

// TestTroubleshooting: docs/troubleshooting.md has an entry for every hint that the program can print, by its
// words, and no other.
func TestTroubleshooting(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/troubleshooting.md")
	check(t, err)
	entries := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^- `([^`]+)`").FindAllStringSubmatch(string(raw), -1) {
		entries[m[1]] = false
	}
	hints := readHints(t)
	if len(hints) < 120 {
		t.Errorf("only %d hints were found", len(hints))
	}
	for hint, place := range hints {
		var parts []string
		for _, part := range strings.Split(hint, hole) {
			parts = append(parts, regexp.QuoteMeta(part))
		}
		form := regexp.MustCompile("^" + strings.Join(parts, ".*") + "$")
		found := false
		for entry := range entries {
			if form.MatchString(entry) {
				entries[entry], found = true, true
			}
		}
		if !found {
			t.Errorf("%s: docs/troubleshooting.md has no entry for\n\t%s", place, hint)
		}
	}
	for entry, met := range entries {
		if !met {
			t.Errorf("docs/troubleshooting.md has an entry for a hint that nothing prints: %s", entry)
		}
	}
}
