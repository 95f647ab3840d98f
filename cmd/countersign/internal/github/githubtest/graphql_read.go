package githubtest

import (
	"encoding/json"
	"slices"
	"strconv"
)

func (p *parser) document() *document {
	d := &document{fragments: map[string]*fragment{}}
	for p.peek() != "" {
		switch {
		case p.peek() == "{":
			d.operations = append(d.operations, &query{kind: "query", set: p.selections()})
		case p.take("fragment"):
			name := p.word()
			p.want("on")
			d.fragments[name] = &fragment{p.word(), p.selections()}
		case slices.Contains([]string{"query", "mutation"}, p.peek()):
			d.operations = append(d.operations, p.operation())
		default:
			p.fail()
		}
	}
	return d
}

func (p *parser) operation() *query {
	q := &query{kind: p.next(), variables: map[string]parameter{}}
	if p.peek() != "(" && p.peek() != "{" {
		q.name = p.word()
	}
	if p.take("(") {
		for !p.take(")") {
			p.want("$")
			name := p.word()
			p.want(":")
			v := parameter{kind: p.kind()}
			if p.take("=") {
				v.otherwise = p.value()
			}
			q.variables[name] = v
		}
	}
	q.set = p.selections()
	return q
}

func (p *parser) kind() string {
	kind := ""
	if p.take("[") {
		kind = "[" + p.kind() + "]"
		p.want("]")
	} else {
		kind = p.word()
	}
	if p.take("!") {
		kind += "!"
	}
	return kind
}

func (p *parser) selections() []selection {
	p.want("{")
	var set []selection
	for !p.take("}") {
		set = append(set, p.selection())
	}
	if set == nil {
		p.fail()
	}
	return set
}

func (p *parser) selection() selection {
	if p.take("...") {
		return p.fragment()
	}
	f := selection{name: p.word()}
	if p.take(":") {
		f.alias, f.name = f.name, p.word()
	}
	f.arguments, f.directives = p.arguments(), p.directives()
	if p.peek() == "{" {
		f.set = p.selections()
	}
	return f
}

func (p *parser) fragment() selection {
	var f selection
	switch {
	case p.take("on"):
		f.inline, f.on = true, p.word()
	case p.peek() == "{" || p.peek() == "@":
		f.inline = true
	default:
		f.spread = p.word()
	}
	f.directives = p.directives()
	if f.inline {
		f.set = p.selections()
	}
	return f
}

func (p *parser) directives() map[string]map[string]any {
	all := map[string]map[string]any{}
	for p.take("@") {
		name := p.word()
		all[name] = p.arguments()
	}
	return all
}

func (p *parser) arguments() map[string]any {
	all := map[string]any{}
	if !p.take("(") {
		return all
	}
	for !p.take(")") {
		name := p.word()
		p.want(":")
		all[name] = p.value()
	}
	return all
}

func (p *parser) value() any {
	switch token := p.next(); {
	case token == "$":
		return variable(p.word())
	case token == "[":
		list := []any{}
		for !p.take("]") {
			list = append(list, p.value())
		}
		return list
	case token == "{":
		fields := map[string]any{}
		for !p.take("}") {
			name := p.word()
			p.want(":")
			fields[name] = p.value()
		}
		return fields
	case token[0] == '"':
		return p.quoted(token)
	case token == "true" || token == "false":
		return token == "true"
	case token == "null":
		return nil
	default:
		if n, err := strconv.ParseFloat(token, 64); err == nil {
			return n
		}
		p.at--
		return enum(p.word())
	}
}

// quoted reads a string, whose escapes are those of JSON.
func (p *parser) quoted(token string) string {
	var text string
	if json.Unmarshal([]byte(token), &text) != nil {
		p.fail()
	}
	return text
}
