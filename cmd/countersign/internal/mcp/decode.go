package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Decode reads parameters, and refuses those that the method does not have:
// one that is misspelt must not read as one that was not given. at is what they
// are called in an error.
func Decode(at string, raw json.RawMessage, into any) error {
	var doc any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return err
	}
	if err := checkShape(at, doc, reflect.TypeOf(into).Elem()); err != nil {
		return err
	}
	err := json.Unmarshal(raw, into)
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		return fmt.Errorf("%s.%s is of the wrong type: %s", at, wrong.Field, wrong.Value)
	}
	return err
}

// checkShape compares the members of a document with the fields of a type.
func checkShape(at string, doc any, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	members, ok := doc.(map[string]any)
	if !ok {
		return fmt.Errorf("%s must be an object", at)
	}
	known := map[string]bool{}
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		known[name] = true
		switch value := members[name]; {
		case value == nil && options != "omitempty":
			return fmt.Errorf("%s.%s is missing", at, name)
		case value == nil:
		default:
			if err := checkShape(at+"."+name, value, t.Field(i).Type); err != nil {
				return err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !known[name] {
			return fmt.Errorf("%s has no member %+q", at, name)
		}
	}
	return nil
}
