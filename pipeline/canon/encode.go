package canon

import (
	"reflect"
	"strconv"
	"unicode/utf8"
)

// appendShaped is the fast half of appendOther: it writes a Go value of a known
// shape without the way over encoding/json. False means that it does not know
// (text that is not UTF-8, large numbers, deep nesting).
func appendShaped(b []byte, s *shape, v reflect.Value, depth int) ([]byte, bool) {
	switch s.kind {
	case reflect.String:
		return appendText(b, v.String())
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), true
	case reflect.Int:
		return appendInt(b, v.Int())
	case reflect.Struct:
		return appendFields(b, s, v, depth)
	case reflect.Invalid:
		raw := scanner{data: v.Bytes()}
		ok := raw.value(depth) && raw.pos == len(raw.data)
		return append(b, raw.data...), ok
	}
	if v.IsNil() {
		return append(b, "null"...), true
	}
	switch s.kind {
	case reflect.Pointer:
		return appendShaped(b, s.elem, v.Elem(), depth)
	case reflect.Slice:
		return appendList(b, s, v, depth)
	case reflect.Map:
		return appendTable(b, s, v, depth)
	}
	return b, false
}

func appendText(b []byte, s string) ([]byte, bool) {
	if !utf8.ValidString(s) {
		return b, false
	}
	b, err := appendString(b, s)
	return b, err == nil
}

// maxInteger bounds the numbers of maxDigits digits.
const maxInteger = 1e15

func appendInt(b []byte, n int64) ([]byte, bool) {
	return strconv.AppendInt(b, n, 10), -maxInteger < n && n < maxInteger
}

func appendFields(b []byte, s *shape, v reflect.Value, depth int) ([]byte, bool) {
	if depth == MaxDepth {
		return b, false
	}
	b = append(b, '{')
	first := true
	for i := range s.fields {
		f := &s.fields[i]
		value := v.Field(f.index)
		if f.optional && f.shape.isEmpty(value) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		var ok bool
		if b, ok = appendShaped(append(b, f.key...), f.shape, value, depth+1); !ok {
			return b, false
		}
	}
	return append(b, '}'), true
}

func appendList(b []byte, s *shape, v reflect.Value, depth int) ([]byte, bool) {
	if depth == MaxDepth {
		return b, false
	}
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		var ok bool
		if b, ok = appendShaped(b, s.elem, v.Index(i), depth+1); !ok {
			return b, false
		}
	}
	return append(b, ']'), true
}

func appendTable(b []byte, s *shape, v reflect.Value, depth int) ([]byte, bool) {
	if depth == MaxDepth {
		return b, false
	}
	var few [16]string
	keys := few[:0]
	for k := range v.Seq() {
		keys = append(keys, k.String())
	}
	sortKeys(keys)
	b = append(b, '{')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		var ok bool
		if b, ok = appendText(b, k); !ok {
			return b, false
		}
		value := v.MapIndex(reflect.ValueOf(k).Convert(s.typ.Key()))
		if b, ok = appendShaped(append(b, ':'), s.elem, value, depth+1); !ok {
			return b, false
		}
	}
	return append(b, '}'), true
}
