package githubtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxNodes is how many nodes one query may ask for (GitHub's documentation,
// "Node limit").
const maxNodes = 500_000

// A checker holds a query against the schema before it is run, as GitHub does.
type checker struct {
	schema    schema
	document  *document
	query     *query
	variables map[string]any
	used      map[string]bool
	errors    []any
	nodes     int
}

func (c *checker) fail(code, format string, a ...any) {
	c.errors = append(c.errors, object{"message": fmt.Sprintf(format, a...), "extensions": object{"code": code}})
}

// check returns the errors of a query, none if it may run.
func (c *checker) check() []any {
	for name, p := range c.query.variables {
		if value := c.variables[name]; strings.HasSuffix(p.kind, "!") && value == nil && p.otherwise == nil {
			c.fail("missingRequiredVariable", "Variable $%s of type %s was provided invalid value", name, p.kind)
		}
	}
	for name := range c.variables {
		if _, ok := c.query.variables[name]; !ok {
			c.fail("unknownVariable", "Variable $%s was provided and is not declared", name)
		}
	}
	root := map[string]string{"query": "Query", "mutation": "Mutation"}[c.query.kind]
	c.set(root, c.query.set, 1, nil)
	for _, name := range slices.Sorted(maps.Keys(c.query.variables)) {
		if !c.used[name] {
			c.fail("variableNotUsed", "Variable $%s is declared by %s but not used", name, or(c.query.name, "anonymous "+c.query.kind))
		}
	}
	if c.nodes > maxNodes {
		c.fail("MAX_NODE_LIMIT_EXCEEDED", "This query requests up to %d possible nodes which exceeds the maximum limit of %d.", c.nodes, maxNodes)
	}
	return c.errors
}

// set checks selections of a type that is asked for times many times. The
// fragments that one is in are within.
func (c *checker) set(kind string, set []selection, times int, within []string) {
	for _, f := range set {
		switch {
		case f.spread != "":
			named := c.document.fragments[f.spread]
			if named == nil || slices.Contains(within, f.spread) {
				c.fail("useAndDefineFragment", "Fragment %s was used, but not defined, or by itself", f.spread)
				continue
			}
			c.fragment(kind, named.on, named.set, times, append(slices.Clone(within), f.spread))
		case f.inline:
			c.fragment(kind, or(f.on, kind), f.set, times, within)
		case f.name != "__typename":
			c.field(kind, f, times, within)
		}
		for _, arguments := range f.directives {
			for _, value := range arguments {
				c.value(value, "Boolean!")
			}
		}
	}
}

// overlap reports whether some type is possible in both places.
func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(kind string) bool { return slices.Contains(b, kind) })
}

func (c *checker) fragment(kind, on string, set []selection, times int, within []string) {
	t, known := c.schema.Types[kind]
	switch {
	case c.schema.Types[on].Kind == "":
		c.fail("undefinedType", "No such type %s, so it can't be a fragment condition", on)
		return
	case known && on != kind && !overlap(slices.Concat(t.Possible, []string{kind}), slices.Concat(c.schema.Types[on].Possible, []string{on})) && kind != "Node" && on != "Node":
		c.fail("cannotSpreadFragment", "Fragment on %s can't be spread inside %s", on, kind)
	}
	c.set(on, set, times, within)
}

func (c *checker) field(kind string, f selection, times int, within []string) {
	spec, ok := c.schema.Types[kind].Fields[f.name]
	if !ok {
		c.fail("undefinedField", "Field '%s' doesn't exist on type '%s'", f.name, kind)
		return
	}
	for name, value := range f.arguments {
		wanted, ok := spec.Arguments[name]
		if !ok {
			c.fail("argumentNotAccepted", "Field '%s' doesn't accept argument '%s'", f.name, name)
			continue
		}
		c.value(value, wanted)
	}
	for name, wanted := range spec.Arguments {
		if _, given := f.arguments[name]; strings.HasSuffix(wanted, "!") && !given {
			c.fail("missingRequiredArguments", "Field '%s' is missing required arguments: %s", f.name, name)
		}
	}
	switch leaf := c.schema.leaf(spec.Type); {
	case leaf && f.set != nil:
		c.fail("selectionMismatch", "Selections can't be made on scalars (field '%s' returns %s but has selections)", f.name, named(spec.Type))
	case !leaf && f.set == nil:
		c.fail("selectionMismatch", "Field must have selections (field '%s' returns %s but has no selections)", f.name, named(spec.Type))
	case !leaf:
		c.set(named(spec.Type), f.set, c.size(spec, f, times), within)
	}
}

// size is how many times the things below a field are asked for.
func (c *checker) size(spec schemaField, f selection, times int) int {
	if ids, ok := resolved(f.arguments["ids"], c.query, c.variables).([]any); ok {
		return times * len(ids)
	}
	if !strings.HasSuffix(named(spec.Type), "Connection") {
		return times
	}
	size, first := number(resolved(f.arguments["first"], c.query, c.variables))
	if !first {
		size, first = number(resolved(f.arguments["last"], c.query, c.variables))
	}
	switch {
	case !first:
		c.fail("MISSING_PAGINATION_BOUNDARIES", "You must provide a `first` or `last` value to properly paginate the `%s` connection.", f.name)
	case size < 1 || size > 100:
		c.fail("EXCESSIVE_PAGINATION", "Requesting %d records on the `%s` connection exceeds the `first` limit of 100 records.", size, f.name)
	}
	c.nodes += times * size
	return times * size
}
