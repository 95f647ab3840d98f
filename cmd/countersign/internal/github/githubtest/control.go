package githubtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// beyond are the methods that cannot be called by name.
var beyond = []string{"Call", "Close", "SetNow"}

// Call calls a method of the server by its name, for tests that are no Go
// programs. The arguments are a JSON list, or one object alone; names of fields
// may be in any case, those that are not there are an error. It returns what the
// method does, nil for nothing, and misuse as an error.
func (s *Server) Call(method string, arguments []byte) (result any, err error) {
	f := reflect.ValueOf(s).MethodByName(method)
	if !f.IsValid() || slices.Contains(beyond, method) {
		return nil, fmt.Errorf("no method %q", method)
	}
	in, err := decode(f.Type(), arguments)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("%s: %v", method, problem)
		}
	}()
	out := f.Call(in)
	if len(out) == 0 {
		return nil, nil
	}
	return out[0].Interface(), nil
}

func decode(f reflect.Type, arguments []byte) ([]reflect.Value, error) {
	var list []json.RawMessage
	switch text := bytes.TrimSpace(arguments); {
	case len(text) == 0:
	case text[0] == '[':
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, err
		}
	default:
		list = []json.RawMessage{text}
	}
	least := f.NumIn()
	if f.IsVariadic() {
		least--
	}
	if len(list) < least || len(list) > f.NumIn() && !f.IsVariadic() {
		return nil, fmt.Errorf("%d arguments, want %d", len(list), f.NumIn())
	}
	var in []reflect.Value
	for i, one := range list {
		kind := f.In(min(i, f.NumIn()-1))
		if f.IsVariadic() && i >= least {
			kind = kind.Elem()
		}
		value := reflect.New(kind)
		d := json.NewDecoder(bytes.NewReader(one))
		d.DisallowUnknownFields()
		if err := d.Decode(value.Interface()); err != nil {
			return nil, err
		}
		in = append(in, value.Elem())
	}
	return in, nil
}

// serveControl is POST /_test/Method with the arguments as the body. Text and
// numbers are answered plain, everything else in JSON.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	arguments, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	result, err := s.Call(strings.TrimPrefix(r.URL.Path, "/_test/"), arguments)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch result := result.(type) {
	case nil:
	case string, int64:
		fmt.Fprintln(w, result)
	case []byte:
		_, _ = w.Write(result)
	default:
		_ = json.NewEncoder(w).Encode(result)
	}
}
