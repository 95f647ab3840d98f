package githubtest

import (
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

var commentOperations = []operation{
	{"GET", "/repos/{owner}/{repo}/issues/{issue_number}/comments", "issues:read", onPull((*Server).listComments)},
	{"POST", "/repos/{owner}/{repo}/issues/{issue_number}/comments", "", onPull((*Server).createComment)},
	{"GET", "/repos/{owner}/{repo}/issues/comments/{comment_id}", "issues:read", onComment((*Server).getComment)},
	{"PATCH", "/repos/{owner}/{repo}/issues/comments/{comment_id}", "", onComment((*Server).updateComment)},
	{"DELETE", "/repos/{owner}/{repo}/issues/comments/{comment_id}", "", onComment((*Server).deleteComment)},
	{"GET", "/repos/{owner}/{repo}/pulls/{pull_number}/comments", "pull_requests:read", onPull((*Server).listReviewComments)},
	{"POST", "/repos/{owner}/{repo}/pulls/{pull_number}/comments", "", onPull((*Server).createReviewComment)},
	{"POST", "/repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies", "", onPull((*Server).createReply)},
	{"GET", "/repos/{owner}/{repo}/pulls/comments/{comment_id}", "pull_requests:read", onComment((*Server).getComment)},
	{"PATCH", "/repos/{owner}/{repo}/pulls/comments/{comment_id}", "", onComment((*Server).updateComment)},
}

// maxBody is how many characters a body may have.
const maxBody = 65536

// onComment finds the comment of the path first: one of a conversation, or a
// review comment where the path is of those.
func onComment(do func(*Server, *call, *comment) answer) func(*Server, *call) answer {
	return func(s *Server, c *call) answer {
		review := strings.Contains(c.operation.path, "/pulls/comments/")
		for _, p := range c.repo.pulls {
			for _, one := range p.allComments() {
				if one.id == c.id("comment_id") && (one.thread != nil) == review {
					return do(s, c, one)
				}
			}
		}
		return notFound
	}
}

func (s *Server) listComments(c *call, p *pull) answer { return list(c, p.comments, s.issueComment) }

func (s *Server) listReviewComments(c *call, p *pull) answer {
	all := p.reviewComments()
	if c.URL.Query().Get("direction") == "desc" {
		slices.Reverse(all)
	}
	return list(c, all, s.pullComment)
}

func (s *Server) getComment(_ *call, one *comment) answer { return ok(s.anyComment(one)) }

func (s *Server) anyComment(one *comment) object {
	if one.thread != nil {
		return s.pullComment(one)
	}
	return s.issueComment(one)
}

// refusal is why a comment may not be made, nil if it may: whoever sees a pull
// request may comment, an app with the permission.
func (s *Server) refusal(c *call, resource string, permissions ...string) *answer {
	may := c.token.account != nil && (!c.token.app || slices.ContainsFunc(permissions, func(p string) bool { return s.may(c.token, c.repo, p, "write") }))
	switch length := utf8.RuneCountInString(c.text("body")); {
	case !may:
		a := c.forbidden()
		return &a
	case length == 0:
		a := invalid(resource, "body", "body cannot be blank")
		return &a
	case length > maxBody:
		a := invalid(resource, "body", "body is too long (maximum is 65536 characters)")
		return &a
	}
	return nil
}

func (s *Server) createComment(c *call, p *pull) answer {
	if a := s.refusal(c, "IssueComment", "issues", "pull_requests"); a != nil {
		return *a
	}
	one := &comment{text: s.newText(c.token.account.login, c.text("body")), pull: p}
	s.postedBy(&one.text, c.token)
	p.comments = append(p.comments, one)
	return created(s.issueComment(one))
}

// postedBy notes the app whose own token was used: GitHub names it also where
// the app speaks for itself.
func (s *Server) postedBy(t *text, by *token) {
	if by.app {
		t.app = by.account
	}
}

// updateComment lets the author and everybody with write access change a text.
func (s *Server) updateComment(c *call, one *comment) answer {
	if a := s.refusal(c, "Comment", "issues", "pull_requests"); a != nil {
		return *a
	}
	if one.author != c.token.account && !c.token.app && !atLeast(s.permission(c.repo, c.token.account), "write") {
		return c.forbidden()
	}
	if c.text("body") != one.body {
		s.edit(&one.text, c.token.account, c.text("body"))
	}
	return ok(s.anyComment(one))
}

func (s *Server) deleteComment(c *call, one *comment) answer {
	if !s.may(c.token, c.repo, "issues", "write") {
		return c.forbidden()
	}
	one.pull.remove(one)
	return answer{status: http.StatusNoContent}
}

// createReviewComment starts a thread, or replies where in_reply_to is given.
func (s *Server) createReviewComment(c *call, p *pull) answer {
	if a := s.refusal(c, "PullRequestReviewComment", "pull_requests"); a != nil {
		return *a
	}
	if to, ok := c.body["in_reply_to"].(float64); ok {
		return s.replyTo(c, p, int64(to))
	}
	path, commit := c.text("path"), c.text("commit_id")
	line, _ := c.body["line"].(float64)
	switch {
	case !slices.ContainsFunc(p.commits(), func(one commitInfo) bool { return one.sha == commit }):
		return invalid("PullRequestReviewComment", "commit_id", "commit_id is not part of the pull request")
	case !slices.ContainsFunc(p.files(), func(f file) bool { return f.path == path }):
		return invalid("PullRequestReviewComment", "pull_request_review_thread.path", "pull_request_review_thread.path is invalid")
	case c.text("subject_type") != "file" && line < 1:
		return invalid("PullRequestReviewComment", "line", "line must be part of the diff")
	case c.text("subject_type") == "file":
		line = 0
	}
	one := s.addThread(p, c.token.account, c.text("body"), place{commit, path, int(line)})
	s.postedBy(&one.text, c.token)
	return created(s.pullComment(one))
}

func (s *Server) createReply(c *call, p *pull) answer {
	if a := s.refusal(c, "PullRequestReviewComment", "pull_requests"); a != nil {
		return *a
	}
	return s.replyTo(c, p, c.id("comment_id"))
}

func (s *Server) replyTo(c *call, p *pull, id int64) answer {
	for _, one := range p.reviewComments() {
		if one.id == id {
			reply := s.reply(one, c.token.account, c.text("body"))
			s.postedBy(&reply.text, c.token)
			return created(s.pullComment(reply))
		}
	}
	return notFound
}
