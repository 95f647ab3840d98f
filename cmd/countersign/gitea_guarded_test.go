package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/forgetest"
)

// TestGiteaGuarded: on a real Gitea with the guard as a hook of the server nothing gets onto main that nobody signed: by a
// push, in the web editor, or by any way to merge. What somebody signed gets in by all of them.
func TestGiteaGuarded(t *testing.T) {
	t.Parallel()
	s := forgetest.Start(t)
	ada, bob := s.User("ada"), s.User("bob")
	key := filepath.Join(t.TempDir(), "ada")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	check(t, err)
	r := s.Repository(ada, "ada", "site", map[string]string{
		".github/countersign.yml": "version: 1\napprovals: {keys: .github/keys, signed: require}\n",
		".github/keys":            "ada@example.com " + string(public),
		"a.txt":                   "one\n", "b.txt": "one\n", "c.txt": "one\n", "d.txt": "one\n", "e.txt": "one\n",
	})
	r.Collaborator(bob, "admin")
	program, err := exec.LookPath("countersign")
	check(t, err)
	r.Hook("pre-receive", "exec '"+program+"' guard pre-receive")
	main := func() string { return r.Ref("refs/heads/main") }
	before := main()
	held := func(what string) {
		t.Helper()
		if now := main(); now != before {
			t.Errorf("%s got onto main: %s", what, r.Git("show", now))
		}
		before = main()
	}

	// What nobody approved.
	r.Commit(bob, "topic", "evil", map[string]string{"a.txt": "evil\n"})
	if out, err := r.TryPush(bob, r.Ref("refs/heads/topic")+":refs/heads/main"); err == nil || !strings.Contains(out, "remote: countersign: refs/heads/main: nothing accounts for 1 of its 1 new commits") {
		t.Errorf("a push: %v: %s", err, out)
	}
	held("a push")
	_, _ = r.TryPush(bob, "+"+r.Ref("refs/heads/topic")+":refs/heads/main", ":refs/agent/ledger")
	held("a forced push")
	edit := map[string]any{"content": "ZXZpbAo=", "message": "evil", "branch": "main"}
	if status := s.Do(bob, http.MethodPost, r.Path("contents", "evil.txt"), edit, nil); status < 400 {
		t.Errorf("the web editor: %d", status)
	}
	held("an edit")
	pr := r.PullRequest(bob, "topic", "main", "evil")
	for _, way := range []string{"merge", "rebase", "rebase-merge", "squash", "fast-forward-only"} {
		if status := s.Do(bob, http.MethodPost, r.Path("pulls", pr, "merge"), map[string]any{"Do": way}, nil); status < 400 {
			t.Errorf("%s: %d", way, status)
		}
		held("a " + way)
	}
	for _, status := range []string{"countersign", "countersign/gate"} {
		s.Must(bob, http.MethodPost, r.Path("statuses", r.Ref("refs/heads/topic")), map[string]any{"context": status, "state": "success"}, nil)
	}
	if status := s.Do(bob, http.MethodPost, r.Path("pulls", pr, "merge"), map[string]any{"Do": "squash"}, nil); status < 400 {
		t.Errorf("with a green check of one's own: %d", status)
	}
	held("a green check of one's own")

	// What ada signed: a push, and pull requests by three ways to merge.
	m := join(t, r, ada)
	for i, way := range []string{"", "fast-forward-only", "rebase", "squash"} {
		name := string(rune('b' + i))
		m.git("fetch", "-q", "origin")
		m.git("checkout", "-q", "--detach", "origin/main")
		m.write(name+".txt", "two\n")
		patch := filepath.Join(t.TempDir(), "x.patch")
		check(t, os.WriteFile(patch, []byte(m.git("diff")), 0o600))
		m.git("checkout", "-q", "--", ".")
		id, _ := m.does(0, "review", "-q", "--push", "--to", "branch", "--patch", patch)
		id = strings.TrimSpace(id)
		m.does(0, "approve", id, "--push", "--sign", "--key", key)
		m.does(0, "apply", id, "--push", "--to", "branch", "--branch", "out"+name)
		m.git("push", "-q", r.RemoteAs(bob), "out"+name)
		if way == "" {
			m.git("push", "-q", r.RemoteAs(bob), "out"+name+":main")
		} else {
			pr := r.PullRequest(bob, "out"+name, "main", "approved")
			if status := s.Do(bob, http.MethodPost, r.Path("pulls", pr, "merge"), map[string]any{"Do": way}, nil); status >= 400 {
				t.Errorf("%s of what ada signed: %d", way, status)
			}
		}
		if now := main(); now == before || r.Git("show", now+":"+name+".txt") != "two" {
			t.Errorf("%q of what ada signed did not get in", way)
		}
		before = main()
	}
	m.git("fetch", "-q", "origin")
	m.does(0, "sync")
	out, _ := m.does(0, "audit", "--branch", "origin/main", "--policy-ref", "refs/remotes/origin/main")
	if !strings.Contains(out, fmt.Sprintf("origin/main: %d commits", 4)) {
		t.Errorf("the audit afterwards: %s", out)
	}
}
