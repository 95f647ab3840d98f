package githubtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
)

type object = map[string]any

// A call is one request to the REST API, with what is known of it.
type call struct {
	*http.Request
	operation operation
	token     *token
	repo      *repository // of the path, nil if it names none
	body      object      // nil if there was none
}

// An answer is what a call is answered with; a nil body is none.
type answer struct {
	status int
	body   any
	header http.Header
}

// An operation is one of the REST API. The path is GitHub's template for it;
// need is the permission that it takes in the repository, "" for none.
type operation struct {
	method, path string
	need         string
	do           func(*Server, *call) answer
}

func operations() []operation {
	all := [][]operation{peopleOperations, repositoryOperations, pullOperations, commentOperations, checkOperations, runOperations, ruleOperations, installationOperations}
	var list []operation
	for _, some := range all {
		list = append(list, some...)
	}
	return list
}

// serveREST routes a request, and records its answer so that it can be held
// against the description and go wrong on demand.
func (s *Server) serveREST(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	seen, fault := s.note("rest", r, body, r.Method != http.MethodGet)
	s.around(w, seen, fault, func(w *httptest.ResponseRecorder) {
		inner := r.Clone(r.Context())
		inner.Body = io.NopCloser(bytes.NewReader(body))
		inner.URL.Path = strings.TrimPrefix(r.URL.Path, "/api/v3")
		inner.URL.RawPath = strings.TrimPrefix(r.URL.RawPath, "/api/v3")
		o, known := find(operations(), inner)
		if !known {
			s.violation("%s %s is no operation of the stand-in", r.Method, r.URL.Path)
			notFound.write(w)
			return
		}
		s.perform(o, w, inner)
	})
}

// perform does what all operations have in common: who asks, may they, is the
// request as described, and is the answer.
func (s *Server) perform(o operation, w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	check := s.rest.request(o, r, body)
	for _, v := range check.violations {
		s.violation("request %s %s: %s", r.Method, r.URL.Path, v)
	}
	recorded := httptest.NewRecorder()
	a := s.answer(o, &call{Request: r, operation: o}, body, recorded.Header())
	a.write(recorded)
	if err := check.response(recorded); err != nil {
		s.violation("answer %d to %s %s: %v", a.status, r.Method, r.URL.Path, err)
	}
	copyAnswer(w, recorded)
}

func (s *Server) answer(o operation, c *call, body []byte, header http.Header) answer {
	defer s.lock()()
	if s.enterprise != "" {
		header.Set("X-Github-Enterprise-Version", s.enterprise)
	}
	c.token = s.authenticate(c.Request)
	if c.token == nil {
		return refuse(http.StatusUnauthorized, "Bad credentials")
	}
	if len(body) > 0 && json.Unmarshal(body, &c.body) != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	if name := c.PathValue("repo"); name != "" {
		c.repo = s.findRepository(c.PathValue("owner") + "/" + name)
		if c.repo == nil || !s.sees(c.token, c.repo) {
			return notFound
		}
	}
	if permission, level, ok := strings.Cut(o.need, ":"); ok && !s.may(c.token, c.repo, permission, level) {
		return c.forbidden()
	}
	return o.do(s, c)
}

// forbidden is the answer to who may see a thing and not do that with it.
func (c *call) forbidden() answer {
	switch {
	case c.token.app:
		return refuse(http.StatusForbidden, "Resource not accessible by integration")
	case c.token.account == nil:
		return refuse(http.StatusUnauthorized, "Requires authentication")
	case c.operation.need == "checks:write":
		return refuse(http.StatusForbidden, "You must authenticate via a GitHub App.")
	}
	return refuse(http.StatusForbidden, "Must have push access to the repository.")
}

var notFound = refuse(http.StatusNotFound, "Not Found")

func refuse(status int, message string) answer {
	return answer{status: status, body: object{"message": message, "documentation_url": "https://docs.github.com/rest", "status": http.StatusText(status)}}
}

// invalid is what GitHub answers to a field that cannot be as it is.
func invalid(resource, field, message string) answer {
	problem := object{"resource": resource, "field": field, "code": "custom", "message": message}
	return answer{status: http.StatusUnprocessableEntity, body: object{
		"message": "Validation Failed", "documentation_url": "https://docs.github.com/rest", "errors": []any{problem},
	}}
}

func ok(body any) answer      { return answer{status: http.StatusOK, body: body} }
func created(body any) answer { return answer{status: http.StatusCreated, body: body} }

func (a answer) write(w http.ResponseWriter) {
	for key, values := range a.header {
		w.Header()[key] = values
	}
	w.Header().Set("X-Ratelimit-Limit", "5000")
	w.Header().Set("X-Ratelimit-Remaining", "4999")
	if a.body == nil {
		w.WriteHeader(a.status)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(a.status)
	encoder := json.NewEncoder(w)
	_ = encoder.Encode(a.body)
}

func copyAnswer(w http.ResponseWriter, from *httptest.ResponseRecorder) {
	for key, values := range from.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(from.Code)
	_, _ = w.Write(from.Body.Bytes())
}
