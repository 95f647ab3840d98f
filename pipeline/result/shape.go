package result

import (
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// A view is a result document of the right shape, its values not yet judged.
type view struct {
	outcome, root, err string
	summary            map[string]float64
	operations         []operation
	violations         []rule.Violation
}

// An operation is one of operation_results, found at a JSON path. fields still
// holds the hashes, which AS7 judges.
type operation struct {
	at, path, status, err string
	bytes                 float64
	fields                map[string]any
}

var (
	outcomes = []string{string(Success), string(Partial), string(Failed), string(Refused)}
	ops      = []string{"create", "modify", "delete"}
	statuses = []string{string(StatusSuccess), string(StatusSkipped), string(StatusError)}
	counted  = []string{"total_operations", "succeeded", "skipped", "failed", "total_bytes_written"}
	required = []string{"apply_schema_version", "outcome", "dry_run", "target_root",
		"patch_source", "operation_results", "summary"}
)

// shape reads m, and tells whether its shape is good.
func (c *checker) shape(m map[string]any) (view, bool) {
	before := len(c.Found)
	var v view
	for _, f := range required {
		if _, ok := m[f]; ok {
			c.field(m, f, &v)
		} else {
			c.Schema("$."+f, "required field %s is missing", f)
		}
	}
	v.err = c.optionalText("$", m, "error")
	if list := m["violations"]; list != nil {
		v.violations = c.violations(list)
	}
	return v, len(c.Found) == before
}

// field reads a required field that is there.
func (c *checker) field(m map[string]any, name string, v *view) {
	switch name {
	case "outcome":
		v.outcome = c.oneOf("$", m, name, outcomes)
	case "dry_run":
		if _, ok := m[name].(bool); !ok {
			c.Schema("$.dry_run", "dry_run must be boolean, got %s", canon.TypeOf(m[name], true))
		}
	case "target_root":
		v.root = c.text("$", m, name)
	case "patch_source":
		c.source(m[name])
	case "operation_results":
		v.operations = c.operations(m[name])
	case "summary":
		v.summary = c.summary(m[name])
	}
}

func (c *checker) text(at string, m map[string]any, field string) string {
	s, ok := m[field].(string)
	if !ok {
		c.Schema(at+"."+field, "%s must be a string", field)
	}
	return s
}

// optionalText is a string that may be absent or null.
func (c *checker) optionalText(at string, m map[string]any, field string) string {
	if m[field] == nil {
		return ""
	}
	return c.text(at, m, field)
}

func (c *checker) oneOf(at string, m map[string]any, field string, words []string) string {
	v, present := m[field]
	s, ok := v.(string)
	if !ok || !slices.Contains(words, s) {
		c.Schema(at+"."+field, "invalid %s: %s", field, canon.String(v, present))
	}
	return s
}

func (c *checker) source(v any) {
	m, ok := v.(map[string]any)
	if !ok {
		c.Schema("$.patch_source", "patch_source must be an object")
		return
	}
	for _, f := range []string{"proposal_id", "proposal_hash"} {
		if _, ok := m[f].(string); !ok {
			c.Schema("$.patch_source."+f, "patch_source.%s must be a string", f)
		}
	}
}

func (c *checker) summary(v any) map[string]float64 {
	m, ok := v.(map[string]any)
	if !ok {
		c.Schema("$.summary", "summary must be an object")
		return nil
	}
	out := map[string]float64{}
	for _, f := range counted {
		if out[f], ok = m[f].(float64); !ok {
			c.Schema("$.summary."+f, "summary.%s must be a number", f)
		}
	}
	return out
}

func (c *checker) operations(v any) []operation {
	list, ok := v.([]any)
	if !ok {
		c.Schema("$.operation_results", "operation_results must be an array")
	}
	out := make([]operation, len(list))
	for i, v := range list {
		out[i] = c.operation(fmt.Sprintf("$.operation_results[%d]", i), v)
	}
	return out
}

func (c *checker) operation(at string, v any) operation {
	m, ok := v.(map[string]any)
	if !ok {
		c.Schema(at, "operation result must be an object")
		return operation{}
	}
	c.oneOf(at, m, "op", ops)
	o := operation{
		at: at, fields: m, path: c.text(at, m, "path"), status: c.oneOf(at, m, "status", statuses),
		err: c.optionalText(at, m, "error"),
	}
	if o.bytes, ok = m["bytes_written"].(float64); !ok {
		c.Schema(at+".bytes_written", "bytes_written must be a number")
	}
	return o
}

func (c *checker) violations(v any) []rule.Violation {
	list, ok := v.([]any)
	if !ok {
		c.Schema("$.violations", "violations must be an array")
	}
	out := make([]rule.Violation, len(list))
	for i, v := range list {
		at := fmt.Sprintf("$.violations[%d]", i)
		m, ok := v.(map[string]any)
		if !ok {
			c.Schema(at, "violation must be an object")
			continue
		}
		out[i] = rule.Violation{
			RuleID: c.text(at, m, "rule_id"), Path: c.optionalText(at, m, "path"), Message: c.text(at, m, "message"),
		}
	}
	return out
}
