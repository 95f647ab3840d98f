package main

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/report"
)

// An actCase is a cycle, and the repository that it is run in.
type actCase struct {
	name      string
	private   bool
	proposals bool   // as init writes the workflows without --gate
	inline    bool   // as init writes them with --inline
	policy    string // added to the one that init writes
	cycle     func(*runner)
}

// TestAct: whole cycles, from what a bot proposes to what GitHub then has.
func TestAct(t *testing.T) {
	o := newTool(t)
	for _, c := range []actCase{
		{name: "approve", cycle: actApprove},
		{name: "private repository", private: true, cycle: actApprove},
		{name: "proposals alone", proposals: true, cycle: actProposals},
		{name: "private repository with commands", private: true, policy: "commands:\n  run: [{argv: [grep, -q, \"no line break\", feature.txt]}]\n", cycle: actCommands},
		{name: "deny", inline: true, cycle: actDeny},
		{name: "review", cycle: actReview},
		{name: "fork", cycle: actFork},
		{name: "push to another file", cycle: actPushElsewhere},
		{name: "push to the same file", cycle: actPushSame},
		{name: "two at once", cycle: actTwoAtOnce},
		{name: "commands", policy: "commands:\n  run: [{argv: [grep, -q, \"no line break\", feature.txt]}]\n", cycle: actCommands},
		{name: "sweep", cycle: actSweep},
		{name: "green review", policy: "apply: {to: pull_request, merge: auto}\n", cycle: actGreen},
		{name: "fleet", cycle: actFleet},
		{name: "fleet with commands", inline: true, policy: "commands:\n  run: [{argv: [grep, -q, more, work.txt]}]\n", cycle: actFleetCommands},
		{name: "producers", cycle: actProducers},
		{name: "time", cycle: actTime},
	} {
		t.Run(c.name, func(t *testing.T) { c.cycle(newRunner(t, o, c)) })
	}
}

const (
	before      = "no line break"
	after       = before + "\n"
	approveLine = "/approve "
)

func actApprove(r *runner) {
	r.settles(githubtest.Event{Name: "pull_request_target", Action: "opened", Number: r.pr})
	head := r.tip()
	r.wantCheck(head, "countersign", "action_required")
	r.settles(r.proposes())
	fingerprint := r.asked()
	r.wantCheck(head, checkOf(fingerprint), "neutral")
	if threads := r.s.ReviewComments(site, r.pr); len(threads) != 1 || threads[0].Path != "feature.txt" || !strings.Contains(threads[0].Body, approveLine+fingerprint) {
		r.Errorf("the thread is %+v", threads)
	}
	r.settles(commented(r.says("ada", approveLine+fingerprint)))
	r.wantApplied(head, fingerprint)
	r.wantCheck(r.tip(), "countersign", "action_required")
	if !strings.Contains(r.report(), "Approve workflows to run") {
		r.Errorf("the report does not say that the push starts no CI:\n%s", r.report())
	}
	if threads := r.s.ReviewComments(site, r.pr); !threads[0].Resolved {
		r.Error("the thread is not resolved")
	}
	if comments := r.s.Comments(site, r.pr); len(comments) != 2 {
		r.Errorf("there are %d comments, want ada's and one report", len(comments))
	}
	r.wantAudit()
}

// actProposals: "Try it" of docs/setup.md. One line answers, and nothing is red.
func actProposals(r *runner) {
	r.settles(r.proposes())
	head, fingerprint := r.tip(), r.asked()
	if n := strings.Count(r.report(), approveLine); n != 1 {
		r.Errorf("the report has %d lines that approve:\n%s", n, r.report())
	}
	r.settles(commented(r.says("ada", approveLine+fingerprint)))
	r.wantApplied(head, fingerprint)
	for _, c := range r.s.CheckRuns(site, "") {
		if c.Name == report.LedgerCheckName("refs/agent/ledger") {
			continue // it remembers the ledger, on the commit that the repository began with
		}
		if c.Name == "countersign" || c.Conclusion != "success" {
			r.Errorf("the check %s is %s", c.Name, c.Conclusion)
		}
	}
	r.wantAudit()
}

func actDeny(r *runner) {
	event := r.proposes()
	r.settles(event)
	head, fingerprint := r.tip(), r.asked()
	r.settles(commented(r.says("ada", "/deny "+fingerprint+" we like it so")))
	r.wantCheck(head, checkOf(fingerprint), "neutral")
	ledger := r.s.Ref(site, "refs/agent/ledger")
	r.settles(event) // the same patch again: refused, and no failure of the step
	log := r.act(eventsFile, githubtest.Event{Name: "pull_request", Action: "synchronize", Number: r.pr})
	if !strings.Contains(log, "was denied by ada") {
		r.Error("the job propose does not say that the patch was denied")
	}
	if r.tip() != head || r.s.Ref(site, "refs/agent/ledger") != ledger || len(r.s.ReviewComments(site, r.pr)) != 1 {
		r.Error("a denied patch was proposed again")
	}
	if report := r.report(); !strings.Contains(report, "denied") || !strings.Contains(report, "we like it so") {
		r.Errorf("the report does not tell the denial:\n%s", report)
	}
	r.wantAudit()
}

