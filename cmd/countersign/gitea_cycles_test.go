package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/forgetest"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// teaBot is a job beside those of init's workflow without secrets: a bot that ends note.txt
// with a line, on the branches that are its own.
const teaBot = `  bot:
    if: github.event_name == 'pull_request' && github.event.action != 'closed' && startsWith(github.head_ref, 'bot-')
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout
        with: {ref: "${{ github.event.pull_request.head.sha }}", fetch-depth: 0, persist-credentials: false}
      - run: grep -qx checked note.txt || echo checked >> note.txt
      - id: propose
        env: {INPUT_STAGE: propose, INPUT_SUMMARY: The note was checked}
        run: mkdir -p "$RUNNER_TEMP/countersign" && countersign action
      - if: steps.propose.outputs.bundle != ''
        uses: actions/upload-artifact
        with: {name: countersign-bundle, path: "${{ steps.propose.outputs.bundle }}"}
`

// teaEmpty is what the runner's own time is measured with.
const teaEmpty = `on: workflow_dispatch
jobs:
  empty:
    runs-on: ubuntu-latest
    steps:
      - run: "true"
`

// settleFile is init's workflow with the secret.
const settleFile = ".gitea/workflows/countersign.yml"

// A teaRunner is a teaHub with what init writes and a bot's job on its default branch, which
// asks for the status countersign, and a runner of four jobs at once.
type teaRunner struct {
	*teaHub
	runner *forgetest.Runner
	fork   *forgetest.Repository // bob's
	lost   map[int64]bool        // runs whose runner or server was killed: for the former the server waits ten minutes
}

func newTeaRunner(t *testing.T) *teaRunner {
	h := newTeaHub(t, nil)
	if !h.s.ListsRuns() {
		t.Skip("\n\n*** NOT TESTED: whole cycles on this server, which does not tell of runs ***\n")
	}
	if code, stdout, stderr := h.run("init"); code != 0 {
		t.Fatal(stdout, stderr)
	}
	files := map[string]string{".gitea/workflows/empty.yml": teaEmpty}
	for _, name := range []string{".github/countersign.yml", settleFile, ".gitea/workflows/countersign-events.yml"} {
		raw, err := os.ReadFile(filepath.Join(h.dir, name))
		check(t, err)
		files[name] = string(raw)
	}
	bot := teaBot
	for name, uses := range h.s.Actions() {
		bot = strings.ReplaceAll(bot, "uses: "+name+"\n", "uses: "+uses+"\n")
	}
	files[".gitea/workflows/countersign-events.yml"] += bot
	h.r.Commit(h.ada, "main", "countersign", files)
	h.s.Must(h.ada, http.MethodPut, h.r.Path("actions", "secrets", "COUNTERSIGN_TOKEN"), map[string]string{"data": h.robot.Token}, nil)
	h.r.Protect("main", map[string]any{"enable_status_check": true, "status_check_contexts": []string{"countersign"}})
	h.s.Team("acme", "admins", "admin", h.robot) // whom alone the server tells of runs, and so of bundles
	tools := filepath.Join(h.s.Dir, "tools")     // that the runner, who is another user, may read
	if out, err := exec.Command("go", "build", "-o", filepath.Join(tools, "countersign"), ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return &teaRunner{h, h.s.Runner(forgetest.RunnerOptions{Jobs: 4, Path: tools + ":" + os.Getenv("PATH")}), h.r.Fork(h.bob), map[int64]bool{}}
}

// in is the same for a subtest.
func (h *teaRunner) in(t *testing.T) *teaRunner {
	hub, repository, fork := *h.teaHub, *h.r, *h.fork
	hub.T, hub.s = t, h.s.For(t)
	repository.Server, fork.Server, hub.r = hub.s, hub.s, &repository
	return &teaRunner{&hub, h.runner, &fork, h.lost}
}

// A teaPull is a pull request of bob's.
type teaPull struct {
	h      *teaRunner
	of     *forgetest.Repository // whose branch it is
	branch string
	number int64
}

// opens opens a pull request from a branch of that name, here or of the fork.
func (h *teaRunner) opens(of *forgetest.Repository, branch string) teaPull {
	h.Helper()
	of.Commit(h.bob, branch, "Work on "+branch, map[string]string{branch + ".txt": branch + "\n", "note.txt": branch + "\n"})
	head := branch
	if of == h.fork {
		head = h.bob.Name + ":" + branch
	}
	return teaPull{h, of, branch, h.r.PullRequest(h.bob, head, "main", "Work on "+branch)}
}

func (p teaPull) tip() string { p.h.Helper(); return p.of.Ref("refs/heads/" + p.branch) }

// merges is the answer to who presses the server's own button.
func (p teaPull) merges() int {
	p.h.Helper()
	return p.h.s.Do(p.h.ada, http.MethodPost, p.h.r.Path("pulls", p.number, "merge"), map[string]any{"Do": "merge", "head_commit_id": p.tip()}, nil)
}

// review is ada's green review of the head as it is.
func (p teaPull) review() { p.h.Helper(); p.h.r.Review(p.h.ada, p.number, "APPROVED", "", p.tip()) }

// until waits till something is so. The runs are told if it never is, with the logs of those that settled or failed.
func (h *teaRunner) until(what string, is func() bool) {
	h.Helper()
	for deadline := time.Now().Add(6 * time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			for _, run := range h.r.Runs() {
				h.Logf("%+v", run)
				if run.Conclusion != "skipped" && (run.Conclusion != "success" || strings.HasPrefix(run.Path, filepath.Base(settleFile)+"@")) {
					h.Log(h.r.RunLog(run.ID))
				}
			}
			h.Fatalf("never: %s", what)
		}
	}
}

