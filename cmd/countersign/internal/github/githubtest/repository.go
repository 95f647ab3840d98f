package githubtest

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// NewRepository is what a repository starts with: the Files are the first
// commit of the branch main. Name is "owner/name", and the owner is there.
type NewRepository struct {
	Name    string
	Private bool
	Files   map[string]string
}

// A Repository is one as it is now.
type Repository struct {
	ID       int64
	Name     string
	CloneURL string
}

type repository struct {
	bare
	id        int64
	owner     *account
	name      string
	private   bool
	parent    *repository // that it is a fork of
	deleted   bool
	created   time.Time
	roles     map[int64]string
	custom    map[string]string
	protected map[string]bool
	pulls     []*pull // in the order of their numbers, which start at 1
	checks    []*checkRun
	runs      []*workflowRun
	started   []string // workflows that were started by hand
	rulesets  []*ruleset
	known     map[string]commitInfo
}

// Repository makes a repository with one commit on the branch main.
func (s *Server) Repository(n NewRepository) Repository {
	defer s.lock()()
	r := s.addRepository(n.Name, n.Private)
	files := n.Files
	if files == nil {
		files = map[string]string{"README.md": "# " + r.name + "\n"}
	}
	tree := r.tree("", change{files: files})
	r.git("update-ref", "refs/heads/main", r.commit(tree, "first", s.signature(r.owner)))
	s.synchronize(r)
	return s.publicRepository(r)
}

func (s *Server) addRepository(name string, private bool) *repository {
	if s.findRepository(name) != nil {
		misuse("there is a repository %s", name)
	}
	owner, short, ok := strings.Cut(name, "/")
	if !ok {
		misuse("%s is not a repository: owner/name is", name)
	}
	id := s.nextID()
	r := &repository{
		bare: newBare(filepath.Join(s.dir, fmt.Sprint(id)+".git")), id: id, owner: s.account(owner), name: short,
		private: private, created: s.time(), roles: map[int64]string{}, custom: map[string]string{},
		protected: map[string]bool{}, known: map[string]commitInfo{},
	}
	s.repos = append(s.repos, r)
	return r
}

func (r *repository) fullName() string { return r.owner.login + "/" + r.name }

func (s *Server) publicRepository(r *repository) Repository {
	return Repository{r.id, r.fullName(), s.URL + "/" + r.fullName() + ".git"}
}

// findRepository returns the repository "owner/name", in any case, or nil.
func (s *Server) findRepository(name string) *repository {
	for _, r := range s.repos {
		if !r.deleted && strings.EqualFold(r.fullName(), name) {
			return r
		}
	}
	return nil
}

func (s *Server) repo(name string) *repository {
	r := s.findRepository(name)
	if r == nil {
		misuse("no repository %s", name)
	}
	return r
}

// Fork makes a fork with the branches of a repository.
func (s *Server) Fork(from, to string) Repository {
	defer s.lock()()
	source := s.repo(from)
	r := s.addRepository(to, source.private)
	r.parent, r.custom = source, source.custom
	r.git("fetch", "--quiet", source.dir, "refs/heads/*:refs/heads/*")
	s.synchronize(r)
	return s.publicRepository(r)
}

// DeleteRepository removes a repository; pull requests from it stay, without
// the repository of their head.
func (s *Server) DeleteRepository(name string) {
	defer s.lock()()
	s.repo(name).deleted = true
}

// RenameRepository gives a repository another name; its id stays.
func (s *Server) RenameRepository(from, to string) {
	defer s.lock()()
	r := s.repo(from)
	owner, short, _ := strings.Cut(to, "/")
	r.owner, r.name = s.account(owner), short
}

// Protect lets nobody push to a branch, or everybody again.
func (s *Server) Protect(repository, branch string, on bool) {
	defer s.lock()()
	s.repo(repository).protected[branch] = on
}