func actReview(r *runner) {
	r.settles(r.proposes())
	head, fingerprint := r.tip(), r.asked()
	review := r.s.Review(githubtest.NewComment{Repository: site, Number: r.pr, By: "ada", State: "COMMENTED", Body: approveLine + fingerprint})
	r.settles(r.relays(review.ID))
	r.wantApplied(head, fingerprint)
	r.wantAudit()
}

// actFork: a fork's bundle is proposed by whoever made the pull request, who can
// write here and yet not approve it.
func actFork(r *runner) {
	r.fork("bob")
	event := r.proposes()
	r.settles(event)
	head := r.tip()
	r.settles(commented(r.says("bob", approveLine+r.asked())))
	if r.tip() != head || !strings.Contains(r.report(), "proposer") {
		r.Errorf("the head is %s; the report:\n%s", r.tip(), r.report())
	}
	r.wantAudit()
}

func actPushElsewhere(r *runner) {
	r.settles(r.proposes())
	r.push(r.head, "topic", map[string]string{"notes.txt": "notes\n"})
	head, fingerprint := r.tip(), r.asked()
	r.settles(commented(r.says("ada", approveLine+fingerprint)))
	r.wantApplied(head, fingerprint)
	r.wantAudit()
}

func actPushSame(r *runner) {
	r.settles(r.proposes())
	r.push(r.head, "topic", map[string]string{"feature.txt": "now another\n"})
	head := r.tip()
	if log, failed := r.try(callerFile, commented(r.says("ada", approveLine+r.asked()))); !failed {
		r.Errorf("a refusal must fail the step:\n%s", log)
	}
	if got := r.s.File(site, "topic", "feature.txt"); r.tip() != head || got != "now another\n" {
		r.Errorf("feature.txt is %q at %s", got, r.tip())
	}
	if report := r.report(); !strings.Contains(report, "uperseded") || !strings.Contains(report, "feature.txt") {
		r.Errorf("the report does not say what happened:\n%s", report)
	}
	r.wantAudit()
}

// actTwoAtOnce: two proposals, two approvals, two runs at the same time; either
// may carry out either.
func actTwoAtOnce(r *runner) {
	r.settles(r.proposes())
	first := r.asked()
	r.bot("echo more >> other.txt")
	r.settles(r.proposes())
	second := r.asked()
	if first == second {
		r.Fatal("there is only one proposal")
	}
	one := r.start(callerFile, commented(r.says("ada", approveLine+first)))
	two := r.start(callerFile, commented(r.says("ada", approveLine+second)))
	r.finish(one)
	r.finish(two)
	if a, b := r.s.File(site, "topic", "feature.txt"), r.s.File(site, "topic", "other.txt"); a != after || b != "other\nmore\n" {
		r.Errorf("feature.txt is %q, other.txt is %q", a, b)
	}
	r.wantAudit()
}

// actCommands: what the Policy runs goes through a job without rights, and the
// branch moves after it.
func actCommands(r *runner) {
	if !hasSandbox(r.TempDir()) {
		r.Skip("commands cannot be run here")
	}
	r.settles(r.proposes())
	head, fingerprint := r.tip(), r.asked()
	log := r.settles(commented(r.says("ada", approveLine+fingerprint)))
	for _, job := range []string{"/checks", "/finish"} {
		if !strings.Contains(log, job) {
			r.Errorf("the job %s did not run", job)
		}
	}
	r.wantApplied(head, fingerprint)
	r.wantAudit()
}

// actSweep: an approval whose event was lost is found by the daily run.
func actSweep(r *runner) {
	r.settles(r.proposes())
	head, fingerprint := r.tip(), r.asked()
	r.says("ada", approveLine+fingerprint)
	log := r.act(eventsFile, githubtest.Event{Name: "schedule"})
	if !strings.Contains(log, "/relay") || strings.Contains(log, "/propose] 🏁") {
		r.Errorf("the schedule runs\n%s", log)
	}
	r.settles(r.ranOn("main", "schedule"))
	r.wantApplied(head, fingerprint)
	r.wantAudit()
}

// actGreen: what a bot proposes at night becomes a pull request, and a green review of
// it is enough.
func actGreen(r *runner) {
	r.s.Set(site, githubtest.Settings{ActionsOpenPulls: true})
	e := r.ranOn("main", "schedule")
	r.s.Artifact(githubtest.NewArtifact{Repository: site, Run: e.ID, Name: pull.BundleName, Files: map[string]string{"bundle.json": bundleOf(greetFix, "")}})
	r.settles(e)
	opened := r.s.Newest(site)
	if !strings.HasPrefix(opened.Branch, "countersign/tx_") {
		r.Fatalf("the newest pull request is %+v", opened)
	}
	r.pr = opened.Number
	r.later() // a review of the same second could be from before
	review := r.s.Review(githubtest.NewComment{Repository: site, Number: r.pr, By: "ada", State: "APPROVED"})
	r.act(eventsFile, githubtest.Event{Name: "pull_request_review", Action: "submitted", ID: review.ID})
	r.settles(r.ranOn(opened.Branch, "pull_request_review"))
	if got := r.s.File(site, "main", "greet.txt"); !strings.Contains(got, "hello, world") {
		r.Errorf("greet.txt is %q", got)
	}
	r.wantAudit()
}
