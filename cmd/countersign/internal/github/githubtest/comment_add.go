package githubtest

import (
	"slices"
	"time"
)

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
