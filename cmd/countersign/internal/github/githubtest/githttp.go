package githubtest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
)

// services are those of Git's smart HTTP.
var services = []string{"upload-pack", "receive-pack"}

// serveGit is Git's smart HTTP at /owner/name, with ".git" or without.
func (s *Server) serveGit(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil && r.Header.Get("Content-Encoding") == "gzip" {
		body, err = gunzip(body)
	}
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
		p := protocol{repo.dir, r.Header.Get("Git-Protocol"), granted}
		service, asks := strings.CutPrefix(r.URL.Query().Get("service"), "git-")
		called, posted := strings.CutPrefix(rest, "/git-")
		switch {
		case r.Method == http.MethodGet && rest == "/info/refs" && asks && slices.Contains(services, service):
			w.Header().Set("Content-Type", "application/x-git-"+service+"-advertisement")
			w.Header().Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
			if !strings.Contains(p.version, "version=2") {
				line := "# service=git-" + service + "\n"
				fmt.Fprintf(w, "%04x%s0000", len(line)+4, line)
			}
			_, _ = w.Write(s.told(repo, p, nil, service, "--stateless-rpc", "--advertise-refs", "."))
		case r.Method == http.MethodPost && posted && slices.Contains(services, called):
			w.Header().Set("Content-Type", "application/x-git-"+called+"-result")
			if push {
				repo.changes.Add(1)
				_, _ = w.Write(p.receive(body))
				repo.changes.Add(1)
			} else {
				_, _ = w.Write(s.told(repo, p, body, called, "--stateless-rpc", "."))
			}
		default:
			http.NotFound(w, r)
		}
		if push {
			defer s.lock()()
			s.synchronize(repo)
		}
	})
}

func gunzip(data []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// A protocol is how one request speaks to the git of a repository: what
// git http-backend does, with a process less for each request.
type protocol struct {
	dir, version string
	granted      []string // the environment of the update hook
}

// git runs one of its services. It tells the client itself what is wrong. What
// GitHub hides from pushes is hidden.
func (p protocol) git(in []byte, args ...string) []byte {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = p.dir, bytes.NewReader(in)
	cmd.Env = slices.Concat(p.granted, isolated(), []string{
		"GIT_PROTOCOL=" + p.version, "GIT_COMMITTER_NAME=someone", "GIT_COMMITTER_EMAIL=someone@http.127.0.0.1", "GIT_CONFIG_COUNT=4",
		"GIT_CONFIG_KEY_0=receive.autogc", "GIT_CONFIG_VALUE_0=false",
		"GIT_CONFIG_KEY_1=receive.hideRefs", "GIT_CONFIG_VALUE_1=refs/pull",
		"GIT_CONFIG_KEY_2=uploadpack.allowAnySHA1InWant", "GIT_CONFIG_VALUE_2=true",
		"GIT_CONFIG_KEY_3=uploadpack.allowFilter", "GIT_CONFIG_VALUE_3=true",
	})
	out, _ := cmd.Output()
	return out
}

// capabilities is what upload-pack can do in version 2, which no repository has a part in.
var capabilities sync.Map

// told is what git says to one who only asks. It depends on the question and the refs, so that while those stay
// git is not started again: that was half of all processes of the tests of package main.
func (s *Server) told(r *repository, p protocol, in []byte, args ...string) []byte {
	if in == nil && args[0] == "upload-pack" && strings.Contains(p.version, "version=2") {
		text, ok := capabilities.Load(p.version)
		if !ok {
			text, _ = capabilities.LoadOrStore(p.version, p.git(in, args...))
		}
		return text.([]byte)
	}
	changes := r.changes.Load()
	key := fmt.Sprint(changes, p.version, args, sha256.Sum256(in))
	unlock := s.lock()
	known, ok := r.known[key]
	unlock()
	if ok {
		return []byte(known)
	}
	text := p.git(in, args...)
	if r.changes.Load() == changes {
		defer s.lock()()
		r.known[key] = string(text)
	}
	return text
}

// receive is what git says to a push. The update hook runs where it could refuse one.
func (p protocol) receive(in []byte) []byte {
	args := []string{"receive-pack", "--stateless-rpc", "."}
	commands, _, _ := bytes.Cut(in, []byte("0000PACK"))
	asks := bytes.Contains(commands, []byte(" refs/heads/")) || bytes.Contains(commands, []byte(" refs/tags/"))
	if !slices.ContainsFunc(p.granted, func(rule string) bool {
		name, value, _ := strings.Cut(rule, "=")
		return name == "GITHUBTEST_ONLY" || asks && value != ""
	}) {
		args = append([]string{"-c", "core.hooksPath=" + os.DevNull}, args...)
	}
	return p.git(in, args...)
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
