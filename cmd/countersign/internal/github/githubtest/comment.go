package githubtest

import (
	"slices"
	"time"
	"unicode/utf8"
)

// NewComment is a comment in a conversation, a review comment or a review. App is the
// login of the app that posts it for the account; Email says that it is a reply to a
// mail. At is now if it is zero. A review comment is on the lines from Start to Line of
// the file Path, from Line if Start is 0, on the file if Line is 0, or a reply to such a
// comment; Left says that they are lines of the base. A review's State is APPROVED,
// CHANGES_REQUESTED, COMMENTED or PENDING; Commit is the head if it is "".
type NewComment struct {
	Repository string
	Number     int
	By, Body   string
	App        string
	Email      bool
	At         time.Time

	Path        string
	Start, Line int
	Left        bool
	ReplyTo     int64

	State, Commit string
}

// A Comment is a comment or review as it is now. ReplyTo, Path and Resolved are
// those of review comments, State and Commit of reviews.
type Comment struct {
	ID       int64
	Author   string
	Body     string
	URL      string
	Edited   bool
	Path     string
	ReplyTo  int64
	Resolved bool
	State    string
	Commit   string
}

// A text is what somebody wrote, with all that became of it: the common part of
// comments, reviews and pull requests.
type text struct {
	id      int64
	author  *account
	body    string
	created time.Time
	updated time.Time
	app     *account // that posted it for its author
	email   bool
	editor  *account
	edited  *time.Time
	hidden  bool
	history []edit // with the first text, oldest first; empty if never edited
}

type edit struct {
	body   string
	at     time.Time
	editor *account
	erased bool
}

type comment struct {
	text
	pull *pull
	// Of review comments:
	thread   *thread
	review   *review
	replyTo  *comment
	commit   string // the head when it was made
	subject  string // "line" or "file"
	path     string
	start    int // 0 for a comment on one line
	line     int
	left     bool
	outdated bool
}

type review struct {
	text
	pull   *pull
	state  string
	commit string
}

type thread struct {
	id       int64
	pull     *pull
	comments []*comment
	resolved bool
}

func (s *Server) newText(by *account, body string) text {
	now := s.time()
	return text{id: s.nextID(), author: by, body: body, created: now, updated: now}
}

// origin sets where a text came from.
func (s *Server) origin(t *text, n NewComment) {
	t.email = n.Email
	if n.App != "" {
		t.app = s.account(n.App)
	}
	if !n.At.IsZero() {
		t.created, t.updated = n.At, n.At
	}
}

// Comment adds a comment to a conversation, of a pull request or an issue.
func (s *Server) Comment(n NewComment) Comment {
	defer s.lock()()
	p := s.repo(n.Repository).findIssue(n.Number)
	if p == nil {
		p = s.pull(n.Repository, n.Number)
	}
	c := &comment{text: s.newText(s.account(n.By), n.Body), pull: p}
	s.origin(&c.text, n)
	p.comments = append(p.comments, c)
	return s.publicComment(c)
}

// Review adds a review.
func (s *Server) Review(n NewComment) Comment {
	defer s.lock()()
	p := s.pull(n.Repository, n.Number)
	if !slices.Contains([]string{"APPROVED", "CHANGES_REQUESTED", "COMMENTED", "PENDING"}, n.State) {
		misuse("no state %q of a review", n.State)
	}
	v := s.addReview(p, s.account(n.By), n.Body, n.State)
	if n.Commit != "" {
		v.commit = n.Commit
	}
	s.origin(&v.text, n)
	return s.publicReview(v)
}

func (s *Server) addReview(p *pull, by *account, body, state string) *review {
	v := &review{text: s.newText(by, body), pull: p, state: state, commit: p.head.sha}
	p.reviews = append(p.reviews, v)
	return v
}

// ReviewComment adds a review comment; as on GitHub, one comes with a review of
// its own, in the state COMMENTED and without a text.
func (s *Server) ReviewComment(n NewComment) Comment {
	defer s.lock()()
	p, by := s.pull(n.Repository, n.Number), s.account(n.By)
	var c *comment
	if n.ReplyTo != 0 {
		c = s.reply(s.comment(n.ReplyTo), by, n.Body)
	} else {
		c = s.addThread(p, by, n.Body, place{p.head.sha, n.Path, n.Line})
		c.start, c.left = n.Start, n.Left
	}
	s.origin(&c.text, n)
	s.origin(&c.review.text, n)
	return s.publicComment(c)
}

// place is where a thread starts; the line is 0 for a whole file.
type place struct {
	commit, path string
	line         int
}