// awaits waits till a status of the head is so.
func (p teaPull) awaits(context, want string) {
	p.h.Helper()
	var all map[string]string
	p.h.until(fmt.Sprintf("%s is %s on pull request %d", context, want, p.number), func() bool {
		all = p.h.statuses(p.tip())
		return all[context] == want
	})
}

var approveWith = regexp.MustCompile("/approve ([a-z]+:[0-9a-f]{64})")

// asked waits till ada is asked about a patch on the head as it is, of a bot or else the pull
// request's own, and returns the line that approves it. What is said earlier does not count.
func (p teaPull) asked(ofBot bool) (line string) {
	p.h.Helper()
	p.h.until(fmt.Sprintf("pull request %d asks", p.number), func() bool {
		var comments []struct {
			Body string
			User struct{ Login string }
		}
		p.h.s.Must(p.h.ada, http.MethodGet, p.h.r.Path("issues", p.number, "comments"), nil, &comments)
		for _, c := range comments {
			if c.User.Login != p.h.robot.Name {
				continue
			}
			for _, found := range approveWith.FindAllStringSubmatch(c.Body, -1) {
				for _, tx := range p.transactions() {
					if tx.PatchID() == ledger.FingerprintPatch(found[1]) && tx.GateOnly() != ofBot && tx.Pointers.Proposal.HeadCommit == p.tip() {
						line = found[0]
					}
				}
			}
		}
		return line != ""
	})
	return line
}

// transactions are those about the pull request in the ledger on the server.
func (p teaPull) transactions() (all []ledger.Transaction) {
	p.h.Helper()
	for _, tx := range p.h.recorded() {
		if proposal := tx.Pointers.Proposal; proposal != nil && int64(proposal.PullRequest) == p.number {
			all = append(all, tx)
		}
	}
	return all
}

// recorded are the transactions in the ledger on the server.
func (h *teaRunner) recorded() (all []ledger.Transaction) {
	h.Helper()
	tip := h.r.Ref("refs/agent/ledger")
	if tip == "" {
		return nil
	}
	for name := range strings.Lines(h.r.Git("ls-tree", "-r", "--name-only", tip)) {
		if name = strings.TrimSpace(name); strings.HasSuffix(name, "/transaction.json") {
			var tx ledger.Transaction
			check(h, json.Unmarshal([]byte(h.r.Git("show", tip+":"+name)), &tx))
			all = append(all, tx)
		}
	}
	return all
}

// wantOnce wants the patch of a bot, if there was one, applied once, by one commit, and the
// pull request's own diff approved once, as it is now.
func (p teaPull) wantOnce(ofBot bool) {
	p.h.Helper()
	want := map[string]int{"own proposed": 1}
	commits := 1
	if ofBot { // its commit made the first diff another one
		want["own superseded"], want["bot completed"], commits = 1, 1, 2
	}
	got, patches := map[string]int{}, map[string]bool{}
	for _, tx := range p.transactions() {
		patches[tx.PatchID()] = true
		if tx.GateOnly() {
			got["own "+string(tx.Status)]++
		} else {
			got["bot "+string(tx.Status)]++
		}
	}
	if !maps.Equal(got, want) || len(patches) != 2*commits-1 {
		p.h.Errorf("pull request %d has %v for %d patches, want %v", p.number, got, len(patches), want)
	}
	if got := p.of.Git("rev-list", "--count", "--first-parent", "main.."+p.branch); got != fmt.Sprint(commits) {
		p.h.Errorf("pull request %d has %s commits, want %d", p.number, got, commits)
	}
}

