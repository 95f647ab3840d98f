package document

import (
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// VerifyResult reports every rule of APPLY_SPEC 8 that doc breaks, sorted; none
// means valid. doc is a document from canon.Parse, of any shape. patch is nil,
// or the parsed patch.json that doc is the result of, for AS6.
//
// Rules are AS1, AS2, AS6, AS7, AS9, AS12, and SCHEMA for shape and counts; a
// path is a JSON path, but AS6's is the file's. Where doc is no object, a field
// is missing, or the operations are no list, only AS1 and SCHEMA are looked at;
// where a value has a wrong type, all but the rules about this value.
func VerifyResult(doc, patch any) []canon.Violation {
	c := &resultChecker{}
	m, ok := c.Document(doc, "result", "AS1", "apply_schema_version")
	if !ok {
		return c.Sorted()
	}
	v, ok := c.shape(m)
	if !ok {
		return c.Sorted()
	}
	c.counts(v)
	c.order(v)
	c.hashes(v)
	c.errors(v)
	c.absolutePaths(v)
	if patch != nil {
		c.writeSet(v, patch)
	}
	return c.Sorted()
}

// A resultChecker gathers violations.
type resultChecker struct{ Checker }

// A view is what could be read of a result document, its values not yet judged.
// What has another type than it must is reported, and is nil or false here, so
// that the rules about it are left out and all others are not.
type view struct {
	outcome    string
	root       *string
	hasError   bool
	summary    map[string]float64 // the numbers of it
	total      int                // length of operation_results
	operations []resultOperation  // those that are objects
	violations []problem          // likewise
}

// A resultOperation is one of operation_results, found at a JSON path. fields still
// holds the hashes, which AS7 judges.
type resultOperation struct {
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
	outcomes       = []string{string(ledger.OutcomeSuccess), string(ledger.OutcomePartial), string(ledger.OutcomeFailed), string(ledger.OutcomeRefused)}
	ops            = []string{"create", "modify", "delete"}
	statuses       = []string{string(ledger.StatusSuccess), string(ledger.StatusSkipped), string(ledger.StatusError)}
	counted        = []string{"total_operations", "succeeded", "skipped", "failed", "total_bytes_written"}
	resultRequired = []string{"apply_schema_version", "outcome", "dry_run", "target_root",
		"patch_source", "operation_results", "summary"}
)

// shape reads m, and reports whether there is enough of it to judge: every
// required field, and a list of operations.
func (c *resultChecker) shape(m map[string]any) (view, bool) {
	_, enough := m["operation_results"].([]any)
	var v view
	for _, f := range resultRequired {
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
func (c *resultChecker) field(m map[string]any, name string, v *view) {
	switch name {
	case "outcome":
		v.outcome = c.oneOf("$", m, name, outcomes)
	case "dry_run":
		if _, ok := m[name].(bool); !ok {
			c.Schema("$.dry_run", "dry_run must be boolean, got %s", TypeOf(m[name], true))
		}
	case "target_root":
		v.root = c.text("$", m, name)
	case "patch_source":
		source, ok := m[name].(map[string]any)
		if !ok {
			c.Schema("$.patch_source", "patch_source must be an object")
			return
		}
		for _, f := range []string{"proposal_id", "proposal_hash"} {
			if _, ok := source[f].(string); !ok {
				c.Schema("$.patch_source."+f, "patch_source.%s must be a string", f)
			}
		}
	case "operation_results":
		v.operations, v.total = c.operations(m[name])
	case "summary":
		v.summary = c.summary(m[name])
	}
}

// text is nil where the field is no string.
func (c *resultChecker) text(at string, m map[string]any, field string) *string {
	s, ok := m[field].(string)
	if !ok {
		c.Schema(at+"."+field, "%s must be a string", field)
		return nil
	}
	return &s
}

// optionalText is a string that may be absent or null, and is empty then.
func (c *resultChecker) optionalText(at string, m map[string]any, field string) *string {
	if m[field] == nil {
		return new(string)
	}
	return c.text(at, m, field)
}

func (c *resultChecker) oneOf(at string, m map[string]any, field string, words []string) string {
	v, present := m[field]
	s, ok := v.(string)
	if !ok || !slices.Contains(words, s) {
		c.Schema(at+"."+field, "invalid %s: %s", field, String(v, present))
	}
	return s
}

func (c *resultChecker) summary(v any) map[string]float64 {
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
func (c *resultChecker) operations(v any) ([]resultOperation, int) {
	list, ok := v.([]any)
	if !ok {
		c.Schema("$.operation_results", "operation_results must be an array")
	}
	var out []resultOperation
	for i, v := range list {
		at := fmt.Sprintf("$.operation_results[%d]", i)
		m, ok := v.(map[string]any)
		if !ok {
			c.Schema(at, "operation result must be an object")
			continue
		}
		c.oneOf(at, m, "op", ops)
		o := resultOperation{
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

func (c *resultChecker) violations(v any) []problem {
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

// counts compares the summary with the operations (APPLY_SPEC 3.5).
func (c *resultChecker) counts(v view) {
	byStatus := map[string]float64{}
	var bytes float64
	known := v.total == len(v.operations)
	for _, o := range v.operations {
		byStatus[o.status]++
		if o.bytes == nil {
			known = false
			continue
		}
		bytes += *o.bytes
	}
	c.count(v, "total_operations", "", float64(v.total), "operation_results length")
	c.count(v, "succeeded", " count", byStatus[string(ledger.StatusSuccess)], "actual")
	c.count(v, "skipped", " count", byStatus[string(ledger.StatusSkipped)], "actual")
	c.count(v, "failed", " count", byStatus[string(ledger.StatusError)], "actual")
	if known {
		c.count(v, "total_bytes_written", "", bytes, "actual")
	}
}

func (c *resultChecker) count(v view, field, word string, want float64, what string) {
	if got, ok := v.summary[field]; ok && got != want {
		c.Schema("$.summary."+field, "%s%s (%s) does not match %s (%s)",
			field, word, String(got, true), what, String(want, true))
	}
}

// order is AS2, on neighbours.
func (c *resultChecker) order(v view) {
	for i := 1; i < len(v.operations); i++ {
		a, b := v.operations[i-1], v.operations[i]
		if a.path != nil && b.path != nil && canon.Compare(*a.path, *b.path) > 0 {
			c.Add("AS2", b.at, "operation_results not sorted by path: %s > %s", *a.path, *b.path)
		}
	}
	for i := 1; i < len(v.violations); i++ {
		a, b := v.violations[i-1], v.violations[i]
		if a.ruleID == nil || b.ruleID == nil {
			continue
		}
		switch id := canon.Compare(*a.ruleID, *b.ruleID); {
		case id > 0:
			c.Add("AS2", b.at, "violations not sorted by rule_id: %s > %s", *a.ruleID, *b.ruleID)
		case id == 0 && a.path != nil && b.path != nil && canon.Compare(*a.path, *b.path) > 0:
			c.Add("AS2", b.at, "violations not sorted by path: %s > %s", *a.path, *b.path)
		}
	}
}

// writeSet is AS6. A refused patch was not attempted, so its paths may be
// missing from the result.
func (c *resultChecker) writeSet(v view, patch any) {
	asked, done := map[string]bool{}, map[string]bool{}
	m, _ := patch.(map[string]any) // what VerifyPack would report of it is left out
	list, _ := m["operations"].([]any)
	for _, v := range list {
		o, _ := v.(map[string]any)
		if p, ok := o["path"].(string); ok {
			asked[p] = true
		}
	}
	for _, o := range v.operations {
		if o.path == nil {
			continue
		}
		if !asked[*o.path] && !done[*o.path] {
			c.Add("AS6", *o.path, "path in result but not in patch: %s", *o.path)
		}
		done[*o.path] = true
	}
	if v.outcome == string(ledger.OutcomeRefused) {
		return
	}
	for p := range asked {
		if !done[p] {
			c.Add("AS6", p, "path in patch but not in result: %s", p)
		}
	}
}

// hashes is AS7, in the form of APPLY_SPEC 7.2.
func (c *resultChecker) hashes(v view) {
	for _, o := range v.operations {
		for _, f := range []string{"before_hash", "after_hash"} {
			h, present := o.fields[f]
			if !present || h != nil && !isHash(h) {
				c.Add("AS7", o.at+"."+f, "invalid hash format: %s", String(h, present))
			}
		}
	}
}

func isHash(v any) bool {
	s, _ := v.(string)
	return canon.IsSum(s)
}

// errors is AS9: what went wrong says so.
func (c *resultChecker) errors(v view) {
	if (v.outcome == string(ledger.OutcomeFailed) || v.outcome == string(ledger.OutcomeRefused)) && !v.hasError {
		c.Add("AS9", "", "outcome is %s but no error message provided", v.outcome)
	}
	for _, o := range v.operations {
		if o.status == string(ledger.StatusError) && !o.hasError {
			c.Add("AS9", o.at, "operation status is error but no error message provided")
		}
	}
}

// absolutePaths is AS12.
func (c *resultChecker) absolutePaths(v view) {
	if v.root != nil && canon.IsAbsolute(*v.root) {
		c.Add("AS12", "$.target_root", "absolute path in target_root: %s", *v.root)
	}
	for _, o := range v.operations {
		if o.path != nil && canon.IsAbsolute(*o.path) {
			c.Add("AS12", o.at+".path", "absolute path in operation: %s", *o.path)
		}
	}
}
