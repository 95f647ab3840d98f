package plain

import (
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
)

// Missing lists an approval that is missing once for each person who is to be
// asked, in the order of the needs; nothing unless the verdict is pending.
// Needs of one fingerprint are asked for together, as one person's vote may
// count for all of them; where it did not, the next verdict asks again.
func Missing(v approval.Verdict) []approval.Request {
	if v.State != approval.Pending {
		return nil
	}
	missing := map[approval.Request]int{}
	var order []approval.Request
	for _, n := range v.Needs {
		q := approval.Request{Kind: n.Kind, Fingerprint: n.Fingerprint}
		if _, known := missing[q]; !known {
			order = append(order, q)
		}
		missing[q] = max(missing[q], n.Required-n.Approved)
	}
	var out []approval.Request
	for _, q := range order {
		out = append(out, slices.Repeat([]approval.Request{q}, missing[q])...)
	}
	return out
}
