package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A fleet is several pull requests, each of a branch of its own with one
// proposal, which ada approved and nobody has settled since.
type fleet struct {
	*hub
	pulls []fleetPull
}

type fleetPull struct {
	number       int
	branch, file string
	head         string // before anything is applied
}

// job is what the pull request's job is called in a matrix.
func (p fleetPull) job() string { return fmt.Sprintf("pull request %d", p.number) }

func newFleet(h *hub, n int) *fleet {
	h.Helper()
	f := &fleet{hub: h}
	for i := range n {
		p := fleetPull{branch: fmt.Sprintf("fleet-%d", i), file: fmt.Sprintf("fleet-%d.txt", i)}
		p.head = h.s.Push(githubtest.NewCommit{Repository: site, Branch: p.branch, By: "bob", Message: "work", Files: map[string]string{"work.txt": p.branch + " and more\n"}})
		p.number = h.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "bob", Head: p.branch, Title: p.branch}).Number
		h.pr = p.number
		h.says("ada", "/approve "+f.propose(p))
		f.pulls = append(f.pulls, p)
	}
	return f
}

// propose records a proposal, and asks nobody.
func (f *fleet) propose(p fleetPull) (fingerprint string) {
	f.Helper()
	file := f.write("fix.patch", addition(p.file, "more\n"))
	code, stdout, stderr := f.run("review", "--json", "--patch", file, "--pr", fmt.Sprint(p.number))
	var said struct {
		Fingerprint string `json:"fingerprint"`
	}
	if err := json.Unmarshal([]byte(stdout), &said); code != 0 || err != nil || said.Fingerprint == "" {
		f.Fatalf("review: %d, %v\n%s", code, err, stderr)
	}
	return said.Fingerprint
}

// wantApplied wants on every branch one commit with the change and nothing else,
// and a sound ledger in which each was applied once.
func (f *fleet) wantApplied() {
	f.Helper()
	for _, p := range f.pulls {
		tip := f.s.Ref(site, "refs/heads/"+p.branch)
		if made := f.s.Git(site, "log", "--format=%H", p.head+".."+tip); strings.TrimSpace(made) != tip {
			f.Errorf("%s: %s has the commits %q since %s", p.job(), tip, made, p.head)
		}
		if got := f.s.File(site, p.branch, p.file); got != "more\n" {
			f.Errorf("%s: %s is %q", p.job(), p.file, got)
		}
	}
	f.clone()
	f.audits()
	var list struct {
		Transactions []struct {
			ID     string `json:"transaction_id"`
			Status string `json:"status"`
		} `json:"transactions"`
	}
	_, stdout, _ := f.run("list", "--json")
	check(f.T, json.Unmarshal([]byte(stdout), &list))
	completed := 0
	for _, tx := range list.Transactions {
		want := 0 // a pull request's own diff waits for approval
		if tx.Status == "completed" {
			completed++
			want = 1
		}
		_, log, _ := f.run("log", "--json", tx.ID)
		if n := strings.Count(log, `"type":"apply/complete"`); n != want {
			f.Errorf("%s is %s, and was applied %d times", tx.ID, tx.Status, n)
		}
	}
	if completed != len(f.pulls) {
		f.Errorf("%d of %d are completed: %+v", completed, len(f.pulls), list.Transactions)
	}
}

