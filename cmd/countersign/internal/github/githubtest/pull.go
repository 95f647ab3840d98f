package githubtest

import (
	"fmt"
	"strings"
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
		text: s.newText(n.By, n.Body), number: len(r.pulls) + 1, repo: r, title: n.Title, draft: n.Draft,
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
	r.pulls = append(r.pulls, p)
	s.fetchHead(p)
	return p.public()
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

// fork tells whether the head is in another repository.
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

// synchronize looks at what became of a repository's branches, and moves the
// open pull requests whose head moved. One whose head is gone is closed. The
// base of a pull request that did not move stays what it was, as on GitHub.
func (s *Server) synchronize(r *repository) {
	heads := r.heads()
	for _, base := range s.repos {
		for _, p := range base.pulls {
			if p.head.repo == r && p.closed == nil {
				s.moveHead(p, heads[p.head.ref])
			}
		}
	}
}

func (s *Server) moveHead(p *pull, tip string) {
	switch tip {
	case p.head.sha:
		return
	case "":
		s.close(p)
		return
	}
	p.before, p.head.sha, p.updated = p.head.sha, tip, s.time()
	if base := p.repo.ref("refs/heads/" + p.base.ref); base != "" {
		p.base.sha = base
	}
	s.fetchHead(p)
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

// Retitle gives a pull request another title.
func (s *Server) Retitle(repository string, number int, title string) {
	defer s.lock()()
	p := s.pull(repository, number)
	p.changes = object{"title": object{"from": p.title}}
	p.title, p.updated = title, s.time()
}

// Merge merges a pull request as an account, by "merge" or "squash", and
// returns the new tip of the base.
func (s *Server) Merge(repository string, number int, by, method string) string {
	defer s.lock()()
	p, who := s.pull(repository, number), s.account(by)
	tip := p.repo.ref("refs/heads/" + p.base.ref)
	tree := strings.Fields(p.repo.git("merge-tree", "--write-tree", tip, p.head.sha))[0]
	parents := []string{tip}
	if method != "squash" {
		parents = append(parents, p.head.sha)
	}
	message := fmt.Sprintf("%s (#%d)", p.title, p.number)
	p.mergeCommit = p.repo.commit(tree, message, s.signature(who), parents...)
	p.repo.git("update-ref", "refs/heads/"+p.base.ref, p.mergeCommit)
	s.close(p)
	p.merged, p.mergedBy = p.closed, who
	s.synchronize(p.repo)
	return p.mergeCommit
}
