package canon

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"
)

// unmarshal is the fast half of Unmarshal: it decodes while it scans. Without it
// an audit takes 1.6 times as long, and longer than git fsck (BenchmarkAudit). True
// means that v is what Unmarshal's definition would make it; after false v is
// empty, and the definition has to decide.
//
// It can only be true for bytes that Marshal would write of v: every key of the
// struct is there, in order, once, and in its letter case, nothing empty stands
// where omitempty would leave it out, and every value is of the type's form.
func unmarshal(body []byte, v any) bool {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() || !p.Elem().IsZero() {
		return false
	}
	s := shapeOf(p.Type().Elem())
	if s == nil {
		return false
	}
	d := decoder{scanner: scanner{data: body}, all: string(body)}
	if d.decode(s, p.Elem(), 0) && d.pos == len(body) {
		return true
	}
	p.Elem().SetZero()
	return false
}

// A decoder is a scanner that keeps what it moves over. all is a copy of data,
// of which the strings without escapes are parts.
type decoder struct {
	scanner
	all string
}

// decode moves over a value and puts it into v, which is empty.
func (d *decoder) decode(s *shape, v reflect.Value, depth int) bool {
	switch s.kind {
	case reflect.String:
		text, ok := d.string()
		v.SetString(text)
		return ok
	case reflect.Bool:
		v.SetBool(d.word("true"))
		return v.Bool() || d.word("false")
	case reflect.Int:
		n, ok := d.integer()
		if !ok || v.OverflowInt(n) {
			return false
		}
		v.SetInt(n)
		return true
	case reflect.Struct:
		return depth < MaxDepth && d.fields(s, v, depth+1)
	case reflect.Invalid:
		start := d.pos
		if !d.value(depth) {
			return false
		}
		v.SetBytes(bytes.Clone(d.data[start:d.pos]))
		return true
	}
	if d.word("null") {
		return true // v is nil already
	}
	switch s.kind {
	case reflect.Pointer:
		v.Set(reflect.New(s.elem.typ))
		return d.decode(s.elem, v.Elem(), depth)
	case reflect.Slice:
		return depth < MaxDepth && d.list(s, v, depth+1)
	case reflect.Map:
		return depth < MaxDepth && d.table(s, v, depth+1)
	}
	return false
}

func (d *decoder) string() (string, bool) {
	t, ok := d.text()
	if !ok {
		return "", false
	}
	if t.escaped {
		return unescape(d.all[t.start:t.end]), true
	}
	return d.all[t.start:t.end], true
}

// unescape takes the canonical escapes out of a string.
func unescape(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			out.WriteString(s)
			return out.String()
		}
		out.WriteString(s[:i])
		if s[i+1] == 'u' { // \u00xx
			out.WriteByte(s[i+4]&1<<4 | digit(s[i+5]))
			s = s[i+6:]
			continue
		}
		out.WriteByte(escapes[s[i+1]])
		s = s[i+2:]
	}
}

// digit is the value of a lower-case hex digit.
func digit(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

func (d *decoder) fields(s *shape, v reflect.Value, depth int) bool {
	if !d.accept('{') {
		return false
	}
	first := true
	for i := range s.fields {
		f := &s.fields[i]
		start := d.pos
		if !first && !d.accept(',') || !d.word(f.key) {
			if d.pos = start; f.optional {
				continue
			}
			return false
		}
		first = false
		value := v.Field(f.index)
		if !d.decode(f.shape, value, depth) || f.optional && f.shape.isEmpty(value) {
			return false
		}
	}
	return d.accept('}')
}

func (d *decoder) list(s *shape, v reflect.Value, depth int) bool {
	if !d.accept('[') {
		return false
	}
	if d.accept(']') {
		v.Set(reflect.MakeSlice(s.typ, 0, 0))
		return true
	}
	for i := 0; ; i++ {
		v.Grow(1)
		v.SetLen(i + 1)
		if !d.decode(s.elem, v.Index(i), depth) {
			return false
		}
		if d.accept(']') {
			return true
		}
		if !d.accept(',') {
			return false
		}
	}
}

func (d *decoder) table(s *shape, v reflect.Value, depth int) bool {
	if !d.accept('{') {
		return false
	}
	v.Set(reflect.MakeMap(s.typ))
	if d.accept('}') {
		return true
	}
	keyType, last := s.typ.Key(), ""
	for first := true; ; first = false {
		start := d.pos + 1
		raw, ok := d.key()
		if !ok {
			return false // also where the text ends here
		}
		key := d.all[start : start+len(raw)]
		if !first && last >= key {
			return false
		}
		value := reflect.New(s.elem.typ).Elem()
		if !d.decode(s.elem, value, depth) {
			return false
		}
		v.SetMapIndex(reflect.ValueOf(key).Convert(keyType), value)
		last = key
		if d.accept('}') {
			return true
		}
		if !d.accept(',') {
			return false
		}
	}
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
	sort.Slice(s.fields, func(i, j int) bool {
		return strings.Trim(s.fields[i].key, `":`) < strings.Trim(s.fields[j].key, `":`)
	})
	for i := 1; i < len(s.fields); i++ {
		if s.fields[i].key == s.fields[i-1].key {
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
