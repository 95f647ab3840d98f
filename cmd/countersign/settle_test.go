package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

const site = "acme/site"

// greetFix is the change that most of these tests propose.
const greetFix = `diff --git a/greet.txt b/greet.txt
--- a/greet.txt
+++ b/greet.txt
@@ -1,3 +1,3 @@
 one
-hello
+hello, world
 three
`

// hub is a GitHub with the repository acme/site, pull request 1 of bob's branch
// "topic", and a clone in which a workflow's job runs.
type hub struct {
	*testing.T
	s       *githubtest.Server
	id      int64 // of the repository
	dir     string
	env     map[string]string
	token   string
	pr      int
	ahead   time.Duration // of the program's clock
	stopped time.Time     // what it says once it was stopped
	paused  func(time.Duration)
}

// newHub: ada and bob may write, eve may read.
func newHub(t *testing.T) *hub { return openHub(t, false) }

// openHub is newHub, of a repository that may be private.
func openHub(t *testing.T, private bool) *hub {
	if testing.Short() && t.Name() != "TestSettleCycle" {
		t.Skip("many runs of the whole program against a whole GitHub")
	}
	s := githubtest.New(t)
	s.Organization("acme")
	for _, login := range []string{"ada", "bob", "eve"} {
		s.User(login)
	}
	repository := s.Repository(githubtest.NewRepository{Name: site, Private: private, Files: map[string]string{
		"greet.txt": "one\nhello\nthree\n", "other.txt": "other\n", "README.md": "# Site\n",
	}})
	s.Role(site, "ada", "write")
	s.Role(site, "bob", "write")
	s.Role(site, "eve", "read")
	s.Push(githubtest.NewCommit{Repository: site, Branch: "topic", By: "bob", Files: map[string]string{"feature.txt": "feature\n"}, Message: "feature"})
	h := &hub{T: t, s: s, id: repository}
	h.pr = s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "bob", Head: "topic", Base: "main", Title: "Feature"}).Number
	h.token = s.ActionsToken(site, "contents:write", "pull_requests:write", "issues:write", "checks:write", "actions:read")
	h.clone()
	return h
}

// clone is a fresh clone of the default branch, as a job has it.
func (h *hub) clone() {
	h.Helper()
	h.dir = filepath.Join(h.TempDir(), "clone")
	header := "http.extraHeader=Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+h.token))
	h.git("", "-c", header, "clone", "-q", h.s.URL+"/"+site+".git", h.dir) // which keeps no token in it
	h.env = map[string]string{
		"HOME": h.TempDir(), "CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": site, "GIT_CONFIG_NOSYSTEM": "1",
		"GITHUB_API_URL": h.s.API(), "GITHUB_GRAPHQL_URL": h.s.GraphQL(), "GITHUB_SERVER_URL": h.s.URL,
		"INPUT_TOKEN": h.token, "COUNTERSIGN_ACTIONS_TOKEN": "true", "GITHUB_REF": "refs/heads/main",
	}
	h.event("workflow_dispatch", nil)
}

