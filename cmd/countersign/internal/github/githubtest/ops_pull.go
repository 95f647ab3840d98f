package githubtest

import (
	"slices"
	"strings"
)

var pullOperations = []operation{
	{"GET", "/repos/{owner}/{repo}/pulls", "pull_requests:read", (*Server).listPulls},
	{"POST", "/repos/{owner}/{repo}/pulls", "pull_requests:write", (*Server).createPull},
	{"GET", "/repos/{owner}/{repo}/pulls/{pull_number}", "pull_requests:read", onPull((*Server).getPull)},
	{"GET", "/repos/{owner}/{repo}/pulls/{pull_number}/files", "pull_requests:read", onPull((*Server).listFiles)},
	{"GET", "/repos/{owner}/{repo}/pulls/{pull_number}/commits", "pull_requests:read", onPull((*Server).listCommits)},
	{"GET", "/repos/{owner}/{repo}/pulls/{pull_number}/reviews", "pull_requests:read", onPull((*Server).listReviews)},
}

// onPull finds the pull request of the path first.
func onPull(do func(*Server, *call, *pull) answer) func(*Server, *call) answer {
	return func(s *Server, c *call) answer {
		number := c.id("pull_number")
		if c.PathValue("issue_number") != "" {
			number = c.id("issue_number")
		}
		p := c.repo.findPull(int(number))
		if p == nil {
			return notFound
		}
		return do(s, c, p)
	}
}

func (s *Server) getPull(_ *call, p *pull) answer { return ok(s.fullPull(p)) }

// listPulls lists the newest first, as GitHub does. A head without an owner is
// no filter there, so it is none here.
func (s *Server) listPulls(c *call) answer {
	query := c.URL.Query()
	state := query.Get("state")
	head := query.Get("head")
	var found []*pull
	for _, p := range slices.Backward(c.repo.pulls) {
		label := p.head.repo.owner.login + ":" + p.head.ref
		switch {
		case state != "all" && p.state() != or(state, "open"):
		case strings.Contains(head, ":") && !strings.EqualFold(head, label):
		case query.Has("base") && query.Get("base") != p.base.ref:
		default:
			found = append(found, p)
		}
	}
	if query.Get("direction") == "asc" {
		slices.Reverse(found)
	}
	return list(c, found, s.simplePull)
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// listFiles tells the first 3,000 files, as GitHub does.
func (s *Server) listFiles(c *call, p *pull) answer {
	files := p.files()
	files = files[:min(len(files), 3000)]
	return list(c, files, func(f file) object { return s.diffEntry(p, f) })
}

// listCommits tells the first 250 commits, as GitHub does.
func (s *Server) listCommits(c *call, p *pull) answer {
	commits := p.commits()
	commits = commits[:min(len(commits), 250)]
	return list(c, commits, func(one commitInfo) object { return s.commit(p.repo, one) })
}

// listReviews leaves out what others have not submitted yet.
func (s *Server) listReviews(c *call, p *pull) answer {
	return list(c, p.reviewsFor(c.token), s.pullReview)
}

func (p *pull) reviewsFor(t *token) []*review {
	return slices.DeleteFunc(slices.Clone(p.reviews), func(v *review) bool { return v.state == "PENDING" && v.author != t.account })
}

// createPull opens a pull request between branches of the repository.
func (s *Server) createPull(c *call) answer {
	head, base := c.text("head"), c.text("base")
	from, to := c.repo.ref("refs/heads/"+head), c.repo.ref("refs/heads/"+base)
	switch {
	case from == "":
		return invalid("PullRequest", "head", "head is invalid")
	case to == "":
		return invalid("PullRequest", "base", "base is invalid")
	case from == to:
		return invalid("PullRequest", "base", "No commits between "+base+" and "+head)
	}
	p := s.open(&pull{
		text: s.newText(c.token.account.login, c.text("body")), repo: c.repo, title: c.text("title"), draft: c.body["draft"] == true,
		head: side{c.repo, head, from}, base: side{c.repo, base, to},
	})
	return created(s.fullPull(p))
}
