package githubtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// work is a clone by the real git.
type work struct {
	t   *testing.T
	dir string
}

func clone(t *testing.T, s *Server, repository, token string) work {
	t.Helper()
	w := work{t, filepath.Join(t.TempDir(), "clone")}
	if out, err := w.git("clone", "-q", address(s, repository, token), w.dir); err != nil {
		t.Fatalf("clone: %v: %s", err, out)
	}
	return w
}

func address(s *Server, repository, token string) string {
	return strings.Replace(s.URL, "://", "://x-access-token:"+token+"@", 1) + "/" + repository
}

func (w work) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	if args[0] != "clone" {
		cmd.Dir = w.dir
	}
	cmd.Env = append(isolated(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// commit writes a file and commits it.
func (w work) commit(path, text string) {
	w.t.Helper()
	file := filepath.Join(w.dir, path)
	teststand.Fatal(w.t, os.MkdirAll(filepath.Dir(file), 0o755))
	teststand.Fatal(w.t, os.WriteFile(file, []byte(text), 0o644))
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", path}} {
		if out, err := w.git(args...); err != nil {
			w.t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
}

func TestPushesThatAreRefused(t *testing.T) {
	s, c := site(t)
	s.Protect("acme/site", "main", true)
	w := clone(t, s, "acme/site", c.token)
	w.commit("new.txt", "x")
	plain := address(s, "acme/site", c.token)
	reader := address(s, "acme/site", s.Token("bob"))
	s.User("carol")
	s.Fork("acme/site", "carol/site")
	s.Push(NewCommit{Repository: "carol/site", Branch: "idea", By: "carol", Files: map[string]string{"c.txt": "c"}})
	s.PullRequest(NewPullRequest{Repository: "acme/site", By: "carol", Head: "idea", HeadRepository: "carol/site"})
	for _, test := range []struct{ to, ref, says string }{
		{plain, "refs/heads/main", "GH006"},
		{plain, "refs/pull/1/head", "hidden ref"},
		{plain, "refs/heads/other", ""},
		{plain, "refs/agent/ledger", ""},
		{reader, "refs/heads/b", "denied"},
		{s.URL + "/acme/site", "refs/heads/b", "could not read Username"},
		{address(s, "acme/site", "wrong"), "refs/heads/b", "Authentication failed"},
		{address(s, "acme/none", c.token), "refs/heads/b", "not found"},
		{address(s, "carol/site", s.Token("ada")), "refs/heads/idea", ""}, // a maintainer of the base
		{address(s, "carol/site", s.Token("ada")), "refs/heads/other", "not authorized"},
		{address(s, "carol/site", c.token), "refs/heads/idea", "denied"}, // of another repository
	} {
		out, err := w.git("push", "-q", "-f", test.to, "HEAD:"+test.ref)
		if (err == nil) != (test.says == "") || !strings.Contains(out, test.says) {
			t.Errorf("push to %s: %v: %s, want %q", test.ref, err, out, test.says)
		}
	}
	w.commit(".github/workflows/x.yml", "on: push")
	if out, err := w.git("push", "-q", plain, "HEAD:refs/heads/w"); err == nil || !strings.Contains(out, "workflows") {
		t.Errorf("workflow file: %v: %s", err, out)
	}
	allowed := address(s, "acme/site", s.ActionsToken("acme/site", "contents:write", "workflows:write"))
	if out, err := w.git("push", "-q", allowed, "HEAD:refs/heads/w"); err != nil {
		t.Errorf("workflow file with the permission: %s", out)
	}
}

func TestReading(t *testing.T) {
	s, _ := site(t)
	s.Repository(NewRepository{Name: "acme/secret", Private: true})
	s.Role("acme/secret", "ada", "read")
	w := work{t, t.TempDir()}
	for _, test := range []struct {
		to   string
		says string
	}{
		{s.URL + "/acme/site.git", ""},
		{s.URL + "/acme/secret.git", "could not read Username"},
		{address(s, "acme/secret", s.Token("ada")), ""},
		{address(s, "acme/secret", s.Token("bob")), "not found"},
		{address(s, "acme/secret", s.ActionsToken("acme/secret", "contents:read")), ""},
		{address(s, "acme/secret", s.ActionsToken("acme/secret", "checks:write")), "403"},
		{address(s, "acme/secret", s.ActionsToken("acme/site", "contents:write")), "not found"},
	} {
		out, err := w.git("ls-remote", test.to)
		if (err == nil) != (test.says == "") || !strings.Contains(out, test.says) {
			t.Errorf("%v: %s, want %q", err, out, test.says)
		}
	}
}
