package gitea

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// said is a comment, a review's comment on a line, or an entry of the timeline. Type and
// ReviewID are of an entry alone, Path, Commit and the lines of a comment on one.
type said struct {
	ID       int64     `json:"id"`
	URL      string    `json:"html_url"`
	User     *account  `json:"user"`
	Body     string    `json:"body"`
	Created  time.Time `json:"created_at"`
	Updated  time.Time `json:"updated_at"`
	Type     string    `json:"type"`
	ReviewID int64     `json:"review_id"`
	Path     string    `json:"path"`
	Commit   string    `json:"commit_id"`
	Line     uint64    `json:"position"`
	OldLine  uint64    `json:"original_position"`
	onLine   bool      // whether it is a comment on one
	replyTo  string    // the first comment on that line, where it is not the first
}

// edited reports a trace that an edit leaves, whoever made it: everybody who may write can
// edit everybody's comment, and the author shown stays. In the second of the post it leaves
// none, and on Forgejo an administrator names the time of the edit: see firstTexts.
// Resolving or outdating a comment on a line leaves the trace as well.
func (s said) edited() bool { return s.Created.IsZero() || !s.Updated.Equal(s.Created) }

// review is one as the API tells it, with the text that it was submitted with.
type review struct {
	ID        int64     `json:"id"`
	URL       string    `json:"html_url"`
	User      *account  `json:"user"`
	Body      string    `json:"body"`
	State     string    `json:"state"`
	Commit    string    `json:"commit_id"`
	Dismissed *bool     `json:"dismissed"`
	Comments  *int      `json:"comments_count"`
	Submitted time.Time `json:"submitted_at"`
}

const (
	statePending  = "PENDING"
	stateRequest  = "REQUEST_REVIEW" // somebody is asked for one
	timelineOfOne = "review"
)

// states are GitHub's words for those of a review.
var states = map[string]string{"APPROVED": approval.ReviewApproved, "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}

// state is the word of package approval; a state that is not known is its own word, and
// is no approval.
func (r review) state() string {
	if r.Dismissed == nil || *r.Dismissed {
		return "DISMISSED"
	}
	return cmp.Or(states[r.State], "UNKNOWN")
}

// Statements is forge.Reader's. Of earlier texts there is the first at most, or its
// beginning, where a comment was edited. That somebody else posted it for its author, by
// mail or with a token, is not told. A review keeps its first text; a comment whose first
// text is not told, and that may be a decision, is Untold.
func (c *Client) Statements(ctx context.Context, number int) ([]approval.Statement, error) {
	c.known.clear()
	c.Forget()
	all, err := c.statements(ctx, strconv.Itoa(number))
	return all, failed(fmt.Sprintf("reading the statements of pull request %d", number), err)
}

func (c *Client) statements(ctx context.Context, number string) ([]approval.Statement, error) {
	// Reviews that others have not submitted yet are counted, and kept back. They are read
	// first: asked for the comments of what there is not, the server fails (500).
	reviews, err := list[review](ctx, c, true, nil, c.Below("pulls", number, "reviews")...)
	if err != nil {
		return nil, err
	}
	comments, err := c.comments(ctx, number)
	if err != nil {
		return nil, err
	}
	var texts map[int64]said
	if slices.ContainsFunc(reviews, review.submitted) {
		if texts, err = c.reviewTexts(ctx, number); err != nil {
			return nil, err
		}
	}
	all := []approval.Statement{}
	for _, r := range reviews {
		if !r.submitted() {
			continue
		}
		s, known := texts[r.ID]
		all = append(all, r.statement(s, known))
		lines, err := c.lineComments(ctx, number, r)
		if err != nil {
			return nil, err
		}
		comments = append(comments, lines...)
	}
	firsts, err := c.firstTexts(ctx, number, comments)
	if err != nil {
		return nil, err
	}
	for _, s := range comments {
		first, known := firsts[s.ID]
		all = append(all, s.statement(first, known))
	}
	for _, s := range all {
		if s.ID == "0" || s.CreatedAt == "" {
			return nil, rest.Unusable("a statement has no number or no date")
		}
	}
	return all, nil
}

func (r review) submitted() bool { return r.State != statePending && r.State != stateRequest }

// comments are those in the conversation.
func (c *Client) comments(ctx context.Context, number string) ([]said, error) {
	return list[said](ctx, c, false, nil, c.Below("issues", number, "comments")...)
}

// reviewTexts are the texts of reviews as they stand now, by the review's number. A
// review keeps the text that it was submitted with, and people edit, and see, another one.
func (c *Client) reviewTexts(ctx context.Context, number string) (map[int64]said, error) {
	var raw json.RawMessage // a timeline without entries is null; one without a page is whole
	ctx = rest.WithCall(ctx, rest.Call{Read: true, Raw: true})
	if _, err := c.GetBelow(ctx, &raw, nil, "issues", number, "timeline"); err != nil {
		return nil, err
	}
	var entries []said
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, rest.Unusable("the timeline cannot be read")
	}
	out := map[int64]said{}
	for _, e := range entries {
		if e.Type == timelineOfOne && e.ReviewID > 0 {
			out[e.ReviewID] = e
		}
	}
	return out, nil
}

