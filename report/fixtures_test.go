package report_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/report"
)

const (
	thePatch = "abcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcdefabcd"
	theHash  = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

var (
	ada   = ledger.Actor{Kind: "user", ID: "1", Login: "ada"}
	bob   = ledger.Actor{Kind: "user", ID: "2", Login: "bob"}
	agent = ledger.Actor{Kind: "bot", ID: "90", Login: "agent[bot]"}
)

const theDiff = `diff --git a/main.go b/main.go
index 0123456789012345678901234567890123456789..1123456789012345678901234567890123456789 100644
--- a/main.go
+++ b/main.go
@@ -1,3 +1,3 @@
 package main
 
-// TODO remove
+func main() {}
`

// proposal is one of a pull request that nobody has answered.
func proposal() report.Report {
	hash := theHash
	return report.Report{
		TransactionID: "tx_01KE5W5200041061050R3GG28A", PatchID: thePatch, Fingerprint: "patchset:" + thePatch, Status: ledger.Awaiting, State: plain.Waits,
		Summary: "Remove TODOs", Proposer: agent, BaseCommit: strings.Repeat("b", 40),
		CreatedAt: "2026-01-05T23:30:00.25Z", UpdatedAt: "2026-01-06T08:00:00Z",
		Repository: &ledger.Repository{ID: "7", Name: "acme/app"}, PullRequest: 12, HeadCommit: strings.Repeat("c", 40),
		Files:     []report.File{{Path: "main.go", Kind: "update", Before: &hash, After: &hash, Added: 1, Deleted: 1}},
		Risks:     &risk.List{},
		Verdict:   verdict(approval.Pending, "0 of 1 approvals", 0),
		LedgerRef: "refs/agent/ledger", LedgerCommit: strings.Repeat("d", 40), Record: "https://forge.example/acme/app/tree/" + strings.Repeat("d", 40) + "/transactions/record",
	}
}

func verdict(state approval.State, reason string, approved int, decisions ...approval.Judged) *approval.Verdict {
	return &approval.Verdict{
		State: state, Reason: reason, Decisions: decisions,
		Needs: []approval.Need{{Kind: policy.KindFileChange, Fingerprint: "patchset:" + thePatch, Required: 1, Approved: approved}},
	}
}

func judged(who ledger.Actor, decision ledger.Decision, source, reason string, counted bool) approval.Judged {
	return approval.Judged{
		Decision: decision, Fingerprint: "patchset:" + thePatch, Author: who, Source: source,
		CreatedAt: "2026-01-05T11:00:00Z", Recorded: true, Counted: counted, Reason: reason,
	}
}

func numbered(r report.Report, n int) report.Report {
	r.TransactionID = fmt.Sprintf("tx_01KE5W52000410610%09d", n)
	return r
}

// text is all that is told of a transaction.
func text(r report.Report, s report.Style) string { return r.Text(again, 100, false, s) }

func again(args ...string) string { return "countersign " + strings.Join(args, " ") }

// applied is approved and written, with a decision that did not count.
func applied() report.Report {
	r, after := proposal(), theHash
	res := effect.NewResult(".", ledger.PatchSource{ProposalID: "prop_0", ProposalHash: theHash}, false, []ledger.Operation{
		{Op: "modify", Path: "main.go", Status: ledger.StatusSuccess, BeforeHash: &after, AfterHash: &after, BytesWritten: 30},
	})
	r.Status, r.State, r.ApplyResult, r.AppliedCommit = ledger.Completed, plain.Applied, &res, strings.Repeat("e", 40)
	r.Validation = &canon.Report{OK: true}
	r.Verdict = verdict(approval.Approved, "1 of 1 approvals", 1,
		judged(ada, ledger.Approve, approval.KindIssueComment, "approved", true),
		judged(bob, ledger.Approve, approval.KindReviewComment, "edited after posting", false))
	r.Verdict.Decisions[1].Said = "it is \"fine\"\u202e"
	return r
}

// failed is one of which two files could not be written.
func failed() report.Report {
	r, after := applied(), theHash
	r.Files = append(r.Files, report.File{Path: "a.txt", Kind: "add"}, report.File{Path: "b.txt", Kind: "delete"})
	res := effect.NewResult(".", ledger.PatchSource{}, false, []ledger.Operation{
		{Op: "modify", Path: "main.go", Status: ledger.StatusSuccess, BeforeHash: &after, AfterHash: &after},
		{Op: "create", Path: "a.txt", Status: ledger.StatusError, Error: "permission denied"},
		{Op: "delete", Path: "b.txt", Status: ledger.StatusSkipped},
	})
	r.ApplyResult, r.Status, r.State, r.AppliedCommit = &res, ledger.Failed, plain.ApplyFailed, ""
	r.Validation = &canon.Report{Violations: []canon.Violation{{RuleID: "L5", Path: "main.go", Message: "the hash differs"}, {RuleID: "L9", Message: "no end"}}}
	return r
}

func glass() report.Report {
	r := applied()
	r.Verdict = verdict(approval.Approved, "break-glass by ada: production is down", 1, judged(ada, ledger.Approve, approval.KindIssueComment, "breaks the glass", true))
	r.Verdict.BreakGlass = true
	r.Verdict.Needs[0].Kind = policy.KindBreakGlass
	return r
}

// drifted has an approval that counts no more, as the base has moved too far.
func drifted() report.Report {
	r := proposal()
	r.Verdict = verdict(approval.Pending, "0 of 1 approvals", 0, judged(ada, ledger.Approve, approval.KindIssueComment,
		"2 other files in the same directory changed since it was made (go.mod, go.sum), and the Policy asks again then; look at it as it is now and approve again", false))
	drift := forge.DriftBetween(strings.Repeat("1", 40), strings.Repeat("c", 40), 12, []string{"go.mod", "go.sum", "deep/x.go"}, []string{"main.go"})
	r.Verdict.Drift = &drift
	return r
}

func denied() report.Report {
	r := proposal()
	r.Status, r.State = ledger.Denied, plain.Denied
	r.Verdict = verdict(approval.Denied, "denied by bob: it breaks the build", 0, judged(bob, ledger.Deny, approval.KindReview, "denied", true))
	r.Verdict.Decisions[0].Said = "it breaks the build"
	return r
}

func gateOnly(at approval.State) report.Report {
	r := proposal()
	r.GateOnly, r.Proposer, r.Summary = true, ledger.Actor{Kind: "user", ID: "3", Login: "eve"}, ""
	r.Verdict, r.State = verdict(at, string(at), 0), plain.StateOf(r.Status, at, true, false)
	return r
}

func request() report.Request {
	return report.Request{
		Report: proposal(), Diff: []byte(theDiff), Needs: []policy.Need{{Kind: policy.KindFileChange, Required: 1}},
		Approvals: policy.Default().Approvals, Web: "https://github.example/acme/app", Policy: report.PolicyFile{Commit: strings.Repeat("b", 40), Lines: map[string]int{"protected[0]": 4}},
	}
}

// risks are those of a patch that does a little of everything.
func risks() *risk.List {
	list := risk.NewList(thePatch, []risk.Risk{
		{Kind: risk.Executable, Path: "run.sh"},
		{Kind: risk.Trusted, Path: ".github/workflows/ci.yml", Detail: "the forge runs it"},
		{Kind: risk.Secret, Path: "main.go", Lines: []int{3}, Detail: "generic-api-key"},
		{Kind: risk.Protected, Path: "main.go", Detail: "protected[0] /main.*"},
		{Kind: risk.Binary, Path: "logo.png", Detail: "PNG image, 120 → 4096 bytes"},
		{Kind: risk.Hidden, Path: "main.go", Lines: []int{3}, Detail: "U+202E"},
	})
	return &list
}

// picture is the request that docs/request.svg shows.
func picture() report.Request {
	q := request()
	hash := theHash
	q.Report.Summary = "Release from CI instead of by hand"
	q.Report.Files = []report.File{
		{Path: ".github/workflows/release.yml", Kind: "add", After: &hash, Added: 8},
		{Path: "release.sh", Kind: "update", Before: &hash, After: &hash, Added: 1, Deleted: 1},
	}
	q.Diff = []byte(`diff --git a/.github/workflows/release.yml b/.github/workflows/release.yml
new file mode 100644
index 0000000000000000000000000000000000000000..1123456789012345678901234567890123456789
--- /dev/null
+++ b/.github/workflows/release.yml
@@ -0,0 +1,8 @@
+on: {push: {tags: ["v*"]}}
+permissions: {contents: write}
+jobs:
+  release:
+    runs-on: ubuntu-latest
+    steps:
+      - uses: actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8
+      - run: ./release.sh
diff --git a/release.sh b/release.sh
old mode 100644
new mode 100755
index 0123456789012345678901234567890123456789..1123456789012345678901234567890123456789
--- a/release.sh
+++ b/release.sh
@@ -1,2 +1,2 @@
 #!/bin/sh
-make dist
+make dist && gh release create "$GITHUB_REF_NAME" dist/*
`)
	diff, err := patch.Parse(q.Diff)
	if err != nil {
		panic(err)
	}
	list := risk.NewList(thePatch, risk.OfDiff(diff, secret.Default()))
	q.Report.Risks = &list
	q.Needs = append(q.Needs, policy.Need{Kind: policy.KindProtected, Prefix: "protected:", Required: 1, Paths: []string{".github/workflows/release.yml"}})
	return q
}

// demanding is a request with everything in it.
func demanding() report.Request {
	q := request()
	confidence := 80
	q.Report.Confidence, q.Report.Risks = &confidence, risks()
	q.Report.Files = append(q.Report.Files, report.File{Path: "run.sh", Kind: "update"}, report.File{Path: "logo.png", Kind: "update"})
	q.Diff = []byte(strings.Replace(theDiff, "func main() {}", "func main() { /* \u202e */ }", 1))
	q.Needs = append(q.Needs,
		policy.Need{Kind: policy.KindSecret, Prefix: "secret:", Required: 1},
		policy.Need{Kind: policy.KindProtected, Prefix: "protected:", Required: 2, Users: []string{"ada"}, Teams: []string{"acme/sec"}, Owners: true, Paths: []string{"main.go"}},
		policy.Need{Kind: policy.KindProtected, Prefix: "protected:", Required: 1, Paths: []string{".github/workflows/ci.yml"}})
	q.Approvals.SameHead, q.Approvals.MaxAge = true, policy.Duration(14*24*time.Hour)
	commits := 20
	q.Approvals.Drift = &policy.Drift{Commits: &commits, SameDirectory: policy.Ask}
	q.Commands = []string{"go test ./...", "make `lint`"}
	return q
}

func comment() report.Comment {
	green := proposal()
	green.Verdict.Decisions = []approval.Judged{
		{Author: ada, Source: approval.KindReview, Reason: "a green review does not name the patch; paste the line"},
	}
	return report.Comment{
		Transactions: []report.Report{numbered(denied(), 2), numbered(green, 1), numbered(applied(), 3), numbered(drifted(), 4)},
		Threads:      map[string]string{numbered(green, 1).TransactionID: "https://github.example/acme/app/pull/12#discussion_r5"},
		Notes:        []string{report.NoteNoCI},
		Web:          "https://github.example/acme/app",
		Obstacles: []report.Obstacle{
			{Code: "fork_closed", What: "the head branch is in a fork, and its owner does not allow maintainers to push to it", Instead: `ask the author to tick "Allow edits by maintainers", or take the patch as a file (countersign export tx --out DIR), or, once it is approved, as its own ref (countersign apply tx --to ref)`},
			{Code: "workflows_permission", What: "the change touches workflow files, and the push token must not write them", Instead: "use an App's token with the permission workflows as push-token, or take the patch as a file (countersign export tx --out DIR)"},
		},
	}
}

func guard(of ...report.Report) report.Guard {
	return report.Guard{HeadCommit: strings.Repeat("c", 40), Transactions: of}
}
