package gitea

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// settings are what a repository tells of itself.
type settings struct {
	id      string
	name    string   // OWNER/NAME as it is now; a request by a former one is redirected
	branch  string   // the default one
	public  bool     // for everybody, without an account
	methods []string // in which it lets pull requests be merged, as Merge takes them
}

func (c *Client) settings(ctx context.Context) (settings, error) {
	var got struct {
		ID       int64  `json:"id"`
		Name     string `json:"full_name"`
		Branch   string `json:"default_branch"`
		Private  *bool  `json:"private"`
		Internal *bool  `json:"internal"` // for those with an account
		Merge    bool   `json:"allow_merge_commits"`
		Squash   bool   `json:"allow_squash_merge"`
		Rebase   bool   `json:"allow_rebase"`
	}
	if _, err := c.get(ctx, &got, nil, c.below()...); err != nil {
		return settings{}, err
	}
	if got.ID <= 0 {
		return settings{}, rest.Unusable("the repository has no number")
	}
	s := settings{id: strconv.FormatInt(got.ID, 10), name: got.Name, branch: got.Branch}
	s.public = got.Private != nil && !*got.Private && got.Internal != nil && !*got.Internal
	for _, method := range []struct {
		name    string
		allowed bool
	}{{"merge", got.Merge}, {"squash", got.Squash}, {"rebase", got.Rebase}} {
		if method.allowed {
			s.methods = append(s.methods, method.name)
		}
	}
	return s, nil
}

// DefaultBranch is forge.Merger's.
func (c *Client) DefaultBranch(ctx context.Context) (forge.Side, error) {
	const op = "reading the repository's default branch"
	about, err := c.settings(ctx)
	if err == nil && (about.branch == "" || about.name == "") {
		err = rest.Unusable("the repository does not tell it")
	}
	if err != nil {
		return forge.Side{}, failed(op, err)
	}
	repository := ledger.Repository{ID: about.id, Name: about.name}
	return forge.Side{Repository: &repository, Branch: about.branch, CloneURL: c.server + "/" + repository.Name + ".git"}, nil
}

// openTries is how often a pull request is asked for, a second apart, of a branch that the
// server does not know yet.
const openTries = 5

// OpenPullRequest is forge.Merger's. The server refuses a second pull request of the same
// branches, also where the answer to the first was lost: so it is looked for before and
// after.
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
	for try := 1; ; try++ { // the server learns of a branch that was pushed a moment later
		_, err = c.send(ctx, http.MethodPost, &got, body, nil, c.below("pulls")...)
		if try == openTries || !rest.IsKind(err, rest.KindNotFound) {
			break
		}
		if err := c.wait(ctx, time.Second); err != nil {
			return 0, failed(op, err)
		}
	}
	if err == nil && got.Number > 0 {
		if number, err = c.keepOldest(ctx, got.Number, n); err != nil {
			return 0, failed(op, err)
		}
		return number, nil
	}
	if err == nil {
		err = rest.Unusable("the pull request has no number")
	}
	if rest.IsKind(err, rest.KindRefused, rest.KindNetwork, rest.KindAnswer) {
		if number, again := c.openBetween(ctx, n.Branch, n.Base); again == nil && number != 0 {
			return number, nil
		}
	}
	return 0, failed(op, err)
}

// keepOldest returns the oldest open pull request of the same branches, and closes the one
// that was just opened if that is another: the server opens one for each of two that ask
// at once.
func (c *Client) keepOldest(ctx context.Context, opened int, n forge.NewPull) (int, error) {
	oldest, err := c.openBetween(ctx, n.Branch, n.Base)
	if err != nil || oldest == 0 || oldest >= opened {
		return opened, err
	}
	_, err = c.send(ctx, http.MethodPatch, nil, map[string]string{"state": "closed"}, nil, c.below("pulls", strconv.Itoa(opened))...)
	return oldest, err
}

// openBetween returns the number of the oldest open pull request from one branch of the
// repository to another, 0 if there is none.
func (c *Client) openBetween(ctx context.Context, branch, base string) (int, error) {
	about, err := c.settings(ctx)
	if err != nil {
		return 0, err
	}
	open, err := c.pulls(ctx, branch, true)
	if err != nil {
		return 0, err
	}
	var oldest int
	for _, pr := range open {
		if pr.Head.Repository == about.id && pr.Head.Branch == branch && pr.Base == base && (oldest == 0 || pr.Number < oldest) {
			oldest = pr.Number
		}
	}
	return oldest, nil
}

// Merge is forge.Merger's. The server's answer does not name the commit, and may be lost:
// the pull request is read again in any case.
func (c *Client) Merge(ctx context.Context, number int, head string) (string, error) {
	op := fmt.Sprintf("merging pull request %d", number)
	if err := rest.CheckCommit(head); err != nil {
		return "", failed(op, err)
	}
	about, err := c.settings(ctx)
	if err == nil && len(about.methods) == 0 {
		err = &rest.Error{Kind: rest.KindRefused, Message: "the repository allows no way to merge a pull request"}
	}
	if err != nil {
		return "", failed(op, err)
	}
	err = c.merge(ctx, number, head, about.methods[0])
	pr, unread := rest.Twice(func() (forge.PullRequest, error) { return c.pullRequest(ctx, number) })
	switch {
	case unread != nil && err == nil:
		err = unread
	case unread != nil:
	case pr.Head.Commit != head:
		err = &rest.Error{Kind: rest.KindMoved, Message: fmt.Sprintf("the head is %.12s now, and not %.12s", pr.Head.Commit, head)}
	case pr.State == forge.PullRequestMerged && pr.MergeCommit != "":
		return pr.MergeCommit, nil
	case err == nil:
		err = rest.Unusable("it does not tell which commit was merged")
	}
	return "", failed(op, err)
}

// tryLater is the server's reason while it still finds out whether a pull request can be
// merged, as it does after every push; mergeTries is how often it is asked, a second apart.
const (
	tryLater   = "try again later"
	mergeTries = 5
)

func (c *Client) merge(ctx context.Context, number int, head, method string) error {
	body := map[string]any{"Do": method, "head_commit_id": head}
	for try := 1; ; try++ {
		_, err := c.send(rest.WithCall(ctx, rest.Call{Raw: true}), http.MethodPost, nil, body, nil, c.below("pulls", strconv.Itoa(number), "merge")...)
		if err == nil || try == mergeTries || !rest.IsKind(err, rest.KindRefused) || !strings.Contains(err.Error(), tryLater) {
			return err
		}
		if err := c.wait(ctx, time.Second); err != nil {
			return err
		}
	}
}
