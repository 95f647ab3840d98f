package githubtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
)

// alter changes a good answer.
func (f *Fault) alter(w http.ResponseWriter, good *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	body := bytes.Clone(good.Body.Bytes())
	switch f.Kind {
	case Truncate:
		for key, values := range good.Header() {
			w.Header()[key] = values
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(good.Code)
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case Half:
		body = body[:len(body)/2]
	case LimitSpent:
		f.spend(good.Header())
	case LastPage:
		good.Header().Del("Link")
		body = bytes.ReplaceAll(body, []byte(`"hasNextPage":true`), []byte(`"hasNextPage":false`))
	default:
		body = f.rewrite(body)
	}
	good.Body.Reset()
	_, _ = good.Body.Write(body)
	return good
}

// rewrite changes the value that a body is.
func (f *Fault) rewrite(body []byte) []byte {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return body
	}
	if f.Kind == EmptyPage {
		v = emptied(v)
	}
	if answer, ok := v.(object); ok && f.Kind == GraphQLPartial {
		path := strings.Split(f.Text, ".")
		nullAt(answer["data"], path)
		answer["errors"] = []any{object{"message": "Something went wrong while executing your query.", "path": path}}
	}
	out, err := json.Marshal(v)
	if err != nil {
		return body
	}
	return out
}

func nullAt(v any, path []string) {
	o, ok := v.(object)
	switch {
	case !ok:
	case len(path) == 1:
		o[path[0]] = nil
	default:
		nullAt(o[path[0]], path[1:])
	}
}

// emptied is a list without its items, or an answer without its nodes.
func emptied(v any) any {
	switch v := v.(type) {
	case []any:
		return []any{}
	case object:
		for key, value := range v {
			if list, ok := value.([]any); ok && key != "errors" {
				v[key] = list[:0]
			} else if inner, ok := value.(object); ok {
				v[key] = emptied(inner)
			}
		}
	}
	return v
}
