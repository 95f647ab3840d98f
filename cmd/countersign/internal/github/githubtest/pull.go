package githubtest

import (
	"fmt"
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
	mergedBy    *account
	edits       bool // by maintainers of the base
	head, base  side
	before      string // the head before it moved the last time
	changes     object // what the last edit of the title or the base changed
	diff        []file
	diffOf      string // the ends that diff is between
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
	head := r
	if n.HeadRepository != "" {
		head = s.repo(n.HeadRepository)
	}
	p := &pull{
		text: s.newText(n.By, n.Body), repo: r, title: n.Title, draft: n.Draft,
		edits: head != r && !n.NoMaintainerEdits, head: side{head, n.Head, head.ref("refs/heads/" + n.Head)},
	}
	base := n.Base
	if base == "" {
		base = "main"
	}
	if p.title == "" {
		p.title = n.Head
	}
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
	return PullRequest{p.id, p.number, p.head.sha, p.base.sha, p.state(), p.merged != nil, p.mergeCommit}
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

// Pull returns a pull request as it is now.
func (s *Server) Pull(repository string, number int) PullRequest {
	defer s.lock()()
	return s.pull(repository, number).public()
}

// fetchHead brings the head's commits to the base's repository, where
// refs/pull/N/head names them.
func (s *Server) fetchHead(p *pull) {
	ref := fmt.Sprintf("refs/pull/%d/head", p.number)
	if p.fork() {
		p.repo.git("fetch", "--quiet", "--no-tags", p.head.repo.dir, "+"+p.head.sha+":"+ref)
		return
	}
	p.repo.git("update-ref", ref, p.head.sha)
}
