package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
)

// A kind is what a node of the file is; its text is what an error calls it.
type kind string

const (
	isMapping  kind = "a mapping"
	isSequence kind = "a list"
	isText     kind = "text"
	isInteger  kind = "a number"
	isBool     kind = "true or false"
	isNull     kind = "nothing"
	isLines    kind = "text over several lines"
	isOther    kind = "another kind of value"
)

// mark is a place in the file; both count from 1.
type mark struct{ line, column int }

// A node is a value of the file. A mapping has keys and as many values, a
// sequence values, everything else its text: of a number and a truth value as
// it is written, of text without its quotes.
type node struct {
	kind   kind
	text   string
	mark   mark
	keys   []node
	values []node
}

func at(t *token.Token) mark {
	if t == nil || t.Position == nil {
		return mark{1, 1}
	}
	return mark{max(1, t.Position.Line), max(1, t.Position.Column)}
}

// document parses the one document of a file. It reports whether it could.
func (r *reader) document(raw []byte) (root node, ok bool) {
	if !r.screen(raw) {
		return node{}, false
	}
	file, ok := r.parse(raw)
	if !ok {
		return node{}, false
	}
	docs := slices.DeleteFunc(slices.Clone(file.Docs), func(d *ast.DocumentNode) bool { return d.Body == nil && d.Start == nil })
	if len(docs) > 1 {
		r.problem(at(docs[1].Start), "", "a second YAML document; a Policy has only one")
		return node{}, false
	}
	if len(docs) == 0 || docs[0].Body == nil {
		r.problem(mark{1, 1}, "", "the file is empty; remove it for the defaults")
		return node{}, false
	}
	return newNode(docs[0].Body), true
}

// parse asks the YAML library. A panic in it is a file that cannot be read: the
// file is somebody else's, and the program must not end on it (T42).
func (r *reader) parse(raw []byte) (file *ast.File, ok bool) {
	defer func() {
		if recover() != nil {
			r.problem(mark{1, 1}, "", "the file is not YAML that can be read")
			file, ok = nil, false
		}
	}()
	tokens := lexer.Tokenize(string(raw))
	if bad := tokens.InvalidToken(); bad == nil && !r.screenTokens(tokens, strings.Split(string(raw), "\n")) {
		return nil, false
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // reported with the others
	if err != nil {
		where, message := mark{1, 1}, err.Error()
		if syntax := (yaml.Error)(nil); errors.As(err, &syntax) {
			where, message = at(syntax.GetToken()), syntax.GetMessage()
		}
		r.problem(where, "", "not YAML: "+message)
	}
	return file, err == nil
}

func newNode(n ast.Node) node {
	if n == nil {
		return node{kind: isNull, mark: mark{1, 1}}
	}
	t := n.GetToken()
	out := node{kind: cmp.Or(kinds[n.Type()], isOther), text: t.Value, mark: at(t)}
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			key, value := newNode(v.Key), newNode(v.Value)
			if value.kind == isNull {
				value.mark = key.mark // where nothing stands there is no place
			} else if !n.IsFlowStyle && value.mark.line > key.mark.line && value.mark.column <= key.mark.column && v.Value.GetToken().Type != token.SequenceEntryType {
				value.kind = isOther // it is not farther in than its key
			}
			out.keys, out.values = append(out.keys, key), append(out.values, value)
		}
		if !n.IsFlowStyle && len(out.keys) > 0 {
			out.mark = out.keys[0].mark // the library's is the first colon
		}
	case *ast.SequenceNode:
		for _, v := range n.Values {
			value := newNode(v)
			if !n.IsFlowStyle && value.kind != isNull && value.mark.column <= at(n.Start).column {
				value.kind = isOther // it is not farther in than its dash
			}
			out.values = append(out.values, value)
		}
	default:
		if strings.Contains(strings.TrimSpace(t.Origin), "\n") {
			out.kind = isLines // which YAML would fold
		} else if t.Type == token.StringType && numeric().MatchString(t.Value) {
			out.kind = isInteger
		}
	}
	return out
}

var kinds = map[ast.NodeType]kind{
	ast.MappingType: isMapping, ast.SequenceType: isSequence, ast.StringType: isText,
	ast.IntegerType: isInteger, ast.BoolType: isBool, ast.NullType: isNull,
}

// What the parser is not even asked to read (T42). It takes time that is
// quadratic in depth and in the number of keys, so both are bounded first.
const (
	maxBytes  = 64 << 10
	maxTokens = 16000
	maxFlow   = 8  // brackets and braces in each other
	maxIndent = 64 // columns before a line's first token
	maxDashes = 4  // "- - - - a": sequences that begin on one line
)