// wantSound wants a ledger that a fresh clone finds sound, and an intact repository.
func (h *teaRunner) wantSound() {
	h.Helper()
	h.clone()
	for _, command := range []string{"sync", "audit"} {
		if code, stdout, stderr := h.teaHub.run(command); code != 0 {
			h.Errorf("%s: %d %s%s", command, code, stdout, stderr)
		}
	}
	h.r.Git("fsck", "--strict", "--no-dangling")
}

// dispatch starts a workflow by hand.
func (h *teaRunner) dispatch(file string) {
	h.Helper()
	h.s.Must(h.ada, http.MethodPost, h.r.Path("actions", "workflows", filepath.Base(file), "dispatches"), map[string]any{"ref": "refs/heads/main"}, nil)
}

// idle waits till nothing runs and nothing follows, and returns the runs that are newer. A run that goes on waiting
// while nothing else happens was in hand of a server that was killed, and waits for ever.
func (h *teaRunner) idle(newer int64) (runs []forgetest.Run) {
	h.Helper()
	quiet, before := 0, ""
	h.until("all runs have ended", func() bool {
		runs = h.r.Runs()
		if quiet++; fmt.Sprint(runs) != before {
			quiet, before = 0, fmt.Sprint(runs)
		}
		for _, run := range runs {
			switch {
			case run.Status == "completed" || h.lost[run.ID]:
			case run.Status == "in_progress" || quiet < 400:
				return false
			default:
				h.lost[run.ID] = true
			}
		}
		return quiet > 50 // a run that ends starts the next one a moment later, seconds on a busy machine
	})
	return slices.DeleteFunc(runs, func(run forgetest.Run) bool { return run.ID <= newer })
}

// newest is the number of the newest run, once nothing runs.
func (h *teaRunner) newest() (id int64) {
	h.Helper()
	for _, run := range h.idle(0) {
		id = max(id, run.ID)
	}
	return id
}

// ran leaves those runs that did something.
func ran(runs []forgetest.Run) []forgetest.Run {
	return slices.DeleteFunc(runs, func(run forgetest.Run) bool { return run.Conclusion == "skipped" })
}

// TestGiteaCycles: whole cycles on one server with its runner, on the real events.
func TestGiteaCycles(t *testing.T) {
	t.Parallel()
	whole := newTeaRunner(t)
	for _, c := range []struct {
		name string
		run  func(*teaRunner)
	}{
		{"one", teaOne}, {"server fails", teaFails}, // before what kills the server: a run that it had in hand then holds up later ones
		{"server restarted", teaRestarted}, {"runner killed", teaKilled},
		{"eight at once", teaEight}, // last, as a sweep settles all that is open
	} {
		done := t.Run(c.name, func(t *testing.T) {
			from := time.Now()
			c.run(whole.in(t))
			t.Logf("%.1f s", time.Since(from).Seconds())
		})
		if !done {
			return
		}
	}
	whole.wantSound()
}

