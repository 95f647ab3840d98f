package github

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

var _ forge.Protector = (*Client)(nil)

// Protection is forge.Protector's: the rules that hold for a branch, with who can bypass their rulesets (REST API, "Get rules for a
// branch", "Get a repository ruleset"), and the checks of its classic protection. The rest of the latter, and in most
// rulesets who can bypass, GitHub tells only to whoever may change it.
func (c *Client) Protection(ctx context.Context, branch string) (forge.Protection, error) {
	op := "asking what protects " + ledger.OneLine(branch, 60)
	var out forge.Protection
	checks, classic, err := c.protectionChecks(ctx, branch)
	if err != nil {
		return out, failed(op, err)
	}
	if classic {
		out.Rules, out.Unread = append(out.Rules, "a protection of the branch"), append(out.Unread, "what else the protection of the branch demands, and who can bypass it")
	}
	for _, check := range checks {
		out.Rules = append(out.Rules, fmt.Sprintf("check %+q of app %d, by the protection of the branch", check.Name, check.AppID))
	}
	type rule struct {
		Type       string         `json:"type"`
		Ruleset    int64          `json:"ruleset_id"`
		Parameters map[string]any `json:"parameters"`
	}
	sets := map[int64]bool{}
	err = pages(ctx, c, nil, func(rules []rule) (bool, error) {
		for _, r := range rules {
			if r.Type == "" || r.Ruleset <= 0 {
				return false, rest.Unusable("a rule has no type or ruleset")
			}
			sets[r.Ruleset] = true
			parameters, err := json.Marshal(r.Parameters) // with its members in order
			if err != nil {
				return false, err
			}
			out.Rules = append(out.Rules, fmt.Sprintf("%s, by ruleset %d: %s", r.Type, r.Ruleset, parameters))
		}
		return true, nil
	}, c.Below("rules", "branches", branch)...)
	for id := range sets {
		if err == nil {
			err = c.bypassing(ctx, id, &out)
		}
	}
	return out, failed(op, err)
}

// bypassing adds who can bypass a ruleset.
func (c *Client) bypassing(ctx context.Context, id int64, to *forge.Protection) error {
	var got struct {
		ID     int64
		Actors *[]struct {
			ID   *int64 `json:"actor_id"`
			Type string `json:"actor_type"`
			Mode string `json:"bypass_mode"`
		} `json:"bypass_actors"`
	}
	_, err := c.GetBelow(ctx, &got, nil, "rulesets", strconv.FormatInt(id, 10))
	switch {
	case rest.IsKind(err, rest.KindPermission, rest.KindNotFound), err == nil && got.Actors == nil:
		to.Unread = append(to.Unread, fmt.Sprintf("who can bypass ruleset %d", id))
		return nil
	case err != nil:
		return err
	case got.ID != id:
		return rest.Unusable("the answer is about another ruleset")
	}
	for _, actor := range *got.Actors {
		who := actor.Type
		if actor.ID != nil {
			who += fmt.Sprintf(" %d", *actor.ID)
		}
		to.Rules = append(to.Rules, fmt.Sprintf("%s can bypass ruleset %d: %s", who, id, actor.Mode))
	}
	return nil
}
