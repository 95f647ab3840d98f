package githubtest

import (
	"cmp"
	"slices"
)

// An Issue is one as it is now, with the texts of its comments.
type Issue struct {
	Number              int
	Author, Title, Body string
	Open                bool
	Comments            []string
}

// firstIssue is the number of a repository's first issue: those of its pull requests are
// in a row from 1.
const firstIssue = 10_001

// findIssue returns the issue, or nil. It is kept as a pull request without a head.
func (r *repository) findIssue(number int) *pull {
	if n := number - firstIssue; n >= 0 && n < len(r.issues) {
		return r.issues[n]
	}
	return nil
}

// OpenIssue opens an issue as an account.
func (s *Server) OpenIssue(repository, by, title, body string) (number int) {
	defer s.lock()()
	return s.addIssue(s.repo(repository), s.account(by), title, body).number
}

func (s *Server) addIssue(r *repository, by *account, title, body string) *pull {
	p := &pull{text: s.newText(by, body), repo: r, number: firstIssue + len(r.issues), title: title}
	r.issues = append(r.issues, p)
	return p
}

// EditIssue gives an issue another body, and closes or opens it, as anybody with write
// access may.
func (s *Server) EditIssue(repository string, number int, body string, open bool) {
	defer s.lock()()
	p := s.repo(repository).findIssue(number)
	if p == nil {
		misuse("no issue %d in %s", number, repository)
	}
	s.changeIssue(p, p.title, body, open)
}

func (s *Server) changeIssue(p *pull, title, body string, open bool) {
	now := s.time()
	p.title, p.body, p.updated = title, body, now
	if p.closed = nil; !open {
		p.closed = &now
	}
}

// Issues returns the issues of a repository, oldest first.
func (s *Server) Issues(repository string) (all []Issue) {
	defer s.lock()()
	for _, p := range s.repo(repository).issues {
		one := Issue{p.number, p.author.login, p.title, p.body, p.closed == nil, nil}
		for _, c := range p.comments {
			one.Comments = append(one.Comments, c.body)
		}
		all = append(all, one)
	}
	return all
}

// listIssues lists issues and pull requests, as GitHub does.
func (s *Server) listIssues(c *call) answer {
	all := slices.DeleteFunc(slices.Concat(c.repo.pulls, c.repo.issues), func(p *pull) bool { return !c.is("state", p.state(), "all") })
	slices.SortStableFunc(all, func(a, b *pull) int {
		by := a.created.Compare(b.created)
		if c.URL.Query().Get("sort") == "updated" {
			by = a.updated.Compare(b.updated)
		}
		by = cmp.Or(by, cmp.Compare(a.number, b.number))
		if c.URL.Query().Get("direction") == "asc" {
			return by
		}
		return -by
	})
	return list(c, "", all, s.issue)
}

func (s *Server) createIssue(c *call) answer {
	switch {
	case c.token.account == nil || c.token.app && !s.may(c.token, c.repo, "issues", "write"):
		return c.forbidden()
	case c.text("title") == "":
		return invalid("Issue", "title", "title is missing")
	case len([]rune(c.text("body"))) > maxBody:
		return invalid("Issue", "body", "body is too long (maximum is 65536 characters)")
	}
	one := s.addIssue(c.repo, c.token.account, c.text("title"), c.text("body"))
	one.postedBy(c.token)
	return created(s.issue(one))
}

func (s *Server) updateIssue(c *call) answer {
	may := c.token.account != nil && (c.pull.author == c.token.account || atLeast(c.repo.permission(c.token.account), "triage"))
	if c.token.app {
		may = s.may(c.token, c.repo, "issues", "write")
	}
	if !may {
		return c.forbidden()
	}
	if len([]rune(c.text("body"))) > maxBody {
		return invalid("Issue", "body", "body is too long (maximum is 65536 characters)")
	}
	open := c.pull.closed == nil
	if state := c.text("state"); state != "" {
		open = state == "open"
	}
	s.changeIssue(c.pull, cmp.Or(c.text("title"), c.pull.title), cmp.Or(c.text("body"), c.pull.body), open)
	return ok(s.issue(c.pull))
}

// issue is an issue, or a pull request as one.
func (s *Server) issue(p *pull) object {
	o := object{
		"id": p.id + 1_000_000, "node_id": nodeID("I", p.id), "number": p.number, "state": p.state(), "title": p.title, "body": orNull(p.body), "user": s.user(p.author),
		"author_association": s.association(p.repo, p.author), "comments": len(p.comments), "locked": false, "labels": []object{}, "draft": p.draft,
		"created_at": stamp(p.created), "updated_at": stamp(p.updated), "closed_at": maybe(p.closed), "html_url": s.issueURL(p),
		"performed_via_github_app": s.appOf(&p.text),
	}
	if p.number < firstIssue {
		at := s.at("/repos/%s/pulls/%d", p.repo.fullName(), p.number)
		o["pull_request"] = object{"url": at, "html_url": s.pullURL(p), "merged_at": maybe(p.merged), "diff_url": s.pullURL(p) + ".diff", "patch_url": s.pullURL(p) + ".patch"}
	}
	return o
}
