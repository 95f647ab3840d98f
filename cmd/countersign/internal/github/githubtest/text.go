package githubtest

import "time"

// A text is what somebody wrote, with all that became of it: the common part of
// comments, reviews and pull requests.
type text struct {
	id      int64
	author  *account
	body    string
	created time.Time
	updated time.Time
	app     *account // that posted it for its author
	email   bool
	editor  *account
	edited  *time.Time
	hidden  bool
	history []edit // with the first text, oldest first; empty if never edited
}

type edit struct {
	body   string
	at     time.Time
	editor *account
	erased bool
}

func (s *Server) newText(by, body string) text {
	now := s.time()
	return text{id: s.nextID(), author: s.account(by), body: body, created: now, updated: now}
}

// edit changes the text as somebody.
func (s *Server) edit(t *text, editor *account, body string) {
	now := s.time()
	if len(t.history) == 0 {
		t.history = []edit{{body: t.body, at: t.created, editor: t.author}}
	}
	t.history = append(t.history, edit{body: body, at: now, editor: editor})
	t.body, t.updated, t.edited, t.editor = body, now, &now, editor
}
