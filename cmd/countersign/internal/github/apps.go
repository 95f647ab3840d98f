package github

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// postedComment is what only the REST API tells of a conversation comment.
type postedComment struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
	User *struct {
		ID int64 `json:"id"`
	} `json:"user"`
	App *struct {
		Slug string `json:"slug"`
		Name string `json:"name"`
	} `json:"performed_via_github_app"`
}

// app is never empty if there is one.
func (p postedComment) app() string {
	if p.App == nil {
		return ""
	}
	return firstOf(firstOf(p.App.Slug, p.App.Name), "an app")
}

// postedComments are the conversation comments by their id.
func (c *Client) postedComments(ctx context.Context, number int) (map[string]postedComment, error) {
	out := map[string]postedComment{}
	err := allPages(func(page int) (*github.Response, error) {
		var got []*postedComment
		query := url.Values{"per_page": {"100"}, "page": {strconv.Itoa(page)}}
		resp, err := c.inRepository(ctx, &got, query, "issues", strconv.Itoa(number), "comments")
		if err != nil {
			return nil, err
		}
		for _, p := range got {
			if p == nil || p.ID <= 0 {
				return nil, unusable("a comment has no number")
			}
			out[strconv.FormatInt(p.ID, 10)] = *p
		}
		return resp, nil
	})
	return out, err
}

// addApps says of each conversation comment which app posted it. A comment that
// only one of the two readings has is an error if it may be a decision.
func addApps(all []approval.Statement, posted map[string]postedComment) error {
	for i := range all {
		s := &all[i]
		if s.Kind != approval.KindIssueComment {
			continue
		}
		p, ok := posted[s.ID]
		switch {
		case ok:
			s.App = p.app()
			delete(posted, s.ID)
		case mayDecide(s.Body, s.Earlier):
			return changed("the comments")
		}
	}
	for _, p := range posted {
		if mayDecide(p.Body, nil) {
			return changed("the comments")
		}
	}
	return nil
}

// mayDecide reports whether a text can be a command: more texts than are.
func mayDecide(body string, earlier []string) bool {
	for _, text := range append([]string{body}, earlier...) {
		if strings.HasPrefix(strings.TrimSpace(text), "/") {
			return true
		}
	}
	return false
}

// CommentsBy returns the texts of the conversation comments that an account
// posted, as they are now, in no order.
func (c *Client) CommentsBy(ctx context.Context, number int, author ledger.Actor) ([]string, error) {
	posted, err := c.postedComments(ctx, number)
	var out []string
	for _, p := range posted {
		if p.User != nil && strconv.FormatInt(p.User.ID, 10) == author.ID {
			out = append(out, p.Body)
		}
	}
	return out, failed(fmt.Sprintf("reading the comments of pull request %d", number), err)
}
