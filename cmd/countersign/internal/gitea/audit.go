package gitea

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

var _ forge.Auditor = (*Client)(nil)

// account is rest.People's: the API looks for users, also by their number. That none is
// found does not tell whether there is one: whoever makes a profile private is shown to
// administrators alone, and the accounts of jobs to nobody.
func (c *Client) account(ctx context.Context, id string) (ledger.Actor, error) {
	var got struct {
		OK   bool       `json:"ok"`
		Data []*account `json:"data"`
	}
	_, err := c.Get(ctx, &got, url.Values{"uid": {id}}, "users", "search")
	switch {
	case err != nil:
	case !got.OK || got.Data == nil:
		err = rest.Unusable("the answer does not tell who was found")
	case len(got.Data) == 0:
		err = &rest.Error{Kind: rest.KindPermission, Message: "there is no such account, or one that the token is not shown"}
	case len(got.Data) > 1:
		err = rest.Unusable("the answer is of several accounts")
	default:
		return got.Data[0].actor(), nil
	}
	return ledger.Actor{}, err
}

// Ends is forge.Auditor's, of one pull request at a time.
func (c *Client) Ends(ctx context.Context, numbers []int) (map[int]forge.End, error) {
	pr, err := c.PullRequest(ctx, numbers[0])
	if err != nil {
		return nil, err
	}
	return map[int]forge.End{numbers[0]: {Repository: pr.Repository.ID, State: pr.State, Head: pr.Head.Commit}}, nil
}

// Required is forge.Auditor's: the statuses of the rule that holds for a branch. What
// patterns among them demand is not told. Whoever may write can add a status of any name.
// Rules are told to administrators of the repository alone.
func (c *Client) Required(ctx context.Context, branch string) (forge.Required, error) {
	op := fmt.Sprintf("asking what %s demands", ledger.OneLine(branch, 60))
	var rules []protection
	if _, err := c.GetBelow(ctx, &rules, nil, "branch_protections"); err != nil {
		return forge.Required{}, failed(op, err)
	}
	rule, err := c.ruleOf(ctx, rules, branch)
	if err != nil || rule == nil {
		return forge.Required{}, failed(op, err)
	}
	var out forge.Required
	for _, name := range rule.Required {
		if strings.ContainsAny(name, `*?[{\`) {
			out.Unread = fmt.Sprintf("the pattern %+q", ledger.OneLine(name, 60))
			continue
		}
		out.Checks = append(out.Checks, forge.RequiredCheck{Name: name})
	}
	return out, nil
}
