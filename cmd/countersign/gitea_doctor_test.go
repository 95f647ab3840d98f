package main

import (
	"cmp"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/forgetest"
)

// TestGiteaDoctor: what a real server tells of a repository as somebody made it, of one that
// is set up as docs/forges.md says, and to tokens that may less.
func TestGiteaDoctor(t *testing.T) {
	t.Parallel()
	h := newTeaHub(t, nil)
	doctor := func(want int, lines ...string) {
		t.Helper()
		code, stdout, stderr := h.run("doctor")
		if code != want {
			t.Errorf("exit code %d, want %d: %s%s", code, want, stdout, stderr)
		}
		for _, line := range lines {
			if not, is := strings.CutPrefix(line, "!"); is == strings.Contains(stdout, not) {
				t.Errorf("%q is told wrongly in\n%s", line, stdout)
			}
		}
	}
	doctor(1,
		"fails  .gitea/workflows/countersign.yml is missing on main", "fails  the Policy does not name robot under bots", "fails  main is not protected",
		"ok     robot administers the repository", "ok     the token has the scope write:repository", "ok     the token has the scope write:issue",
		"ok     the repository has Actions", "note   no rule reaches refs/agent/ledger", "note   approvals need no signature", "!refs/countersign/probe",
	)

	if code, stdout, stderr := h.run("init", "--ledger-branch"); code != 0 {
		t.Fatal(stdout, stderr)
	}
	files := map[string]string{}
	for _, name := range []string{".github/countersign.yml", ".gitea/workflows/countersign.yml", ".gitea/workflows/countersign-events.yml"} {
		raw, err := os.ReadFile(filepath.Join(h.dir, name))
		check(t, err)
		files[name] = strings.Replace(string(raw), "# bots: [renovate]", "bots: [robot]", 1)
	}
	h.r.Commit(h.ada, "main", "countersign", files)
	h.s.Must(h.ada, http.MethodPut, h.r.Path("actions", "secrets", "COUNTERSIGN_TOKEN"), map[string]string{"data": h.robot.Token}, nil)
	h.r.Protect("main", map[string]any{"enable_status_check": true, "status_check_contexts": []string{"countersign*"}, "enable_push": true})
	h.r.Protect("countersign-ledger", map[string]any{"enable_push": true, "enable_push_whitelist": true, "push_whitelist_usernames": []string{"robot"}})
	h.clone()
	doctor(1, "fails  main does not require the status countersign", "fails  whoever may write can push to main", "note   this clone looks for the ledger on refs/agent/ledger")

	h.s.Must(h.ada, http.MethodPatch, h.r.Path("branch_protections", "main"), map[string]any{
		"status_check_contexts": []string{"countersign"}, "enable_push": false, "unprotected_file_patterns": "*.md",
	}, nil)
	h.git("config", "countersign.ledgerRef", "refs/heads/countersign-ledger")
	h.git("config", "user.email", "ada@example.com")
	set := []string{
		"ok     .gitea/workflows/countersign.yml is there", "ok     main requires the status countersign", "ok     nobody else pushes to main",
		"note   whoever may write can push files of *.md to main", "note   administrators may merge into main without the status",
		"ok     only robot adds to the ledger's branch countersign-ledger", "ok     the Policy names robot under bots", "ok     the Policy guards pull requests to main",
		"note   the names of secrets are told to the repository's owners alone",
	}
	server := map[string]string{
		forgetest.Older: "note   the server is Gitea 1.24.6: before 1.25 no run starts another", forgetest.Forgejo: "note   the server is Forgejo 10.0.0-dev: whether a run there",
	}
	set = append(set, cmp.Or(server[h.s.Version], "ok     the server is "+h.s.Name()))
	doctor(0, set...)

	owner := h.env["COUNTERSIGN_TOKEN"]
	h.env["COUNTERSIGN_TOKEN"] = h.ada.Token
	doctor(1, "ok     the repository has the secret COUNTERSIGN_TOKEN", "fails  the Policy does not name ada under bots")
	h.env["COUNTERSIGN_TOKEN"] = h.s.Scoped(h.robot, "read:repository", "read:user", "read:issue").Token
	doctor(1, "fails  the token has no scope write:repository", "fails  the token has no scope write:issue", "ok     the token has the scope read:user")
	h.env["COUNTERSIGN_TOKEN"] = h.s.Scoped(h.robot, "write:repository", "write:issue").Token
	doctor(1, "fails  the server does not say whose the token is")
	h.env["COUNTERSIGN_TOKEN"] = h.bob.Token
	doctor(1, "fails  bob does not administer the repository", "fails  the protections of branches cannot be read")
	h.env["COUNTERSIGN_TOKEN"] = owner
	h.s.Reset()
	doctor(0)
	for _, asked := range h.s.Requests() {
		if asked.Method != http.MethodGet && asked.Status != http.StatusUnprocessableEntity {
			t.Errorf("%s %s was answered with %d", asked.Method, asked.Path, asked.Status)
		}
	}
	h.r.Edit(map[string]any{"has_actions": false, "archived": false})
	doctor(1, "fails  the repository has no Actions")
	h.r.Edit(map[string]any{"archived": true})
	doctor(1, "fails  the repository is archived")
}

// git runs git in the clone.
func (h *teaHub) git(args ...string) {
	h.Helper()
	if out, err := exec.Command("git", append([]string{"-C", h.dir}, args...)...).CombinedOutput(); err != nil {
		h.Fatalf("%v: %s", err, out)
	}
}