// process is a settle of a pull request in a process and a clone of its own.
func (f *fleet) process(number int) *exec.Cmd {
	f.clone()
	cmd := exec.Command(os.Args[0], "-C", f.dir, "settle", "--no-gate", "--pr", fmt.Sprint(number))
	cmd.Args[0] = "countersign"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range f.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// TestT52FleetAtOnce: the jobs of a matrix push to one ledger at the same moment.
// One more is at what another is at, which a concurrency group prevents: whatever
// becomes of it, nothing is done twice. COUNTERSIGN_WRITERS sets how many.
func TestT52FleetAtOnce(t *testing.T) {
	long(t, "COUNTERSIGN_WRITERS")
	t.Parallel()
	many := 3
	if n, err := strconv.Atoi(os.Getenv("COUNTERSIGN_WRITERS")); err == nil {
		many = n
	}
	f := newFleet(newHub(t), many)
	jobs := []*exec.Cmd{f.process(f.pulls[0].number)}
	for _, p := range f.pulls {
		jobs = append(jobs, f.process(p.number))
	}
	var wg sync.WaitGroup
	for i, job := range jobs {
		wg.Go(func() {
			if code, stdout, stderr := runCode(job); code != 0 && i > 0 {
				t.Errorf("job %d: exit code %d\n%s%s", i, code, stdout, stderr)
			}
		})
	}
	wg.Wait()
	f.wantApplied()
}

// TestStageMatrix: what the plan job of the fleet workflow hands on.
func TestStageMatrix(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.event("schedule", nil)
	_, out, printed := h.action("matrix")
	if out["act"] != "false" || out["matrix"] != `{"include":[]}` || out["left-out"] != "0" {
		t.Errorf("without a ledger: %v\n%s", out, printed)
	}
	h.event("workflow_dispatch", nil)
	f := newFleet(h, 3)
	h.event("schedule", nil)
	h.env["GITHUB_RUN_NUMBER"] = "7" // of the two parts the second
	_, out, printed = h.action("matrix", "max=2")
	want := fmt.Sprintf(`{"include":[{"name":"pull request %[1]d","pull_request":%[1]d}]}`, f.pulls[2].number)
	if out["act"] != "true" || out["matrix"] != want || out["left-out"] != "2" {
		t.Errorf("outputs %v, want %s\n%s", out, want, printed)
	}
	h.clone()
	h.s.ResetRequests()
	if h.run("list", "--matrix"); h.s.Count().Git > 5 { // one of them asks where the ledger is: what HEAD is at
		t.Errorf("%d requests for a ledger of 3: each transaction is asked for by itself", h.s.Count().Git)
	}
	for _, max := range []string{"0", "257", "x"} {
		if code, out, _ := h.action("matrix", "max="+max); code != console.ExitRefused || out["matrix"] != "" {
			t.Errorf("max %s: exit code %d, outputs %v", max, code, out)
		}
	}
}

// TestStageFleet: the app's token starts the workflow where there is one, and has
// no other right.
func TestStageFleet(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.s.Bot("starter[bot]")
	with := map[string]string{".github/workflows/countersign-fleet.yml": "on: workflow_dispatch\n"}
	h.s.Repository(githubtest.NewRepository{Name: "acme/first", Files: with})
	h.s.Repository(githubtest.NewRepository{Name: "acme/second", Private: true, Files: with})
	h.s.Repository(githubtest.NewRepository{Name: "acme/elsewhere", Files: with})
	installed := githubtest.AppToken{Bot: "starter[bot]", Repositories: []string{site, "acme/first", "acme/second"}, Permissions: map[string]string{"actions": "write"}}
	h.env["INPUT_TOKEN"] = h.s.AppToken(installed)
	h.event("schedule", nil)
	if code, _, stderr := h.run("fleet", "--dry-run"); code != 0 || len(h.s.Started("acme/first")) != 0 {
		t.Errorf("dry run: %d %s", code, stderr)
	}
	code, _, printed := h.action("fleet")
	for _, want := range []string{site + " +has no ", "acme/first +started", "acme/second +started"} {
		if !regexp.MustCompile(want).MatchString(printed) {
			t.Errorf("%q is not in\n%s", want, printed)
		}
	}
	if code != 0 || strings.Contains(printed, "elsewhere") || len(h.s.Started("acme/elsewhere")) != 0 {
		t.Errorf("exit code %d\n%s", code, printed)
	}
	h.s.Fail(githubtest.Fault{Path: "/api/v3/repos/acme/first/actions", Times: -1, Status: 403, Text: "no"})
	if code, _, printed := h.action("fleet"); code == 0 || len(h.s.Started("acme/first")) != 1 || len(h.s.Started("acme/second")) != 2 {
		t.Errorf("one refuses: exit code %d\n%s", code, printed)
	}
	h.s.Heal()
	h.env["INPUT_TOKEN"] = h.token // may start nothing
	if code, _, printed := h.action("fleet"); code == 0 && strings.Contains(printed, "started") {
		t.Errorf("another token: %s", printed)
	}
	delete(h.env, "INPUT_TOKEN")
	if code, _, stderr := h.run("fleet"); code != console.ExitRefused || !strings.Contains(stderr, "there is no token") {
		t.Errorf("without a token: %d %s", code, stderr)
	}
}

// openOn are open transactions for pull requests, 0 for none.
func openOn(pulls ...int) []ledger.Transaction {
	var out []ledger.Transaction
	for i, number := range pulls {
		tx := ledger.Transaction{TransactionID: fmt.Sprintf("tx_%02d", i)}
		tx.Pointers.Proposal = &ledger.Proposal{PullRequest: number}
		out = append(out, tx)
	}
	return append(out, ledger.Transaction{TransactionID: "tx_bare"})
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pulls []int
		only  bool
		want  string
	}{
		{nil, false, "tx_bare"},
		{nil, true, ""},
		{[]int{7, 0, 7, 3}, false, "pull request 7,tx_01,pull request 3,tx_bare"},
		{[]int{7, 0, 7, 3}, true, "pull request 7,pull request 3"},
	} {
		var names []string
		for _, job := range console.Jobs(openOn(c.pulls...), c.only) {
			names = append(names, job.Name)
			if (job.PullRequest > 0) == (job.Transaction != "") {
				t.Errorf("%+v is not one of the two", job)
			}
		}
		if got := strings.Join(names, ","); got != c.want {
			t.Errorf("%v: %s, want %s", c.pulls, got, c.want)
		}
	}
}

// TestMatrixParts: as many runs as there are parts take every job once.
func TestMatrixParts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ jobs, limit, parts int }{{0, 256, 1}, {1, 256, 1}, {256, 256, 1}, {257, 256, 2}, {600, 256, 3}, {5, 1, 5}} {
		all := make([]console.Job, c.jobs)
		for i := range all {
			all[i].PullRequest = i + 1
		}
		var taken []console.Job
		for run := range c.parts {
			m := console.Part(all, c.limit, 12*c.parts+run)
			if len(m.Include) > c.limit || len(m.Include)+m.LeftOut != c.jobs {
				t.Errorf("%d jobs: %d, and %d left out", c.jobs, len(m.Include), m.LeftOut)
			}
			taken = append(taken, m.Include...)
		}
		if !slices.Equal(taken, all) {
			t.Errorf("%d jobs in parts of %d: %d were taken", c.jobs, c.limit, len(taken))
		}
	}
}
