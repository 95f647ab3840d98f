package pack

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

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
