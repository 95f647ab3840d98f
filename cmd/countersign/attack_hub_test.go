package main

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/report"
)

// An attack is a hub with one proposal that waits for one approval, and what must
// not change without it.
type attack struct {
	*hub
	tx, fingerprint string
	tip             string // of the pull request's branch
}

// newAttack opens a proposal of greetFix, under a Policy where one is given.
func newAttack(t *testing.T, policy string) *attack {
	t.Helper()
	h := newHub(t)
	if policy != "" {
		h.policy(policy)
	}
	a := &attack{hub: h}
	a.proposes("hello, world")
	return a
}

// proposes opens the next proposal: another second line for greet.txt.
func (a *attack) proposes(line string) {
	a.Helper()
	a.git(a.dir, "fetch", "-q", "origin")
	a.git(a.dir, "checkout", "-q", "--detach", "origin/topic") // as a propose job has it
	defer a.git(a.dir, "checkout", "-q", "main")
	was := strings.Split(a.s.File(site, "topic", "greet.txt"), "\n")[1]
	a.tx, a.fingerprint = a.propose(strings.NewReplacer("-hello\n", "-"+was+"\n", "+hello, world\n", "+"+line+"\n").Replace(greetFix))
	a.tip = a.s.Ref(site, "refs/heads/topic")
}

// policy puts a Policy onto the default branch.
func (h *hub) policy(text string) {
	h.Helper()
	h.s.Push(githubtest.NewCommit{Repository: site, Branch: "main", By: "ada", Message: "Policy", Files: map[string]string{".github/countersign.yml": "version: 1\n" + text}})
	h.clone()
}

// later lets two seconds pass for the program and for GitHub, which tells whole
// ones.
func (h *hub) later() {
	h.ahead += 2 * time.Second
	ahead := h.ahead
	h.s.SetNow(func() time.Time { return time.Now().Add(ahead) })
}

// stop stops the program's clock and GitHub's.
func (h *hub) stop(at time.Time) {
	h.stopped = at
	h.s.SetNow(func() time.Time { return at })
}

// person is an account with a role in the repository.
func (h *hub) person(login, role string) {
	h.s.User(login)
	h.s.Role(site, login, role)
}

// answers replies in the thread of the request that was opened last.
func (h *hub) answers(by, body string) int64 {
	h.Helper()
	first := int64(0)
	for _, c := range h.s.ReviewComments(site, h.pr) {
		if c.ReplyTo == 0 && c.Author == "github-actions[bot]" {
			first = c.ID
		}
	}
	return h.answersTo(first, by, body)
}

// answersTo replies in a thread.
func (h *hub) answersTo(first int64, by, body string) int64 {
	return h.s.ReviewComment(githubtest.NewComment{Repository: site, Number: h.pr, By: by, Body: body, ReplyTo: first}).ID
}

// reviews reviews in a later second than all that was, as people do.
func (h *hub) reviews(by, state, body string) int64 {
	h.later()
	return h.s.Review(githubtest.NewComment{Repository: site, Number: h.pr, By: by, State: state, Body: body}).ID
}

// happens makes GitHub's own payload the event of the next runs.
func (h *hub) happens(e githubtest.Event) {
	h.Helper()
	e.Repository = cmp.Or(e.Repository, site)
	h.env["GITHUB_EVENT_NAME"], h.env["GITHUB_EVENT_PATH"] = e.Name, h.write("event.json", string(h.s.Event(e)))
}

// pushes commits one file to a branch.
func (h *hub) pushes(by, branch, file, text string) string {
	return h.s.Push(githubtest.NewCommit{Repository: site, Branch: branch, By: by, Message: "Change " + file, Files: map[string]string{file: text}})
}

// at runs do right before the nth request to the API from now on, counted from
// 1; the returned function tells how many there were.
func (h *hub) at(n int, do func()) (count func() int) {
	h.Helper()
	to, err := url.Parse(h.s.URL)
	check(h, err)
	var mu sync.Mutex
	seen := 0
	forward := httputil.NewSingleHostReverseProxy(to)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if seen++; seen == n {
			do()
		}
		mu.Unlock()
		forward.ServeHTTP(w, r)
	}))
	h.Cleanup(proxy.Close)
	h.env["GITHUB_API_URL"], h.env["GITHUB_GRAPHQL_URL"] = proxy.URL+"/api/v3", proxy.URL+"/api/graphql"
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}
}

// status is a transaction's in the ledger of the repository.
func (h *hub) status(tx string) string {
	h.Helper()
	code, stdout, stderr := h.run("show", tx, "--json")
	var doc struct {
		Status string `json:"status"`
	}
	if err := json.Unmarshal([]byte(stdout), &doc); code != 0 || err != nil {
		h.Fatalf("show: %d %v %s", code, err, stderr)
	}
	return doc.Status
}

