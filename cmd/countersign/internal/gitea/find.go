package gitea

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

// pulls is rest.Pulls'. The API cannot look for a head. Of a closed pull request whose branch went on, the list
// has another head: it is not found.
func (c *Client) pulls(ctx context.Context, _ string, open bool) ([]forge.Open, error) {
	state := map[bool]string{true: "open", false: "closed"}[open]
	all, err := list[pull](ctx, c, false, url.Values{"state": {state}, "sort": {"oldest"}}, c.Below("pulls")...)
	if err != nil {
		return nil, err
	}
	var out []forge.Open
	for _, got := range all {
		if got.Number <= 0 || got.Base == nil || got.Head == nil || got.Base.Label == "" {
			return nil, rest.Unusable("a pull request has no number, head or base")
		}
		if open && rest.CheckCommit(got.Head.SHA) != nil {
			return nil, rest.Unusable("a pull request has no head")
		}
		pr := forge.Open{Number: got.Number, Base: got.Base.Label, Head: forge.Head{Branch: got.Head.Label, Commit: got.Head.SHA}}
		if at := got.Head.Repo; at != nil && at.ID > 0 && at.Owner != nil && got.Head.Label != "" {
			pr.Head.Owner, pr.Head.Repository = at.Owner.Login, strconv.FormatInt(at.ID, 10)
		}
		out = append(out, pr)
	}
	return out, nil
}

// merged is rest.Pulls'.
func (c *Client) merged(ctx context.Context) ([]forge.Merged, error) {
	all, err := list[pull](ctx, c, false, url.Values{"state": {"closed"}, "sort": {"oldest"}}, c.Below("pulls")...)
	var out []forge.Merged
	for _, got := range all {
		if got.Number <= 0 || got.Merged == nil {
			return nil, rest.Unusable("a pull request has no number, or it is not told whether it was merged")
		}
		if *got.Merged {
			at, _ := time.Parse(time.RFC3339, got.MergedAt) // one that cannot be read is none
			out = append(out, forge.Merged{Number: got.Number, At: at})
		}
	}
	return out, err
}
