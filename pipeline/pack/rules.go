package pack

import (
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

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
	if isAbsolute(e.path) {
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

// isAbsolute holds for a leading slash and for a drive letter.
func isAbsolute(p string) bool {
	if strings.HasPrefix(p, "/") {
		return true
	}
	return len(p) > 1 && p[1] == ':' && 'a' <= p[0]|0x20 && p[0]|0x20 <= 'z'
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
