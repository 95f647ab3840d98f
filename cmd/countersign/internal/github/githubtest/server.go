package githubtest

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
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
	enterprise string // the version of GitHub Enterprise Server, "" for github.com
	lastID     int64
	accounts   []*account
	tokens     map[string]*token
	orgs       map[int64]*organization
	repos      []*repository
	faults     []*Fault
	requests   []*Request
	violations []string
}

// New starts a server and ends it with the test, which fails if there were
// violations that nobody took.
func New(t testing.TB) *Server {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		for _, v := range s.Violations() {
			t.Errorf("githubtest: %s", v)
		}
	})
	return s
}

// Start starts a server outside of a test. Close ends it.
func Start() (*Server, error) {
	rest, err := loadDescription()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "githubtest-")
	if err != nil {
		return nil, err
	}
	s := &Server{
		dir: dir, rest: rest, now: time.Now, lastID: 1000,
		tokens: map[string]*token{}, orgs: map[int64]*organization{},
	}
	s.addAccount("github-actions[bot]", "Bot")
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.http.Start()
	s.URL = s.http.URL
	return s, nil
}

// Close ends the server and removes its repositories.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
	_ = os.RemoveAll(s.dir)
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

// SetEnterprise makes the server say that it is GitHub Enterprise Server of a
// version such as "3.19.0", in the header of every answer of the REST API.
func (s *Server) SetEnterprise(version string) {
	defer s.lock()()
	s.enterprise = version
}

func (s *Server) lock() func() {
	s.mu.Lock()
	return s.mu.Unlock
}

// time is the time in whole seconds, as GitHub tells it.
func (s *Server) time() time.Time { return s.now().UTC().Truncate(time.Second) }

func (s *Server) nextID() int64 {
	s.lastID++
	return s.lastID
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	defer s.report(r)
	switch {
	case strings.HasPrefix(r.URL.Path, "/_test/"):
		s.serveControl(w, r)
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

// misuse is a mistake of the test: a name of something that is not there.
func misuse(format string, a ...any) {
	panic("githubtest: " + fmt.Sprintf(format, a...))
}
