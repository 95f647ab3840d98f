package githubtest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// NewPullRequest is what a pull request starts with. Head is a branch of
// HeadRepository, which is Repository if it is "". Base is main if it is "".
type NewPullRequest struct {
	Repository        string
	By                string
	Head              string
	HeadRepository    string
	Base              string
	Title, Body       string
	Draft             bool
	NoMaintainerEdits bool
}

// A PullRequest is one as it is now.
type PullRequest struct {
	ID          int64
	Number      int
	Head, Base  string // the commits
	State       string // open or closed
	Merged      bool
	MergeCommit string

	Branch              string // of the head
	Author, Title, Text string
}

type pull struct {
	text
	number      int
	repo        *repository
	title       string
	draft       bool
	closed      *time.Time
	merged      *time.Time
	mergeCommit string
	edits       bool // by maintainers of the base
	head, base  side
	before      string // the head before it moved the last time
	changes     object // what the last edit of the title or the base changed
	comments    []*comment
	gone        []*comment // deleted ones, for events
	reviews     []*review
	threads     []*thread
}

type side struct {
	repo *repository
	ref  string
	sha  string
}

// PullRequest opens a pull request.
func (s *Server) PullRequest(n NewPullRequest) PullRequest {
	defer s.lock()()
	r := s.repo(n.Repository)
	head := s.repo(cmp.Or(n.HeadRepository, n.Repository))
	p := &pull{
		text: s.newText(s.account(n.By), n.Body), repo: r, title: cmp.Or(n.Title, n.Head), draft: n.Draft,
		edits: head != r && !n.NoMaintainerEdits, head: side{head, n.Head, head.ref("refs/heads/" + n.Head)},
	}
	base := cmp.Or(n.Base, "main")
	p.base = side{r, base, r.ref("refs/heads/" + base)}
	if p.head.sha == "" || p.base.sha == "" {
		misuse("no branch %s or no branch %s", n.Head, base)
	}
	return s.open(p).public()
}

// open gives a new pull request its number.
func (s *Server) open(p *pull) *pull {
	p.number = len(p.repo.pulls) + 1
	p.repo.pulls = append(p.repo.pulls, p)
	s.fetchHead(p)
	return p
}

func (p *pull) public() PullRequest {
	return PullRequest{
		p.id, p.number, p.head.sha, p.base.sha, p.state(), p.merged != nil, p.mergeCommit, p.head.ref, p.author.login, p.title, p.body,
	}
}

func (p *pull) state() string {
	if p.closed != nil {
		return "closed"
	}
	return "open"
}

// fork reports whether the head is in another repository.
func (p *pull) fork() bool { return p.head.repo != p.repo }

// findPull returns the pull request, or nil.
func (r *repository) findPull(number int) *pull {
	if number < 1 || number > len(r.pulls) {
		return nil
	}
	return r.pulls[number-1]
}

