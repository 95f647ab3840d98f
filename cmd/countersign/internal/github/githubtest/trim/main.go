// Command trim cuts GitHub's descriptions of its API down to what githubtest
// serves. It is run by hand, when an operation is added:
//
//	npm pack @octokit/openapi@23.0.2 @octokit/graphql-schema@15.26.1, and unpack them
//	go run ./trim -openapi OPENAPI/generated/api.github.com.json -graphql SCHEMA/schema.graphql -to testdata
//
// Both packages are under the MIT licence and are generated from what GitHub
// publishes. What is kept of the REST description: the operations of rest.txt,
// the events of events.txt and the schemas that these need, without
// descriptions and examples. Of GraphQL: the fields and arguments of the types
// of types.txt. These lists are beside this file.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

var (
	//go:embed rest.txt
	operations string
	//go:embed events.txt
	events string
	//go:embed types.txt
	types string
)

func main() {
	openapi := flag.String("openapi", "", "GitHub's OpenAPI description, `file`")
	graphql := flag.String("graphql", "", "GitHub's GraphQL schema, `file`")
	to := flag.String("to", "testdata", "the `folder` to write to")
	flag.Parse()
	if err := run(*openapi, *graphql, *to); err != nil {
		fmt.Fprintln(os.Stderr, "trim:", err)
		os.Exit(1)
	}
}

func run(openapi, graphql, to string) error {
	var whole object
	if err := read(openapi, &whole); err != nil {
		return err
	}
	rest, err := trimREST(whole, lines(operations))
	if err != nil {
		return err
	}
	if err := write(filepath.Join(to, "rest.json"), rest); err != nil {
		return err
	}
	hooks, err := trimEvents(whole, lines(events))
	if err != nil {
		return err
	}
	if err := write(filepath.Join(to, "events.json"), hooks); err != nil {
		return err
	}
	schema, err := os.ReadFile(graphql)
	if err != nil {
		return err
	}
	table, err := trimGraphQL(string(schema), lines(types))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "schema.graphql"), []byte(table), 0o644)
}

func lines(list string) []string {
	return strings.Split(strings.TrimSpace(list), "\n")
}

func read(file string, into any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
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
func share(doc object) {
	schemas := doc["components"].(object)["schemas"].(object)
	s := &sharer{seen: map[string]int{}, names: map[string]string{}, shared: object{}}
	for _, name := range sortedKeys(schemas) {
		s.count(schemas[name])
	}
	for _, name := range sortedKeys(schemas) {
		whole := schemas[name].(object)
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
	shared object
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic("trim: " + err.Error())
	}
	return string(data)
}

// isSchema reports whether v is a schema of an object, and not for instance the
// list of its properties.
func isSchema(v object) bool {
	_, properties := v["properties"].(object)
	return v["type"] == "object" && properties
}

func (s *sharer) count(v any) {
	switch v := v.(type) {
	case object:
		if isSchema(v) {
			s.seen[text(v)]++
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
		before := text(v)
		kept := object{}
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
		return object{"$ref": "#/components/schemas/" + s.names[before]}
	case []any:
		kept := make([]any, len(v))
		for i, inner := range v {
			kept[i] = s.replace(inner)
		}
		return kept
	}
	return v
}
