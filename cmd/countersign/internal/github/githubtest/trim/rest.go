package main

import (
	"fmt"
	"slices"
	"strings"
)

type object = map[string]any

// dropped are the keys that say nothing about the form of a request or answer.
var dropped = []string{"description", "example", "examples", "summary", "tags", "externalDocs", "title", "default"}

// named are the keys whose value is an object with names of the API's own.
var named = []string{"properties", "schemas", "parameters", "responses", "headers", "paths", "patternProperties"}

// trimREST keeps the operations, each "METHOD /path", and what they refer to.
func trimREST(whole object, operations []string) (object, error) {
	paths := object{}
	for _, line := range operations {
		method, path, _ := strings.Cut(line, " ")
		item, _ := whole["paths"].(object)[path].(object)
		operation, ok := item[strings.ToLower(method)]
		if !ok {
			return nil, fmt.Errorf("no operation %s", line)
		}
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path].(object)[strings.ToLower(method)] = strip(operation)
	}
	return document(whole, object{"paths": paths})
}

// trimEvents keeps the payloads of the events.
func trimEvents(whole object, events []string) (object, error) {
	kept := object{}
	for _, event := range events {
		hook, ok := whole["x-webhooks"].(object)[event].(object)
		if !ok {
			return nil, fmt.Errorf("no event %s", event)
		}
		body := hook["post"].(object)["requestBody"].(object)["content"].(object)["application/json"].(object)
		kept[event] = strip(body["schema"])
	}
	doc, err := document(whole, object{"x-events": kept})
	if err != nil {
		return nil, err
	}
	share(doc)
	doc["paths"] = object{}
	return doc, nil
}

// document adds the components that what refers to.
func document(whole, what object) (object, error) {
	components := object{}
	for todo := references(what, nil); len(todo) > 0; {
		reference := todo[0]
		todo = todo[1:]
		parts := strings.Split(strings.TrimPrefix(reference, "#/components/"), "/")
		if len(parts) != 2 {
			return nil, fmt.Errorf("reference %s", reference)
		}
		group, _ := components[parts[0]].(object)
		if group == nil {
			group = object{}
			components[parts[0]] = group
		}
		if group[parts[1]] != nil {
			continue
		}
		source, ok := whole["components"].(object)[parts[0]].(object)[parts[1]]
		if !ok {
			return nil, fmt.Errorf("reference %s leads nowhere", reference)
		}
		group[parts[1]] = strip(source)
		todo = references(group[parts[1]], todo)
	}
	what["openapi"], what["components"] = whole["openapi"], components
	what["info"] = object{"title": "GitHub REST API, trimmed", "version": whole["info"].(object)["version"]}
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

func sortedKeys(m object) []string {
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
		kept := object{}
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
