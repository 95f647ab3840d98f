package gitea

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A status stands in the place of a check run. It has a name, a state, a line of text
// and an address; what a check run says beyond these is in the one comment on the pull
// request. Everybody who may write can add one of any name: who did is its creator.
type status struct {
	ID          int64     `json:"id"` // counted for each commit
	State       string    `json:"status"`
	Context     string    `json:"context"`
	Description string    `json:"description"`
	TargetURL   string    `json:"target_url"`
	Creator     *account  `json:"creator"`
	Created     time.Time `json:"created_at"`
}

// CheckRuns is forge.Board's, of commit statuses. Each change of one is a further status,
// so that only the newest of each name and creator is returned.
func (c *Client) CheckRuns(ctx context.Context, head, name string) ([]forge.CheckRun, error) {
	op := "reading the statuses " + ledger.OneLine(name, 60)
	if err := rest.CheckCommit(head); err != nil {
		return nil, failed(op, err)
	}
	// "highestindex" has the oldest first, so that a new one moves no page.
	all, err := list[status](ctx, c, false, url.Values{"sort": {"highestindex"}}, c.Below("commits", head, "statuses")...)
	if err != nil {
		return nil, failed(op, err)
	}
	slices.SortFunc(all, func(a, b status) int { return cmp.Compare(b.ID, a.ID) })
	out := []forge.CheckRun{}
	seen := map[[2]string]bool{}
	for _, s := range all {
		run := c.checkRun(head, s)
		key := [2]string{run.Name, s.Creator.actor().ID}
		if !seen[key] && (name == "" || run.Name == name) {
			out = append(out, run)
		}
		seen[key] = true
	}
	return out, nil
}

// outcomes are the conclusions of states that are final; every other one is no success.
var outcomes = map[string]string{"success": "success", "failure": "failure", "error": "failure", "warning": "neutral", "skipped": "neutral"}

func (c *Client) checkRun(head string, s status) forge.CheckRun {
	run := forge.CheckRun{
		ID: s.ID, Name: s.Context, Head: head, Status: "in_progress", Conclusion: outcomes[s.State], URL: s.TargetURL,
		Title: s.Description, StartedAt: s.Created,
	}
	if run.Conclusion != "" {
		run.Status, run.CompletedAt = "completed", s.Created
	}
	if who := s.Creator.actor(); who.ID != "" {
		run.App, run.AppID = who.Login, s.Creator.ID
	}
	return run
}

// stateOf is the state that shows a conclusion: what is neutral or waits for somebody is
// pending, as nothing but a success may satisfy a rule that asks for one.
func stateOf(check forge.Check) string {
	switch {
	case check.Status == "completed" && check.Conclusion == "success":
		return "success"
	case check.Status == "completed" && check.Conclusion == "failure":
		return "failure"
	}
	return "pending"
}

// maxDescription is how long a status's line is, in bytes; the server has no limit.
const maxDescription = 255

// PublishCheckOver is forge.Board's: it adds a status, unless the newest of that name is
// the token's own and says the same.
func (c *Client) PublishCheckOver(ctx context.Context, head string, check forge.Check, known []forge.CheckRun) (forge.CheckRun, error) {
	op := "publishing the status " + ledger.OneLine(check.Name, 60)
	if err := rest.CheckCommit(head); err != nil {
		return forge.CheckRun{}, failed(op, err)
	}
	state, line := stateOf(check), ledger.OneLine(check.Title, maxDescription)
	if len(known) > 0 && known[0].Name == check.Name && known[0].Title == line && known[0].URL == check.DetailsURL && sameState(known[0], state) {
		if who, err := c.Viewer(ctx); err == nil && strconv.FormatInt(known[0].AppID, 10) == who.ID {
			return known[0], nil
		}
	}
	body := map[string]string{"context": check.Name, "state": state, "description": line, "target_url": check.DetailsURL}
	var got status
	_, err := c.send(ctx, http.MethodPost, &got, body, nil, c.Below("statuses", head)...)
	if err == nil && (got.ID <= 0 || got.State != state || got.Context != check.Name) {
		err = rest.Unusable("the server has another status than the one that was sent")
	}
	if err != nil {
		return forge.CheckRun{}, failed(op, err)
	}
	return c.checkRun(head, got), nil
}

// sameState reports whether a status is in a state that we write.
func sameState(run forge.CheckRun, state string) bool {
	if run.Status != "completed" {
		return state == "pending"
	}
	return run.Conclusion == state
}

// CreateReviewComment is refused: a comment is on a line here, not on a file, and one
// line's comments are shown as one thread whichever review they are of, so that it would
// not be certain what an answer without a fingerprint answers.
func (c *Client) CreateReviewComment(_ context.Context, number int, _, _, _ string) (forge.Posted, error) {
	return forge.Posted{}, failed(fmt.Sprintf("asking on pull request %d", number), &rest.Error{
		Kind: rest.KindRefused, Message: "threads on files are not used here: answers name the patch, in the conversation",
	})
}

// ResolveThread is false: none is opened.
func (c *Client) ResolveThread(context.Context, int, string) (bool, error) { return false, nil }
