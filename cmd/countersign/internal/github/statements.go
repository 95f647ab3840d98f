package github

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

type thread struct {
	ID       string      `json:"id"`
	Comments *page[said] `json:"comments"`
}

// Statements is forge.Reader's. Hidden and outdated comments are included; pending reviews
// are not. Of reviews and review comments
// GitHub does not tell whether an app posted them for their author, so App is
// of conversation comments only. Earlier texts are read for accounts of people;
// where the history's versions were deleted, or are from before GitHub kept
// them, they are missing, but Edited is true.
//
// If something changed while it was read, all is read once more; if it changes
// again, that is an error of rest.KindChanged.
func (c *Client) Statements(ctx context.Context, number int) ([]approval.Statement, error) {
	c.Forget()
	out, err := rest.Twice(func() ([]approval.Statement, error) { return c.statements(ctx, number) })
	if err != nil {
		return nil, failed(fmt.Sprintf("reading the statements of pull request %d", number), err)
	}
	return out, nil
}

// statements asks the REST API first: a comment that is only in the later
// answer is new, one that is only in the earlier is gone.
func (c *Client) statements(ctx context.Context, number int) ([]approval.Statement, error) {
	posted, err := c.postedComments(ctx, number)
	if err != nil {
		return nil, err
	}
	all, err := c.readSaid(ctx, number)
	if err != nil {
		return nil, err
	}
	histories, err := c.histories(ctx, all)
	if err != nil {
		return nil, err
	}
	out := []approval.Statement{}
	ids := map[string]bool{}
	for _, s := range all {
		if s.ID == "" || s.FullDatabaseID == "" || s.CreatedAt == "" {
			return nil, rest.Unusable("a statement has no number or no date")
		}
		if s.untold() {
			return nil, rest.Unusable("it is not told whether a comment is edited, came by e-mail or is hidden")
		}
		if ids[s.ID] {
			return nil, rest.Changed("the statements")
		}
		ids[s.ID] = true
		if !s.pending() {
			out = append(out, s.statement(histories[s.ID]))
		}
	}
	return out, addApps(out, posted)
}

// readSaid reads the three connections together, each to its end.
func (c *Client) readSaid(ctx context.Context, number int) ([]said, error) {
	type answer struct {
		Repository *struct {
			PullRequest *struct {
				Reviews  *page[said]   `json:"reviews"`
				Threads  *page[thread] `json:"reviewThreads"`
				Comments *page[said]   `json:"comments"`
			} `json:"pullRequest"`
		} `json:"repository"`
	}
	var reviews, comments list[said]
	var threads list[thread]
	for !reviews.done || !threads.done || !comments.done {
		got, err := ask[answer](ctx, c, queryStatements, map[string]any{
			"owner": c.Owner, "name": c.Name, "number": number,
			"reviews": !reviews.done, "threads": !threads.done, "comments": !comments.done,
			"afterReview": reviews.cursor, "afterThread": threads.cursor, "afterComment": comments.cursor,
		})
		if err != nil {
			return nil, err
		}
		if got.Repository == nil || got.Repository.PullRequest == nil {
			return nil, &rest.Error{Kind: rest.KindNotFound, Message: "there is no such pull request"}
		}
		pr := got.Repository.PullRequest
		if err := cmp.Or(reviews.add(pr.Reviews), threads.add(pr.Threads), comments.add(pr.Comments)); err != nil {
			return nil, err
		}
	}
	if !reviews.whole() || !threads.whole() || !comments.whole() {
		return nil, rest.Changed("the statements")
	}
	all := append(ofKind(reviews.nodes, approval.KindReview), ofKind(comments.nodes, approval.KindIssueComment)...)
	for _, t := range threads.nodes {
		said, err := c.readThread(ctx, t)
		if err != nil {
			return nil, err
		}
		all = append(all, said...)
	}
	return all, nil
}

// readThread reads the rest of a thread.
func (c *Client) readThread(ctx context.Context, t thread) ([]said, error) {
	comments, err := readAll("the threads", func(after any) (*page[said], error) {
		if after == nil {
			return t.Comments, nil
		}
		got, err := ask[struct{ Node *thread }](ctx, c, queryThread, map[string]any{"id": t.ID, "after": after})
		if rest.IsKind(err, rest.KindNotFound) || err == nil && got.Node == nil {
			return nil, rest.Changed("the threads")
		}
		if err != nil {
			return nil, err
		}
		return got.Node.Comments, nil
	})
	if err != nil {
		return nil, err
	}
	all := ofKind(comments, approval.KindReviewComment)
	for i := range all {
		if i > 0 {
			all[i].replyTo = string(all[0].FullDatabaseID)
		}
	}
	return all, nil
}