// teaOne: a bot's bundle, approved by a person's comment, is a commit on the pull request's
// branch; a green review of that head turns the status, and then the server's button merges.
func teaOne(h *teaRunner) {
	var empty time.Duration
	for i := range 2 { // the first one warms up
		from := time.Now()
		h.dispatch("empty.yml")
		h.until("the empty workflow has run", func() bool { return len(h.r.Runs()) > i && h.r.Runs()[i].Status == "completed" })
		empty = time.Since(from)
	}
	last := h.r.Runs()[1].ID
	h.s.Reset()
	from := time.Now()
	p := h.opens(h.r, "bot-one")
	head := p.tip()
	line := p.asked(true)
	p.awaits("countersign", "pending")
	if status := p.merges(); status != http.StatusMethodNotAllowed {
		h.Errorf("merged before anybody approved: %d", status)
	}
	asked := time.Since(from)
	h.idle(last)
	ofSettle := len(h.asked())
	h.wantUnsettled(p, line)
	from = time.Now()
	h.r.Comment(h.ada, p.number, line)
	h.until("the commit is on the branch", func() bool { return p.tip() != head })
	applied := time.Since(from)
	p.asked(false)
	p.awaits("countersign", "pending")
	if got := h.r.Git("log", "-2", "--format=%H", p.branch); got != p.tip()+"\n"+head {
		h.Errorf("the branch has %s, want one commit on %s", got, head)
	}
	if got := h.r.Git("show", p.branch+":note.txt"); got != "bot-one\nchecked" {
		h.Errorf("note.txt is %q", got)
	}
	if status := p.merges(); status != http.StatusMethodNotAllowed {
		h.Errorf("merged before anybody reviewed the new head: %d", status)
	}
	from = time.Now()
	p.review()
	p.awaits("countersign", "success")
	reviewed := time.Since(from)
	h.r.Succeeded(h, ran(h.idle(last)))
	const ownRuns = 4 // two that tell of the pull request and of the comment, and two that settle
	h.Logf("an empty workflow takes %.1f s; a cycle %.1f s (asked %.1f, committed %.1f), so %.1f s beside the runner's own for %d runs; a review turns the status in %.1f s. Requests: %d of a settle that asks about two transactions",
		empty.Seconds(), (asked + applied).Seconds(), asked.Seconds(), applied.Seconds(), (asked + applied - ownRuns*empty).Seconds(), ownRuns, reviewed.Seconds(), ofSettle)
	if status := p.merges(); status != http.StatusOK {
		h.Errorf("approved, and not merged: %d", status)
	}
}

// wantUnsettled has somebody who may only read say something: the run that has the secret looks who that is, and
// clones nothing.
func (h *teaRunner) wantUnsettled(p teaPull, line string) {
	h.Helper()
	before := h.newest()
	h.s.Reset()
	h.r.Comment(h.s.User("walter"), p.number, line)
	var titles []string
	for _, run := range ran(h.idle(before)) {
		titles = append(titles, run.Title+" "+run.Conclusion)
	}
	events := fmt.Sprintf("countersign-events %d", p.number)
	if want := []string{events + " success", "countersign after " + events + " success"}; !slices.Equal(slices.Compact(titles), want) { // a slow runner's server tells of the end of one run twice
		h.Errorf("runs %q, want %q", titles, want)
	}
	for _, r := range h.s.Requests() {
		if strings.HasSuffix(r.Path, "/git-upload-pack") || r.Method != http.MethodGet && strings.Contains(r.Path, "/statuses/") {
			h.Errorf("%s %s", r.Method, r.Path)
		}
	}
}

// teaEight: eight pull requests are opened, asked about, approved and settled at once.
func teaEight(h *teaRunner) {
	last := h.newest()
	var all []teaPull
	for i := range 8 {
		switch {
		case i < 4:
			all = append(all, h.opens(h.fork, fmt.Sprint("fork-", i)))
		case i < 6:
			all = append(all, h.opens(h.r, fmt.Sprint("bot-", i)))
		default:
			all = append(all, h.opens(h.r, fmt.Sprint("work-", i)))
		}
	}
	isBot := func(p teaPull) bool { return strings.HasPrefix(p.branch, "bot-") }
	var lines []string
	var heads []string
	for _, p := range all {
		lines, heads = append(lines, p.asked(isBot(p))), append(heads, p.tip())
	}
	for i, p := range all { // all answers, and then all that comes of them
		if i%2 == 0 || isBot(p) {
			h.r.Comment(h.ada, p.number, lines[i])
		} else {
			p.review()
		}
	}
	for i, p := range all {
		if isBot(p) {
			h.until("the commit is on "+p.branch, func() bool { return p.tip() != heads[i] })
			p.asked(false)
			p.review()
		}
	}
	for _, p := range all {
		p.awaits("countersign", "success")
	}
	h.r.Succeeded(h, ran(h.idle(last)))
	for _, p := range all {
		p.wantOnce(isBot(p))
	}
	h.wantSound()
}

// teaRestarted: the server ends, and is there again, before the approval and after it. What it had in hand when
// it was killed may be lost, so that it is for the schedule to end it.
func teaRestarted(h *teaRunner) {
	p := h.opens(h.fork, "restarted")
	line := p.asked(false)
	h.s.Stop()
	h.s.Restart()
	h.r.Comment(h.ada, p.number, line)
	h.s.Kill()
	h.s.Restart()
	h.dispatch(settleFile) // as the schedule does
	p.awaits("countersign", "success")
	p.wantOnce(false)
}

