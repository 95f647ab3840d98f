package githubtest

import (
	"bytes"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

var backendPath = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("git", "--exec-path").Output()
	return filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"), err
})

// serveGit is Git's smart HTTP at /owner/name, with ".git" or without.
func (s *Server) serveGit(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body) // http/cgi cannot take bodies in chunks
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	push := strings.HasSuffix(r.URL.Path, "/git-receive-pack")
	seen, fault := s.note("git", r, nil, push)
	s.around(w, seen, fault, func(w *httptest.ResponseRecorder) {
		repo, rest, granted := s.gitAccess(w, r)
		if repo == nil {
			return
		}
		inner := r.Clone(r.Context())
		inner.URL.Path = rest
		inner.Body, inner.ContentLength, inner.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		backend(repo.dir, granted).ServeHTTP(w, inner)
		if push {
			defer s.lock()()
			s.synchronize(repo)
		}
	})
}

// backend is git http-backend over one repository. What GitHub hides from
// pushes is hidden.
func backend(dir string, environment []string) http.Handler {
	path, err := backendPath()
	if err != nil {
		misuse("%v", err)
	}
	environment = append(environment, isolated()...)
	environment = append(environment,
		"GIT_PROJECT_ROOT="+dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=someone", "GIT_CONFIG_COUNT=4",
		"GIT_CONFIG_KEY_0=http.receivepack", "GIT_CONFIG_VALUE_0=true",
		"GIT_CONFIG_KEY_1=receive.hideRefs", "GIT_CONFIG_VALUE_1=refs/pull",
		"GIT_CONFIG_KEY_2=uploadpack.allowAnySHA1InWant", "GIT_CONFIG_VALUE_2=true",
		"GIT_CONFIG_KEY_3=uploadpack.allowFilter", "GIT_CONFIG_VALUE_3=true")
	return &cgi.Handler{Path: path, Env: environment, Stderr: io.Discard, Logger: log.New(io.Discard, "", 0)}
}

// gitAccess finds the repository of a request, the path within it, and what
// the update hook has to know. Where the answer is no, it gives it.
func (s *Server) gitAccess(w http.ResponseWriter, r *http.Request) (*repository, string, []string) {
	defer s.lock()()
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 3)
	t := s.authenticate(r)
	var repo *repository
	if len(parts) == 3 {
		repo = s.findRepository(parts[0] + "/" + strings.TrimSuffix(parts[1], ".git"))
	}
	if t == nil || t.account == nil && (repo == nil || repo.private || pushes(r)) {
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, "Authentication failed.", http.StatusUnauthorized)
		return nil, "", nil
	}
	if repo == nil || !s.sees(t, repo) {
		http.Error(w, "Repository not found.", http.StatusNotFound)
		return nil, "", nil
	}
	granted, ok := s.pushRights(t, repo)
	if pushes(r) && !ok || !s.may(t, repo, "contents", "read") {
		http.Error(w, "Permission to "+repo.fullName()+".git denied.", http.StatusForbidden)
		return nil, "", nil
	}
	return repo, "/" + parts[2], granted
}

func pushes(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/git-receive-pack") || r.URL.Query().Get("service") == "git-receive-pack"
}

// pushRights is the environment of the update hook, and whether the token may
// push at all. Maintainers of the base may push to the heads of a person's fork
// whose pull requests allow it.
func (s *Server) pushRights(t *token, r *repository) ([]string, bool) {
	var protected, only []string
	for branch, on := range r.protected {
		if on {
			protected = append(protected, branch)
		}
	}
	protected = slices.AppendSeq(protected, maps.Keys(r.settings.Checks))
	environment := []string{"GITHUBTEST_PROTECTED=" + strings.Join(protected, " ")}
	if t.app && !t.has("workflows", "write") {
		environment = append(environment, "GITHUBTEST_NO_WORKFLOWS=1")
	}
	if s.may(t, r, "contents", "write") {
		return environment, true
	}
	for _, p := range s.pulls() {
		if p.head.repo == r && p.closed == nil && p.edits && r.owner.kind == "User" && !t.app && s.may(t, p.repo, "contents", "write") {
			only = append(only, p.head.ref)
		}
	}
	return append(environment, "GITHUBTEST_ONLY="+strings.Join(only, " ")), len(only) > 0
}