func (s *Server) pull(repository string, number int) *pull {
	p := s.repo(repository).findPull(number)
	if p == nil {
		misuse("no pull request %d in %s", number, repository)
	}
	return p
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

// reviewsFor are the reviews without what others have not submitted yet.
func (p *pull) reviewsFor(t *token) []*review {
	return slices.DeleteFunc(slices.Clone(p.reviews), func(v *review) bool { return v.state == "PENDING" && v.author != t.account })
}

func (s *Server) pulls() []*pull {
	var all []*pull
	for _, r := range s.repos {
		all = append(all, r.pulls...)
	}
	return all
}

// conversations are all pull requests and issues.
func (s *Server) conversations() []*pull {
	all := s.pulls()
	for _, r := range s.repos {
		all = append(all, r.issues...)
	}
	return all
}

func (p *pull) find(id int64) *text {
	if p.id == id {
		return &p.text
	}
	if c := first(p.allComments(), func(c *comment) bool { return c.id == id }); c != nil {
		return &c.text
	}
	if v := p.review(id); v != nil {
		return &v.text
	}
	return nil
}

func (p *pull) review(id int64) *review {
	return first(p.reviews, func(v *review) bool { return v.id == id })
}

// Pull returns a pull request as it is now.
func (s *Server) Pull(repository string, number int) PullRequest {
	defer s.lock()()
	return s.pull(repository, number).public()
}

// Newest is the pull request that was opened last.
func (s *Server) Newest(repository string) PullRequest {
	defer s.lock()()
	all := s.repo(repository).pulls
	return all[len(all)-1].public()
}

// fetchHead brings the head's commits to the base's repository, where
// refs/pull/N/head names them.
func (s *Server) fetchHead(p *pull) {
	ref := fmt.Sprintf("refs/pull/%d/head", p.number)
	if p.fork() {
		p.repo.git("fetch", "--quiet", "--no-tags", p.head.repo.dir, "+"+p.head.sha+":"+ref)
		return
	}
	p.repo.setRef(ref, p.head.sha)
}

// synchronize looks at what became of a repository's branches, and moves the
// open pull requests whose head moved. One whose head is gone is closed. The
// base of a pull request that did not move stays what it was, as on GitHub.
func (s *Server) synchronize(r *repository) {
	heads := r.refs("refs/heads/")
	for _, p := range s.pulls() {
		tip := heads["refs/heads/"+p.head.ref]
		switch {
		case p.head.repo != r || p.closed != nil || tip == p.head.sha:
		case tip == "":
			s.close(p)
		default:
			p.before, p.head.sha, p.updated = p.head.sha, tip, s.time()
			p.base.sha = cmp.Or(p.repo.ref("refs/heads/"+p.base.ref), p.base.sha)
			s.fetchHead(p)
		}
	}
}

func (s *Server) close(p *pull) {
	now := s.time()
	p.closed, p.updated = &now, now
}

// ClosePull closes a pull request without merging it.
func (s *Server) ClosePull(repository string, number int) {
	defer s.lock()()
	s.close(s.pull(repository, number))
}

// ReopenPull opens a closed pull request again; its head is what the branch is.
func (s *Server) ReopenPull(repository string, number int) {
	defer s.lock()()
	p := s.pull(repository, number)
	p.closed = nil
	s.synchronize(p.head.repo)
}

// Retarget changes the base branch of a pull request.
func (s *Server) Retarget(repository string, number int, base string) {
	defer s.lock()()
	p := s.pull(repository, number)
	tip := p.repo.ref("refs/heads/" + base)
	if tip == "" {
		misuse("no branch %s", base)
	}
	p.changes = object{"base": object{"ref": object{"from": p.base.ref}, "sha": object{"from": p.base.sha}}}
	p.base.ref, p.base.sha, p.updated = base, tip, s.time()
}

// Draft makes a pull request a draft, or ready for review.
func (s *Server) Draft(repository string, number int, draft bool) {
	defer s.lock()()
	s.pull(repository, number).draft = draft
}

func (s *Server) getPull(c *call) answer { return ok(s.fullPull(c.pull)) }

// createPull opens a pull request between branches of the repository.
func (s *Server) createPull(c *call) answer {
	head, base := c.text("head"), c.text("base")
	from, to := c.repo.ref("refs/heads/"+head), c.repo.ref("refs/heads/"+base)
	switch {
	case c.token.account.id == actionsID && !c.repo.settings.ActionsOpenPulls:
		return refuse(http.StatusForbidden, "GitHub Actions is not permitted to create or approve pull requests.")
	case from == "":
		return invalid("PullRequest", "head", "head is invalid")
	case to == "":
		return invalid("PullRequest", "base", "base is invalid")
	case from == to:
		return invalid("PullRequest", "base", "No commits between "+base+" and "+head)
	case slices.ContainsFunc(c.repo.pulls, func(p *pull) bool {
		return p.closed == nil && !p.fork() && p.head.ref == head && p.base.ref == base
	}):
		return invalid("PullRequest", "", "A pull request already exists for "+c.repo.owner.login+":"+head+".")
	}
	p := s.open(&pull{
		text: s.newText(c.token.account, c.text("body")), repo: c.repo, title: c.text("title"), draft: c.body["draft"] == true,
		head: side{c.repo, head, from}, base: side{c.repo, base, to},
	})
	return created(s.fullPull(p))
}
