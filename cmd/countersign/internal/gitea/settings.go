package gitea

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

var _ forge.Protector = (*Client)(nil)

// Protection is forge.Protector's: all that the rule says that holds for a branch. Rules are told to administrators of the
// repository alone. Who administers it can change it, which is not told here.
func (c *Client) Protection(ctx context.Context, branch string) (out forge.Protection, err error) {
	op := "asking what protects " + ledger.OneLine(branch, 60)
	var rules []map[string]json.RawMessage
	if _, err := c.GetBelow(ctx, &rules, nil, "branch_protections"); err != nil {
		return out, failed(op, err)
	}
	name, err := c.ruleName(ctx, branch)
	if err != nil || name == "" {
		return out, failed(op, err)
	}
	for _, rule := range rules {
		var of string
		if json.Unmarshal(rule["rule_name"], &of) != nil || of != name {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(rule)) {
			if key != "created_at" && key != "updated_at" {
				out.Rules = append(out.Rules, fmt.Sprintf("%s: %s", key, rule[key]))
			}
		}
	}
	if len(out.Rules) == 0 {
		err = rest.Unusable("the rule %+q holds for the branch, and is not told", ledger.OneLine(name, 60))
	}
	return out, failed(op, err)
}
