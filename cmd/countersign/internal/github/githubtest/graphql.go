package githubtest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

//go:embed testdata/schema.graphql
var schemaText string

// loadSchema returns GitHub's schema of its GraphQL API, cut down.
var loadSchema = sync.OnceValue(func() *ast.Schema {
	return gqlparser.MustLoadSchema(&ast.Source{Name: "schema.graphql", Input: schemaText})
})

// A node is an object that a query may ask for fields of: values, nodes, lists
// of nodes, or functions of the arguments that return one of these.
type node struct {
	kind   string
	fields map[string]any
}

type resolver func(arguments map[string]any) any

// A fieldProblem is what a resolver returns instead of a value.
type fieldProblem struct{ kind, message string }

type request struct {
	Query     string         `json:"query"`
	Name      string         `json:"operationName"`
	Variables map[string]any `json:"variables"`
}

// serveGraphQL answers a query.
func (s *Server) serveGraphQL(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var given request
	malformed := json.Unmarshal(body, &given)
	doc, problem := parser.ParseQuery(&ast.Source{Input: given.Query})
	write := problem == nil && slices.ContainsFunc(doc.Operations, func(o *ast.OperationDefinition) bool { return o.Operation == ast.Mutation })
	seen, fault := s.note("graphql", r, body, write)
	s.around(w, seen, fault, func(w *httptest.ResponseRecorder) {
		if malformed != nil || r.Method != http.MethodPost {
			refuse(http.StatusBadRequest, "Problems parsing JSON").write(w)
			return
		}
		problems, variables := []any{object{"message": fmt.Sprint("parse error: ", problem)}}, map[string]any(nil)
		if problem == nil {
			problems, variables = check(doc, given)
		}
		for _, p := range problems {
			s.violation("query: %v", p.(object)["message"])
		}
		if problems != nil {
			ok(object{"errors": problems}).write(w)
			return
		}
		s.query(r, doc.Operations.ForName(given.Name), variables).write(w)
	})
}

// check holds a query against the schema and GitHub's limits before it is run, as
// GitHub does, and returns the errors, none if it may run, and the variables with
// their defaults.
func check(doc *ast.QueryDocument, given request) (problems []any, variables map[string]any) {
	for _, p := range validator.ValidateWithRules(loadSchema(), doc, rules.NewDefaultRules()) {
		problems = append(problems, object{"message": p.Message, "extensions": object{"code": p.Rule}})
	}
	if problems != nil {
		return problems, nil
	}
	operation := doc.Operations.ForName(given.Name)
	if operation == nil {
		return []any{object{"message": "No operation named " + given.Name}}, nil
	}
	for name := range given.Variables {
		if operation.VariableDefinitions.ForName(name) == nil {
			problems = append(problems, object{"message": fmt.Sprintf("Variable $%s was provided and is not declared", name)})
		}
	}
	variables, err := validator.VariableValues(loadSchema(), operation, given.Variables)
	if err != nil {
		return append(problems, object{"message": "invalid variable: " + err.Error()}), nil
	}
	c := &counter{variables: variables, problems: problems}
	c.set(operation.SelectionSet, 1)
	if c.nodes > maxNodes {
		c.problems = append(c.problems, object{"message": fmt.Sprintf(
			"This query requests up to %d possible nodes which exceeds the maximum limit of %d.", c.nodes, maxNodes)})
	}
	return c.problems, variables
}

// maxNodes is how many nodes one query may ask for (GitHub's documentation,
// "Node limit").
const maxNodes = 500_000

// A counter counts the nodes that a query may ask for, and sees to it that each
// connection is paged through.
type counter struct {
	variables map[string]any
	nodes     int
	problems  []any
}

// set counts what is below a selection that is asked for times many times.
func (c *counter) set(set ast.SelectionSet, times int) {
	for _, selection := range set {
		switch f := selection.(type) {
		case *ast.InlineFragment:
			c.set(f.SelectionSet, times)
		case *ast.FragmentSpread:
			c.set(f.Definition.SelectionSet, times)
		case *ast.Field:
			c.set(f.SelectionSet, c.size(f, times))
		}
	}
}

