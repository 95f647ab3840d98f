package teststand

import (
	"bytes"
	"cmp"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
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
	Recorder
	Root string

	t       testing.TB
	options Options
	backend cgi.Handler
}

// NewServer starts a server and ends it with the test.
func NewServer(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{t: t, options: o, Root: t.TempDir()}
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	config := [][2]string{{"http.receivepack", "true"}}
	if !o.NoFilter {
		config = append(config, [2]string{"uploadpack.allowFilter", "true"})
	}
	if !o.NoAnyWant {
		config = append(config, [2]string{"uploadpack.allowAnySHA1InWant", "true"})
	}
	s.backend = cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Env: append(configEnvironment(config),
			"GIT_PROJECT_ROOT="+s.Root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull),
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

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	q, fault := s.note(r)
	w = &noted{w, &s.Recorder, q}
	if !fault.before(w, r) {
		return
	}
	if s.options.Authorization != "" && r.Header.Get("Authorization") != s.options.Authorization {
		w.Header().Set("WWW-Authenticate", `Basic realm="teststand"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if r.Method == http.MethodPost && r.ContentLength < 0 && !strings.HasPrefix(r.UserAgent(), "git/2") { // some servers want to know (RFC 9110, 15.5.12); git itself sends large packs in pieces
		http.Error(w, "how long is it?", http.StatusLengthRequired)
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

// Serve serves one request by next, or fails as the fault says. It is for servers that are in front of
// another one.
func (f Fault) Serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if f.Kind == None {
		next.ServeHTTP(w, r)
		return
	}
	if !f.before(w, r) {
		return
	}
	answer := httptest.NewRecorder()
	next.ServeHTTP(answer, r)
	f.after(w, r, answer)
}

// A Kind is a way in which a request fails.
type Kind string

// Before means that git does not see the request, After that git has done what
// it asks for.
const (
	None         Kind = ""
	CutBefore    Kind = "connection closed before"
	CutRequest   Kind = "connection closed in the middle of the request" // before
	CutAfter     Kind = "connection closed after"
	CutAnswer    Kind = "connection closed in the middle of the answer" // after
	Truncate     Kind = "half of the answer"                            // after; properly ended
	StatusBefore Kind = "status before"                                 // Status, Location
	StatusAfter  Kind = "status after"
	EmptyBefore  Kind = "empty 200 before"
	EmptyAfter   Kind = "empty 200 after"
	BodyBefore   Kind = "other body before" // 200 with Git's content type and Body
	BodyAfter    Kind = "other body after"
	HTMLBefore   Kind = "page before" // 200 with text/html
	HTMLAfter    Kind = "page after"
	Slow         Kind = "slow"           // waits for Delay, or till the client leaves, then serves
	Trickle      Kind = "slow in answer" // after; half of the answer, then waits as Slow
)

// A Fault is how one request fails. The zero value is not at all.
type Fault struct {
	Kind     Kind
	Status   int
	Location string // of a redirect
	Body     string
	Type     string // of BodyBefore, instead of Git's
	Delay    time.Duration
}

// All are the kinds that a push may meet, without the slow ones, with what
// they need.
func All() []Fault {
	return []Fault{
		{Kind: CutBefore}, {Kind: CutRequest}, {Kind: CutAfter}, {Kind: CutAnswer}, {Kind: Truncate},
		{Kind: EmptyBefore}, {Kind: EmptyAfter}, {Kind: HTMLBefore}, {Kind: HTMLAfter},
		{Kind: StatusBefore, Status: 401}, {Kind: StatusBefore, Status: 403}, {Kind: StatusBefore, Status: 404}, {Kind: StatusBefore, Status: 429},
		{Kind: StatusBefore, Status: 500}, {Kind: StatusAfter, Status: 500}, {Kind: StatusBefore, Status: 502}, {Kind: StatusAfter, Status: 502},
		{Kind: BodyBefore, Body: "nonsense"}, {Kind: BodyAfter, Body: "nonsense"}, {Kind: BodyBefore, Body: "0000"}, {Kind: BodyAfter, Body: "0000"},
		{Kind: BodyBefore, Body: "0011\x03out of disk0000"},
	}
}

// Some are the first of each kind of All.
func Some() []Fault {
	seen := map[Kind]bool{}
	return slices.DeleteFunc(All(), func(f Fault) bool {
		again := seen[f.Kind]
		seen[f.Kind] = true
		return again
	})
}

// String names the fault.
func (f Fault) String() string {
	s := string(f.Kind)
	if f.Status != 0 {
		s += " " + strconv.Itoa(f.Status)
	}
	if f.Body != "" {
		s += " " + strconv.Quote(f.Body)
	}
	return s
}

const page = "<!DOCTYPE html><title>Sign in</title>"

func answerType(r *http.Request) string {
	if r.Method == http.MethodGet {
		return "application/x-" + r.URL.Query().Get("service") + "-advertisement"
	}
	return "application/x-" + path.Base(r.URL.Path) + "-result"
}

func wait(r *http.Request, d time.Duration) {
	select {
	case <-r.Context().Done():
	case <-time.After(d):
	}
}

// before does what is due before git sees the request, and reports whether git shall.
func (f Fault) before(w http.ResponseWriter, r *http.Request) bool {
	switch f.Kind {
	case CutBefore:
		panic(http.ErrAbortHandler)
	case CutRequest:
		_, _ = io.CopyN(io.Discard, r.Body, r.ContentLength/2)
		panic(http.ErrAbortHandler)
	case StatusBefore:
		_, _ = io.Copy(io.Discard, r.Body)
		f.status(w)
	case EmptyBefore:
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", answerType(r))
	case BodyBefore:
		_, _ = io.Copy(io.Discard, r.Body)
		answer(w, cmp.Or(f.Type, answerType(r)), f.Body)
	case HTMLBefore:
		_, _ = io.Copy(io.Discard, r.Body)
		answer(w, "text/html; charset=utf-8", page)
	case Slow:
		body, err := io.ReadAll(r.Body) // only then net/http sees the client leave
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		wait(r, f.Delay)
		return r.Context().Err() == nil
	default:
		return true
	}
	return false
}

func answer(w http.ResponseWriter, contentType, body string) {
	w.Header().Set("Content-Type", contentType)
	_, _ = io.WriteString(w, body)
}

func (f Fault) status(w http.ResponseWriter) {
	if f.Location != "" {
		w.Header().Set("Location", f.Location)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(f.Status)
	_, _ = io.WriteString(w, f.Body)
}

// after sends git's answer, or what comes in its stead.
func (f Fault) after(w http.ResponseWriter, r *http.Request, git *httptest.ResponseRecorder) {
	body := git.Body.Bytes()
	switch f.Kind {
	case CutAfter:
		panic(http.ErrAbortHandler)
	case StatusAfter:
		f.status(w)
		return
	case HTMLAfter:
		answer(w, "text/html; charset=utf-8", page)
		return
	case EmptyAfter, BodyAfter:
		answer(w, answerType(r), f.Body)
		return
	}
	maps.Copy(w.Header(), git.Header())
	w.Header().Del("Content-Length")
	w.WriteHeader(git.Code)
	switch f.Kind {
	case CutAnswer:
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case Truncate:
		_, _ = w.Write(body[:len(body)/2])
		return
	case Trickle:
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		wait(r, f.Delay)
	}
	_, _ = w.Write(body)
}