// screen refuses bytes before any tokens are made of them: what is too long, is
// not UTF-8, or has characters that do not show, so that what a reviewer sees
// of the file is what it says (T14).
func (r *reader) screen(raw []byte) bool {
	if len(raw) > maxBytes {
		r.problem(mark{1, 1}, "", fmt.Sprintf("the file has %d bytes, more than %d", len(raw), maxBytes))
		return false
	}
	if i, why := unshown(string(raw), true); why != "" {
		before := string(raw[:i])
		line := before[strings.LastIndexByte(before, '\n')+1:]
		r.problem(mark{1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(line)}, "", why)
		return false
	}
	return true
}

// unshown finds the first character that does not show, in a text of one line or several, and
// says what is wrong with it.
func unshown(s string, lines bool) (at int, why string) {
	for i, c := range s {
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			return i, "the file is not UTF-8"
		case lines && (c == '\n' || strings.HasPrefix(s[i:], "\r\n")):
		case lines && c == '\t':
			return i, "a tab; YAML is indented with spaces"
		case !canon.Visible(c):
			return i, fmt.Sprintf("the character U+%04X does not show", c)
		}
	}
	return 0, ""
}

// notUsed are the tokens of those parts of YAML that a Policy does without.
var notUsed = map[token.Type]string{
	token.AnchorType:     "an anchor; a value that begins with & needs quotes",
	token.AliasType:      "an alias; a value that begins with * needs quotes",
	token.MergeKeyType:   "a merge key; write each value out",
	token.TagType:        "a tag; a value that begins with ! needs quotes",
	token.DirectiveType:  "a directive; a value that begins with % needs quotes",
	token.LiteralType:    "a block of text; a value stands on one line",
	token.FoldedType:     "a block of text; a value stands on one line",
	token.MappingKeyType: "a complex key; keys are words",
}

// numeric are numbers of YAML's core schema that the library takes for text.
var numeric = canon.Regexp(`^(0|-?[1-9][0-9]*|[-+]?\.(inf|Inf|INF))$`)

// indicator is how no word of YAML begins, or ends.
var indicator = canon.Regexp("^([,\\[\\]{}#&*!|>'\"%@`]|[-?]$)|:$")

// misread reports whether YAML takes a token for something else than the library does: a part of
// the word beside it, a sign, an escape of one surrogate, the end of a document that has not begun.
func misread(t *token.Token, line []rune, flow int) bool {
	space := func(i int) bool { return i < 0 || i >= len(line) || line[i] == ' ' || line[i] == '\r' }
	return t.Type == token.CommentType && !space(t.Position.Column-2) ||
		t.Type == token.MappingValueType && t.Prev != nil && t.Prev.Type == token.StringType && !space(t.Position.Column) ||
		t.Type == token.StringType && (indicator().MatchString(t.Value) || flow > 0 && strings.ContainsAny(t.Value, "[]{},")) ||
		t.Type == token.DoubleQuoteType && strings.ContainsRune(t.Value, utf8.RuneError) && !slices.Contains(line, utf8.RuneError) ||
		t.Type == token.DocumentEndType && t.Prev == nil
}

// screenTokens refuses what notUsed lists, what is too deep or too much for
// the parser, and what that misreads.
func (r *reader) screenTokens(tokens token.Tokens, lines []string) bool {
	if len(tokens) > maxTokens {
		r.problem(mark{1, 1}, "", "the file has too many keys and values")
		return false
	}
	before := len(r.problems)
	line, dashes, flow, runes := 0, 0, 0, []rune(nil)
	for _, t := range tokens {
		first := t.Position.Line != line
		if first {
			line, dashes, runes = t.Position.Line, 0, []rune(lines[t.Position.Line-1])
		}
		if why := notUsed[t.Type]; why != "" || misread(t, runes, flow) {
			r.problem(at(t), "", cmp.Or(why, "not YAML; a space or quotes are missing here"))
		}
		switch t.Type {
		case token.CommentType:
			continue
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		}
		if t.Type == token.SequenceEntryType {
			dashes++
		}
		if flow > maxFlow || dashes > maxDashes || first && t.Position.Column > maxIndent {
			r.problem(at(t), "", "nested too deep")
			return false
		}
	}
	return len(r.problems) == before
}

// A reader turns nodes into values and collects what is wrong on the way.
type reader struct {
	file     string
	joined   bool // what is read may be two files joined
	problems Problems
}

func (r *reader) problem(m mark, key, message string, allowed ...string) {
	r.problems = append(r.problems, Problem{File: r.file, Line: m.line, Column: m.column, Key: key, Message: message, Allowed: allowed})
}
