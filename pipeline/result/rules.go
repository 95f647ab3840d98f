package result

import (
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

// counts compares the summary with the operations (APPLY_SPEC 3.5).
func (c *checker) counts(v view) {
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
	c.count(v, "succeeded", " count", byStatus[string(StatusSuccess)], "actual")
	c.count(v, "skipped", " count", byStatus[string(StatusSkipped)], "actual")
	c.count(v, "failed", " count", byStatus[string(StatusError)], "actual")
	if known {
		c.count(v, "total_bytes_written", "", bytes, "actual")
	}
}

func (c *checker) count(v view, field, word string, want float64, what string) {
	if got, ok := v.summary[field]; ok && got != want {
		c.Schema("$.summary."+field, "%s%s (%s) does not match %s (%s)",
			field, word, canon.String(got, true), what, canon.String(want, true))
	}
}

// order is AS2, on neighbours.
func (c *checker) order(v view) {
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
func (c *checker) writeSet(v view, patch any) {
	asked, done := patchPaths(patch), map[string]bool{}
	for _, o := range v.operations {
		if o.path == nil {
			continue
		}
		if !asked[*o.path] && !done[*o.path] {
			c.Add("AS6", *o.path, "path in result but not in patch: %s", *o.path)
		}
		done[*o.path] = true
	}
	if v.outcome == string(Refused) {
		return
	}
	for p := range asked {
		if !done[p] {
			c.Add("AS6", p, "path in patch but not in result: %s", p)
		}
	}
}

// patchPaths is the set of paths in a patch.json document. What pack.Verify
// would report of it is left out.
func patchPaths(patch any) map[string]bool {
	paths := map[string]bool{}
	m, _ := patch.(map[string]any)
	list, _ := m["operations"].([]any)
	for _, v := range list {
		o, _ := v.(map[string]any)
		if p, ok := o["path"].(string); ok {
			paths[p] = true
		}
	}
	return paths
}

// hashes is AS7, in the form of APPLY_SPEC 7.2.
func (c *checker) hashes(v view) {
	for _, o := range v.operations {
		for _, f := range []string{"before_hash", "after_hash"} {
			h, present := o.fields[f]
			if !present || h != nil && !isHash(h) {
				c.Add("AS7", o.at+"."+f, "invalid hash format: %s", canon.String(h, present))
			}
		}
	}
}

func isHash(v any) bool {
	s, _ := v.(string)
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && canon.IsHex64(digits)
}

// errors is AS9: what went wrong says so.
func (c *checker) errors(v view) {
	if (v.outcome == string(Failed) || v.outcome == string(Refused)) && !v.hasError {
		c.Add("AS9", "", "outcome is %s but no error message provided", v.outcome)
	}
	for _, o := range v.operations {
		if o.status == string(StatusError) && !o.hasError {
			c.Add("AS9", o.at, "operation status is error but no error message provided")
		}
	}
}

// absolutePaths is AS12.
func (c *checker) absolutePaths(v view) {
	if v.root != nil && isAbsolute(*v.root) {
		c.Add("AS12", "$.target_root", "absolute path in target_root: %s", *v.root)
	}
	for _, o := range v.operations {
		if o.path != nil && isAbsolute(*o.path) {
			c.Add("AS12", o.at+".path", "absolute path in operation: %s", *o.path)
		}
	}
}

// isAbsolute holds for a leading slash and for a drive letter.
func isAbsolute(p string) bool {
	if strings.HasPrefix(p, "/") {
		return true
	}
	return len(p) > 1 && p[1] == ':' && ('a' <= p[0]|0x20 && p[0]|0x20 <= 'z')
}