// statePending is of a review that its author has not submitted yet.
const statePending = "PENDING"

// said is a review or a comment. State and what follows are of some kinds only.
type said struct {
	ID                  string                  `json:"id"`
	FullDatabaseID      number                  `json:"fullDatabaseId"`
	URL                 string                  `json:"url"`
	Body                string                  `json:"body"`
	Author              *account                `json:"author"`
	CreatedAt           string                  `json:"createdAt"`
	LastEditedAt        *string                 `json:"lastEditedAt"`
	IncludesCreatedEdit *bool                   `json:"includesCreatedEdit"`
	Editor              *struct{ Login string } `json:"editor"`
	CreatedViaEmail     *bool                   `json:"createdViaEmail"`
	IsMinimized         *bool                   `json:"isMinimized"`
	State               string                  `json:"state"`
	SubmittedAt         string                  `json:"submittedAt"`
	Commit              *object                 `json:"commit"`
	OriginalCommit      *object                 `json:"originalCommit"`
	Review              *struct{ State string } `json:"pullRequestReview"`

	kind, replyTo string
}

func ofKind(all []said, kind string) []said {
	for i := range all {
		all[i].kind = kind
	}
	return all
}

// pending reports whether the author, who is then the token's, has not submitted
// it.
func (s said) pending() bool {
	return s.State == statePending || s.Review != nil && s.Review.State == statePending
}

// untold reports whether the answer leaves open if a text was edited, came by
// e-mail, or is hidden: it is not taken for one that was not (T82). Reviews can be
// hidden only on servers that tell it.
func (s said) untold() bool {
	return s.IncludesCreatedEdit == nil || s.CreatedViaEmail == nil || s.IsMinimized == nil && s.kind != approval.KindReview
}

// edited is true as soon as anything says so.
func (s said) edited() bool {
	return s.LastEditedAt != nil || told(s.IncludesCreatedEdit) || s.Editor != nil
}

func told(yes *bool) bool { return yes != nil && *yes }

func (s said) statement(earlier []string) approval.Statement {
	out := approval.Statement{
		Kind: s.kind, ID: string(s.FullDatabaseID), URL: s.URL, Author: s.Author.actor(), Body: s.Body,
		Earlier: earlier, Edited: s.edited(), Email: told(s.CreatedViaEmail), Hidden: told(s.IsMinimized), ReplyTo: s.replyTo, CreatedAt: s.CreatedAt,
	}
	commit := s.OriginalCommit
	if s.kind == approval.KindReview {
		out.State, commit = s.State, s.Commit
		out.CreatedAt = cmp.Or(s.SubmittedAt, s.CreatedAt)
	}
	if commit != nil {
		out.Commit = commit.Oid
	}
	return out
}

