package githubtest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A document is a parsed GraphQL request (https://spec.graphql.org/October2021),
// without what GitHub's clients never send: subscriptions, schema definitions
// and block strings.
type document struct {
	operations []*query
	fragments  map[string]*fragment
}

type query struct {
	kind      string // query or mutation
	name      string
	variables map[string]parameter
	set       []selection
}

// A parameter is a variable as an operation declares it; otherwise is nil if it
// has no default.
type parameter struct {
	kind      string
	otherwise any
}

type fragment struct {
	on  string
	set []selection
}

// A selection is a field, or a fragment: spread by its name, or inline.
type selection struct {
	alias, name string
	arguments   map[string]any
	directives  map[string]map[string]any
	set         []selection
	spread      string
	inline      bool
	on          string
}

func (f selection) key() string { return or(f.alias, f.name) }

// variable and enum are values of a document that are not what they stand for.
type (
	variable string
	enum     string
)

var tokens = regexp.MustCompile(`^(?:[\s,\x{feff}]|#[^\n]*)*(\.\.\.|[A-Za-z_][A-Za-z_0-9]*|"(?:[^"\\\n]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?|[!$&():=@\[\]{|}])`)

type parser struct {
	tokens []string
	at     int
}

// parse parses a request; what cannot be read is an error.
func parse(source string) (d *document, err error) {
	p := &parser{}
	for rest := source; strings.Trim(rest, " \t\r\n,") != ""; {
		m := tokens.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("parse error at %.20q", rest)
		}
		p.tokens = append(p.tokens, m[1])
		rest = rest[len(m[0]):]
	}
	defer func() {
		if problem, ok := recover().(syntaxError); ok {
			err = problem
		}
	}()
	return p.document(), nil
}

type syntaxError string

func (e syntaxError) Error() string { return string(e) }

func (p *parser) fail() {
	panic(syntaxError(fmt.Sprintf("parse error on %q (token %d)", p.peek(), p.at)))
}

func (p *parser) peek() string {
	if p.at < len(p.tokens) {
		return p.tokens[p.at]
	}
	return ""
}

func (p *parser) next() string {
	token := p.peek()
	if token == "" {
		p.fail()
	}
	p.at++
	return token
}

func (p *parser) take(token string) bool {
	if p.peek() != token {
		return false
	}
	p.at++
	return true
}

func (p *parser) want(token string) {
	if !p.take(token) {
		p.fail()
	}
}

func (p *parser) word() string {
	token := p.next()
	if c := token[0]; c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') {
		p.at--
		p.fail()
	}
	return token
}

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
