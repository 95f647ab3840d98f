package canon

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

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