func (s *Server) addThread(p *pull, by *account, body string, at place) *comment {
	subject := "line"
	if at.line == 0 {
		subject = "file"
	}
	t := &thread{id: s.nextID(), pull: p}
	c := &comment{
		text: s.newText(by, body), pull: p, thread: t, review: s.addReview(p, by, "", "COMMENTED"), commit: at.commit,
		subject: subject, path: at.path, line: at.line,
	}
	t.comments = []*comment{c}
	p.threads = append(p.threads, t)
	return c
}

// reply adds a comment to the thread of another. It answers the thread's first
// comment, whichever was named.
func (s *Server) reply(to *comment, by *account, body string) *comment {
	first := to.thread.comments[0]
	if first.replyTo != nil {
		first = first.replyTo
	}
	c := &comment{
		text: s.newText(by, body), pull: to.pull, thread: to.thread, review: s.addReview(to.pull, by, "", "COMMENTED"), replyTo: first,
		commit: to.pull.head.sha, subject: to.subject, path: to.path, line: to.line,
	}
	to.thread.comments = append(to.thread.comments, c)
	return c
}

// nodeID is the id that GraphQL has.
func (c *comment) nodeID() string {
	if c.thread != nil {
		return nodeID("PRRC", c.id)
	}
	return nodeID("IC", c.id)
}

// comment finds a comment of any pull request by its id.
func (s *Server) comment(id int64) *comment {
	var all []*comment
	for _, p := range s.conversations() {
		all = append(all, p.allComments()...)
	}
	c := first(all, func(c *comment) bool { return c.id == id })
	if c == nil {
		misuse("no comment %d", id)
	}
	return c
}

// text finds a text by its id.
func (s *Server) text(id int64) *text {
	p := first(s.conversations(), func(p *pull) bool { return p.find(id) != nil })
	if p == nil {
		misuse("no comment, review or pull request %d", id)
	}
	return p.find(id)
}

// Edit changes a comment, review or pull request's text as an account.
func (s *Server) Edit(id int64, by, body string) {
	defer s.lock()()
	s.edit(s.text(id), s.account(by), body)
}

func (s *Server) edit(t *text, editor *account, body string) {
	now := s.time()
	if len(t.history) == 0 {
		t.history = []edit{{body: t.body, at: t.created, editor: t.author}}
	}
	t.history = append(t.history, edit{body: body, at: now, editor: editor})
	t.body, t.updated, t.edited, t.editor = body, now, &now, editor
}

// EraseHistory removes the texts of all edits but the last, as people may.
func (s *Server) EraseHistory(id int64) {
	defer s.lock()()
	t := s.text(id)
	for i := range max(len(t.history)-1, 0) {
		t.history[i].erased = true
	}
}

// Delete removes a comment; the APIs have nothing of it left. A thread goes with
// its last.
func (s *Server) Delete(id int64) {
	defer s.lock()()
	gone := s.comment(id)
	p := gone.pull
	is := func(c *comment) bool { return c == gone }
	p.gone = append(p.gone, gone)
	p.comments = slices.DeleteFunc(p.comments, is)
	if t := gone.thread; t != nil {
		t.comments = slices.DeleteFunc(t.comments, is)
	}
	p.threads = slices.DeleteFunc(p.threads, func(t *thread) bool { return len(t.comments) == 0 })
}

// Dismiss dismisses a review.
func (s *Server) Dismiss(id int64) {
	defer s.lock()()
	for _, p := range s.pulls() {
		if v := p.review(id); v != nil {
			v.state = "DISMISSED"
			return
		}
	}
	misuse("no review %d", id)
}

// Hide hides a comment or review ("minimizes" it), or shows it again.
func (s *Server) Hide(id int64, on bool) {
	defer s.lock()()
	s.text(id).hidden = on
}

// Outdate makes a review comment one on lines that have changed since.
func (s *Server) Outdate(id int64) {
	defer s.lock()()
	s.comment(id).outdated = true
}

// Comments returns the comments of a conversation, oldest first.
func (s *Server) Comments(repository string, number int) []Comment {
	defer s.lock()()
	return public(s.pull(repository, number).comments, s.publicComment)
}

// ReviewComments returns the review comments of a pull request, oldest first.
func (s *Server) ReviewComments(repository string, number int) []Comment {
	defer s.lock()()
	return public(s.pull(repository, number).reviewComments(), s.publicComment)
}

// Reviews returns the reviews of a pull request, oldest first.
func (s *Server) Reviews(repository string, number int) []Comment {
	defer s.lock()()
	return public(s.pull(repository, number).reviews, s.publicReview)
}

