package main

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/pipeline/pull"
)

// bundleOf is what a propose job uploads for a diff; more is put into it by whoever
// made it.
func bundleOf(diff, more string) string {
	return fmt.Sprintf(`{"data":"%s","kind":"patch",%s"schema":"countersign/bundle/1","summary":"greet"}`, base64.StdEncoding.EncodeToString([]byte(diff)), more)
}

// proposedBy is the event of the end of a propose run that uploaded a bundle.
func (h *hub) proposedBy(bundle string, n githubtest.NewWorkflowRun) githubtest.Event {
	h.Helper()
	n.Event = cmp.Or(n.Event, "pull_request")
	id := h.runOf("countersign-events", n)
	h.s.Artifact(githubtest.NewArtifact{Repository: site, Run: id, Name: pull.BundleName, Files: map[string]string{"bundle.json": bundle}})
	return githubtest.Event{Name: "workflow_run", Action: "completed", ID: id}
}

// settled settles for an event as the two jobs of the workflow do, and wants the
// step to succeed.
func (h *hub) settled(e githubtest.Event) map[string]string {
	h.Helper()
	number, act := h.planned(e)
	if act != "true" {
		h.Fatalf("nothing to do on %s", e.Name)
	}
	code, outputs, printed := h.action("settle", "pr="+number)
	if code != 0 {
		h.Fatalf("settle on %s: %d\n%s", e.Name, code, printed)
	}
	return outputs
}

// state is all that settle can change.
func (h *hub) state() string {
	text := h.s.Ref(site, "refs/agent/ledger") + h.s.Ref(site, "refs/heads/topic") + h.s.Ref(site, "refs/heads/main")
	for n := 1; n <= h.pr; n++ {
		text += fmt.Sprintf("\n%+v\n%+v\n%+v", h.s.Comments(site, n), h.s.ReviewComments(site, n), h.s.Reviews(site, n))
	}
	return text + fmt.Sprintf("\n%+v", h.s.CheckRuns(site, ""))
}

// wantState wants nothing to have changed.
func (h *hub) wantState(what, before string) {
	h.Helper()
	was, is := strings.Split(before, "\n"), strings.Split(h.state(), "\n")
	for i := range max(len(was), len(is)) {
		if i >= len(was) || i >= len(is) || was[i] != is[i] {
			h.Errorf("%s: it was\n%s\nand is\n%s", what, strings.Join(was[min(i, len(was)):], "\n"), strings.Join(is[min(i, len(is)):], "\n"))
			return
		}
	}
}

// TestT64SameEventAgain: a job that runs again changes nothing.
func TestT64SameEventAgain(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	proposed := h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{})
	fingerprint := h.settled(proposed)["fingerprint"]
	asked := h.state()
	h.settled(proposed)
	h.wantState("the same bundle again", asked)
	approved := commented(h.says("ada", "/approve "+fingerprint))
	if out := h.settled(approved); out["outcome"] != "SUCCESS" || out["applied-commit"] != h.s.Ref(site, "refs/heads/topic") {
		t.Fatalf("outputs %v", out)
	}
	applied := h.state()
	h.settled(approved)
	h.wantState("the same comment again", applied)
	if number, act := h.planned(proposed); number != "" || act != "false" {
		t.Errorf("the run on the head before: pull request %q, act %s", number, act)
	}
}

// TestActionGateVerdict: the output is the verdict that the stage came to.
func TestActionGateVerdict(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	out := h.settled(h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{}))
	h.on(commented(h.says("ada", "/approve "+out["fingerprint"])))
	code, gated, printed := h.action("gate", "transaction="+out["transaction"])
	if code != 0 || gated["verdict"] != "approved" {
		t.Errorf("exit code %d, the output is %q\n%s", code, gated["verdict"], printed)
	}
}

