package githubtest

import "slices"

func (s *Server) pulls() []*pull {
	var all []*pull
	for _, r := range s.repos {
		all = append(all, r.pulls...)
	}
	return all
}

// text finds a text by its id.
func (s *Server) text(id int64) *text {
	for _, p := range s.pulls() {
		if t := p.find(id); t != nil {
			return t
		}
	}
	misuse("no comment, review or pull request %d", id)
	return nil
}

func (p *pull) find(id int64) *text {
	if p.id == id {
		return &p.text
	}
	for _, c := range p.allComments() {
		if c.id == id {
			return &c.text
		}
	}
	for _, v := range p.reviews {
		if v.id == id {
			return &v.text
		}
	}
	return nil
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

func (s *Server) reviewComment(id int64) *comment {
	for _, p := range s.pulls() {
		for _, c := range p.reviewComments() {
			if c.id == id {
				return c
			}
		}
	}
	misuse("no review comment %d", id)
	return nil
}
