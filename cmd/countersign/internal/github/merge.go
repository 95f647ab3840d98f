package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// actionsPulls are GitHub's words where a repository's setting keeps workflows
// from opening pull requests, and actionsSetting is where that setting is.
const (
	actionsPulls   = "GitHub Actions is not permitted to create or approve pull requests"
	actionsSetting = "the setting is under Settings > Actions > General > Workflow permissions"
)

// OpenPullRequest is forge.Merger's. GitHub refuses a second pull request of the
// same branches, also where somebody opened the first one a moment ago, or where
// this program did and the answer was lost: so it is looked for before and after.
func (c *Client) OpenPullRequest(ctx context.Context, n forge.NewPull) (int, error) {
	op := "opening a pull request of " + ledger.OneLine(n.Branch, 120)
	number, err := c.openBetween(ctx, n.Branch, n.Base)
	if err != nil || number != 0 {
		return number, failed(op, err)
	}
	var got struct {
		Number int `json:"number"`
	}
	body := map[string]string{"head": n.Branch, "base": n.Base, "title": n.Title, "body": n.Body}
	err = c.send(ctx, http.MethodPost, &got, body, c.below("pulls")...)
	if err == nil && got.Number > 0 {
		return got.Number, nil
	}
	if err == nil {
		err = unusable("the pull request has no number")
	}
	if isKind(err, KindRefused, KindNetwork, KindAnswer) {
		if number, again := c.openBetween(ctx, n.Branch, n.Base); again == nil && number != 0 {
			return number, nil
		}
	}
	var told *Error
	if errors.As(err, &told) && told.Kind == KindPermission && strings.Contains(told.Message, actionsPulls) {
		told.Message = actionsPulls + "; " + actionsSetting
	}
	return 0, failed(op, err)
}

// openBetween returns the number of the open pull request from one branch of the
// repository to another, 0 if there is none. That of a fork has a branch of the
// same name in another repository.
func (c *Client) openBetween(ctx context.Context, branch, base string) (int, error) {
	about, err := c.settings(ctx)
	if err != nil {
		return 0, err
	}
	open, err := c.pulls(ctx, branch, true)
	if err != nil {
		return 0, err
	}
	for _, pr := range open {
		if pr.Head.Repository == about.id && pr.Head.Branch == branch && pr.Base == base {
			return pr.Number, nil
		}
	}
	return 0, nil
}

// DefaultBranch is forge.Merger's.
func (c *Client) DefaultBranch(ctx context.Context) (forge.Side, error) {
	const op = "reading the repository's default branch"
	about, err := c.settings(ctx)
	if err != nil {
		return forge.Side{}, failed(op, err)
	}
	if about.branch == "" || about.name == "" {
		return forge.Side{}, failed(op, unusable("the repository does not tell it"))
	}
	repository := ledger.Repository{ID: about.id, Name: about.name}
	return forge.Side{Repository: &repository, Branch: about.branch, CloneURL: c.server + "/" + repository.Name + ".git"}, nil
}

// settings are what a repository tells of itself.
type settings struct {
	id      string
	name    string   // OWNER/NAME as it is now; a request by a former one is redirected
	branch  string   // the default one
	methods []string // in which it lets pull requests be merged
}

// settings reads them. GitHub tells the methods to those who may push; from a
// token that does not see them it is "merge", and GitHub decides.
func (c *Client) settings(ctx context.Context) (settings, error) {
	var got struct {
		ID     int64  `json:"id"`
		Name   string `json:"full_name"`
		Branch string `json:"default_branch"`
		Merge  *bool  `json:"allow_merge_commit"`
		Squash *bool  `json:"allow_squash_merge"`
		Rebase *bool  `json:"allow_rebase_merge"`
	}
	if _, err := c.inRepository(ctx, &got, nil); err != nil {
		return settings{}, err
	}
	if got.ID <= 0 {
		return settings{}, unusable("the repository has no number")
	}
	s := settings{id: strconv.FormatInt(got.ID, 10), name: got.Name, branch: got.Branch}
	if got.Merge == nil && got.Squash == nil && got.Rebase == nil {
		s.methods = []string{"merge"}
	}
	for _, method := range []struct {
		name    string
		allowed *bool
	}{{"merge", got.Merge}, {"squash", got.Squash}, {"rebase", got.Rebase}} {
		if method.allowed != nil && *method.allowed {
			s.methods = append(s.methods, method.name)
		}
	}
	if len(s.methods) == 0 {
		return s, &Error{Kind: KindRefused, Message: "the repository allows no way to merge a pull request"}
	}
	return s, nil
}

// Merge is forge.Merger's. After an error GitHub is asked what became of the pull
// request: the answer may have been lost, and somebody else may have merged it.
func (c *Client) Merge(ctx context.Context, number int, head string) (string, error) {
	op := fmt.Sprintf("merging pull request %d", number)
	if err := checkCommit(head); err != nil {
		return "", failed(op, err)
	}
	about, err := c.settings(ctx)
	if err != nil {
		return "", failed(op, err)
	}
	commit, err := c.merge(ctx, number, head, about.methods)
	if err == nil {
		return commit, nil
	}
	pr, unread := c.pullRequestNow(ctx, number)
	switch {
	case unread != nil:
	case pr.Head.Commit != head:
		err = &Error{Kind: KindMoved, Message: fmt.Sprintf("the head is %.12s now, and not %.12s", pr.Head.Commit, head)}
	case pr.State == forge.PullRequestMerged && pr.MergeCommit != "":
		return pr.MergeCommit, nil
	}
	return "", failed(op, err)
}

// pullRequestNow is PullRequest without whether its head is protected.
func (c *Client) pullRequestNow(ctx context.Context, number int) (forge.PullRequest, error) {
	return twice(func() (forge.PullRequest, error) { return c.pullRequest(ctx, number) })
}

// merge asks for the first of the methods, and for the next only where GitHub
// refused the method: the rules of a branch can forbid one that the repository
// allows.
func (c *Client) merge(ctx context.Context, number int, head string, methods []string) (string, error) {
	var got struct {
		SHA    string `json:"sha"`
		Merged bool   `json:"merged"`
	}
	body := map[string]string{"sha": head, "merge_method": methods[0]}
	err := c.send(ctx, http.MethodPut, &got, body, c.below("pulls", strconv.Itoa(number), "merge")...)
	var told *Error
	switch refused := errors.As(err, &told); {
	case refused && told.Status == http.StatusConflict:
		told.Kind = KindMoved
	case refused && told.Status == http.StatusMethodNotAllowed && len(methods) > 1 && refusesMethod(told.Message):
		return c.merge(ctx, number, head, methods[1:])
	case err == nil && (!got.Merged || checkCommit(got.SHA) != nil):
		err = unusable("it does not tell which commit was merged")
	}
	return got.SHA, err
}

// refusesMethod reports whether GitHub's reason is about the method alone, as in
// "Merge commits are not allowed on this repository" or, of a branch with a linear
// history, "This branch must not contain merge commits".
func refusesMethod(reason string) bool {
	reason = strings.ToLower(reason)
	return strings.Contains(reason, "merges are not allowed") || strings.Contains(reason, "merge commits") || strings.Contains(reason, "merge method")
}
