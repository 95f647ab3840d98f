package wiretest

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Options are how a [Server] differs from one that allows everything.
type Options struct {
	NoFilter  bool // uploadpack.allowFilter is off
	NoAnyWant bool // uploadpack.allowAnySHA1InWant is off

	// With an Authorization, requests with another value of that header are
	// answered with 401.
	Authorization string

	TLS bool // https and HTTP/2, with httptest's certificate
}

// A Server is git http-backend over the repositories in Root.
type Server struct {
	*httptest.Server
	Root string

	t       testing.TB
	options Options
	backend cgi.Handler
	mu      sync.Mutex
	fault   func(n int, r *http.Request) Fault
	asked   int // requests since the fault was set
	seen    []*Request
}

// A Request is one that a [Server] got.
type Request struct {
	Method, URI   string
	Protocol      string // HTTP/1.1 or HTTP/2.0
	Authorization string
	UserAgent     string
	Remote        string // the client's address, the same for one connection
	In, Out       int64  // bytes of the bodies
}

// NewServer starts a server and ends it with the test.
func NewServer(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{t: t, options: o, Root: t.TempDir()}
	s.backend = cgi.Handler{
		Path:   backendPath(t),
		Env:    s.environment(),
		Stderr: io.Discard,
		Logger: log.New(io.Discard, "", 0),
	}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if o.TLS {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(func() {
		s.CloseClientConnections() // one that hangs would keep Close
		s.Close()
	})
	return s
}

func backendPath(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
}

func (s *Server) environment() []string {
	config := [][2]string{{"http.receivepack", "true"}}
	if !s.options.NoFilter {
		config = append(config, [2]string{"uploadpack.allowFilter", "true"})
	}
	if !s.options.NoAnyWant {
		config = append(config, [2]string{"uploadpack.allowAnySHA1InWant", "true"})
	}
	env := []string{"GIT_PROJECT_ROOT=" + s.Root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull}
	return append(env, configEnvironment(config)...)
}

func configEnvironment(config [][2]string) []string {
	env := []string{"GIT_CONFIG_COUNT=" + string(rune('0'+len(config)))}
	for i, c := range config {
		n := string(rune('0' + i))
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+c[0], "GIT_CONFIG_VALUE_"+n+"="+c[1])
	}
	return env
}

// Bare makes an empty repository that is served at URL(name).
func (s *Server) Bare(name string) Repo {
	s.t.Helper()
	return Bare(s.t, filepath.Join(s.Root, name))
}

// URL is where a repository is served.
func (s *Server) URL(name string) string { return s.Server.URL + "/" + name }

// SetFault sets what goes wrong: f is asked for each request, n is 1 for the
// first after this call. Nil is nothing.
func (s *Server) SetFault(f func(n int, r *http.Request) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.asked = f, 0
}

// FailPush sets one fault for the next push, and for no other request.
func (s *Server) FailPush(fault Fault) {
	var once sync.Once
	s.SetFault(func(_ int, r *http.Request) (now Fault) {
		if strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
			once.Do(func() { now = fault })
		}
		return now
	})
}

// Requests returns what was asked so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Request, len(s.seen))
	for i, r := range s.seen {
		all[i] = *r
	}
	return all
}

// Reset forgets the requests so far.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = nil
}

func (s *Server) note(r *http.Request) (*Request, Fault) {
	q := &Request{Method: r.Method, URI: r.URL.RequestURI(), Protocol: r.Proto, Authorization: r.Header.Get("Authorization"), UserAgent: r.UserAgent(), Remote: r.RemoteAddr}
	s.mu.Lock()
	s.seen = append(s.seen, q)
	s.asked++
	fault, n := s.fault, s.asked
	s.mu.Unlock() // a fault may itself be another request
	if fault == nil {
		return q, Fault{}
	}
	return q, fault(n, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	q, fault := s.note(r)
	w = &counter{w, s, q}
	if !fault.before(w, r) {
		return
	}
	if s.options.Authorization != "" && r.Header.Get("Authorization") != s.options.Authorization {
		w.Header().Set("WWW-Authenticate", `Basic realm="wiretest"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	q.In = int64(len(body))
	s.mu.Unlock()
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	answer := httptest.NewRecorder()
	s.backend.ServeHTTP(answer, r)
	fault.after(w, r, answer)
}

// A counter counts the bytes of an answer.
type counter struct {
	http.ResponseWriter
	s *Server
	q *Request
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.q.Out += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (c *counter) Unwrap() http.ResponseWriter { return c.ResponseWriter }
