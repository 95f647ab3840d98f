package pack

import (
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// Verify reports every rule (PS1 to PS9, SCHEMA) that a patch.json document
// breaks, sorted; none means valid. doc is a document from canon.Parse, of any
// shape; maxBytes is the limit on total_bytes, inclusive. Paths are JSON paths.
// Where the shape is bad, only PS1 and SCHEMA are looked at.
func Verify(doc any, maxBytes int64) []rule.Violation {
	c := &checker{}
	c.document(doc, maxBytes)
	return c.Sorted()
}

// A checker gathers violations.
type checker struct{ rule.Finder }

func (c *checker) document(doc any, maxBytes int64) {
	m, ok := doc.(map[string]any)
	if !ok {
		word := canon.TypeOf(doc, true)
		if doc == nil {
			word = "null"
		}
		c.Schema("$", "patch must be object, got %s", word)
		return
	}
	c.version(m)
	ops, ok := c.shape(m)
	if !ok {
		return
	}
	for _, o := range ops {
		c.kind(o)
		c.path(o)
		c.content(o)
	}
	c.duplicates(ops)
	c.order(ops)
	c.total(m["total_bytes"], ops, maxBytes)
}

// version is PS1.
func (c *checker) version(m map[string]any) {
	const field = "patch_schema_version"
	switch v := m[field].(type) {
	case nil:
		c.Add("PS1", "$."+field, field+" is missing")
	case string:
		if v == "" {
			c.Add("PS1", "$."+field, field+" cannot be empty")
		}
	default:
		c.Add("PS1", "$."+field, field+" must be string, got %s", canon.TypeOf(v, true))
	}
}
