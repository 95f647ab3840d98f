package githubtest

import "slices"

// Edit changes a comment, review or pull request's text as an account.
func (s *Server) Edit(id int64, by, body string) {
	defer s.lock()()
	s.edit(s.text(id), s.account(by), body)
}

// EraseHistory removes the texts of all edits but the last, as people may.
func (s *Server) EraseHistory(id int64) {
	defer s.lock()()
	t := s.text(id)
	for i := range max(len(t.history)-1, 0) {
		t.history[i].erased = true
	}
}

// Delete removes a comment; the APIs have nothing of it left. A thread goes with
// its last.
func (s *Server) Delete(id int64) {
	defer s.lock()()
	for _, p := range s.pulls() {
		for _, c := range p.allComments() {
			if c.id == id {
				p.remove(c)
				return
			}
		}
	}
	misuse("no comment %d", id)
}

func (p *pull) remove(gone *comment) {
	is := func(c *comment) bool { return c == gone }
	p.gone = append(p.gone, gone)
	p.comments = slices.DeleteFunc(p.comments, is)
	if t := gone.thread; t != nil {
		t.comments = slices.DeleteFunc(t.comments, is)
	}
	p.threads = slices.DeleteFunc(p.threads, func(t *thread) bool { return len(t.comments) == 0 })
}

// Dismiss dismisses a review.
func (s *Server) Dismiss(id int64) {
	defer s.lock()()
	for _, p := range s.pulls() {
		for _, v := range p.reviews {
			if v.id == id {
				v.state = "DISMISSED"
				return
			}
		}
	}
	misuse("no review %d", id)
}

// Hide hides a comment or review ("minimizes" it), or shows it again.
func (s *Server) Hide(id int64, on bool) {
	defer s.lock()()
	s.text(id).hidden = on
}

// Resolve resolves the thread of a review comment as an account.
func (s *Server) Resolve(id int64, by string) {
	defer s.lock()()
	s.reviewComment(id).thread.resolved = s.account(by)
}
