package githubtest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// A Request is one that the server got. Kind is "rest", "graphql", "git" or
// "download"; Write says that it was there to change something. Status is 0
// while it is not answered, and where the connection was cut.
type Request struct {
	Kind   string
	Method string
	Path   string // with "/api/v3"
	Query  string
	Body   string // "" for git
	Login  string // whose token it was, "" without
	Write  bool
	Status int
}

// Requests returns what was asked so far.
func (s *Server) Requests() []Request {
	defer s.lock()()
	all := make([]Request, len(s.requests))
	for i, r := range s.requests {
		all[i] = *r
	}
	return all
}

// ResetRequests forgets what was asked so far.
func (s *Server) ResetRequests() {
	defer s.lock()()
	s.requests = nil
}

// A Count is how many requests there were to the API, REST and GraphQL, and
// how many of them to write; those of Git are counted apart.
type Count struct {
	API, Writes, Git int
}

// Count counts the requests since the start or the last ResetRequests.
func (s *Server) Count() Count {
	var n Count
	for _, r := range s.Requests() {
		switch r.Kind {
		case "git":
			n.Git++
			continue
		case "download":
			continue
		}
		n.API++
		if r.Write {
			n.Writes++
		}
	}
	return n
}

// note writes a request down, and returns the fault that is due.
func (s *Server) note(kind string, r *http.Request, body []byte, write bool) (*Request, *Fault) {
	defer s.lock()()
	seen := &Request{Kind: kind, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Body: string(body), Write: write}
	if t := s.authenticate(r); t != nil && t.account != nil {
		seen.Login = t.account.login
	}
	s.requests = append(s.requests, seen)
	return seen, s.due(seen)
}

// Violations returns where a request or an answer was not as GitHub describes
// them.
func (s *Server) Violations() []string {
	defer s.lock()()
	return slices.Clone(s.violations)
}

// TakeViolations returns the violations and forgets them: the test wanted them.
func (s *Server) TakeViolations() []string {
	defer s.lock()()
	taken := s.violations
	s.violations = nil
	return taken
}

func (s *Server) violation(format string, a ...any) {
	defer s.lock()()
	s.violations = append(s.violations, strings.TrimSpace(fmt.Sprintf(format, a...)))
}
