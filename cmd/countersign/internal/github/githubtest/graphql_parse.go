package githubtest

import (
	"fmt"
	"regexp"
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
