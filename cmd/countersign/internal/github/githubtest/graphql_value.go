package githubtest

import "strings"

func number(v any) (int, bool) {
	n, ok := v.(float64)
	return int(n), ok
}

// value checks the variables in a value against the type that is wanted.
func (c *checker) value(v any, wanted string) {
	switch v := v.(type) {
	case variable:
		p, ok := c.query.variables[string(v)]
		c.used[string(v)] = true
		given := p.kind
		if p.otherwise != nil {
			given = strings.TrimSuffix(given, "!") + "!"
		}
		if !ok {
			c.fail("variableNotDefined", "Variable $%s is used but not declared", v)
		} else if given != wanted && given != wanted+"!" {
			c.fail("variableMismatch", "Type mismatch on variable $%s (%s / %s)", v, p.kind, wanted)
		}
	case map[string]any:
		for name, inner := range v {
			field, ok := c.schema.Types[named(wanted)].Fields[name]
			if !ok {
				c.fail("argumentNotAccepted", "InputObject '%s' doesn't accept argument '%s'", named(wanted), name)
				continue
			}
			c.value(inner, field.Type)
		}
	case []any:
		for _, inner := range v {
			c.value(inner, strings.Trim(wanted, "[]"))
		}
	case nil:
		if strings.HasSuffix(wanted, "!") {
			c.fail("argumentLiteralsIncompatible", "null is not %s", wanted)
		}
	default:
		if !fits(v, named(wanted)) {
			c.fail("argumentLiteralsIncompatible", "Argument has an invalid value (%v). Expected type '%s'.", v, wanted)
		}
	}
}

// fits reports whether a literal may stand for a scalar; others are not judged.
func fits(v any, kind string) bool {
	_, text := v.(string)
	_, whole := v.(float64)
	_, truth := v.(bool)
	switch kind {
	case "Int", "Float":
		return whole
	case "String", "ID", "URI", "GitObjectID":
		return text
	case "Boolean":
		return truth
	}
	return true
}

// resolved is a value with its variables filled in.
func resolved(v any, q *query, variables map[string]any) any {
	switch v := v.(type) {
	case variable:
		if given, ok := variables[string(v)]; ok {
			return given
		}
		return q.variables[string(v)].otherwise
	case enum:
		return string(v)
	case []any:
		all := []any{}
		for _, inner := range v {
			all = append(all, resolved(inner, q, variables))
		}
		return all
	case map[string]any:
		all := map[string]any{}
		for name, inner := range v {
			all[name] = resolved(inner, q, variables)
		}
		return all
	}
	return v
}
