package githubtest

import "time"

// NewCommit is a commit to make on a branch, which is started at From (main, if
// that is "") when it is not there.
type NewCommit struct {
	Repository, Branch string
	By                 string // a login
	Message            string
	Files              map[string]string
	Delete             []string
	From               string
}

// Push makes a commit on a branch as if an account had pushed it, and returns
// its id.
func (s *Server) Push(n NewCommit) string {
	defer s.lock()()
	r := s.repo(n.Repository)
	parent := r.ref("refs/heads/" + n.Branch)
	if parent == "" {
		from := n.From
		if from == "" {
			from = "main"
		}
		parent = r.resolve(from)
	}
	message := n.Message
	if message == "" {
		message = "change"
	}
	id := r.commit(r.tree(parent, change{n.Files, n.Delete}), message, s.signature(s.account(n.By)), parent)
	r.git("update-ref", "refs/heads/"+n.Branch, id)
	s.synchronize(r)
	return id
}

func (s *Server) signature(a *account) signature {
	return signature{a.login, a.email, s.time().Format(time.RFC3339)}
}

// Git runs the real git in a repository, for instance to rewrite a branch, and
// returns what it prints, trimmed.
func (s *Server) Git(repository string, args ...string) string {
	defer s.lock()()
	r := s.repo(repository)
	out := r.git(args...)
	s.synchronize(r)
	return out
}

// Ref returns what a ref such as refs/heads/main is at, "" if it is not there.
func (s *Server) Ref(repository, ref string) string {
	defer s.lock()()
	return s.repo(repository).ref(ref)
}

// File returns a file of a commit or branch, "" if it is not there.
func (s *Server) File(repository, revision, path string) string {
	defer s.lock()()
	out, err := s.repo(repository).run(nil, "", "cat-file", "blob", revision+":"+path)
	if err != nil {
		return ""
	}
	return out
}
