package main

import (
	"fmt"
	"slices"
	"strings"
)

// introspection is the part of a GraphQL introspection result that is used.
type introspection struct {
	Schema struct {
		Types []schemaType `json:"types"`
	} `json:"__schema"`
}

type schemaType struct {
	Kind          string        `json:"kind"`
	Name          string        `json:"name"`
	Fields        []schemaField `json:"fields"`
	InputFields   []schemaField `json:"inputFields"`
	EnumValues    []schemaField `json:"enumValues"`
	PossibleTypes []typeRef     `json:"possibleTypes"`
}

type schemaField struct {
	Name string        `json:"name"`
	Type *typeRef      `json:"type"`
	Args []schemaField `json:"args"`
}

type typeRef struct {
	Kind   string   `json:"kind"`
	Name   string   `json:"name"`
	OfType *typeRef `json:"ofType"`
}

// String is the type as the schema language writes it.
func (r *typeRef) String() string {
	switch r.Kind {
	case "NON_NULL":
		return r.OfType.String() + "!"
	case "LIST":
		return "[" + r.OfType.String() + "]"
	}
	return r.Name
}

// trimGraphQL is the table of the types, each line the name of one and, where
// not all of its fields are kept, theirs.
func trimGraphQL(schema introspection, types []string) (map[string]any, error) {
	byName := map[string]schemaType{}
	for _, t := range schema.Schema.Types {
		byName[t.Name] = t
	}
	kept := map[string]any{}
	for _, line := range types {
		words := strings.Fields(line)
		t, ok := byName[words[0]]
		if !ok {
			return nil, fmt.Errorf("no type %s", words[0])
		}
		if fields := words[1:]; len(fields) > 0 {
			t.Fields = slices.DeleteFunc(t.Fields, func(f schemaField) bool { return !slices.Contains(fields, f.Name) })
		}
		kept[t.Name] = tableOf(t)
	}
	return map[string]any{"types": kept}, nil
}

// fieldOf is the field's type alone, or with the types of its arguments.
func fieldOf(f schemaField) any {
	if len(f.Args) == 0 {
		return f.Type.String()
	}
	arguments := object{}
	for _, a := range f.Args {
		arguments[a.Name] = a.Type.String()
	}
	return []any{f.Type.String(), arguments}
}

func tableOf(t schemaType) object {
	table := object{"kind": t.Kind}
	fields := object{}
	for _, f := range append(t.Fields, t.InputFields...) {
		fields[f.Name] = fieldOf(f)
	}
	if len(fields) > 0 {
		table["fields"] = fields
	}
	var values, possible []string
	for _, v := range t.EnumValues {
		values = append(values, v.Name)
	}
	for _, p := range t.PossibleTypes {
		possible = append(possible, p.Name)
	}
	if values != nil {
		table["values"] = values
	}
	if possible != nil && t.Kind == "INTERFACE" && t.Name != "Node" || t.Kind == "UNION" {
		table["possible"] = possible
	}
	return table
}
