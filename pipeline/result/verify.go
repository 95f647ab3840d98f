package result

import (
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// Verify reports every rule of APPLY_SPEC 8 that doc breaks, sorted; none
// means valid. doc is a document from canon.Parse, of any shape. patch is nil,
// or the parsed patch.json that doc is the result of, for AS6.
//
// Rules are AS1, AS2, AS6, AS7, AS9, AS12, and SCHEMA for shape and counts; a
// path is a JSON path, but AS6's is the file's. Where doc is no object, a field
// is missing, or the operations are no list, only AS1 and SCHEMA are looked at;
// where a value has a wrong type, all but the rules about this value.
func Verify(doc, patch any) []rule.Violation {
	c := &checker{}
	c.document(doc, patch)
	return c.Sorted()
}

// A checker gathers violations.
type checker struct{ rule.Finder }

func (c *checker) document(doc, patch any) {
	m, ok := doc.(map[string]any)
	if !ok {
		word := canon.TypeOf(doc, true)
		if doc == nil {
			word = "null"
		}
		c.Schema("$", "result must be object, got %s", word)
		return
	}
	c.version(m)
	v, ok := c.shape(m)
	if !ok {
		return
	}
	c.counts(v)
	c.order(v)
	c.hashes(v)
	c.errors(v)
	c.absolutePaths(v)
	if patch != nil {
		c.writeSet(v, patch)
	}
}

// version is AS1.
func (c *checker) version(m map[string]any) {
	const field = "apply_schema_version"
	switch v := m[field].(type) {
	case nil:
		c.Add("AS1", "$."+field, field+" is missing")
	case string:
		if v == "" {
			c.Add("AS1", "$."+field, field+" cannot be empty")
		}
	default:
		c.Add("AS1", "$."+field, field+" must be string, got %s", canon.TypeOf(v, true))
	}
}