// teaFails: what approvals are read with answers 500. Nothing is approved and nothing is
// lost; the next run ends it.
func teaFails(h *teaRunner) {
	before := h.newest()
	h.s.Reset()
	p := h.opens(h.fork, "fails")
	line := p.asked(false)
	settled := 0 // a slow runner is told of one pull request by two events, one after the other
	for _, run := range h.idle(before) {
		if run.Conclusion != "skipped" && strings.HasPrefix(run.Path, filepath.Base(settleFile)+"@") {
			settled++
		}
	}
	h.within(fmt.Sprintf("%d times settle that asks about a pull request, by its event", settled), settled*25)
	last, tip := h.newest(), h.r.Ref("refs/agent/ledger") // now that no run writes any more
	h.s.SetFault(func(_ int, r *http.Request) teststand.Fault {
		if isAPI(r.URL.Path) && strings.HasSuffix(r.URL.Path, "/comments") {
			return teststand.Fault{Kind: teststand.StatusBefore, Status: http.StatusInternalServerError}
		}
		return teststand.Fault{}
	})
	h.r.Comment(h.ada, p.number, line)
	h.until("a settle has failed", func() bool {
		return slices.ContainsFunc(h.r.Runs(), func(run forgetest.Run) bool { return run.ID > last && run.Conclusion == "failure" })
	})
	h.idle(last)
	h.s.SetFault(nil)
	if after := h.r.Ref("refs/agent/ledger"); after != tip {
		h.Errorf("the ledger went from %s to %s", tip, after)
	}
	if s := h.statuses(p.tip()); s["countersign"] == "success" {
		h.Errorf("approved: %+v", s)
	}
	if status := p.merges(); status != http.StatusMethodNotAllowed {
		h.Errorf("merged: %d", status)
	}
	h.dispatch(settleFile) // as the schedule does
	p.awaits("countersign", "success")
	p.wantOnce(false)
}

// teaKilled: the machine that settles goes down in the middle: before the ledger is told of
// the decision, and once the branch has the commit, of which it never learns. The next event
// or the schedule ends it, and nothing is done twice.
func teaKilled(h *teaRunner) {
	for _, at := range []struct {
		branch, ref string
		kind        teststand.Kind
		next        func()
	}{
		{"bot-before", "refs/agent/ledger", teststand.Slow, func() { h.dispatch(settleFile) }},
		{"bot-after", "refs/heads/bot-after", teststand.Trickle, func() {}}, // its push is the event
	} {
		p := h.opens(h.r, at.branch)
		line := p.asked(true)
		h.idle(0)
		head, tip := p.tip(), h.r.Ref("refs/agent/ledger")
		held := make(chan struct{}, 1)
		h.s.SetFault(func(_ int, r *http.Request) teststand.Fault {
			if !pushesTo(r, at.ref) {
				return teststand.Fault{}
			}
			select {
			case held <- struct{}{}:
			default:
			}
			return teststand.Fault{Kind: at.kind, Delay: time.Hour}
		})
		h.r.Comment(h.ada, p.number, line)
		<-held
		if at.kind == teststand.Trickle {
			h.until("the branch has the commit", func() bool { return p.tip() != head })
		}
		h.runner.KillAll()
		h.s.SetFault(nil)
		for _, run := range h.r.Runs() {
			if run.Status == "in_progress" {
				h.lost[run.ID] = true
			}
		}
		if moved := h.r.Ref("refs/agent/ledger") != tip; moved != (at.kind == teststand.Trickle) {
			h.Errorf("%s: the ledger moved: %v", at.branch, moved)
		}
		h.runner.Start()
		at.next()
		h.until("the commit is on the branch", func() bool { return p.tip() != head })
		p.asked(false)
		p.review()
		p.awaits("countersign", "success")
		p.wantOnce(true)
	}
}

// pushesTo reports whether a request pushes to a ref, which its first line names.
func pushesTo(r *http.Request, ref string) bool {
	if !strings.HasSuffix(r.URL.Path, "/git-receive-pack") || r.Method != http.MethodPost {
		return false
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	line, _, _ := bytes.Cut(body, []byte{0})
	return strings.HasSuffix(string(line), " "+ref)
}