// postedComment is what only the REST API tells of a conversation comment.
type postedComment struct {
	ID     int64  `json:"id"`
	NodeID string `json:"node_id"`
	Body   string `json:"body"`
	User   *struct {
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
	return cmp.Or(p.App.Slug, p.App.Name, "an app")
}

// postedComments are the conversation comments by their id.
func (c *Client) postedComments(ctx context.Context, number int) (map[string]postedComment, error) {
	out := map[string]postedComment{}
	err := pages(ctx, c, nil, func(got []*postedComment) (bool, error) {
		for _, p := range got {
			if p == nil || p.ID <= 0 {
				return false, rest.Unusable("a comment has no number")
			}
			out[strconv.FormatInt(p.ID, 10)] = *p
		}
		return true, nil
	}, c.Below("issues", strconv.Itoa(number), "comments")...)
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
			return rest.Changed("the comments")
		}
	}
	for _, p := range posted {
		if mayDecide(p.Body, nil) {
			return rest.Changed("the comments")
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

const (
	maxIDs   = 100  // nodes that GitHub takes in one query
	maxEdits = 1000 // of one statement
)

// edits are a statement's versions, newest first. GitHub's schema calls diff a
// summary of the changes; what it holds is the whole text of that version (seen
// in the importers of several public projects), null where somebody deleted the
// version. The list is empty for what was never edited, and else begins, at its
// far end, with the first text.
type edits struct {
	ID    string `json:"id"`
	Edits *page[struct {
		Diff *string `json:"diff"`
	}] `json:"userContentEdits"`
}

// histories returns the earlier texts, oldest first, by node id, of what people
// wrote and was edited. What an app wrote counts in no version of it, and
// comments of ours have hundreds.
func (c *Client) histories(ctx context.Context, all []said) (map[string][]string, error) {
	bodies := map[string]string{}
	var ids []string
	for _, s := range all {
		if s.edited() && s.Author.actor().Kind == "user" {
			bodies[s.ID] = s.Body
			ids = append(ids, s.ID)
		}
	}
	out := map[string][]string{}
	for some := range slices.Chunk(ids, maxIDs) {
		got, err := c.edits(ctx, some, nil)
		if err != nil {
			return nil, err
		}
		for i, id := range some {
			texts, err := c.versions(ctx, id, got[i])
			if err != nil {
				return nil, err
			}
			out[id] = earlier(texts, bodies[id])
		}
	}
	return out, nil
}

// edits reads one page of the history of each node, in the order of the ids.
func (c *Client) edits(ctx context.Context, ids []string, after any) ([]*edits, error) {
	got, err := ask[struct{ Nodes []*edits }](ctx, c, queryHistories, map[string]any{"ids": ids, "after": after})
	if rest.IsKind(err, rest.KindNotFound) {
		return nil, rest.Changed("the statements")
	}
	if err != nil {
		return nil, err
	}
	if len(got.Nodes) != len(ids) {
		return nil, rest.Unusable("the histories are not those that were asked for")
	}
	for i, n := range got.Nodes {
		if n == nil {
			return nil, rest.Changed("the statements")
		}
		if n.ID != ids[i] {
			return nil, rest.Unusable("the histories are not those that were asked for")
		}
	}
	return got.Nodes, nil
}

// versions reads the rest of one history and returns all texts, newest first.
func (c *Client) versions(ctx context.Context, id string, first *edits) ([]string, error) {
	var versions list[struct {
		Diff *string `json:"diff"`
	}]
	if err := versions.add(first.Edits); err != nil {
		return nil, err
	}
	for !versions.done {
		if len(versions.nodes) >= maxEdits {
			return nil, rest.Unusable("a statement was edited more than %d times", maxEdits)
		}
		got, err := c.edits(ctx, []string{id}, versions.cursor)
		if err != nil {
			return nil, err
		}
		if err := versions.add(got[0].Edits); err != nil {
			return nil, err
		}
	}
	if !versions.whole() {
		return nil, rest.Changed("the statements")
	}
	var texts []string
	for _, v := range versions.nodes {
		if v.Diff != nil {
			texts = append(texts, *v.Diff)
		}
	}
	return texts, nil
}

// earlier turns a history around and leaves out the text that stands now.
func earlier(newestFirst []string, body string) []string {
	if len(newestFirst) > 0 && newestFirst[0] == body {
		newestFirst = newestFirst[1:]
	}
	out := slices.Clone(newestFirst)
	slices.Reverse(out)
	return out
}

// ReviewComment is forge.Forge's (REST API, "Get a review comment for a pull request").
func (c *Client) ReviewComment(ctx context.Context, id int64) (forge.ReviewComment, error) {
	var got struct {
		ID      int64  `json:"id"`
		PullURL string `json:"pull_request_url"`
		URL     string `json:"html_url"`
		User    *struct {
			ID          int64
			Login, Type string
		}
		Body      string `json:"body"`
		Created   string `json:"created_at"`
		Updated   string `json:"updated_at"`
		Path      string `json:"path"`
		Commit    string `json:"commit_id"`
		Start     int    `json:"start_line"` // null for one line
		Line      int    `json:"line"`       // null once its lines have changed
		StartSide string `json:"start_side"`
		Side      string `json:"side"`
		Subject   string `json:"subject_type"`
	}
	op := fmt.Sprintf("reading the review comment %d", id)
	if _, err := c.GetBelow(ctx, &got, nil, "pulls", "comments", strconv.FormatInt(id, 10)); err != nil {
		return forge.ReviewComment{}, failed(op, err)
	}
	number, err := strconv.Atoi(got.PullURL[strings.LastIndex(got.PullURL, "/")+1:])
	if err != nil || number < 1 || got.ID != id || got.Path == "" || rest.CheckCommit(got.Commit) != nil || got.Created == "" {
		return forge.ReviewComment{}, failed(op, rest.Unusable("it is another comment, or lacks its pull request, path, commit or date"))
	}
	var by *account
	if got.User != nil {
		by = &account{Type: got.User.Type, Login: got.User.Login, DatabaseID: got.User.ID}
	}
	return forge.ReviewComment{
		ID: id, PullRequest: number, URL: got.URL, Author: by.actor(), Body: got.Body, Edited: got.Updated != got.Created, CreatedAt: got.Created,
		Path: got.Path, Commit: got.Commit, Start: got.Start, Line: got.Line, StartSide: got.StartSide, Side: got.Side, OnFile: got.Subject == "file",
	}, nil
}
