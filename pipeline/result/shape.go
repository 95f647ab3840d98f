package result

import (
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

// A view is what could be read of a result document, its values not yet judged.
// What has another type than it must is reported, and is nil or false here, so
// that the rules about it are left out and all others are not.
type view struct {
	outcome    string
	root       *string
	hasError   bool
	summary    map[string]float64 // the numbers of it
	total      int                // length of operation_results
	operations []operation        // those that are objects
	violations []problem          // likewise
}

// An operation is one of operation_results, found at a JSON path. fields still
// holds the hashes, which AS7 judges.
type operation struct {
	at       string
	path     *string
	status   string
	hasError bool
	bytes    *float64
	fields   map[string]any
}

type problem struct {
	at           string
	ruleID, path *string
}

var (
	outcomes = []string{string(Success), string(Partial), string(Failed), string(Refused)}
	ops      = []string{"create", "modify", "delete"}
	statuses = []string{string(StatusSuccess), string(StatusSkipped), string(StatusError)}
	counted  = []string{"total_operations", "succeeded", "skipped", "failed", "total_bytes_written"}
	required = []string{"apply_schema_version", "outcome", "dry_run", "target_root",
		"patch_source", "operation_results", "summary"}
)

// shape reads m, and reports whether there is enough of it to judge: every
// required field, and a list of operations.
func (c *checker) shape(m map[string]any) (view, bool) {
	_, enough := m["operation_results"].([]any)
	var v view
	for _, f := range required {
		if _, ok := m[f]; ok {
			c.field(m, f, &v)
		} else {
			enough = false
			c.Schema("$."+f, "required field %s is missing", f)
		}
	}
	c.optionalText("$", m, "error")
	v.hasError = given(m["error"])
	if list := m["violations"]; list != nil {
		v.violations = c.violations(list)
	}
	return v, enough
}

// given reports whether an error says something. One of another type does, and
// is reported for its type.
func given(err any) bool { return err != nil && err != "" }

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
		v.operations, v.total = c.operations(m[name])
	case "summary":
		v.summary = c.summary(m[name])
	}
}

// text is nil where the field is no string.
func (c *checker) text(at string, m map[string]any, field string) *string {
	s, ok := m[field].(string)
	if !ok {
		c.Schema(at+"."+field, "%s must be a string", field)
		return nil
	}
	return &s
}

// optionalText is a string that may be absent or null, and is empty then.
func (c *checker) optionalText(at string, m map[string]any, field string) *string {
	if m[field] == nil {
		return new(string)
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
		if n, ok := m[f].(float64); ok {
			out[f] = n
		} else {
			c.Schema("$.summary."+f, "summary.%s must be a number", f)
		}
	}
	return out
}

// operations also returns how many there are in all.
func (c *checker) operations(v any) ([]operation, int) {
	list, ok := v.([]any)
	if !ok {
		c.Schema("$.operation_results", "operation_results must be an array")
	}
	var out []operation
	for i, v := range list {
		at := fmt.Sprintf("$.operation_results[%d]", i)
		m, ok := v.(map[string]any)
		if !ok {
			c.Schema(at, "operation result must be an object")
			continue
		}
		c.oneOf(at, m, "op", ops)
		o := operation{
			at: at, fields: m, path: c.text(at, m, "path"), status: c.oneOf(at, m, "status", statuses), hasError: given(m["error"]),
		}
		c.optionalText(at, m, "error")
		if n, ok := m["bytes_written"].(float64); ok {
			o.bytes = &n
		} else {
			c.Schema(at+".bytes_written", "bytes_written must be a number")
		}
		out = append(out, o)
	}
	return out, len(list)
}

func (c *checker) violations(v any) []problem {
	list, ok := v.([]any)
	if !ok {
		c.Schema("$.violations", "violations must be an array")
	}
	var out []problem
	for i, v := range list {
		at := fmt.Sprintf("$.violations[%d]", i)
		m, ok := v.(map[string]any)
		if !ok {
			c.Schema(at, "violation must be an object")
			continue
		}
		out = append(out, problem{at, c.text(at, m, "rule_id"), c.optionalText(at, m, "path")})
		c.text(at, m, "message")
	}
	return out
}