// TestActionDenialThatIsGone: a denial that only the event still tells is final.
func TestActionDenialThatIsGone(t *testing.T) {
	long(t)
	t.Parallel()
	for _, action := range []string{"deleted", "edited"} {
		t.Run(action, func(t *testing.T) {
			h := newHub(t)
			fingerprint := h.settled(h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{}))["fingerprint"]
			id := h.says("ada", "/deny "+fingerprint+" no greeting")
			if action == "deleted" {
				h.s.Delete(id)
			} else {
				h.s.Edit(id, "ada", "/approve "+fingerprint)
			}
			number, _ := h.planned(githubtest.Event{Name: "issue_comment", Action: action, ID: id})
			if action == "edited" {
				h.s.EraseHistory(id)
			}
			if code, out, printed := h.action("settle", "pr="+number); code != 0 || out["verdict"] != "denied" {
				t.Errorf("exit code %d, outputs %v\n%s", code, out, printed)
			}
			if h.s.File(site, "topic", "greet.txt") != "one\nhello\nthree\n" {
				t.Error("it was applied")
			}
		})
	}
}

// TestActionGuard: the pull request's own diff, from opened to the merge queue.
func TestActionGuard(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	head := h.s.Ref(site, "refs/heads/topic")
	fingerprint := h.settled(githubtest.Event{Name: "pull_request_target", Action: "opened", Number: h.pr})["fingerprint"]
	if got := h.conclusion(head); got != "action_required" {
		t.Errorf("the check is %s", got)
	}
	h.settled(commented(h.says("bob", "/approve "+fingerprint)))
	if got := h.conclusion(head); got != "action_required" {
		t.Errorf("after the author's approval the check is %s", got)
	}
	same := strings.TrimSpace(h.s.Git(site, "-c", "user.name=queue", "-c", "user.email=queue@localhost", "commit-tree", "-p", "main", "-m", "queue", "topic^{tree}"))
	h.queued("before an approval", same, "action_required", false)
	h.settled(commented(h.says("ada", "/approve "+fingerprint)))
	if got := h.conclusion(head); got != "success" {
		t.Errorf("after an approval the check is %s", got)
	}
	h.queued("the same change", same, "success", false)
	another := h.s.Push(githubtest.NewCommit{Repository: site, Branch: "more", By: "bob", Files: map[string]string{"greet.txt": "x\n"}})
	h.queued("another change", another, "failure", true)
}

// queued settles for the merge queue, which would merge a commit.
func (h *hub) queued(what, commit, conclusion string, fails bool) {
	h.Helper()
	h.s.Git(site, "update-ref", "refs/heads/gh-readonly-queue/main/pr-1-"+h.s.Ref(site, "refs/heads/main"), commit)
	number, _ := h.planned(githubtest.Event{Name: "merge_group", Action: "checks_requested", Number: h.pr, Commit: commit})
	code, _, printed := h.action("settle", "pr="+number)
	if got := h.conclusion(commit); got != conclusion || (code != 0) != fails {
		h.Errorf("%s: the check is %s, exit code %d; want %s, failing %t\n%s", what, got, code, conclusion, fails, printed)
	}
}

// conclusion is that of the check "countersign" of a commit.
func (h *hub) conclusion(commit string) string {
	h.Helper()
	out := ""
	for _, c := range h.s.CheckRuns(site, commit) {
		if c.Name == "countersign" {
			out += c.Conclusion
		}
	}
	return out
}

// TestActionSweep: what an event missed is found.
func TestActionSweep(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	fingerprint := h.settled(h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{}))["fingerprint"]
	h.says("ada", "/approve "+fingerprint)
	run := h.runOf("countersign-events", githubtest.NewWorkflowRun{HeadBranch: "main", Event: "schedule"})
	h.s.Artifact(githubtest.NewArtifact{Repository: site, Run: run, Name: pull.BundleName, Files: map[string]string{"bundle.json": bundleOf(strings.ReplaceAll(greetFix, "hello, world", "good morning"), "")}})
	e := githubtest.Event{Name: "workflow_run", Action: "completed", ID: run}
	if _, _, stage := h.plannedStage(e); stage != "sweep" {
		t.Fatalf("the stage is %s", stage)
	}
	code, out, printed := h.action("sweep")
	var all []any
	check(t, json.Unmarshal([]byte(out["transactions"]), &all))
	if code != 0 || out["outcome"] != "SUCCESS" || out["needs-checks"] != "[]" || len(all) != 1 { // what the schedule's run has is for no pull request
		t.Errorf("exit code %d, outputs %v\n%s", code, out, printed)
	}
}