// lineComments are a review's comments on lines, and the answers to them, which are in
// the same review whoever wrote them. The first on a line began the thread.
func (c *Client) lineComments(ctx context.Context, number string, r review) ([]said, error) {
	if r.Comments == nil {
		return nil, rest.Unusable("a review does not tell how many comments it has")
	}
	if *r.Comments == 0 {
		return nil, nil
	}
	var comments []said
	if _, err := c.GetBelow(ctx, &comments, nil, "pulls", number, "reviews", strconv.FormatInt(r.ID, 10), "comments"); err != nil {
		return nil, err
	}
	if len(comments) < *r.Comments {
		return nil, rest.Changed("the comments of a review")
	}
	slices.SortFunc(comments, func(a, b said) int { return cmp.Compare(a.ID, b.ID) })
	first := map[string]string{}
	for i, s := range comments {
		at := fmt.Sprintf("%d %d %s", s.Line, s.OldLine, s.Path)
		comments[i].onLine, comments[i].replyTo, comments[i].Commit = true, first[at], cmp.Or(s.Commit, r.Commit)
		if first[at] == "" {
			first[at] = strconv.FormatInt(s.ID, 10)
		}
	}
	return comments, nil
}

// statement is a comment, of which the server tells what it said at first or does not.
func (s said) statement(first string, known bool) approval.Statement {
	out := approval.Statement{
		Kind: approval.KindIssueComment, ID: strconv.FormatInt(s.ID, 10), URL: s.URL, Author: s.User.actor(), Body: s.Body, Edited: s.edited(),
		CreatedAt: when(s.Created), Commit: s.Commit, ReplyTo: s.replyTo,
	}
	if s.onLine {
		out.Kind = approval.KindReviewComment
	}
	if out.Untold = !known && mayDecide(s.Body); known && !stands(first, s.Body) {
		out.Edited, out.Earlier = true, []string{first}
	}
	return out
}

// statement is a review with its text as it stands, if there still is one. A review
// that was begun earlier is of the moment when it was submitted.
func (r review) statement(now said, known bool) approval.Statement {
	out := approval.Statement{
		Kind: approval.KindReview, ID: strconv.FormatInt(r.ID, 10), URL: r.URL, Author: r.User.actor(), Body: r.Body,
		State: r.state(), Commit: r.Commit, CreatedAt: when(r.Submitted), Edited: true,
	}
	if !known {
		return out
	}
	out.Body, out.Edited = now.Body, now.edited() || now.Body != r.Body
	if now.Body != r.Body {
		out.Earlier = []string{r.Body}
	}
	if now.Created.After(r.Submitted) {
		out.CreatedAt = when(now.Created)
	}
	return out
}

// when is a time as statements have it, in UTC; "" for none. Servers tell it in their
// own time zone.
func when(t time.Time) string {
	if t.IsZero() || t.Unix() <= 0 {
		return ""
	}
	return ledger.FormatTime(t)
}

// CommentsBy returns the texts of the comments that an account posted in the
// conversation, as they are now.
func (c *Client) CommentsBy(ctx context.Context, number int, author ledger.Actor) ([]string, error) {
	all, err := c.comments(ctx, strconv.Itoa(number))
	var out []string
	for _, s := range all {
		if author.ID != "" && s.User.actor().ID == author.ID {
			out = append(out, s.Body)
		}
	}
	return out, failed(fmt.Sprintf("reading the comments of pull request %d", number), err)
}

// ReviewComment is forge.Forge's, and always refused: Gitea and Forgejo show no
// suggestions, and count a comment's line in the commit that wrote the line last.
func (c *Client) ReviewComment(context.Context, int64) (forge.ReviewComment, error) {
	return forge.ReviewComment{}, failed("reading a review comment", &rest.Error{Kind: rest.KindRefused, Message: "Gitea and Forgejo do not tell which lines of which commit it is on"})
}
