package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/forgetest"
)

// A teaHub is a real Gitea with the repository acme/site, where ada and bob may write and
// robot, whose token the program has, administers; and pull request 1 of bob's branch
// "topic".
type teaHub struct {
	*testing.T
	s               *forgetest.Server
	ada, bob, robot forgetest.User
	r               *forgetest.Repository
	dir             string
	env             map[string]string
	pr              int64
}

func newTeaHub(t *testing.T, files map[string]string) *teaHub {
	s := forgetest.Start(t)
	h := &teaHub{T: t, s: s, ada: s.User("ada"), bob: s.User("bob"), robot: s.User("robot")}
	s.Org("acme", h.ada)
	s.Team("acme", "writers", "write", h.bob)
	all := map[string]string{"greet.txt": "one\nhello\nthree\n", "other.txt": "other\n"}
	for name, text := range files {
		all[name] = text
	}
	h.r = s.Repository(h.ada, "acme", "site", all)
	h.r.Collaborator(h.robot, "admin")
	s.Must(h.ada, http.MethodPut, fmt.Sprintf("/teams/%d/members/robot", s.Team("acme", "readers", "read")), nil, nil)
	h.r.Commit(h.bob, "topic", "feature", map[string]string{"feature.txt": "feature\n"})
	h.pr = h.r.PullRequest(h.bob, "topic", "main", "Feature")
	h.clone()
	return h
}