// comment is the one comment that reports, "" where there is none.
func (h *hub) comment() string {
	h.Helper()
	found := ""
	for _, c := range h.s.Comments(site, h.pr) {
		if strings.HasSuffix(strings.TrimSpace(c.Body), report.CommentMarker) && c.Author == "github-actions[bot]" {
			if found != "" {
				h.Errorf("two comments report")
			}
			found = c.Body
		}
	}
	return found
}

// check is the newest check run of a name on a commit.
func (h *hub) check(name, head string) githubtest.CheckRun {
	var found githubtest.CheckRun
	for _, c := range h.s.CheckRuns(site, head) {
		if c.Name == name && c.ID > found.ID {
			found = c
		}
	}
	return found
}

// untouched fails the test if anything was let through.
func (a *attack) untouched() {
	a.Helper()
	if got := a.s.Ref(site, "refs/heads/topic"); got != a.tip {
		a.Errorf("the branch moved from %s to %s", a.tip, got)
	}
	for _, c := range a.s.CheckRuns(site, "") {
		if c.Conclusion == "success" {
			a.Errorf("the check %s passes", c.Name)
		}
	}
}

// waits fails the test unless a settle leaves the proposal waiting, and tells
// each of the reasons wherever people look.
func (a *attack) waits(reasons ...string) settled {
	a.Helper()
	out := a.settle(console.ExitPending, "--no-gate")
	a.untouched()
	if got := a.status(a.tx); got != "awaiting_approval" {
		a.Errorf("%s is %s", a.tx, got)
	}
	a.tells(out, reasons...)
	return out
}

// isDenied fails the test unless the proposal is denied for good.
func (a *attack) isDenied(args ...string) {
	a.Helper()
	a.settle(console.ExitDenied, append([]string{"--no-gate"}, args...)...)
	a.untouched()
	if got := a.status(a.tx); got != "denied" {
		a.Errorf("%s is %s", a.tx, got)
	}
	if !strings.Contains(a.comment(), "denied") {
		a.Errorf("the comment tells nothing of a denial:\n%s", a.comment())
	}
	a.audits()
}

// tells fails the test unless reasons are in --json, in the comment and in the
// transaction's check run.
func (a *attack) tells(out settled, reasons ...string) {
	a.Helper()
	check := a.check("countersign/"+strings.TrimPrefix(a.fingerprint, "patchset:")[:12], a.s.Ref(site, "refs/heads/topic")).Summary
	for _, reason := range reasons {
		if !out.says(reason) {
			a.Errorf("--json tells nothing of %q: %+v", reason, out.Transactions)
		}
		for name, text := range map[string]string{"comment": a.comment(), "check": check} {
			if !strings.Contains(text, reason) {
				a.Errorf("the %s tells nothing of %q:\n%s", name, reason, text)
			}
		}
	}
}

// says reports whether some decision does not count for a reason.
func (s settled) says(reason string) bool {
	for _, tx := range s.Transactions {
		for _, d := range tx.Verdict.Decisions {
			if !d.Counted && strings.Contains(d.Reason, reason) {
				return true
			}
		}
	}
	return false
}

// approves fails the test unless one honest approval is still enough: otherwise
// a test of what does not count would pass for the wrong reason.
func (a *attack) approves(by string) {
	a.Helper()
	a.says(by, "/approve "+a.fingerprint)
	a.settle(0, "--no-gate")
	if got := a.s.File(site, "topic", "greet.txt"); got != "one\nhello, world\nthree\n" {
		a.Errorf("greet.txt is %q", got)
	}
	if got := a.status(a.tx); got != "completed" {
		a.Errorf("%s is %s", a.tx, got)
	}
	a.audits()
}

// bundle is what a propose job hands over for a patch.
func (h *hub) bundle(diff string) string {
	h.Helper()
	file := filepath.Join(h.TempDir(), "bundle.json")
	h.does("review", "--patch", h.write("fix.patch", diff), "--summary", "greet the world", "--bundle-out", file)
	return file
}

// asked reports whether an address was asked since the requests were forgotten.
func (h *hub) asked(path string) bool {
	return slices.ContainsFunc(h.s.Requests(), func(r githubtest.Request) bool { return r.Path == path })
}

// closes ends the proposal, if it has not ended, so that the next stands alone.
func (a *attack) closes() {
	a.Helper()
	a.env["GITHUB_API_URL"], a.env["GITHUB_GRAPHQL_URL"] = a.s.API(), a.s.GraphQL()
	if got := a.status(a.tx); got == "completed" || got == "denied" {
		return
	}
	a.does("close", a.tx, "--reason", "the next one")
}

// read reads what settle --json printed.
func (h *hub) read(stdout string) (out settled) {
	h.Helper()
	if err := json.NewDecoder(strings.NewReader(stdout)).Decode(&out); err != nil && err != io.EOF {
		h.Fatal(err)
	}
	return out
}
