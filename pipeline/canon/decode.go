package canon

import (
	"bytes"
	"reflect"
	"strings"
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
		key := d.all[start : start+len(raw)]
		if !ok || !first && last >= key {
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