// TestActionPropose: what a bot leaves in the working tree is proposed, new files too;
// what it leaves as it was is not, and what was denied is not uploaded again.
func TestActionPropose(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.env["RUNNER_TEMP"] = h.TempDir()
	check(t, os.Mkdir(filepath.Join(h.env["RUNNER_TEMP"], "countersign"), 0o700))
	h.on(githubtest.Event{Name: "pull_request", Action: "synchronize", Number: h.pr})
	var printed string
	propose := func(leaves map[string]string, inputs ...string) (code int, bundle string, out map[string]string) {
		env := h.env
		h.clone()
		h.env = env
		for name, text := range leaves {
			check(t, os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o600))
		}
		code, out, printed = h.step("propose", inputs...)
		if code != 0 {
			t.Logf("%v: %d\n%s", leaves, code, printed)
		}
		if out["bundle"] == "" {
			return code, "", out
		}
		raw, err := os.ReadFile(out["bundle"])
		check(t, err)
		return code, string(raw), out
	}
	if code, bundle, _ := propose(nil); code != 0 || bundle != "" || !strings.HasSuffix(printed, "countersign: nothing is proposed: nothing was changed\n") || strings.Contains(printed, "error") {
		t.Errorf("a bot that found nothing: exit code %d, %s\n%s", code, bundle, printed)
	}
	if code, bundle, _ := propose(nil, "patch="+h.write("bad.patch", "nonsense")); code == 0 || bundle != "" || !strings.Contains(printed, "countersign: error: ") {
		t.Errorf("a patch that is none: exit code %d, %s\n%s", code, bundle, printed)
	}
	leaves := map[string]string{"greet.txt": "one\nhello, world\nthree\n", "new.txt": "new\n"}
	code, bundle, out := propose(leaves, "summary=greet")
	if code != 0 || filepath.Base(out["bundle"]) != "bundle.json" {
		t.Fatalf("exit code %d, outputs %v", code, out)
	}
	fingerprint := h.settled(h.proposedBy(bundle, githubtest.NewWorkflowRun{}))["fingerprint"]
	if out := h.settled(commented(h.says("ada", "/deny "+fingerprint+" no"))); out["verdict"] != "denied" {
		t.Fatalf("outputs %v", out)
	}
	h.on(githubtest.Event{Name: "pull_request", Action: "synchronize", Number: h.pr})
	if code, bundle, out := propose(leaves); code != 0 || bundle != "" || out["verdict"] != "denied" {
		t.Errorf("what was denied: exit code %d, outputs %v", code, out)
	}
	fingerprint = h.settled(h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{}))["fingerprint"]
	h.settled(commented(h.says("ada", "/approve "+fingerprint)))
	if got := h.s.File(site, "topic", "greet.txt"); got != leaves["greet.txt"] {
		t.Errorf("greet.txt is %q", got)
	}
}

// TestActionPrivateRepository: the propose job of a private repository reads with
// the rights that its workflow gives it, and a whole cycle follows.
func TestActionPrivateRepository(t *testing.T) {
	long(t)
	t.Parallel()
	h := openHub(t, true)
	rights := h.token
	review := func(token string) (code int, bundle, printed string) {
		file := h.write("bundle.json", "")
		h.on(githubtest.Event{Name: "pull_request", Action: "synchronize", Number: h.pr})
		h.env["INPUT_TOKEN"] = token
		code, _, printed = h.action("review", "patch="+h.write("fix.patch", greetFix), "summary=greet", "bundle-out="+file)
		raw, err := os.ReadFile(file)
		check(t, err)
		return code, string(raw), printed
	}
	if code, _, printed := review(""); code == 0 {
		t.Errorf("a private repository was read without a token\n%s", printed)
	}
	code, bundle, printed := review(h.s.ActionsToken(site, "contents:read"))
	if code != 0 {
		t.Fatalf("review with contents: read: %d\n%s", code, printed)
	}
	h.env["INPUT_TOKEN"] = rights
	fingerprint := h.settled(h.proposedBy(bundle, githubtest.NewWorkflowRun{}))["fingerprint"]
	if out := h.settled(commented(h.says("ada", "/approve "+fingerprint))); out["outcome"] != "SUCCESS" {
		t.Errorf("outputs %v", out)
	}
}

