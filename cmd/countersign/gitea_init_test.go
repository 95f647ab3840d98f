package main

import (
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/forgetest"
)

// TestGiteaInit: what init writes is committed and runs on the real runner: a fork's pull request
// is asked about, a person's comment approves it, and the required status lets it be merged. Where
// the server starts nothing after a run, the sweep does it all.
func TestGiteaInit(t *testing.T) {
	t.Parallel()
	h := newTeaHub(t, nil)
	h.setUp(nil)
	fork := h.r.Fork(h.bob)
	head := fork.Commit(h.bob, "fix", "work", map[string]string{"b.txt": "made in a fork\n"})
	pr := h.r.PullRequest(h.bob, "bob:fix", "main", "Work")
	h.pr = pr
	merge := func() int {
		return h.s.Do(h.ada, http.MethodPost, h.r.Path("pulls", pr, "merge"), map[string]any{"Do": "merge", "head_commit_id": head}, nil)
	}
	h.sweepOlder()
	h.awaitStatus(head, "pending")
	if status := merge(); status != http.StatusMethodNotAllowed {
		t.Errorf("merged before anybody approved: %d", status)
	}
	var comments []struct{ Body string }
	h.s.Must(h.ada, http.MethodGet, h.r.Path("issues", pr, "comments"), nil, &comments)
	at := strings.Index(comments[0].Body, "/approve patchset:")
	if len(comments) != 1 || at < 0 {
		t.Fatalf("%+v", comments)
	}
	h.r.Comment(h.ada, pr, "/approve "+strings.Trim(strings.Fields(comments[0].Body[at:])[1], "`"))
	h.sweepOlder()
	h.awaitStatus(head, "success")
	if status := merge(); status != http.StatusOK {
		t.Errorf("approved, and not merged: %d", status)
	}
}

// setUp commits what init writes, and more files in place of or beside it, and does what docs/forges.md says: the secret,
// the branch's protection, a runner with the program.
func (h *teaHub) setUp(more map[string]string) {
	h.Helper()
	if code, stdout, stderr := h.run("init"); code != 0 {
		h.Fatal(stdout, stderr)
	}
	files := map[string]string{}
	for _, name := range []string{".github/countersign.yml", ".gitea/workflows/countersign.yml", ".gitea/workflows/countersign-events.yml"} {
		raw, err := os.ReadFile(filepath.Join(h.dir, name))
		check(h, err)
		files[name] = string(raw)
	}
	maps.Copy(files, more)
	h.r.Commit(h.ada, "main", "countersign", files)
	h.s.Must(h.ada, http.MethodPut, h.r.Path("actions", "secrets", "COUNTERSIGN_TOKEN"), map[string]string{"data": h.robot.Token}, nil)
	h.r.Protect("main", map[string]any{"enable_status_check": true, "status_check_contexts": []string{"countersign"}})
	tools := filepath.Join(h.s.Dir, "tools") // that the runner, who is another user, may read
	if out, err := exec.Command("go", "build", "-o", filepath.Join(tools, "countersign"), ".").CombinedOutput(); err != nil {
		h.Fatalf("%v: %s", err, out)
	}
	h.s.Runner(forgetest.RunnerOptions{Path: tools + ":" + os.Getenv("PATH")})
}

// TestGiteaBot: the example bot that init writes runs for a pull request without a secret, its bundle goes to the server
// without anybody's action, and what a person approves of it is committed to the branch once the Policy's command has
// passed, in a job that has no secret either.
func TestGiteaBot(t *testing.T) {
	t.Parallel()
	h := newTeaHub(t, nil)
	if !h.s.ListsRuns() {
		t.Skip("\n\n*** NOT TESTED: a bot's bundle on this server, which does not tell of runs ***\n")
	}
	h.setUp(map[string]string{".github/countersign.yml": "version: 1\nbots: [robot]\ngate: {bases: [main]}\ncommands:\n  run: [\"wc -l notes.txt\"]\n"})
	h.r.Commit(h.bob, "notes", "notes", map[string]string{"notes.txt": "no line break"})
	h.pr = h.r.PullRequest(h.bob, "notes", "main", "Notes")
	approved := map[string]bool{}
	h.await(func() bool { // each new patch as it is asked about: the bot's, and then the pull request's with it
		var comments []struct{ Body string }
		h.s.Must(h.ada, http.MethodGet, h.r.Path("issues", h.pr, "comments"), nil, &comments)
		for _, c := range comments {
			for _, line := range strings.Split(c.Body, "/approve patchset:")[1:] {
				if id := line[:64]; !approved[id] && strings.Contains(c.Body, "Texts end with a line break") {
					approved[id] = true
					h.r.Comment(h.ada, h.pr, "/approve patchset:"+id)
				}
			}
		}
		return h.r.Git("cat-file", "-s", "notes:notes.txt") == "14" // bytes, with the line break
	})
	h.clone()
	if code, stdout, stderr := h.run("sync"); code != 0 {
		t.Fatal(stdout, stderr)
	}
	if out := h.r.Git("grep", "-l", "--fixed-strings", `"argv":["wc","-l","notes.txt"]`, "refs/agent/ledger"); out == "" {
		t.Error("no result of the command is in the ledger")
	}
	for _, command := range []string{"sync", "audit"} {
		if code, stdout, stderr := h.run(command); code != 0 {
			t.Errorf("%s: %d %s%s", command, code, stdout, stderr)
		}
	}
}

// await waits till something is so, and tells what the jobs printed where it does not become so.
func (h *teaHub) await(is func() bool) {
	h.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(300 * time.Millisecond) {
		if time.Now().After(deadline) {
			for _, run := range h.r.Runs() {
				h.Logf("%+v\n%s", run, h.r.RunLog(run.ID))
			}
			h.Fatal("it does not become so")
		}
	}
}

// sweepOlder starts by hand, on a server on which no run starts another, what the schedule starts
// once an hour.
func (h *teaHub) sweepOlder() {
	h.Helper()
	if !h.s.ListsRuns() {
		h.s.Must(h.ada, http.MethodPost, h.r.Path("actions", "workflows", "countersign.yml", "dispatches"), map[string]string{"ref": "main"}, nil)
	}
}

// awaitStatus waits till the status "countersign" of a commit is so. Runs follow each
// other, so how many there are in the end is not known.
func (h *teaHub) awaitStatus(commit, want string) {
	h.Helper()
	h.await(func() bool { return h.statuses(commit)["countersign"] == want })
}
