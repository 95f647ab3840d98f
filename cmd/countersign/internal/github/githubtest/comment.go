package githubtest

import (
	"slices"
	"time"
)

// NewComment is a comment in a conversation. App is the login of the app that
// posts it for the account; Email says that it is a reply to a mail. At is now
// if it is zero.
type NewComment struct {
	Repository string
	Number     int
	By, Body   string
	App        string
	Email      bool
	At         time.Time
}

// NewReviewComment is a comment on a line of a file, or on the file if Line is
// 0, or a reply to such a comment.
type NewReviewComment struct {
	Repository string
	Number     int
	By, Body   string
	Path       string
	Line       int
	ReplyTo    int64
	App        string
	Email      bool
	At         time.Time
}

// NewReview is a review. State is APPROVED, CHANGES_REQUESTED, COMMENTED or
// PENDING; Commit is the head if it is "".
type NewReview struct {
	Repository string
	Number     int
	By, Body   string
	State      string
	Commit     string
	App        string
	Email      bool
	At         time.Time
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
	line     int
	diffHunk string
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
	resolved *account
}

// Comment adds a comment to a conversation.
func (s *Server) Comment(n NewComment) Comment {
	defer s.lock()()
	p := s.pull(n.Repository, n.Number)
	c := &comment{text: s.newText(n.By, n.Body), pull: p}
	s.origin(&c.text, n.App, n.Email, n.At)
	p.comments = append(p.comments, c)
	return s.publicComment(c)
}

// origin sets where a text came from.
func (s *Server) origin(t *text, app string, email bool, at time.Time) {
	t.email = email
	if app != "" {
		t.app = s.account(app)
	}
	if !at.IsZero() {
		t.created, t.updated = at, at
	}
}

// Review adds a review.
func (s *Server) Review(n NewReview) Comment {
	defer s.lock()()
	p := s.pull(n.Repository, n.Number)
	if !slices.Contains([]string{"APPROVED", "CHANGES_REQUESTED", "COMMENTED", "PENDING"}, n.State) {
		misuse("no state %q of a review", n.State)
	}
	commit := n.Commit
	if commit == "" {
		commit = p.head.sha
	}
	v := &review{text: s.newText(n.By, n.Body), pull: p, state: n.State, commit: commit}
	s.origin(&v.text, n.App, n.Email, n.At)
	p.reviews = append(p.reviews, v)
	return s.publicReview(v)
}

// ReviewComment adds a review comment; as on GitHub, one comes with a review of
// its own, in the state COMMENTED and without a text.
func (s *Server) ReviewComment(n NewReviewComment) Comment {
	defer s.lock()()
	p := s.pull(n.Repository, n.Number)
	by := s.account(n.By)
	var c *comment
	if n.ReplyTo != 0 {
		c = s.reply(s.reviewComment(n.ReplyTo), by, n.Body)
	} else {
		c = s.addThread(p, by, n.Body, place{p.head.sha, n.Path, n.Line})
	}
	s.origin(&c.text, n.App, n.Email, n.At)
	s.origin(&c.review.text, n.App, n.Email, n.At)
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
		text: s.newText(by.login, body), pull: p, thread: t, review: s.emptyReview(p, by), commit: at.commit,
		subject: subject, path: at.path, line: at.line, diffHunk: "@@ -1 +1 @@",
	}
	t.comments = []*comment{c}
	p.threads = append(p.threads, t)
	return c
}

func (s *Server) emptyReview(p *pull, by *account) *review {
	v := &review{text: s.newText(by.login, ""), pull: p, state: "COMMENTED", commit: p.head.sha}
	p.reviews = append(p.reviews, v)
	return v
}

// reply adds a comment to the thread of another. It answers the thread's first
// comment, whichever was named.
func (s *Server) reply(to *comment, by *account, body string) *comment {
	first := to.thread.comments[0]
	if first.replyTo != nil {
		first = first.replyTo
	}
	c := &comment{
		text: s.newText(by.login, body), pull: to.pull, thread: to.thread, review: s.emptyReview(to.pull, by), replyTo: first,
		commit: to.pull.head.sha, subject: to.subject, path: to.path, line: to.line, diffHunk: to.diffHunk,
	}
	to.thread.comments = append(to.thread.comments, c)
	return c
}

// Edit changes a comment, review or pull request's text as an account.
func (s *Server) Edit(id int64, by, body string) {
	defer s.lock()()
	s.edit(s.text(id), s.account(by), body)
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
	for _, p := range s.pulls() {
		for _, c := range p.allComments() {
			if c.id == id {
				p.remove(c)
				return
			}
		}
	}
	misuse("no comment %d", id)
}

func (p *pull) remove(gone *comment) {
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
		for _, v := range p.reviews {
			if v.id == id {
				v.state = "DISMISSED"
				return
			}
		}
	}
	misuse("no review %d", id)
}

// Resolve resolves the thread of a review comment as an account.
func (s *Server) Resolve(id int64, by string) {
	defer s.lock()()
	s.reviewComment(id).thread.resolved = s.account(by)
}

func (s *Server) pulls() []*pull {
	var all []*pull
	for _, r := range s.repos {
		all = append(all, r.pulls...)
	}
	return all
}

// text finds a text by its id.
func (s *Server) text(id int64) *text {
	for _, p := range s.pulls() {
		if t := p.find(id); t != nil {
			return t
		}
	}
	misuse("no comment, review or pull request %d", id)
	return nil
}

func (p *pull) find(id int64) *text {
	if p.id == id {
		return &p.text
	}
	for _, c := range p.allComments() {
		if c.id == id {
			return &c.text
		}
	}
	for _, v := range p.reviews {
		if v.id == id {
			return &v.text
		}
	}
	return nil
}

// reviewComments are those of all threads, in the order in which they came.
func (p *pull) reviewComments() []*comment {
	var all []*comment
	for _, t := range p.threads {
		all = append(all, t.comments...)
	}
	slices.SortFunc(all, func(a, b *comment) int { return int(a.id - b.id) })
	return all
}

func (p *pull) allComments() []*comment {
	return append(slices.Clone(p.comments), p.reviewComments()...)
}

func (s *Server) reviewComment(id int64) *comment {
	for _, p := range s.pulls() {
		for _, c := range p.reviewComments() {
			if c.id == id {
				return c
			}
		}
	}
	misuse("no review comment %d", id)
	return nil
}
