// Package canon is the only encoder of anything that is hashed or stored.
//
// It writes the JSON Canonicalization Scheme (RFC 8785): keys sorted by UTF-16
// code unit, ECMAScript's string escapes and number forms, no white space:
//
//	{"b": 1.0, "a": "é"}   →   {"a":"é","b":1}
//
// Beyond the RFC it carries lone surrogates, which RFC 8785 3.2.2.2 leaves to
// the implementation, as ECMAScript's JSON.stringify does: "\ud800".
//
// A parsed document is made of nil, bool, float64, string, []any and
// map[string]any. A lone surrogate stands in a string as its three-byte
// generalised UTF-8 form (WTF-8), so it survives a round trip.
package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// MaxDepth is how deeply arrays and objects may nest; Parse refuses more.
const MaxDepth = 1000

// Marshal returns v's canonical JSON without a trailing newline. v is a parsed
// document, or any value that encoding/json can write.
func Marshal(v any) ([]byte, error) {
	return appendValue(make([]byte, 0, 256), v, 0)
}

// Line returns v's canonical JSON and one LF: the form in which a document is
// stored, and in which it is hashed.
func Line(v any) ([]byte, error) {
	b, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

// Unmarshal reads a record that we wrote into v, and refuses what we would not
// have written: another key order, white space, duplicate or unknown keys, a
// key that is missing or in the wrong case. One trailing LF is allowed. v is
// empty before, and after an error holds nothing to rely on.
func Unmarshal(data []byte, v any) error {
	body := bytes.TrimSuffix(data, []byte("\n"))
	if unmarshal(body, v) {
		return nil
	}
	return unmarshalSlowly(body, v)
}

// unmarshalSlowly is the definition of Unmarshal, and says what is wrong.
func unmarshalSlowly(body []byte, v any) error {
	doc, err := Parse(body)
	if err != nil {
		return err
	}
	if err := equals(body, doc, "not canonical JSON (RFC 8785)"); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("decoding JSON: %w", err)
	}
	// encoding/json is lax about letter case, missing keys, null and lone
	// surrogates; writing v again shows all of them.
	return equals(body, v, "not as this record is written")
}

func equals(body []byte, v any, otherwise string) error {
	again, err := Marshal(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, body) {
		return errors.New(otherwise)
	}
	return nil
}

// Hash is canonicalHash: the bare hex SHA-256 of v's canonical JSON and one LF.
func Hash(v any) (string, error) {
	b, err := Line(v)
	if err != nil {
		return "", err
	}
	return Hex(b), nil
}

// DeriveID is deriveId (PROPOSAL_INTERNAL_SPEC 4.3): prefix, "_" and the first
// 16 hex of Hash.
func DeriveID(prefix string, v any) (string, error) {
	h, err := Hash(v)
	if err != nil {
		return "", err
	}
	return prefix + "_" + h[:16], nil
}

// Hex is the SHA-256 of b as 64 lower-case hex digits.
func Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Sum is the SHA-256 of b in the form that the specifications call a hash:
// "sha256:" and 64 lower-case hex digits (APPLY_SPEC 7.2).
func Sum(b []byte) string { return "sha256:" + Hex(b) }

// IsHex64 reports whether s is 64 lower-case hex digits.
func IsHex64(s string) bool {
	if len(s) != 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// A shape is how encoding/json reads a Go type, worked out once: the fields of a
// struct in canonical order. Types that our records are not made of (interfaces,
// floats, embedded fields, types with methods of their own, types that contain
// themselves) have none, and are left to encoding/json.
type shape struct {
	kind   reflect.Kind // String, Bool, Int, Pointer, Slice, Map, Struct; Invalid for json.RawMessage
	typ    reflect.Type
	elem   *shape // of a Pointer, Slice or Map
	fields []field
}

type field struct {
	key      string // with its quotes and colon
	index    int
	optional bool // omitempty
	shape    *shape
}

// shapes holds a *shape, nil where there is none, for each reflect.Type asked for.
var shapes sync.Map

func shapeOf(t reflect.Type) *shape {
	if s, known := shapes.Load(t); known {
		return s.(*shape)
	}
	s := newShape(t, nil)
	shapes.Store(t, s)
	return s
}

var (
	rawMessage = reflect.TypeFor[json.RawMessage]()
	ownMethods = []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	}
)

// newShape makes a type's shape; around are the structs it was met in.
func newShape(t reflect.Type, around []reflect.Type) *shape {
	s := &shape{typ: t, kind: t.Kind()}
	if t == rawMessage {
		s.kind = reflect.Invalid
		return s
	}
	if t == reflect.TypeFor[json.Number]() {
		return nil // a string that is written as a number
	}
	for _, m := range ownMethods {
		if t.Implements(m) || reflect.PointerTo(t).Implements(m) {
			return nil
		}
	}
	switch s.kind {
	case reflect.String, reflect.Bool:
		return s
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		s.kind = reflect.Int
		return s
	case reflect.Map:
		if k := newShape(t.Key(), around); k == nil || k.kind != reflect.String {
			return nil
		}
		fallthrough
	case reflect.Pointer, reflect.Slice:
		if s.elem = newShape(t.Elem(), around); s.elem == nil {
			return nil
		}
		return s
	case reflect.Struct:
		if slices.Contains(around, t) || !s.readFields(append(slices.Clip(around), t)) {
			return nil
		}
		return s
	}
	return nil
}

// readFields fills in the fields of a struct, sorted by key.
func (s *shape) readFields(around []reflect.Type) bool {
	for i := range s.typ.NumField() {
		sf := s.typ.Field(i)
		if sf.Anonymous {
			return false
		}
		tag := sf.Tag.Get("json")
		if !sf.IsExported() || tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" {
			name = sf.Name
		}
		f := field{key: `"` + name + `":`, index: i, shape: newShape(sf.Type, around)}
		if f.shape == nil || !isWord(name) || options != "" && options != "omitempty" {
			return false
		}
		f.optional = options != "" && f.shape.kind != reflect.Struct // which is never left out
		s.fields = append(s.fields, f)
	}
	slices.SortFunc(s.fields, func(a, b field) int {
		return strings.Compare(strings.Trim(a.key, `":`), strings.Trim(b.key, `":`))
	})
	for i := 1; i < len(s.fields); i++ {
		if s.fields[i].key == s.fields[i-1].key {
			return false
		}
	}
	return true
}

// isWord reports whether a key means the same to everyone: letters, digits, _.
func isWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

// isEmpty is what omitempty leaves out.
func (s *shape) isEmpty(v reflect.Value) bool {
	switch s.kind {
	case reflect.Invalid, reflect.String, reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}
