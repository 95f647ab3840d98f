package githubtest

// Comments returns the comments of a conversation, oldest first.
func (s *Server) Comments(repository string, number int) []Comment {
	defer s.lock()()
	return s.publicComments(s.pull(repository, number).comments)
}

// ReviewComments returns the review comments of a pull request, oldest first.
func (s *Server) ReviewComments(repository string, number int) []Comment {
	defer s.lock()()
	return s.publicComments(s.pull(repository, number).reviewComments())
}

// Reviews returns the reviews of a pull request, oldest first.
func (s *Server) Reviews(repository string, number int) []Comment {
	defer s.lock()()
	all := []Comment{}
	for _, v := range s.pull(repository, number).reviews {
		all = append(all, s.publicReview(v))
	}
	return all
}

func (s *Server) publicComments(comments []*comment) []Comment {
	all := []Comment{}
	for _, c := range comments {
		all = append(all, s.publicComment(c))
	}
	return all
}

func (s *Server) publicComment(c *comment) Comment {
	public := Comment{ID: c.id, Author: c.author.login, Body: c.body, URL: s.commentURL(c), Edited: c.edited != nil, Path: c.path, Commit: c.commit}
	if c.replyTo != nil {
		public.ReplyTo = c.replyTo.id
	}
	if c.thread != nil {
		public.Resolved = c.thread.resolved != nil
	}
	return public
}

func (s *Server) publicReview(v *review) Comment {
	return Comment{
		ID: v.id, Author: v.author.login, Body: v.body, URL: s.reviewURL(v), Edited: v.edited != nil, State: v.state, Commit: v.commit,
	}
}

// A CheckRun is one as it is now.
type CheckRun struct {
	ID                   int64
	Name, HeadSHA        string
	Status, Conclusion   string
	Title, Summary, Text string
	App                  string
	Annotations          int
}

// CheckRuns returns the check runs of a commit, oldest first; of all commits if
// it is "".
func (s *Server) CheckRuns(repository, commit string) []CheckRun {
	defer s.lock()()
	all := []CheckRun{}
	for _, c := range s.repo(repository).checks {
		if commit == "" || c.head == commit {
			all = append(all, CheckRun{c.id, c.name, c.head, c.status, c.conclusion, c.title, c.summary, c.details, c.app.login, len(c.annotations)})
		}
	}
	return all
}
