package canon

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Unmarshal reads a record that we wrote into v, and refuses what we would not
// have written: another key order, white space, duplicate or unknown keys, a
// key that is missing or in the wrong case. One trailing LF is allowed. What v
// held is lost; after an error it holds nothing to rely on.
func Unmarshal(data []byte, v any) error {
	body := bytes.TrimSuffix(data, []byte("\n"))
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return errors.New("decoding JSON: no pointer to a record")
	}
	p.Elem().SetZero()
	d := decoder{reader{text: string(body)}}
	if err := d.decode(p.Elem(), 0); err == nil && d.pos == len(d.text) && !d.odd && !d.lone {
		return nil
	}
	if _, err := Parse(body); err != nil {
		return err
	}
	if !IsCanonical(body) {
		return errors.New("not canonical JSON (RFC 8785)")
	}
	return errRecord
}

var errRecord = errors.New("not as this record is written")

// A decoder puts what it reads into the values of a record. It takes only what Marshal writes of them: each
// member of a struct in its place, none that omitempty leaves out, null only for what is nil.
type decoder struct{ reader }

// decode reads the next value into v, which is zero.
func (d *decoder) decode(v reflect.Value, depth int) error {
	c, t, start := d.peek(), v.Type(), d.pos
	switch kind := v.Kind(); {
	case t == rawMessage:
		lone := d.lone
		_, err := d.value(false, depth)
		d.lone = lone // it is kept as it is written
		v.SetBytes([]byte(d.text[start:d.pos]))
		return err
	case kind == reflect.Struct && c == '{':
		return d.decodeStruct(v, depth)
	case kind == reflect.String && c == '"':
		s, err := d.string()
		v.SetString(s)
		return err
	case kind == reflect.Slice && c == '[':
		v.Set(reflect.MakeSlice(t, 0, 0))
		return d.list(']', depth, func() error {
			n := v.Len()
			v.Grow(1)
			v.SetLen(n + 1)
			return d.decode(v.Index(n), depth+1)
		})
	case kind == reflect.Map && c == '{':
		v.Set(reflect.MakeMap(t))
		return d.object(depth, func(key string, _ int) error {
			one := reflect.New(t.Elem()).Elem()
			err := d.decode(one, depth+1)
			v.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), one)
			return err
		})
	case kind == reflect.Pointer && c != 'n':
		v.Set(reflect.New(t.Elem()))
		return d.decode(v.Elem(), depth)
	}
	read, err := d.value(true, depth)
	text := d.text[start:d.pos]
	switch kind := v.Kind(); {
	case err != nil:
		return err
	case kind == reflect.Interface && read != nil:
		v.Set(reflect.ValueOf(read))
	case kind == reflect.Bool && (c == 't' || c == 'f'):
		v.SetBool(c == 't')
	case v.CanInt():
		var n int64
		n, err = strconv.ParseInt(text, 10, t.Bits())
		v.SetInt(n)
	case text != "null" || kind != reflect.Pointer && kind != reflect.Slice && kind != reflect.Map && kind != reflect.Interface:
		return errRecord
	}
	return err
}

func (d *decoder) decodeStruct(v reflect.Value, depth int) error {
	left := fieldsOf(v.Type())
	err := d.object(depth, func(key string, _ int) error {
		i := slices.IndexFunc(left, func(f *field) bool { return f.key == key || !f.isOptional() })
		if i < 0 || left[i].key != key {
			return errRecord
		}
		f, value := left[i], v.FieldByIndex(left[i].index)
		left = left[i+1:]
		if err := d.decode(value, depth+1); err != nil {
			return err
		}
		if f.omitZero && value.IsZero() || f.omitEmpty && isEmpty(value) {
			return errRecord
		}
		return nil
	})
	if err == nil && slices.ContainsFunc(left, func(f *field) bool { return !f.isOptional() }) {
		return errRecord
	}
	return err
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

// A field is a member of a struct, as encoding/json has it.
type field struct {
	key                 string
	index               []int
	omitEmpty, omitZero bool
}

func (f *field) isOptional() bool { return f.omitEmpty || f.omitZero }

var structs sync.Map // of []*field, by reflect.Type

// fieldsOf returns the fields of a struct in the order of their keys, or nil for one that is left to encoding/json.
func fieldsOf(t reflect.Type) []*field {
	if known, ok := structs.Load(t); ok {
		return known.([]*field)
	}
	fields := []*field{}
	for _, f := range reflect.VisibleFields(t) { // those of embedded structs as well
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if options == "string" || isOdd(f.Type) {
			panic(fmt.Sprintf("canon: %v.%s is not what records are made of", t, f.Name))
		}
		if f.IsExported() && !f.Anonymous && f.Tag.Get("json") != "-" {
			fields = append(fields, &field{
				key: cmp.Or(name, f.Name), index: f.Index,
				omitZero: options == "omitzero", omitEmpty: options == "omitempty" && f.Type.Kind() != reflect.Struct, // which is never left out
			})
		}
	}
	slices.SortFunc(fields, func(a, b *field) int { return Compare(a.key, b.key) })
	structs.Store(t, fields)
	return fields
}

// isOdd reports whether a type, or what it has in it, is written by a method of its own.
func isOdd(t reflect.Type) bool {
	switch {
	case t == rawMessage:
		return false
	case t == reflect.TypeFor[json.Number](), t.Implements(reflect.TypeFor[json.Marshaler]()), t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return isOdd(t.Elem())
	}
	return false
}

// isEmpty reports whether omitempty leaves a value out.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}
