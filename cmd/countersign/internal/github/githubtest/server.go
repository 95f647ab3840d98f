// Package githubtest is a GitHub for tests: one server on 127.0.0.1 that
// keeps state and speaks the parts of the REST API, the GraphQL API and Git's
// smart HTTP that this program uses.
//
// What it promises: every REST request and answer is held against GitHub's own
// description of its API, and every GraphQL query against GitHub's schema
// (testdata, cut down by TestTrimDescriptions from the npm packages
// @octokit/openapi and @octokit/graphql-schema). A request that GitHub would
// not know, or an answer that GitHub would not give, is a violation and fails
// the test. Permissions, paging, limits and what a missing right is answered
// with are the server's own work, after GitHub's documentation.
//
// Tests arrange what is on the server with methods; Fail lets requests go wrong.
// Misuse of the methods panics. It needs git.
package githubtest

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Server is a GitHub with nothing on it but the app "github-actions[bot]".
type Server struct {
	URL string // where people look at it: GITHUB_SERVER_URL, without a slash at the end

	http *httptest.Server
	dir  string
	rest *description

	mu         sync.Mutex
	now        func() time.Time
	lastID     int64
	accounts   []*account
	tokens     map[string]*token
	repos      []*repository
	faults     []*Fault
	requests   []*Request
	violations []string
}

// New starts a server and ends it with the test, which fails if there were
// violations that nobody took.
func New(t testing.TB) *Server {
	t.Helper()
	rest, err := loadDescription()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "githubtest-")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		dir: dir, rest: rest, now: time.Now, lastID: 1000,
		tokens: map[string]*token{},
	}
	s.addAccount("github-actions[bot]", "Bot")
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.http.Start()
	s.URL = s.http.URL
	t.Cleanup(func() {
		s.http.CloseClientConnections()
		s.http.Close()
		_ = os.RemoveAll(dir)
		for _, v := range s.Violations() {
			t.Errorf("githubtest: %s", v)
		}
	})
	return s
}

// API is the address of the REST API: GITHUB_API_URL.
func (s *Server) API() string { return s.URL + "/api/v3" }

// GraphQL is the address of the GraphQL API: GITHUB_GRAPHQL_URL.
func (s *Server) GraphQL() string { return s.URL + "/api/graphql" }

// SetNow sets the clock that times are told by; it is time.Now otherwise.
func (s *Server) SetNow(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}

func (s *Server) lock() func() {
	s.mu.Lock()
	return s.mu.Unlock
}

// time is the time in whole seconds, as GitHub tells it.
func (s *Server) time() time.Time { return s.now().UTC().Truncate(time.Second) }

func (s *Server) date() string {
	defer s.lock()()
	return s.now().UTC().Format(http.TimeFormat)
}

func (s *Server) nextID() int64 {
	s.lastID++
	return s.lastID
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	defer s.report(r)
	w.Header().Set("Date", s.date())
	switch {
	case strings.HasPrefix(r.URL.Path, "/api/v3/"):
		s.serveREST(w, r)
	case r.URL.Path == "/api/graphql":
		s.serveGraphQL(w, r)
	case strings.HasPrefix(r.URL.Path, "/_download/"):
		s.serveDownload(w, r)
	default:
		s.serveGit(w, r)
	}
}

// report makes a mistake in the server itself a violation; the connection ends.
func (s *Server) report(r *http.Request) {
	problem := recover()
	if problem == nil {
		return
	}
	if problem != http.ErrAbortHandler {
		s.violation("%s %s: %v", r.Method, r.URL.Path, problem)
	}
	panic(http.ErrAbortHandler)
}

// first is the first of some, nil if there is none such.
func first[T any](all []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i]
	}
	return nil
}

// misuse is a mistake of the test: a name of something that is not there.
func misuse(format string, a ...any) {
	panic("githubtest: " + fmt.Sprintf(format, a...))
}

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
