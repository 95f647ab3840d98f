package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"
)

// trimGraphQL keeps the types of a schema, each line the name of one and, where
// not all of its fields are kept, theirs. What a field may return or take that is
// a scalar, an enumeration or an input is kept with it; a field that returns any
// other type is left out with that.
func trimGraphQL(schema string, types []string) (string, error) {
	doc, err := parser.ParseSchema(&ast.Source{Name: "schema", Input: schema})
	if err != nil {
		return "", err
	}
	kept := map[string]bool{}
	for _, line := range types {
		words := strings.Fields(line)
		t := doc.Definitions.ForName(words[0])
		if t == nil {
			return "", fmt.Errorf("no type %s", words[0])
		}
		kept[t.Name] = true
		if fields := words[1:]; len(fields) > 0 {
			t.Fields = slices.DeleteFunc(t.Fields, func(f *ast.FieldDefinition) bool { return !slices.Contains(fields, f.Name) })
		}
	}
	for todo := types; len(todo) > 0; todo = todo[1:] {
		name, _, _ := strings.Cut(todo[0], " ")
		t := doc.Definitions.ForName(name)
		t.Directives = nil
		gone := func(name string) bool { return !kept[name] }
		t.Interfaces, t.Types = slices.DeleteFunc(t.Interfaces, gone), slices.DeleteFunc(t.Types, gone)
		t.Fields = slices.DeleteFunc(t.Fields, func(f *ast.FieldDefinition) bool {
			returned := doc.Definitions.ForName(f.Type.Name())
			return returned != nil && returned.IsCompositeType() && !kept[returned.Name]
		})
		for _, f := range t.Fields {
			f.Directives = nil
			needed := []string{f.Type.Name()}
			for _, a := range f.Arguments {
				a.Directives = nil
				needed = append(needed, a.Type.Name())
			}
			for _, name := range needed {
				if !kept[name] && doc.Definitions.ForName(name) != nil {
					kept[name], todo = true, append(slices.Clip(todo), name)
				}
			}
		}
		for _, v := range t.EnumValues {
			v.Directives = nil
		}
	}
	doc.Definitions = slices.DeleteFunc(doc.Definitions, func(t *ast.Definition) bool { return !kept[t.Name] })
	var out strings.Builder
	formatter.NewFormatter(&out, formatter.WithoutDescription(), formatter.WithIndent("  ")).
		FormatSchemaDocument(&ast.SchemaDocument{Definitions: doc.Definitions})
	return out.String(), nil
}