// TestActionOutputsOfOne: where a pull request has a proposal and its own diff, all
// outputs are of the proposal, and "transactions" has both.
func TestActionOutputsOfOne(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	own := h.settled(githubtest.Event{Name: "pull_request_target", Action: "opened", Number: h.pr})
	proposed := h.settled(h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{}))
	if proposed["verdict"] != "pending" || proposed["transaction"] == own["transaction"] || proposed["outcome"]+proposed["applied-commit"] != "" {
		t.Errorf("outputs of the proposal %v", proposed)
	}
	done := h.settled(commented(h.says("ada", "/approve "+proposed["fingerprint"])))
	want := map[string]string{
		"transaction": proposed["transaction"], "fingerprint": proposed["fingerprint"], "patch-id": proposed["patch-id"],
		"verdict": "approved", "outcome": "SUCCESS", "applied-commit": h.s.Ref(site, "refs/heads/topic"),
	}
	for name, value := range want {
		if done[name] != value {
			t.Errorf("%s is %q, want %q", name, done[name], value)
		}
	}
	if !strings.Contains(done["check-run-url"], "/runs/") {
		t.Errorf("check-run-url is %q", done["check-run-url"])
	}
	var all []map[string]any
	if err := json.Unmarshal([]byte(done["transactions"]), &all); err != nil || len(all) != 2 {
		t.Fatalf("transactions: %v\n%s", err, done["transactions"])
	}
	if all[0]["transaction"] != want["transaction"] || all[0]["outcome"] != "SUCCESS" || all[0]["own-diff"] != false {
		t.Errorf("the proposal is listed as %v", all[0])
	}
	if all[1]["own-diff"] != true || all[1]["verdict"] != "pending" || all[1]["outcome"] != "" || all[1]["applied-commit"] != "" {
		t.Errorf("the own diff is listed as %v", all[1])
	}
}

// TestActionWaitsForCommands: until the job without rights has run the commands,
// an approved change is neither refused nor failed.
func TestActionWaitsForCommands(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	h.policy("commands:\n  run: [{argv: [\"true\"]}]\n")
	fingerprint := h.settled(h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{}))["fingerprint"]
	head := h.s.Ref(site, "refs/heads/topic")
	out := h.settled(commented(h.says("ada", "/approve "+fingerprint)))
	if out["verdict"] != "approved" || out["outcome"] != "" || !strings.Contains(out["needs-checks"], "tx_") {
		t.Errorf("outputs %v", out)
	}
	if check := h.check(checkOf(fingerprint), head); check.Conclusion != "neutral" || strings.Contains(check.Title+check.Summary, "REFUSED") {
		t.Errorf("the check is %s: %s\n%s", check.Conclusion, check.Title, check.Summary)
	}
	if comment := h.comment(); strings.Contains(comment, "REFUSED") || !strings.Contains(comment, "Approved by ada, not applied yet") {
		t.Errorf("the comment:\n%s", comment)
	}
}

// TestActionDeniedAgain: what was denied and is proposed again is told, in the
// output and on the pull request, and nobody is asked about it.
func TestActionDeniedAgain(t *testing.T) {
	long(t)
	t.Parallel()
	h := newHub(t)
	proposed := h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{})
	first := h.settled(proposed)
	h.settled(commented(h.says("ada", "/deny "+first["fingerprint"]+" no greeting")))
	ledger := h.s.Ref(site, "refs/agent/ledger")
	for range 2 {
		if out := h.settled(proposed); out["verdict"] != "denied" || out["transaction"] != first["transaction"] || out["outcome"] != "" {
			t.Errorf("outputs %v", out)
		}
		if comment := h.comment(); !strings.Contains(comment, "Proposed again") || !strings.Contains(comment, "no greeting") || strings.Contains(comment, "\n    /approve") {
			t.Errorf("the comment:\n%s", comment)
		}
	}
	h.pushes("bob", "more", "more.txt", "more\n")
	h.pr = h.s.PullRequest(githubtest.NewPullRequest{Repository: site, By: "bob", Head: "more", Title: "More"}).Number
	elsewhere := h.proposedBy(bundleOf(greetFix, ""), githubtest.NewWorkflowRun{HeadBranch: "more"})
	if out := h.settled(elsewhere); out["verdict"] != "denied" || out["transaction"] != "" || !strings.Contains(h.comment(), "Proposed again") {
		t.Errorf("on another pull request: outputs %v, the comment:\n%s", out, h.comment())
	}
	if h.s.Ref(site, "refs/agent/ledger") != ledger {
		t.Error("the ledger has more than the denial")
	}
}