// clone is a fresh clone of the default branch.
func (h *teaHub) clone() {
	h.Helper()
	h.dir = filepath.Join(h.TempDir(), "clone")
	if out, err := exec.Command("git", "clone", "-q", h.r.RemoteAs(h.robot), h.dir).CombinedOutput(); err != nil {
		h.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command("git", "-C", h.dir, "remote", "set-url", "origin", h.r.Remote()).CombinedOutput(); err != nil {
		h.Fatalf("%v: %s", err, out)
	}
	h.env = map[string]string{
		"HOME": h.TempDir(), "CI": "true", "GIT_CONFIG_NOSYSTEM": "1", "COUNTERSIGN_TOKEN": h.robot.Token,
		"COUNTERSIGN_TOKEN_HOST": strings.TrimPrefix(h.s.URL, "http://"), "GITHUB_TOKEN": "not-for-this-server",
	}
}

// run runs a command line in the clone, with the clock and the waits of the machine.
func (h *teaHub) run(args ...string) (code int, stdout, stderr string) {
	h.Helper()
	var out, errs bytes.Buffer
	app := console.Process{
		Args: append([]string{"-C", h.dir, "--forge", "gitea"}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Getenv: func(name string) string { return h.env[name] }, Now: time.Now, Entropy: rand.Reader,
	}
	code = Main(app)
	if testing.Verbose() {
		h.Logf("countersign %s: %d\n%s%s", strings.Join(args, " "), code, out.String(), errs.String())
	}
	return code, out.String(), errs.String()
}

// settle settles the pull request and wants an exit code.
func (h *teaHub) settle(want int, args ...string) settled {
	h.Helper()
	code, stdout, stderr := h.run(append([]string{"settle", "--json", "--pr", fmt.Sprint(h.pr)}, args...)...)
	if code != want {
		h.Fatalf("exit code %d, want %d\n%s%s", code, want, stdout, stderr)
	}
	var out settled
	check(h, json.Unmarshal([]byte(stdout), &out))
	return out
}

// statuses are the states of the newest statuses of a commit, by their context.
func (h *teaHub) statuses(commit string) map[string]string {
	h.Helper()
	var all []struct{ Context, Status, Description string }
	h.s.Must(h.ada, http.MethodGet, h.r.Path("commits", commit, "statuses")+"?sort=highestindex&limit=50", nil, &all)
	out := map[string]string{}
	for _, s := range all {
		out[s.Context] = s.Status
	}
	return out
}

// isAPI reports whether a request is one of the program's to the REST API, not of the runner's.
func isAPI(path string) bool { return strings.HasPrefix(path, "/api/v1/") }

// asked are those that came since the last Reset.
func (h *teaHub) asked() (all []string) {
	for _, r := range h.s.Requests() {
		if isAPI(r.Path) {
			all = append(all, fmt.Sprintf("%s %s %d", r.Method, r.Path, r.Status))
		}
	}
	return all
}

// within prints how many there were, and fails the test if there were more or none.
func (h *teaHub) within(what string, most int) {
	h.Helper()
	all := h.asked()
	fmt.Printf("numbers: Gitea: %s: %d requests to the API (at most %d)\n", what, len(all), most)
	if len(all) == 0 || len(all) > most {
		h.Errorf("%s: %d requests, want at most %d:\n%s", what, len(all), most, strings.Join(all, "\n"))
	}
}

// proposes has a patch asked about on the pull request, and returns the line that approves it.
func (h *teaHub) proposes() (line string) {
	h.Helper()
	patch, bundle := filepath.Join(h.TempDir(), "fix.patch"), filepath.Join(h.TempDir(), "bundle.json")
	check(h, os.WriteFile(patch, []byte(greetFix), 0o600))
	if code, _, stderr := h.run("review", "--patch", patch, "--summary", "greet the world", "--bundle-out", bundle); code != 0 {
		h.Fatal(stderr)
	}
	asked := h.settle(console.ExitPending, "--no-gate", "--bundle", bundle)
	return "/approve " + asked.Transactions[0].Fingerprint
}

// TestGiteaNumbers: how much a settle asks the server (docs/benchmarks.md), whatever else is said on the pull request.
func TestGiteaNumbers(t *testing.T) {
	t.Parallel()
	h := newTeaHub(t, nil)
	for n := range 4 {
		branch := fmt.Sprint("talk-", n)
		h.r.Commit(h.bob, branch, "work", map[string]string{branch + ".txt": "work\n"})
		h.pr = h.r.PullRequest(h.bob, branch, "main", "Work")
		line := h.proposes()
		for i := range n {
			h.r.Comment(h.bob, h.pr, fmt.Sprint("comment ", i))
			h.r.Review(h.ada, h.pr, "COMMENT", fmt.Sprint("review ", i), "")
		}
		h.r.Comment(h.ada, h.pr, line)
		h.clone() // as a job begins
		h.s.Reset()
		h.settle(0, "--no-gate")
		h.within(fmt.Sprintf("settle of one approved transaction, with %d comments and %[1]d reviews besides", n), 23)
	}
}

// TestGiteaGuard: a pull request's own diff, approved by a green review of its head; a
// push after that takes the status back, and the branch's protection asks for it.
func TestGiteaGuard(t *testing.T) {
	t.Parallel()
	h := newTeaHub(t, map[string]string{".github/countersign.yml": "version: 1\ngate: {bases: [main]}\n"})
	h.r.Protect("main", map[string]any{"enable_status_check": true, "status_check_contexts": []string{"countersign"}})
	merge := func() int {
		head := h.r.Ref("refs/heads/topic")
		return h.s.Do(h.ada, http.MethodPost, h.r.Path("pulls", h.pr, "merge"), map[string]any{"Do": "merge", "head_commit_id": head}, nil)
	}
	h.settle(console.ExitPending)
	first := h.r.Ref("refs/heads/topic")
	if s := h.statuses(first); s["countersign"] != "pending" && s["countersign"] != "failure" {
		t.Errorf("before anybody approved: %+v", s)
	}
	if status := merge(); status != http.StatusMethodNotAllowed {
		t.Errorf("merged before anybody approved: %d", status)
	}
	h.r.Review(h.ada, h.pr, "APPROVED", "", first)
	h.clone()
	h.s.Reset()
	h.settle(0)
	h.within("settle of an approved pull request", 25)
	if s := h.statuses(first); s["countersign"] != "success" {
		t.Errorf("approved: %+v", s)
	}
	h.r.Arrives(h.pr, h.r.Commit(h.bob, "topic", "more", map[string]string{"feature.txt": "another\n"}))
	h.settle(console.ExitPending)
	if s := h.statuses(h.r.Ref("refs/heads/topic")); s["countersign"] == "success" {
		t.Errorf("after a push: %+v", s)
	}
	if status := merge(); status != http.StatusMethodNotAllowed {
		t.Errorf("merged after a push: %d", status)
	}
}
