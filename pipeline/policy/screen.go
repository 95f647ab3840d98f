package policy

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

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
	line, column := 1, 0
	for i := 0; i < len(raw); {
		c, size := utf8.DecodeRune(raw[i:])
		column++
		if why := unshown(raw[i:], c, size); why != "" {
			r.problem(mark{line, column}, "", why)
			return false
		}
		if c == '\n' {
			line, column = line+1, 0
		}
		i += size
	}
	return true
}

// unshown says what is wrong with the character that rest begins with.
func unshown(rest []byte, c rune, size int) string {
	switch {
	case c == utf8.RuneError && size == 1:
		return "the file is not UTF-8"
	case c == '\n', c == '\r' && len(rest) > 1 && rest[1] == '\n':
		return ""
	case c == '\t':
		return "a tab; YAML is indented with spaces"
	case !unicode.IsPrint(c), unicode.In(c, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return fmt.Sprintf("the character U+%04X does not show", c)
	}
	return ""
}

// notUsed are the tokens of those parts of YAML that a Policy does without.
var notUsed = map[token.Type]string{
	token.AnchorType:     "an anchor; a value that begins with & needs quotes",
	token.AliasType:      "an alias; a value that begins with * needs quotes",
	token.MergeKeyType:   "a merge key; each value is written out",
	token.TagType:        "a tag; a value that begins with ! needs quotes",
	token.DirectiveType:  "a directive; a value that begins with % needs quotes",
	token.LiteralType:    "a block of text; a value stands on one line",
	token.FoldedType:     "a block of text; a value stands on one line",
	token.MappingKeyType: "a complex key; keys are words",
}

// screenTokens refuses what notUsed lists, and what is too deep or too much for
// the parser.
func (r *reader) screenTokens(tokens token.Tokens) bool {
	if len(tokens) > maxTokens {
		r.problem(mark{1, 1}, "", "the file has too many keys and values")
		return false
	}
	before := len(r.problems)
	var d depth
	for _, t := range tokens {
		if why := notUsed[t.Type]; why != "" {
			r.problem(at(t), "", why)
		}
		if why := d.note(t); why != "" {
			r.problem(at(t), "", why)
			return false
		}
	}
	return len(r.problems) == before
}

// depth is how deep the tokens go.
type depth struct{ line, dashes, flow int }

// note takes the next token, and says so if it is too deep.
func (d *depth) note(t *token.Token) string {
	if t.Type == token.CommentType {
		return ""
	}
	first := t.Position.Line != d.line
	if first {
		d.line, d.dashes = t.Position.Line, 0
	}
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		d.flow++
	case token.SequenceEndType, token.MappingEndType:
		d.flow--
	case token.SequenceEntryType:
		d.dashes++
	}
	if d.flow > maxFlow || d.dashes > maxDashes || first && t.Position.Column > maxIndent {
		return "nested too deep"
	}
	return ""
}
