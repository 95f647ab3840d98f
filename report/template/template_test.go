package template_test

import (
	"embed"
	"fmt"
	"testing"

	"github.com/countersign-dev/countersign/report/template"
)

//go:embed testdata
var files embed.FS

// put shows a text between < and >, and anything else as it is.
func put(out []byte, value any) []byte {
	switch value := value.(type) {
	case nil:
		return out
	case string:
		return append(append(append(out, '<'), value...), '>')
	}
	return fmt.Append(out, value)
}

type kind string

type data struct {
	Name   string
	Kind   kind
	Of     *int
	List   []string
	None   *data
	hidden string
}

func set() *template.Set {
	return template.Parse(files, put, template.Funcs{
		"twice": func(s string) string { return s + s }, "safe": func() template.Safe { return "" },
	})
}

// TestFill: each kind of value, branch and variable, and every text in it is put in place as text.
func TestFill(t *testing.T) {
	zero := 0
	for want, d := range map[string]data{
		"<a> <k> of nothing none empty <kk> <aa> 0":     {Name: "a", Kind: "k"},
		"<a> <> of 0 0=<x>, 1=<<> <> <aa> 2 <<> 1 1 2!": {Name: "a", Of: &zero, List: []string{"x", "<"}},
	} {
		got := string(set().Fill([]byte("^"), "all", d, template.Funcs{"safe": func() template.Safe {
			if len(d.List) > 0 {
				return "!"
			}
			return ""
		}}))
		if got != "^"+want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestBugs: what a template names and is not there panics, and is not left out.
func TestBugs(t *testing.T) {
	s := set()
	if s.Has("none") || !s.Has("all") {
		t.Error("what there is cannot be told")
	}
	for _, name := range []string{"field", "function", "type", "hidden", "pipe", "none"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: filled in", name)
				}
			}()
			s.Fill(nil, name, data{hidden: "x"}, nil)
		}()
	}
}
