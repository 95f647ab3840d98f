package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A Method reads its parameters, a JSON object, and returns what does the work
// and the key of the call.
type Method func(params json.RawMessage) (do func(context.Context, Notify) (any, error), key string, err error)

// Of makes a method of a function whose parameters are the fields of P, by
// their JSON names. A field is required unless its tag says omitempty; null
// stands for one that is not there. Where P has a method Key() string, calls of
// one key run one after the other.
func Of[P any](do func(ctx context.Context, params P, notify Notify) (any, error)) Method {
	return func(raw json.RawMessage) (func(context.Context, Notify) (any, error), string, error) {
		var p P
		if err := decode(raw, &p); err != nil {
			return nil, "", err
		}
		key := ""
		if keyed, ok := any(p).(interface{ Key() string }); ok {
			key = keyed.Key()
		}
		return func(ctx context.Context, notify Notify) (any, error) { return do(ctx, p, notify) }, key, nil
	}
}

// decode reads parameters, and refuses those that the method does not have:
// one that is misspelt must not read as one that was not given.
func decode(raw json.RawMessage, into any) error {
	var doc any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return err
	}
	if err := checkShape("params", doc, reflect.TypeOf(into).Elem()); err != nil {
		return err
	}
	err := json.Unmarshal(raw, into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("params.%s is of the wrong type: %s", wrong.Field, wrong.Value)
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
