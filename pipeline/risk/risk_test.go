package risk_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

func text(s string) *patch.File    { return &patch.File{Mode: patch.Regular, Data: []byte(s)} }
func program(s string) *patch.File { return &patch.File{Mode: patch.Executable, Data: []byte(s)} }

// between makes a patch; a file that is nil before is new, one that is nil after goes.
func between(t testing.TB, before, after map[string]*patch.File) patch.Patchset {
	t.Helper()
	base := fstest.MapFS{}
	for name, f := range before {
		base[name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
		if f.Mode == patch.Executable {
			base[name].Mode = 0o755
		}
	}
	set, err := patch.NewTree(base).Between(after)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func lines(list []risk.Risk) string {
	var b strings.Builder
	for _, r := range list {
		line, err := json.Marshal(r)
		if err != nil {
			panic(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

func TestOf(t *testing.T) {
	long := strings.Repeat("x", 501)
	for name, c := range map[string]struct {
		before, after *patch.File
		want          string
	}{
		"a.txt":  {text("a\n"), text("b\n"), ""},
		"a0.txt": {nil, text("b\n"), ""},
		"tool":   {text("a\n"), program("a\n"), `{"kind":"executable","path":"tool"}`},
		"tool1":  {nil, program("a\n"), `{"kind":"executable","path":"tool1","detail":"a new file"}`},
		"tool2":  {program("a\n"), program("b\n"), ""},
		"tool3":  {program("a\n"), text("a\n"), `{"kind":"mode","path":"tool3"}`},
		".github/workflows/ci.yml": {text("a\n"), text("b\n"),
			`{"kind":"trusted","path":".github/workflows/ci.yml","detail":"the forge runs it"}`},
		"docs/CLAUDE.MD": {nil, text("b\n"), `{"kind":"trusted","path":"docs/CLAUDE.MD","detail":"agents take it for instructions"}`},
		"sub/Makefile":   {text("a\n"), text("b\n"), `{"kind":"build","path":"sub/Makefile","detail":"a build obeys it"}`},
		"go.sum":         {text("a\n"), text("b\n"), `{"kind":"build","path":"go.sum","detail":"it pins what is installed"}`},
		"gone":           {text("a\nb"), nil, `{"kind":"delete","path":"gone","detail":"2 lines"}`},
		"gone0":          {text(""), nil, `{"kind":"delete","path":"gone0","detail":"empty"}`},
		"blob":           {nil, text("\x7fELF\x00\x01"), `{"kind":"binary","path":"blob","detail":"ELF program, 6 bytes"}`},
		"blob1":          {text("a\n"), text("\x00"), `{"kind":"binary","path":"blob1","detail":"data of no known type, 2 → 1 byte"}`},
		"blob2": {text("\x00ab"), nil, `{"kind":"binary","path":"blob2","detail":"data of no known type, 3 bytes, deleted"}
{"kind":"delete","path":"blob2","detail":"3 bytes"}`},
		"space":  {text("if a {\nb\n}\n"), text("if a {\n\tb\n}\n"), `{"kind":"whitespace","path":"space"}`},
		"space1": {text("a\nb\n"), text("a\r\nb\r\n"), `{"kind":"whitespace","path":"space1","detail":"line endings become CRLF"}` + "\n" + `{"kind":"hidden","path":"space1","lines":[1,2],"detail":"\\x0d"}`},
		"space2": {text("a\xff\n"), text(" a\xfe\n"), `{"kind":"hidden","path":"space2","lines":[1],"detail":"\\xfe"}`},
		"long": {text("a\n"), text("a\n" + long + "\n" + long + "xx\n"),
			`{"kind":"long","path":"long","lines":[2,3],"detail":"503 characters"}`},
		"long0": {text("a\n"), text("a\n" + long[1:] + "\n"), ""},
		"hid.go": {text("a\n"), text("a\nif x\u202e { // \u2066\nif y\u202e\n\u202e\n\u202e\n\u202e\n\u202e\n\u202e\n"),
			`{"kind":"hidden","path":"hid.go","lines":[2],"detail":"U+2066"}` + "\n" + `{"kind":"hidden","path":"hid.go","lines":[2,3,4,5,6],"more":2,"detail":"U+202E"}`},
		"esc.txt":   {nil, text("a\x1b[2J\n"), `{"kind":"hidden","path":"esc.txt","lines":[1],"detail":"\\x1b"}`},
		"alike.go":  {nil, text("x := раssword\nx := сору\n"), `{"kind":"lookalike","path":"alike.go","lines":[1,2],"detail":"\u003cU+0440\u003e\u003cU+0430\u003essword \u003cU+0441\u003e\u003cU+043E\u003e\u003cU+0440\u003e\u003cU+0443\u003e"}`},
		"alike1.go": {nil, text("// Это просто слово: он, а не она\n// α is 0.5, x² and 日本語のtext, naïve\n"), ""},
		"alike2.go": {nil, text("ａdmin = 1\n"), `{"kind":"lookalike","path":"alike2.go","lines":[1],"detail":"\u003cU+FF41\u003edmin"}`},
		"alike5.go": {nil, text("\U0001D41A\U0001D41D\U0001D426\U0001D422\U0001D427 := \U0001D7CF\n"), `{"kind":"lookalike","path":"alike5.go","lines":[1],"detail":"\u003cU+1D41A\u003e\u003cU+1D41D\u003e\u003cU+1D426\u003e\u003cU+1D422\u003e\u003cU+1D427\u003e \u003cU+1D7CF\u003e"}`},
		"alike6.go": {nil, text("x" + strings.Repeat("а", 40) + "\n"), `{"kind":"lookalike","path":"alike6.go","lines":[1],"detail":"…"}`},
		"alike3.go": {nil, text("var а = 1\n"), `{"kind":"lookalike","path":"alike3.go","lines":[1],"detail":"\u003cU+0430\u003e"}`},
		"alike4.go": {text("раssword\n"), text("ok\n"), ""}, // what goes is no risk
		"gen.go":    {nil, text("// Code generated by x. DO NOT EDIT.\n"), `{"kind":"generated","path":"gen.go","detail":"it says that it is generated"}`},
		"a.min.js":  {nil, text("x\n"), `{"kind":"generated","path":"a.min.js","detail":"minified, by its name"}`},
		"packed.js": {nil, text(strings.Repeat("x", 2001)),
			`{"kind":"long","path":"packed.js","lines":[1],"detail":"2001 characters"}` + "\n" + `{"kind":"generated","path":"packed.js","detail":"lines of more than 500 bytes on average"}`},
	} {
		before := map[string]*patch.File{}
		if c.before != nil {
			before[name] = c.before
		}
		got := strings.TrimSuffix(lines(risk.Of(between(t, before, map[string]*patch.File{name: c.after}), nil)), "\n")
		if got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestOfRename(t *testing.T) {
	set := between(t, map[string]*patch.File{".github/workflows/a.yml": text("a\n")}, map[string]*patch.File{".github/workflows/a.yml": nil, "b.yml": text("a\n")})
	want := `{"kind":"trusted","path":".github/workflows/a.yml","detail":"the forge runs it"}` + "\n" +
		`{"kind":"rename","path":"b.yml","from":".github/workflows/a.yml"}` + "\n"
	if got := lines(risk.Of(set, nil)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// The order is the one of Kinds, whatever the order of the files.
func TestOrder(t *testing.T) {
	set := between(t,
		map[string]*patch.File{"a-gone": text("a\n"), "z.sh": text("a\n"), "m": text("a\n")},
		map[string]*patch.File{"a-gone": nil, "z.sh": program("a\n"), "b": text("\x00"), "m": text(" a\n"), "go.mod": text("x\n")})
	found := []redact.Finding{{Path: "m", Line: 1, Kind: "generic-api-key"}, {Path: "b", Line: 0, Kind: "private-key"}}
	p := policy.Default()
	p.Protected = []policy.Rule{{Paths: []string{"/m"}, Required: 2}}
	all := risk.Sort(append(risk.Of(set, found), risk.InPolicy(p, []string{"b", "m"})...))
	want := `{"kind":"executable","path":"z.sh"}
{"kind":"build","path":"go.mod","detail":"a build obeys it"}
{"kind":"build","path":"z.sh","detail":"a shell runs it"}
{"kind":"secret","path":"b","detail":"private-key"}
{"kind":"secret","path":"m","lines":[1],"detail":"generic-api-key"}
{"kind":"protected","path":"m","detail":"protected[0] /m"}
{"kind":"binary","path":"b","detail":"data of no known type, 1 byte"}
{"kind":"delete","path":"a-gone","detail":"1 line"}
{"kind":"whitespace","path":"m"}
`
	if got := lines(all); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for _, r := range all {
		if !slices.Contains(risk.Kinds(), r.Kind) {
			t.Errorf("%s is no kind", r.Kind)
		}
	}
}

// A List names so many of a kind and counts the others, however many files a patch
// has and however long their names are; and what it writes it reads.
func TestList(t *testing.T) {
	id := strings.Repeat("a", 64)
	for _, path := range []string{"f", strings.Repeat("long/", 2000)} {
		var all []risk.Risk
		for n := range 30_000 {
			all = append(all, risk.Risk{Kind: risk.Build, Path: fmt.Sprintf("%s%06d", path, n)})
		}
		all = append(all, risk.Risk{Kind: risk.Executable, Path: "z"})
		list := risk.NewList(id, all)
		if n := len(list.Bytes()); n > 300<<10 {
			t.Errorf("%d bytes", n)
		}
		if list.Risks[0].Path != "z" || list.More[risk.Build]+len(list.Risks) != len(all) || list.Risks[1].Path != path+"000000" {
			t.Errorf("%d named, more: %v", len(list.Risks), list.More)
		}
		again, err := risk.Read(list.Bytes())
		if err != nil || !reflect.DeepEqual(again, list) {
			t.Errorf("%v: %d named, more: %v", err, len(again.Risks), again.More)
		}
		more := list.With([]risk.Risk{{Kind: risk.Build, Path: "a"}, {Kind: risk.Protected, Path: "z"}})
		if more.More[risk.Build]+len(more.Risks) != len(all)+2 || len(list.More) != 1 {
			t.Errorf("with two more: %d named, more: %v", len(more.Risks), more.More)
		}
	}
	if got := string(risk.NewList(id, nil).Bytes()); got != `{"more":{},"patch_id":"`+id+`","risks":[],"schema":"countersign/risks/1"}`+"\n" {
		t.Error(got)
	}
	if _, err := risk.Read([]byte(`{"more":{},"patch_id":"","risks":[],"schema":"countersign/risks/2"}`)); err == nil {
		t.Error("another schema is read")
	}
}

// A word of a line with a secret is not named: written with escapes the secret
// would not be found in it.
func TestSecretWord(t *testing.T) {
	set := between(t, nil, map[string]*patch.File{"a": text("x\np\u0430ssword\n")})
	want := `{"kind":"secret","path":"a","lines":[2],"detail":"known-value"}
{"kind":"lookalike","path":"a","lines":[2],"detail":"…"}
`
	if got := lines(risk.Of(set, []redact.Finding{{Path: "a", Line: 2, Kind: "known-value"}})); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A diff without its base tells all but what takes whole files to see.
func TestOfDiff(t *testing.T) {
	set := between(t,
		map[string]*patch.File{"gone": text("a\nb\n"), "tool": program("a\n"), "x": text("a\n"), "here": text("a\n"), "l": text("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n")},
		map[string]*patch.File{
			"gone": nil, "tool": text("a\n"), "x": program("a\n"), "here": nil, "there": text("a\n"), "new": program("a\n"), "go.mod": text("p\u0430y\n"),
			"blob": text("\x00"), "l": text("1\n1\n2\n3\n4\n5\n6\n7\n8\n\u200b\n9\n10\n" + strings.Repeat("x", 501)),
		})
	d, err := patch.Parse(set.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := risk.Of(set, nil)
	for i, r := range want {
		if r.Kind == risk.Binary {
			want[i].Detail = "its content was not read"
		}
	}
	if got := risk.OfDiff(d, secret.Default()); len(got) < 9 || lines(got) != lines(want) {
		t.Errorf("%s\nwant\n%s", lines(got), lines(want))
	}
}

// T75 A diff without its base is searched for secrets in what it adds, with the lines
// that they have in the file.
func TestT75SecretsOfDiff(t *testing.T) {
	base := map[string]*patch.File{"f": text(strings.Repeat("x\n", 20) + "\ny\n")}
	for _, s := range teststand.Samples() {
		leak := strings.Repeat("x\n", 20) + "\n" + s.Text() + "\n\np\u0430y\n"
		set := between(t, base, map[string]*patch.File{"f": text(leak)})
		d, err := patch.Parse(set.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		var want, got []int
		for _, one := range secret.Default().Patch(set) {
			want = append(want, one.Line)
		}
		list := risk.OfDiff(d, secret.Default())
		for _, r := range list {
			if r.Kind == risk.Secret && r.Path == "f" && r.Detail != "" {
				got = append(got, r.Lines...)
			}
		}
		if len(want) == 0 || len(got) == 0 || got[0] != want[0] || strings.Contains(lines(list), s.Value) {
			t.Errorf("%s: lines %v, want %v", s.Kind, got, want)
		}
	}
}
