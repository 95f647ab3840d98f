package pack

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// Verify reports every rule (PS1 to PS9, SCHEMA) that a patch.json document
// breaks, sorted; none means valid. doc is a document from canon.Parse, of any
// shape; maxBytes is the limit on total_bytes, inclusive. Paths are JSON paths.
// Where the shape is bad, only PS1 and SCHEMA are looked at.
func Verify(doc any, maxBytes int64) []rule.Violation {
	c := &checker{}
	m, ok := c.Document(doc, "patch", "PS1", "patch_schema_version")
	if !ok {
		return c.Sorted()
	}
	ops, ok := c.shape(m)
	if !ok {
		return c.Sorted()
	}
	for _, o := range ops {
		c.kind(o)
		c.path(o)
		c.content(o)
	}
	c.duplicates(ops)
	c.order(ops)
	c.total(m["total_bytes"], ops, maxBytes)
	return c.Sorted()
}

// A checker gathers violations.
type checker struct{ rule.Finder }

// An entry is one operation of the right shape, found at a JSON path.
type entry struct {
	at            string
	op            string // empty where it is not a string
	printedOp     string // as ECMAScript prints it, whatever it is
	path, content string
	hasContent    bool
	expectedHash  *string
	order         float64
}

var required = []string{"patch_schema_version", "source_proposal_id", "source_proposal_hash",
	"operations", "total_bytes"}

// shape reads m, and reports whether its shape is good.
func (c *checker) shape(m map[string]any) ([]entry, bool) {
	before := len(c.Found)
	for _, f := range required {
		if _, ok := m[f]; !ok {
			c.Schema("$."+f, "required field %s is missing", f)
		}
	}
	v, present := m["operations"]
	list, ok := v.([]any)
	if present && !ok {
		c.Schema("$.operations", "operations must be an array")
	}
	ops := make([]entry, len(list))
	for i, v := range list {
		ops[i] = c.entry(fmt.Sprintf("$.operations[%d]", i), v)
	}
	return ops, len(c.Found) == before
}

func (c *checker) entry(at string, v any) entry {
	m, ok := v.(map[string]any)
	if !ok {
		c.Schema(at, "operation must be an object")
		return entry{}
	}
	e := entry{at: at}
	op, present := m["op"]
	e.op, _ = op.(string)
	e.printedOp = canon.String(op, present)
	if e.path, ok = m["path"].(string); !ok {
		c.Schema(at+".path", "path must be a string")
	}
	content, present := m["content"]
	e.hasContent = present
	if e.content, ok = content.(string); present && !ok {
		c.Schema(at+".content", "content must be a string")
	}
	if hash := m["expected_hash"]; hash != nil {
		printed := canon.String(hash, true)
		e.expectedHash = &printed
	}
	order, present := m["order"]
	if e.order, ok = order.(float64); present && !ok {
		c.Schema(at+".order", "order must be a number")
	}
	return e
}

// kind is PS2 and PS9.
func (c *checker) kind(e entry) {
	switch e.op {
	case "create", "modify", "delete":
	default:
		c.Add("PS2", e.at+".op", "invalid operation type: %s", e.printedOp)
	}
	if e.op == "symlink" {
		c.Add("PS9", e.at+".op", "symlink operations are not allowed")
	}
}

// path is PS3 and PS4. A path may break several of their conditions.
func (c *checker) path(e entry) {
	at := e.at + ".path"
	if rule.IsAbsolute(e.path) {
		c.Add("PS3", at, "absolute path not allowed: %s", e.path)
	}
	if strings.Contains(e.path, "..") || strings.Contains(e.path, `\`) {
		c.Add("PS4", at, "path traversal or backslash not allowed: %s", e.path)
	}
	if strings.ContainsFunc(e.path, isForbidden) || canon.Trim(e.path) != e.path {
		c.Add("PS4", at, "forbidden characters in path: %s", e.path)
	}
	if !isNormalized(e.path) {
		c.Add("PS4", at, "path not normalized: %s", e.path)
	}
}

// isForbidden holds for control characters; tab and LF are let through.
func isForbidden(r rune) bool { return r < 0x20 && r != '\t' && r != '\n' }

// isNormalized lets "a/./b" through, as the reference does.
func isNormalized(p string) bool {
	return p != "" && p != "." && !strings.HasPrefix(p, "./") &&
		!strings.HasSuffix(p, "/") && !strings.Contains(p, "//")
}

// content is PS6. An operation of no known kind may have content or not. A
// lone surrogate is what makes a JSON string invalid UTF-8.
func (c *checker) content(e entry) {
	at := e.at + ".content"
	if !utf8.ValidString(e.content) || strings.Contains(e.content, "\x00") {
		c.Add("PS6", at, "content is not valid UTF-8 or contains null bytes")
	}
	switch {
	case e.op == "delete" && e.hasContent:
		c.Add("PS6", at, "delete operation must not have content")
	case (e.op == "create" || e.op == "modify") && !e.hasContent:
		c.Add("PS6", at, "%s operation must have content", e.op)
	}
}

// duplicates is PS5.
func (c *checker) duplicates(ops []entry) {
	first := map[string]int{}
	for i, e := range ops {
		if at, twice := first[e.path]; twice {
			c.Add("PS5", e.at+".path", "duplicate target path: %s (also at index %d)", e.path, at)
			continue
		}
		first[e.path] = i
	}
}

// order is PS8, on neighbours.
func (c *checker) order(ops []entry) {
	for i := 1; i < len(ops); i++ {
		a, b := ops[i-1], ops[i]
		switch {
		case a.order > b.order:
			c.Add("PS8", b.at, "operations not sorted by order: %s > %s",
				canon.String(a.order, true), canon.String(b.order, true))
		case a.order == b.order && canon.Compare(a.path, b.path) > 0:
			c.Add("PS8", b.at, "operations not sorted by path: %s > %s", a.path, b.path)
		}
	}
}

// total is PS7. A lone surrogate counts three bytes in WTF-8, as it does where
// an encoder replaces it by U+FFFD.
func (c *checker) total(v any, ops []entry, limit int64) {
	const at = "$.total_bytes"
	said, ok := v.(float64)
	if !ok {
		c.Add("PS7", at, "total_bytes is missing or not a number")
		return
	}
	if said > float64(limit) {
		c.Add("PS7", at, "total_bytes (%s) exceeds limit (%d)", canon.String(said, true), limit)
	}
	var actual int64
	for _, e := range ops {
		actual += int64(len(e.content))
	}
	if said != float64(actual) {
		c.Add("PS7", at, "total_bytes (%s) does not match actual content size (%d)", canon.String(said, true), actual)
	}
}