func public[T any](list []T, of func(T) Comment) []Comment {
	all := []Comment{}
	for _, one := range list {
		all = append(all, of(one))
	}
	return all
}

func (s *Server) publicComment(c *comment) Comment {
	public := Comment{ID: c.id, Author: c.author.login, Body: c.body, URL: s.commentURL(c), Edited: c.edited != nil, Path: c.path, Commit: c.commit}
	if c.replyTo != nil {
		public.ReplyTo = c.replyTo.id
	}
	public.Resolved = c.thread != nil && c.thread.resolved
	return public
}

func (s *Server) publicReview(v *review) Comment {
	return Comment{
		ID: v.id, Author: v.author.login, Body: v.body, URL: s.reviewURL(v), Edited: v.edited != nil, State: v.state, Commit: v.commit,
	}
}

func (s *Server) listComments(c *call) answer { return list(c, "", c.pull.comments, s.issueComment) }

// maxBody is how many characters a body may have.
const maxBody = 65536

// refusal is why a comment may not be made, nil if it may: whoever sees a pull
// request may comment, an app with one of the permissions.
func (s *Server) refusal(c *call, resource string, permissions ...string) *answer {
	may := c.token.account != nil && (!c.token.app || slices.ContainsFunc(permissions, func(p string) bool { return s.may(c.token, c.repo, p, "write") }))
	var no answer
	switch length := utf8.RuneCountInString(c.text("body")); {
	case !may:
		no = c.forbidden()
	case length == 0:
		no = invalid(resource, "body", "body cannot be blank")
	case length > maxBody:
		no = invalid(resource, "body", "body is too long (maximum is 65536 characters)")
	default:
		return nil
	}
	return &no
}

// postedBy notes the app whose own token was used: GitHub names it also where
// the app speaks for itself.
func (t *text) postedBy(by *token) {
	if by.app {
		t.app = by.account
	}
}

func (s *Server) createComment(c *call) answer {
	if no := s.refusal(c, "IssueComment", "issues", "pull_requests"); no != nil {
		return *no
	}
	one := &comment{text: s.newText(c.token.account, c.text("body")), pull: c.pull}
	one.postedBy(c.token)
	c.pull.comments = append(c.pull.comments, one)
	return created(s.issueComment(one))
}

// updateComment lets the author and everybody with write access change a comment
// of a conversation.
func (s *Server) updateComment(c *call) answer {
	var all []*comment
	for _, p := range c.repo.pulls {
		all = append(all, p.comments...)
	}
	one := first(all, func(one *comment) bool { return one.id == c.id("comment_id") })
	if one == nil {
		return notFound
	}
	if no := s.refusal(c, "Comment", "issues", "pull_requests"); no != nil {
		return *no
	}
	if one.author != c.token.account && !c.token.app && !atLeast(c.repo.permission(c.token.account), "write") {
		return c.forbidden()
	}
	if c.text("body") != one.body {
		s.edit(&one.text, c.token.account, c.text("body"))
	}
	return ok(s.issueComment(one))
}

// getReviewComment tells a review comment; who may see one that is pending is not told
// apart.
func (s *Server) getReviewComment(c *call) answer {
	for _, p := range c.repo.pulls {
		for _, one := range p.reviewComments() {
			if one.id == c.id("comment_id") {
				return ok(s.pullComment(one))
			}
		}
	}
	return notFound
}

// createReviewComment starts a thread.
func (s *Server) createReviewComment(c *call) answer {
	const resource = "PullRequestReviewComment"
	if no := s.refusal(c, resource, "pull_requests"); no != nil {
		return *no
	}
	path, commit := c.text("path"), c.text("commit_id")
	line, _ := c.body["line"].(float64)
	switch {
	case c.body["in_reply_to"] != nil:
		return invalid(resource, "in_reply_to", "the stand-in takes replies by its method ReviewComment")
	case !slices.ContainsFunc(c.pull.commits(), func(one commitInfo) bool { return one.sha == commit }):
		return invalid(resource, "commit_id", "commit_id is not part of the pull request")
	case !slices.Contains(c.pull.files(), path):
		return invalid(resource, "pull_request_review_thread.path", "pull_request_review_thread.path is invalid")
	case c.text("subject_type") != "file" && line < 1:
		return invalid(resource, "line", "line must be part of the diff")
	case c.text("subject_type") == "file":
		line = 0
	}
	one := s.addThread(c.pull, c.token.account, c.text("body"), place{commit, path, int(line)})
	one.postedBy(c.token)
	return created(s.pullComment(one))
}
