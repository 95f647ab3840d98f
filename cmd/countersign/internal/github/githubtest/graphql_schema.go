package githubtest

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"
)

//go:embed testdata/graphql.json
var graphqlDescription []byte

// A schema is GitHub's of its GraphQL API, cut down.
type schema struct {
	Types map[string]schemaType `json:"types"`
}

type schemaType struct {
	Kind     string                 `json:"kind"`
	Fields   map[string]schemaField `json:"fields"`
	Possible []string               `json:"possible"`
}

type schemaField struct {
	Type      string
	Arguments map[string]string
}

// UnmarshalJSON reads a type, or a list of a type and its arguments' types.
func (f *schemaField) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &f.Type)
	}
	return json.Unmarshal(data, &[]any{&f.Type, &f.Arguments})
}

var loadSchema = sync.OnceValues(func() (schema, error) {
	var s schema
	err := json.Unmarshal(graphqlDescription, &s)
	return s, err
})

// named is the name of a type without what says that it is a list or never null.
func named(kind string) string { return strings.Trim(kind, "[]!") }

var scalars = map[string]bool{
	"Int": true, "Float": true, "String": true, "Boolean": true, "ID": true, "BigInt": true, "DateTime": true, "Date": true, "URI": true,
	"HTML": true, "GitObjectID": true, "GitTimestamp": true, "GitSSHRemote": true, "Base64String": true,
}

// leaf reports whether a type has no fields: a scalar, or an enum, which is what
// the cut schema does not have.
func (s schema) leaf(kind string) bool {
	t, known := s.Types[named(kind)]
	return scalars[named(kind)] || known && t.Kind == "ENUM"
}
