package githubtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

var (
	openAPI = flag.String("openapi", "", "GitHub's OpenAPI description, `file`")
	schema  = flag.String("graphql", "", "GitHub's GraphQL schema, `file`")
)

// TestTrimDescriptions cuts GitHub's descriptions of its API down to what this package
// serves. It is run by hand, when an operation is added:
//
//	npm pack @octokit/openapi@23.0.2 @octokit/graphql-schema@15.26.1, and unpack them
//	go test -run TrimDescriptions . -args -openapi OPENAPI/generated/api.github.com.json -graphql SCHEMA/schema.graphql
//
// Both packages are under the MIT licence and are generated from what GitHub
// publishes. What is kept of the REST description: the operations of rest.txt,
// the events of events.txt and the schemas that these need, without
// descriptions and examples. Of GraphQL: the fields and arguments of the types
// of types.txt. These lists are in testdata, where the result goes.
func TestTrimDescriptions(t *testing.T) {
	if *openAPI == "" || *schema == "" {
		t.Skip("-openapi and -graphql name no descriptions")
	}
	whole := decoded(t, *openAPI)
	rest, err1 := trimREST(whole, listed(t, "rest.txt"))
	events, err2 := trimEvents(whole, listed(t, "events.txt"))
	table, err3 := trimGraphQL(read(t, *schema), listed(t, "types.txt"))
	teststand.Fatal(t, errors.Join(err1, err2, err3))
	err := errors.Join(write(filepath.Join("testdata", "rest.json"), rest), write(filepath.Join("testdata", "events.json"), events),
		os.WriteFile(filepath.Join("testdata", "schema.graphql"), []byte(table), 0o644))
	teststand.Fatal(t, err)
}

