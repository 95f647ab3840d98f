package main

import (
	"encoding/json"
	"fmt"
)

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
