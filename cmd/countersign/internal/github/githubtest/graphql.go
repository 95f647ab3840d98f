package githubtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
)

// A node is an object that a query may ask for fields of: values, nodes, lists
// of nodes, or functions of the arguments that return one of these.
type node struct {
	kind   string
	fields map[string]any
}

type resolver func(arguments map[string]any) any

// A fieldProblem is what a resolver returns in the stead of a value.
type fieldProblem struct{ kind, message string }

// serveGraphQL answers a query.
func (s *Server) serveGraphQL(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var given request
	malformed := json.Unmarshal(body, &given)
	d, problem := parse(given.Query)
	write := problem == nil && slices.ContainsFunc(d.operations, func(q *query) bool { return q.kind == "mutation" })
	seen, fault := s.note("graphql", r, body, write)
	s.around(w, seen, fault, func(w *httptest.ResponseRecorder) {
		if malformed != nil || r.Method != http.MethodPost {
			refuse(http.StatusBadRequest, "Problems parsing JSON").write(w)
			return
		}
		if problem != nil {
			s.violation("query: %v", problem)
			failed(object{"message": problem.Error()}).write(w)
			return
		}
		s.query(r, d, given).write(w)
	})
}

type request struct {
	Query     string         `json:"query"`
	Name      string         `json:"operationName"`
	Variables map[string]any `json:"variables"`
}

func failed(errors ...any) answer { return ok(object{"errors": errors}) }

func (s *Server) query(r *http.Request, d *document, given request) answer {
	i := slices.IndexFunc(d.operations, func(q *query) bool { return given.Name == "" || q.name == given.Name })
	if i < 0 {
		return failed(object{"message": "No operation named " + given.Name})
	}
	table, err := loadSchema()
	if err != nil {
		misuse("%v", err)
	}
	check := &checker{schema: table, document: d, query: d.operations[i], variables: given.Variables, used: map[string]bool{}}
	if problems := check.check(); problems != nil {
		for _, p := range problems {
			s.violation("query: %v", p.(object)["message"])
		}
		return failed(problems...)
	}
	x, status := s.execute(r, check)
	if status != 0 {
		return refuse(status, "This endpoint requires you to be authenticated.")
	}
	for _, v := range x.violations {
		s.violation("query: %s", v)
	}
	out := object{"data": x.data}
	if x.errors != nil {
		out["errors"] = x.errors
	}
	return ok(out)
}

// An execution is one query as it is run.
type execution struct {
	*checker
	data       any
	violations []string
	errors     []any
}

func (s *Server) execute(r *http.Request, c *checker) (*execution, int) {
	defer s.lock()()
	t := s.authenticate(r)
	if t == nil || t.account == nil {
		return nil, http.StatusUnauthorized
	}
	x := &execution{checker: &checker{schema: c.schema, document: c.document, query: c.query, variables: c.variables}}
	g := &graph{s, t}
	root := g.query()
	if c.query.kind == "mutation" {
		root = g.mutation()
	}
	x.data = x.set(root, c.query.set, nil)
	return x, 0
}

// set returns the selected fields of a node.
func (x *execution) set(n *node, set []selection, path []any) object {
	out := object{}
	x.into(out, n, set, path)
	return out
}

func (x *execution) into(out object, n *node, set []selection, path []any) {
	for _, f := range set {
		if x.skips(f) {
			continue
		}
		switch {
		case f.spread != "":
			named := x.document.fragments[f.spread]
			x.fragment(out, n, named.on, named.set, path)
		case f.inline:
			x.fragment(out, n, or(f.on, n.kind), f.set, path)
		case f.name == "__typename":
			out[f.key()] = n.kind
		default:
			value := x.field(n, f, append(slices.Clone(path), f.key()))
			out[f.key()] = merged(out[f.key()], value)
		}
	}
}

func (x *execution) fragment(out object, n *node, on string, set []selection, path []any) {
	if on == n.kind || on == "Node" || slices.Contains(x.schema.Types[on].Possible, n.kind) {
		x.into(out, n, set, path)
	}
}

// merged is a field that was selected twice.
func merged(before, now any) any {
	a, ok := before.(object)
	b, also := now.(object)
	if !ok || !also {
		return now
	}
	for key, value := range b {
		a[key] = merged(a[key], value)
	}
	return a
}

func (x *execution) skips(f selection) bool {
	for name, arguments := range f.directives {
		if on, _ := resolved(arguments["if"], x.query, x.variables).(bool); on == (name == "skip") {
			return true
		}
	}
	return false
}

func (x *execution) field(n *node, f selection, path []any) any {
	value, known := n.fields[f.name]
	if !known {
		x.violations = append(x.violations, fmt.Sprintf("the stand-in does not answer %s.%s", n.kind, f.name))
		return nil
	}
	if do, ok := value.(resolver); ok {
		arguments, _ := resolved(f.arguments, x.query, x.variables).(map[string]any)
		value = do(arguments)
	}
	return x.value(n, f, value, path)
}

// value is what a field is: values that are nodes have fields of their own.
func (x *execution) value(n *node, f selection, value any, path []any) any {
	switch v := value.(type) {
	case fieldProblem:
		x.errors = append(x.errors, object{"type": v.kind, "message": v.message, "path": path})
		return nil
	case *node:
		if v != nil {
			return x.set(v, f.set, path)
		}
		value = nil
	case []*node:
		list := []any{}
		for i, one := range v {
			list = append(list, x.set(one, f.set, append(slices.Clone(path), i)))
		}
		return list
	case []any:
		list := []any{}
		for i, one := range v {
			list = append(list, x.value(n, f, one, append(slices.Clone(path), i)))
		}
		return list
	}
	if value == nil && strings.HasSuffix(x.schema.Types[n.kind].Fields[f.name].Type, "!") {
		x.violations = append(x.violations, fmt.Sprintf("the stand-in answers null for %s.%s", n.kind, f.name))
	}
	return value
}
