package github

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

var _ forge.Auditor = (*Client)(nil)

// account is rest.People's (REST API, "Get a user using their ID").
func (c *Client) account(ctx context.Context, id string) (ledger.Actor, error) {
	var got struct {
		ID    int64  `json:"id"`
		Login string `json:"login"`
		Type  string `json:"type"`
	}
	_, err := c.Get(ctx, &got, nil, "user", id)
	return (&account{Type: got.Type, Login: got.Login, DatabaseID: got.ID}).actor(), err
}

// mostEnds is how many pull requests one query tells of.
const mostEnds = 50

// Ends is forge.Auditor's. A query in which one pull request is not found tells of none:
// then the first is asked about alone.
func (c *Client) Ends(ctx context.Context, numbers []int) (map[int]forge.End, error) {
	numbers = numbers[:min(len(numbers), mostEnds)]
	ends, err := c.ends(ctx, numbers)
	if rest.IsKind(err, rest.KindNotFound) && len(numbers) > 1 {
		ends, err = c.ends(ctx, numbers[:1])
	}
	return ends, failed("asking what became of pull requests", err)
}

func (c *Client) ends(ctx context.Context, numbers []int) (map[int]forge.End, error) {
	query := "query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { databaseId"
	for _, n := range numbers {
		if n <= 0 {
			return nil, rest.Unusable("%d is no number of a pull request", n)
		}
		query += fmt.Sprintf(" p%d: pullRequest(number: %[1]d) { number state headRefOid }", n)
	}
	got, err := ask[struct{ Repository map[string]json.RawMessage }](ctx, c, query+" } }", map[string]any{"owner": c.Owner, "name": c.Name})
	if err != nil {
		return nil, err
	}
	var id int64
	if json.Unmarshal(got.Repository["databaseId"], &id) != nil || id <= 0 {
		return nil, rest.Unusable("the repository has no number")
	}
	ends := map[int]forge.End{}
	for _, n := range numbers {
		var pr struct {
			Number     int
			State      string
			HeadRefOid string
		}
		if json.Unmarshal(got.Repository[fmt.Sprintf("p%d", n)], &pr) != nil || pr.Number != n || pr.State == "" || rest.CheckCommit(pr.HeadRefOid) != nil {
			return nil, rest.Unusable("it is not told what became of pull request %d", n)
		}
		ends[n] = forge.End{Repository: strconv.FormatInt(id, 10), State: strings.ToLower(pr.State), Head: pr.HeadRefOid}
	}
	return ends, nil
}

// Required is forge.Auditor's: the checks that a branch's protection demands (REST API,
// "Get a branch") and those that rulesets do ("Get rules for a branch"), where they are
// enforced. GitHub tells both to whoever may read.
func (c *Client) Required(ctx context.Context, branch string) (forge.Required, error) {
	op := "asking what " + ledger.OneLine(branch, 60) + " demands"
	protected, _, err1 := c.protectionChecks(ctx, branch)
	ruled, err2 := c.rulesetChecks(ctx, branch)
	if err1 != nil && err2 != nil {
		return forge.Required{}, failed(op, err1)
	}
	required := forge.Required{Checks: append(protected, ruled...)}
	for of, err := range map[string]error{"the branch's protection": err1, "the rulesets": err2} {
		if err != nil {
			required.Unread = fmt.Sprintf("%s: %v", of, failed(op, err))
		}
	}
	return required, nil
}

// protectionChecks are those of a classic protection, and whether there is one. An answer that does not tell
// whether the branch is protected, or how, is an error.
func (c *Client) protectionChecks(ctx context.Context, branch string) (checks []forge.RequiredCheck, on bool, err error) {
	var got struct {
		Protected  *bool `json:"protected"`
		Protection *struct {
			Enabled  *bool `json:"enabled"`
			Required *struct {
				Level    string   `json:"enforcement_level"`
				Contexts []string `json:"contexts"`
				Checks   []struct {
					Context string `json:"context"`
					AppID   *int64 `json:"app_id"`
				} `json:"checks"`
			} `json:"required_status_checks"`
		} `json:"protection"`
	}
	if _, err := c.GetBelow(ctx, &got, nil, "branches", branch); err != nil {
		return nil, false, err
	}
	switch {
	case got.Protected == nil, *got.Protected && (got.Protection == nil || got.Protection.Enabled == nil):
		return nil, false, rest.Unusable("the answer does not tell how the branch is protected")
	case !*got.Protected, !*got.Protection.Enabled:
		return nil, false, nil
	case got.Protection.Required == nil, got.Protection.Required.Contexts == nil && got.Protection.Required.Checks == nil:
		return nil, false, rest.Unusable("the answer does not tell which checks the branch's protection demands")
	case got.Protection.Required.Level == "off":
		return nil, true, nil
	}
	var out []forge.RequiredCheck
	for _, check := range got.Protection.Required.Checks {
		out = append(out, forge.RequiredCheck{Name: check.Context, AppID: max(0, *cmp.Or(check.AppID, new(int64)))}) // -1 is any
	}
	for _, name := range got.Protection.Required.Contexts { // the older member: the same without the apps
		if !slices.ContainsFunc(out, func(check forge.RequiredCheck) bool { return check.Name == name }) {
			out = append(out, forge.RequiredCheck{Name: name})
		}
	}
	return out, true, nil
}

// rulesetChecks are those of the rulesets that are active for a branch.
func (c *Client) rulesetChecks(ctx context.Context, branch string) ([]forge.RequiredCheck, error) {
	type rule struct {
		Type       string `json:"type"`
		Parameters *struct {
			Required []struct {
				Context string `json:"context"`
				AppID   *int64 `json:"integration_id"`
			} `json:"required_status_checks"`
		} `json:"parameters"`
	}
	var out []forge.RequiredCheck
	err := pages(ctx, c, nil, func(rules []rule) (bool, error) {
		for _, r := range rules {
			if r.Type != "required_status_checks" {
				continue
			}
			if r.Parameters == nil || r.Parameters.Required == nil {
				return false, rest.Unusable("a rule does not tell which checks it demands")
			}
			for _, check := range r.Parameters.Required {
				out = append(out, forge.RequiredCheck{Name: check.Context, AppID: *cmp.Or(check.AppID, new(int64))})
			}
		}
		return true, nil
	}, c.Below("rules", "branches", branch)...)
	return out, err
}