func (c *counter) size(f *ast.Field, times int) int {
	arguments := f.ArgumentMap(c.variables)
	if ids, ok := arguments["ids"].([]any); ok {
		return times * len(ids)
	}
	if !strings.HasSuffix(f.Definition.Type.Name(), "Connection") {
		return times
	}
	size, bounded := number(arguments["first"])
	if !bounded {
		size, bounded = number(arguments["last"])
	}
	switch {
	case !bounded:
		c.problems = append(c.problems, object{"message": fmt.Sprintf(
			"You must provide a `first` or `last` value to properly paginate the `%s` connection.", f.Name)})
	case size < 1 || size > 100:
		c.problems = append(c.problems, object{"message": fmt.Sprintf(
			"Requesting %d records on the `%s` connection exceeds the `first` limit of 100 records.", size, f.Name)})
	}
	c.nodes += times * size
	return times * size
}

// An execution is one query as it is run.
type execution struct {
	schema     *ast.Schema
	variables  map[string]any
	violations []string
	errors     []any
}

// query runs an operation that was checked.
func (s *Server) query(r *http.Request, operation *ast.OperationDefinition, variables map[string]any) answer {
	x := &execution{schema: loadSchema(), variables: variables}
	out := object{}
	func() {
		defer s.lock()()
		if t := s.authenticate(r); t != nil && t.account != nil {
			g := &graph{s, t}
			root := map[ast.Operation]func() *node{ast.Query: g.query, ast.Mutation: g.mutation}[operation.Operation]
			out["data"] = x.set(object{}, root(), operation.SelectionSet, nil)
		}
	}()
	if out["data"] == nil {
		return refuse(http.StatusUnauthorized, "This endpoint requires you to be authenticated.")
	}
	for _, v := range x.violations {
		s.violation("query: %s", v)
	}
	if x.errors != nil {
		out["errors"] = x.errors
	}
	return ok(out)
}

// set adds the selected fields of a node to out.
func (x *execution) set(out object, n *node, set ast.SelectionSet, path []any) object {
	for _, selection := range set {
		switch f := selection.(type) {
		case *ast.Field:
			switch {
			case x.skips(f.Directives):
			case f.Name == "__typename":
				out[f.Alias] = n.kind
			default:
				out[f.Alias] = merged(out[f.Alias], x.field(n, f, append(slices.Clone(path), f.Alias)))
			}
		case *ast.FragmentSpread:
			if !x.skips(f.Directives) && x.is(n, f.Definition.TypeCondition) {
				x.set(out, n, f.Definition.SelectionSet, path)
			}
		case *ast.InlineFragment:
			if !x.skips(f.Directives) && x.is(n, f.TypeCondition) {
				x.set(out, n, f.SelectionSet, path)
			}
		}
	}
	return out
}

// is reports whether a node is of a type, an interface or "" for any.
func (x *execution) is(n *node, kind string) bool {
	return kind == "" || slices.ContainsFunc(x.schema.PossibleTypes[kind], func(t *ast.Definition) bool { return t.Name == n.kind })
}

func (x *execution) skips(directives ast.DirectiveList) bool {
	for _, d := range directives {
		if on, _ := d.ArgumentMap(x.variables)["if"].(bool); on == (d.Name == "skip") {
			return true
		}
	}
	return false
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

func (x *execution) field(n *node, f *ast.Field, path []any) any {
	value, known := n.fields[f.Name]
	if !known {
		x.violations = append(x.violations, fmt.Sprintf("the stand-in does not answer %s.%s", n.kind, f.Name))
		return nil
	}
	if do, ok := value.(resolver); ok {
		value = do(f.ArgumentMap(x.variables))
	}
	return x.value(n, f, value, path)
}

// value is what a field is: values that are nodes have fields of their own.
func (x *execution) value(n *node, f *ast.Field, value any, path []any) any {
	switch v := value.(type) {
	case fieldProblem:
		x.errors = append(x.errors, object{"type": v.kind, "message": v.message, "path": path})
		return nil
	case *node:
		if v != nil {
			return x.set(object{}, v, f.SelectionSet, path)
		}
		value = nil
	case []any:
		list := []any{}
		for i, one := range v {
			list = append(list, x.value(n, f, one, append(slices.Clone(path), i)))
		}
		return list
	}
	if value == nil && x.schema.Types[n.kind].Fields.ForName(f.Name).Type.NonNull {
		x.violations = append(x.violations, fmt.Sprintf("the stand-in answers null for %s.%s", n.kind, f.Name))
	}
	return value
}

// number is an integer of a query, or of its variables, which are JSON.
func number(v any) (int, bool) {
	switch n := v.(type) {
	case int64:
		return int(n), true
	case float64:
		return int(n), true
	}
	return 0, false
}

// word is a string, "" for anything else.
func word(v any) string {
	s, _ := v.(string)
	return s
}
