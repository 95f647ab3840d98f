package githubtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"
)

// A FaultKind is a way in which a request goes wrong.
type FaultKind string

// With the last seven the server does what it was asked for; with the others it
// does not, unless the Fault says After.
const (
	Status         FaultKind = "status"          // Fault.Status
	SecondaryLimit FaultKind = "secondary limit" // 403, or Fault.Status, with Retry-After
	PrimaryLimit   FaultKind = "primary limit"   // 403, or Fault.Status, none remaining, with x-ratelimit-reset
	Cut            FaultKind = "cut"             // the connection is closed without an answer
	Body           FaultKind = "body"            // 200 with Fault.Text
	GraphQLError   FaultKind = "graphql error"   // 200 with errors and no data; Fault.Text is the message
	Truncate       FaultKind = "truncate"        // half of the answer, then the connection is closed
	Half           FaultKind = "half"            // half of the answer, properly ended
	LastPage       FaultKind = "last page"       // no Link; hasNextPage is false
	EmptyPage      FaultKind = "empty page"      // a list without its items; nodes are empty
	GraphQLPartial FaultKind = "graphql partial" // 200; null at Fault.Text, such as repository.pullRequest.reviews, and an error
	GraphQLNull    FaultKind = "graphql null"    // 200; null at Fault.Text, as where GitHub does not know it yet
	LimitSpent     FaultKind = "limit spent"     // as it is, with 0 remaining
)

// A Fault lets requests go wrong. It is for those of Method ("" is any) whose
// path, with /api/v3, begins with Path, and whose body has Contains in it; the
// first Skip of them go well, then Times (0 is once, -1 is for ever) do not.
type Fault struct {
	Method, Path, Contains string
	Skip, Times            int
	Kind                   FaultKind
	Status                 int
	Seconds                int // of Retry-After, or until the reset
	Text                   string
	After                  bool // the server does what it was asked for first

	now func() time.Time // the server's clock
}

// Fail lets requests go wrong from now on.
func (s *Server) Fail(f Fault) {
	defer s.lock()()
	f.Kind, f.Times = cmp.Or(f.Kind, Status), cmp.Or(f.Times, 1)
	f.now = s.now
	s.faults = append(s.faults, &f)
}

// Heal ends all faults.
func (s *Server) Heal() {
	defer s.lock()()
	s.faults = nil
}

// due is the fault of a request, nil for none.
func (s *Server) due(r *Request) *Fault {
	for _, f := range s.faults {
		if f.Times == 0 || f.Method != "" && f.Method != r.Method || !strings.HasPrefix(r.Path, f.Path) || !strings.Contains(r.Body, f.Contains) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			continue
		}
		if f.Times > 0 {
			f.Times--
		}
		now := *f
		return &now
	}
	return nil
}

// around answers a request by do, or as the fault has it.
func (s *Server) around(w http.ResponseWriter, seen *Request, f *Fault, do func(*httptest.ResponseRecorder)) {
	recorded := httptest.NewRecorder()
	if f == nil || f.serves() {
		do(recorded)
	}
	if f != nil {
		recorded = f.spoil(w, recorded)
	}
	s.mu.Lock()
	seen.Status = recorded.Code
	s.mu.Unlock()
	maps.Copy(w.Header(), recorded.Header())
	w.WriteHeader(recorded.Code)
	_, _ = w.Write(recorded.Body.Bytes())
}

func (f *Fault) serves() bool {
	switch f.Kind {
	case Truncate, Half, LastPage, EmptyPage, GraphQLPartial, GraphQLNull, LimitSpent:
		return true
	}
	return f.After
}

// spoil is what comes in an answer's stead.
func (f *Fault) spoil(w http.ResponseWriter, good *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	bad := httptest.NewRecorder()
	switch f.Kind {
	case Status:
		refuse(f.Status, "fault").write(bad)
	case SecondaryLimit:
		bad.Header().Set("Retry-After", strconv.Itoa(f.Seconds))
		refuse(cmp.Or(f.Status, http.StatusForbidden), "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.").write(bad)
	case PrimaryLimit:
		refuse(cmp.Or(f.Status, http.StatusForbidden), "API rate limit exceeded for installation.").write(bad)
		f.spend(bad.Header())
	case Cut:
		panic(http.ErrAbortHandler)
	case Body:
		_, _ = bad.WriteString(f.Text)
	case GraphQLError:
		answer{status: http.StatusOK, body: object{"data": nil, "errors": []any{object{"message": f.Text}}}}.write(bad)
	default:
		return f.alter(w, good)
	}
	return bad
}

func (f *Fault) spend(h http.Header) {
	h.Set("X-Ratelimit-Remaining", "0")
	h.Set("X-Ratelimit-Reset", fmt.Sprint(f.now().Unix()+int64(f.Seconds)))
}

// alter changes a good answer.
func (f *Fault) alter(w http.ResponseWriter, good *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	body := bytes.Clone(good.Body.Bytes())
	switch f.Kind {
	case Truncate:
		maps.Copy(w.Header(), good.Header())
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
	if answer, ok := v.(object); ok && (f.Kind == GraphQLPartial || f.Kind == GraphQLNull) {
		path := strings.Split(f.Text, ".")
		at, _ := answer["data"].(object)
		for _, name := range path[:len(path)-1] {
			at, _ = at[name].(object)
		}
		if at != nil {
			at[path[len(path)-1]] = nil
		}
		if f.Kind == GraphQLPartial {
			answer["errors"] = []any{object{"message": "Something went wrong while executing your query.", "path": path}}
		}
	}
	out, err := json.Marshal(v)
	if err != nil {
		return body
	}
	return out
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