func (h *hub) git(dir string, args ...string) string {
	h.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		h.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// event is what the next run finds in its event file, beside the repository.
func (h *hub) event(name string, more map[string]any) {
	h.Helper()
	doc := map[string]any{"repository": map[string]any{"id": h.id, "full_name": site, "default_branch": "main"}}
	for key, value := range more {
		doc[key] = value
	}
	raw, err := json.Marshal(doc)
	check(h, err)
	h.env["GITHUB_EVENT_NAME"], h.env["GITHUB_EVENT_PATH"] = name, h.write("event.json", string(raw))
}

// write makes a file outside the clone.
func (h *hub) write(name, text string) string {
	h.Helper()
	path := filepath.Join(h.TempDir(), name)
	check(h, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// now is the program's clock.
func (h *hub) now() time.Time {
	if h.stopped.IsZero() {
		return time.Now().Add(h.ahead)
	}
	return h.stopped
}

// run runs a command line in the clone.
func (h *hub) run(args ...string) (code int, stdout, stderr string) {
	h.Helper()
	var out, errs bytes.Buffer
	app := console.Process{
		Args: append([]string{"-C", h.dir}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Getenv: func(name string) string { return h.env[name] }, Now: h.now, Entropy: rand.Reader,
		Wait: func(_ context.Context, d time.Duration) error {
			if h.paused != nil {
				h.paused(d)
			}
			return nil
		},
	}
	code = Main(app)
	if testing.Verbose() {
		h.Logf("countersign %s: %d\n%s%s", strings.Join(args, " "), code, out.String(), errs.String())
	}
	return code, out.String(), errs.String()
}

// does runs a command line that succeeds.
func (h *hub) does(args ...string) {
	h.Helper()
	if code, stdout, stderr := h.run(args...); code != 0 {
		h.Fatalf("%q: exit code %d\n%s%s", args, code, stdout, stderr)
	}
}

// settled is what settle prints with --json.
type settled struct {
	PullRequest  int `json:"pull_request"`
	Transactions []struct {
		ID            string `json:"transaction_id"`
		PatchID       string `json:"patch_id"`
		Fingerprint   string `json:"fingerprint"`
		Status        string `json:"status"`
		AppliedCommit string `json:"applied_commit"`
		GateOnly      bool   `json:"gate_only"`
		Verdict       struct {
			State     string `json:"verdict"`
			Decisions []struct {
				Counted bool   `json:"counted"`
				Reason  string `json:"reason"`
			} `json:"decisions"`
		} `json:"verdict"`
	} `json:"transactions"`
	NeedsChecks []string `json:"needs_checks"`
	Notes       []string `json:"notes"`
}

// settle settles the pull request and wants an exit code.
func (h *hub) settle(want int, args ...string) settled {
	h.Helper()
	code, stdout, stderr := h.run(append([]string{"settle", "--json", "--pr", fmt.Sprint(h.pr)}, args...)...)
	if code != want {
		h.Fatalf("exit code %d, want %d\n%s%s", code, want, stdout, stderr)
	}
	var out settled
	if err := json.NewDecoder(strings.NewReader(stdout)).Decode(&out); err != nil && err != io.EOF {
		h.Fatal(err)
	}
	return out
}

// propose hands over a patch as a propose job does, and settles that.
func (h *hub) propose(diff string) (tx, fingerprint string) {
	h.Helper()
	bundle := filepath.Join(h.TempDir(), "bundle.json")
	h.does("review", "--patch", h.write("fix.patch", diff), "--summary", "greet the world", "--bundle-out", bundle)
	s := h.settle(console.ExitPending, "--no-gate", "--bundle", bundle)
	if len(s.Transactions) == 0 {
		h.Fatal("nothing was proposed")
	}
	last := s.Transactions[len(s.Transactions)-1]
	return last.ID, last.Fingerprint
}

func (h *hub) says(by, body string) int64 {
	return h.s.Comment(githubtest.NewComment{Repository: site, Number: h.pr, By: by, Body: body}).ID
}

func TestSettleCycle(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	_, fingerprint := h.propose(greetFix)
	comments, threads := h.s.Comments(site, h.pr), h.s.ReviewComments(site, h.pr)
	if len(comments) != 1 || len(threads) != 1 || !strings.Contains(comments[0].Body, "/approve "+fingerprint) || !strings.Contains(threads[0].Body, "/approve "+fingerprint) {
		t.Fatalf("asked with %+v and %+v", comments, threads)
	}
	h.says("ada", "/approve "+fingerprint)
	h.clone() // every run starts afresh
	h.s.ResetRequests()
	done := h.settle(0, "--no-gate")
	t.Logf("one approved transaction: %+v", h.s.Count())
	for _, r := range h.s.Requests() {
		t.Logf("%s %s %s", r.Kind, r.Method, r.Path)
	}
	tx := done.Transactions[0]
	if tx.Status != "completed" || h.s.Ref(site, "refs/heads/topic") != tx.AppliedCommit || h.s.File(site, "topic", "greet.txt") != "one\nhello, world\nthree\n" {
		t.Errorf("%+v", tx)
	}
	h.clone()
	before := h.s.Ref(site, "refs/agent/ledger")
	if again := h.settle(0, "--no-gate"); len(again.Transactions) != 0 || h.s.Ref(site, "refs/agent/ledger") != before {
		t.Errorf("again: %+v", again)
	}
	h.audits()
}

// audits fails the test unless the whole ledger verifies.
func (h *hub) audits() {
	h.Helper()
	for _, command := range []string{"sync", "audit"} {
		h.does(command)
	}
}

// TestSettleAmongMany: what a settle asks of the server does not grow with the
// ledger.
func TestSettleAmongMany(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	repo, err := gitstore.Open(h.dir)
	check(t, err)
	l, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	check(t, err)
	entries, err := storetest.Lives(storetest.Mixed(100)...)
	check(t, err)
	_, err = l.Append(t.Context(), "", entries...)
	check(t, err)
	h.git(h.dir, "push", "-q", strings.Replace(h.s.URL, "://", "://x:"+h.token+"@", 1)+"/"+site+".git", "refs/agent/ledger:refs/agent/ledger")
	h.clone()
	_, fingerprint := h.propose(greetFix)
	h.says("ada", "/approve "+fingerprint)
	h.clone()
	h.s.ResetRequests()
	h.settle(0, "--no-gate")
	if n := h.s.Count(); n.Git > 40 {
		t.Errorf("%+v", n)
	}
}

// TestT10AppliedCommitIsOfAnAccount: what was applied is of the account that
// proposed it, so that nobody is warned of our own commits; and no word of a bot
// reaches the forge's CI as a command.
func TestT10AppliedCommitIsOfAnAccount(t *testing.T) {
	long(t)
	t.Parallel()
	for _, own := range []bool{false, true} { // the workflow's token, and one of an app of its own
		h := newHub(t)
		if own {
			h.s.Bot("countersign-app[bot]")
			h.token = h.s.AppToken(githubtest.AppToken{Bot: "countersign-app[bot]", Repositories: []string{site}, Permissions: map[string]string{
				"contents": "write", "pull_requests": "write", "issues": "write", "checks": "write", "actions": "read",
			}})
			h.env["INPUT_TOKEN"] = h.token
		}
		bundle := h.write("bundle.json", strings.Replace(bundleOf(greetFix, ""), `"greet"`, `"greet [skip ci] ***NO_CI*** [Actions Skip] skip-checks: true"`, 1))
		fingerprint := h.settle(console.ExitPending, "--no-gate", "--bundle", bundle).Transactions[0].Fingerprint
		h.says("ada", "/approve "+fingerprint)
		h.settle(0, "--no-gate")
		said := h.s.Git(site, "log", "-1", "--format=%an <%ae>%n%cn <%ce>%n%B", "topic")
		login, id := "github-actions[bot]", "41898282"
		if own {
			login, id = "countersign-app[bot]", ""
		}
		address := id + "+" + login + "@users.noreply.127.0.0.1>"
		if !strings.HasPrefix(said, login+" <") || strings.Count(said, address) != 2 || !strings.Contains(said, "\ncountersign <") {
			t.Errorf("the commit is of %s", said)
		}
		for _, word := range []string{"[skip ci]", "***NO_CI***", "[Actions Skip]", "skip-checks"} {
			if strings.Contains(said, word) {
				t.Errorf("the commit says %q:\n%s", word, said)
			}
		}
		h.on(githubtest.Event{Name: "pull_request_target", Action: "synchronize", Number: h.pr})
		guarded := h.settle(console.ExitPending)
		if len(guarded.Transactions) == 0 || len(guarded.Notes) > 0 {
			t.Errorf("the pull request's own diff: %+v", guarded)
		}
	}
}

// TestSettleSixWaiting: six proposals that wait, and nothing new, cost few requests.
func TestSettleSixWaiting(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	for n := range 6 {
		h.propose(fmt.Sprintf("diff --git a/new%d.txt b/new%d.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new%d.txt\n@@ -0,0 +1 @@\n+new\n", n, n, n))
	}
	h.settle(console.ExitPending, "--no-gate") // the comment may still be of the last
	h.clone()
	h.s.ResetRequests()
	out := h.settle(console.ExitPending, "--no-gate")
	rest := 0
	for _, r := range h.s.Requests() {
		if r.Kind != "rest" {
			continue
		}
		if rest++; r.Method != "GET" {
			t.Errorf("it writes: %s %s", r.Method, r.Path)
		}
	}
	if t.Logf("%d REST requests, %+v", rest, h.s.Count()); len(out.Transactions) != 6 || rest > 14 {
		t.Errorf("%d transactions, %d REST requests", len(out.Transactions), rest)
	}
}