// TestTrimmed: what is kept is what the lists name, and there is no more to cut.
func TestTrimmed(t *testing.T) {
	kept := decoded(t, filepath.Join("testdata", "rest.json"))
	rest, err := trimREST(kept, listed(t, "rest.txt"))
	if again := compactJSON(rest); err != nil || again != compactJSON(decoded(t, filepath.Join("testdata", "rest.json"))) {
		t.Errorf("rest.json: %v", err)
	}
	table := read(t, filepath.Join("testdata", "schema.graphql"))
	if again, err := trimGraphQL(table, listed(t, "types.txt")); err != nil || again != table {
		t.Errorf("schema.graphql: %v", err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	teststand.Fatal(t, err)
	return string(data)
}

func decoded(t *testing.T, name string) (whole jsonObject) {
	t.Helper()
	teststand.Fatal(t, json.Unmarshal([]byte(read(t, name)), &whole))
	return whole
}

func listed(t *testing.T, name string) []string {
	t.Helper()
	return strings.Split(strings.TrimSpace(read(t, filepath.Join("testdata", name))), "\n")
}

type jsonObject = map[string]any

// dropped are the keys that say nothing about the form of a request or answer.
var dropped = []string{"description", "example", "examples", "summary", "tags", "externalDocs", "title", "default"}

// named are the keys whose value is an object with names of the API's own.
var named = []string{"properties", "schemas", "parameters", "responses", "headers", "paths", "patternProperties"}

// trimREST keeps the operations, each "METHOD /path", and what they refer to.
func trimREST(whole jsonObject, operations []string) (jsonObject, error) {
	paths := jsonObject{}
	for _, line := range operations {
		method, path, _ := strings.Cut(line, " ")
		item, _ := whole["paths"].(jsonObject)[path].(jsonObject)
		operation, ok := item[strings.ToLower(method)]
		if !ok {
			return nil, fmt.Errorf("no operation %s", line)
		}
		if paths[path] == nil {
			paths[path] = jsonObject{}
		}
		paths[path].(jsonObject)[strings.ToLower(method)] = strip(operation)
	}
	return document(whole, jsonObject{"paths": paths})
}

// trimEvents keeps the payloads of the events.
func trimEvents(whole jsonObject, events []string) (jsonObject, error) {
	kept := jsonObject{}
	for _, event := range events {
		hook, ok := whole["x-webhooks"].(jsonObject)[event].(jsonObject)
		if !ok {
			return nil, fmt.Errorf("no event %s", event)
		}
		body := hook["post"].(jsonObject)["requestBody"].(jsonObject)["content"].(jsonObject)["application/json"].(jsonObject)
		kept[event] = strip(body["schema"])
	}
	doc, err := document(whole, jsonObject{"x-events": kept})
	if err != nil {
		return nil, err
	}
	share(doc)
	doc["paths"] = jsonObject{}
	return doc, nil
}

// document adds the components that what refers to.
func document(whole, what jsonObject) (jsonObject, error) {
	components := jsonObject{}
	for todo := references(what, nil); len(todo) > 0; {
		reference := todo[0]
		todo = todo[1:]
		parts := strings.Split(strings.TrimPrefix(reference, "#/components/"), "/")
		if len(parts) != 2 {
			return nil, fmt.Errorf("reference %s", reference)
		}
		group, _ := components[parts[0]].(jsonObject)
		if group == nil {
			group = jsonObject{}
			components[parts[0]] = group
		}
		if group[parts[1]] != nil {
			continue
		}
		source, ok := whole["components"].(jsonObject)[parts[0]].(jsonObject)[parts[1]]
		if !ok {
			return nil, fmt.Errorf("reference %s leads nowhere", reference)
		}
		group[parts[1]] = strip(source)
		todo = references(group[parts[1]], todo)
	}
	what["openapi"], what["components"] = whole["openapi"], components
	what["info"] = jsonObject{"title": "GitHub REST API, trimmed", "version": whole["info"].(jsonObject)["version"]}
	return what, nil
}

// references adds to list what v refers to.
func references(v any, list []string) []string {
	switch v := v.(type) {
	case object:
		for _, key := range sortedKeys(v) {
			if reference, ok := v[key].(string); ok && key == "$ref" {
				list = append(list, reference)
			}
			list = references(v[key], list)
		}
	case []any:
		for _, one := range v {
			list = references(one, list)
		}
	}
	return list
}

func sortedKeys(m jsonObject) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func strip(v any) any { return stripIn(v, false) }

// stripIn removes what is dropped; names tells that the keys of v are names of
// the API's own.
func stripIn(v any, names bool) any {
	switch v := v.(type) {
	case object:
		kept := jsonObject{}
		for key, value := range v {
			if !names && (slices.Contains(dropped, key) || strings.HasPrefix(key, "x-")) {
				continue
			}
			kept[key] = stripIn(value, !names && slices.Contains(named, key))
		}
		return kept
	case []any:
		kept := make([]any, len(v))
		for i, one := range v {
			kept[i] = stripIn(one, false)
		}
		return kept
	}
	return v
}

// write puts one key of the second level on a line, so that a change shows in
// a diff.
func write(file string, what map[string]any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(what); err != nil {
		return err
	}
	text, err := breakLines(b.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// breakLines puts each member of the outer three levels of objects on a line.
func breakLines(compact []byte) ([]byte, error) {
	const levels = 3
	var out bytes.Buffer
	depth, quoted, escaped := 0, false, false
	for _, c := range bytes.TrimSpace(compact) {
		out.WriteByte(c)
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if !quoted && depth <= levels && c == ',' {
			out.WriteByte('\n')
		}
	}
	out.WriteByte('\n')
	if !json.Valid(out.Bytes()) {
		return nil, fmt.Errorf("lines broken in the wrong places")
	}
	return out.Bytes(), nil
}

// worth is how long a schema that is written twice must be to be shared.
const worth = 200

// share writes the schemas that stand in a document more than once only once,
// as shared-1, shared-2 and so on, and refers to them.
func share(doc jsonObject) {
	schemas := doc["components"].(jsonObject)["schemas"].(jsonObject)
	s := &sharer{seen: map[string]int{}, names: map[string]string{}, shared: jsonObject{}}
	for _, name := range sortedKeys(schemas) {
		s.count(schemas[name])
	}
	for _, name := range sortedKeys(schemas) {
		whole := schemas[name].(jsonObject)
		for _, key := range sortedKeys(whole) {
			whole[key] = s.replace(whole[key])
		}
	}
	for name, schema := range s.shared {
		schemas[name] = schema
	}
}

type sharer struct {
	seen   map[string]int
	names  map[string]string
	shared jsonObject
}

func compactJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic("githubtest: " + err.Error())
	}
	return string(data)
}

// isSchema reports whether v is a schema of an object, and not for instance the
// list of its properties.
func isSchema(v jsonObject) bool {
	_, properties := v["properties"].(jsonObject)
	return v["type"] == "object" && properties
}

func (s *sharer) count(v any) {
	switch v := v.(type) {
	case object:
		if isSchema(v) {
			s.seen[compactJSON(v)]++
		}
		for _, inner := range v {
			s.count(inner)
		}
	case []any:
		for _, inner := range v {
			s.count(inner)
		}
	}
}

// replace is v with references for what is shared.
func (s *sharer) replace(v any) any {
	switch v := v.(type) {
	case object:
		before := compactJSON(v)
		kept := jsonObject{}
		for _, key := range sortedKeys(v) {
			kept[key] = s.replace(v[key])
		}
		if !isSchema(v) || s.seen[before] < 2 || len(before) < worth {
			return kept
		}
		if s.names[before] == "" {
			s.names[before] = fmt.Sprintf("shared-%d", len(s.names)+1)
			s.shared[s.names[before]] = kept
		}
		return jsonObject{"$ref": "#/components/schemas/" + s.names[before]}
	case []any:
		kept := make([]any, len(v))
		for i, inner := range v {
			kept[i] = s.replace(inner)
		}
		return kept
	}
	return v
}

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
