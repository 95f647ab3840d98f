package githubtest

import (
	"fmt"
	"strings"
)

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
