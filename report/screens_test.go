package report_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report"
)

var now = time.Date(2026, 11, 23, 1, 30, 0, 0, time.UTC)

var newcomer = ledger.Actor{Kind: "user", ID: "local:ann@example.org", Login: "Ann Newcomer"}

// local is a change that somebody proposes in a clone.
func local() report.Report {
	r := proposal()
	r.TransactionID, r.PatchID = "tx_01M82YFRMRC61F83E0WJZEX4MA", "279c783e6f7b"+thePatch[12:]
	r.Status, r.Summary, r.Proposer, r.BaseCommit, r.BaseBranch = ledger.Proposed, "what it is for", newcomer, "db9d1d0"+strings.Repeat("0", 33), "main"
	r.Repository, r.PullRequest, r.HeadCommit, r.Record = nil, 0, "", ""
	r.Files = []report.File{{Path: "NEW.md", Kind: "add", Added: 2}, {Path: "doc.go", Kind: "update", Added: 1}}
	return r
}

// protected is one that touches a protected path too, which one person has approved so far.
func protected() report.Report {
	r := local()
	r.TransactionID, r.PatchID, r.BaseCommit = "tx_01M2FMPZKA809FHMRB5ED9YGRN", "c8242a2a5fe3"+thePatch[12:], "9a83730cb1f4"+strings.Repeat("0", 28)
	r.Summary, r.Proposer.Login, r.Status = "Release from CI instead of by hand", "claude-agent", ledger.Awaiting
	r.Files = []report.File{{Path: ".github/workflows/release.yml", Kind: "add", Added: 8}}
	list := risk.NewList(r.PatchID, []risk.Risk{{Kind: risk.Trusted, Path: ".github/workflows/release.yml", Detail: "GitHub runs it"}, {Kind: risk.Protected, Path: ".github/workflows/release.yml", Detail: "protected[0] /.github/**"}})
	r.Risks = &list
	said := judged(ledger.Actor{Kind: "user", ID: "local:ada@example.org", Login: "Ada Lindqvist"}, ledger.Approve, "local", "approved", true)
	said.Said, said.CreatedAt = "the script is fine", "2026-09-14T09:42:10Z"
	r.Verdict = verdict(approval.Pending, "1 of 1 approvals; protected_path: 0 of 1", 1, said)
	r.Verdict.Needs = append(r.Verdict.Needs, approval.Need{Kind: policy.KindProtected, Fingerprint: "protected:patchset:" + r.PatchID, Required: 1})
	return r
}

// screens are what a person reads on a terminal of some columns. Package cmd/countersign has those that errors and sync make.
func screens(columns int) map[string]string {
	waits, approved, done := local(), local(), local()
	approved.Verdict, approved.State = verdict(approval.Approved, "1 of 1 approvals", 1), plain.Approved
	done.Verdict, done.Status, done.State, done.ApplyResult = approved.Verdict, ledger.Completed, plain.Applied, &ledger.ApplyResult{Outcome: ledger.OutcomeSuccess, Operations: []ledger.Operation{
		{Op: "create", Path: "NEW.md", Status: ledger.StatusSuccess}, {Op: "modify", Path: "doc.go", Status: ledger.StatusSuccess}}}
	cest := report.Style{Zone: time.FixedZone("CEST", 2*3600)}
	prompt := report.Prompt{Report: waits, Decider: newcomer, Columns: columns, Rows: 24}

	row := func(end, summary string, age time.Duration, at plain.State, by ...string) report.Listed {
		return report.Listed{Transaction: ledger.Transaction{TransactionID: "tx_01M82YFRMRC61F83E0W" + end, CreatedAt: now.Add(-age).Format(ledger.TimeFormat), Notes: summary, Proposer: newcomer,
			Closed: at == plain.Denied, Pointers: ledger.Pointers{Proposal: &ledger.Proposal{AfterSHA256: map[string]*string{"doc.go": new(string)}}}}, State: at, By: by}
	}
	list := []report.Listed{
		row("K1A2CSR", "", 9*24*time.Hour, plain.Applied), row("KEA2CSR", "", 2*time.Minute, plain.Denied), row("J4BDT8B", "what it is for", time.Minute, plain.Approved, "Ann Newcomer"),
		row("JMBHB3D", "a long one, of which there is more to say than a screen has room for beside all that stands left of it", time.Minute, plain.Waits),
	}
	fitting, left := report.Fit(list, 5)
	return map[string]string{
		"prompt":  prompt.Page([]byte(theDiff), cest) + prompt.Standing() + prompt.Question([]string{policy.KindFileChange}, cest) + "\n",
		"waits":   waits.Result("", again, columns, cest),
		"approve": approved.Result("Ann Newcomer", again, columns, cest),
		"run":     done.Result("", again, columns, cest),
		"list":    report.Older(left, "countersign list --all") + report.Screen(fitting, now, columns, cest),
		"deny":    report.WhyDeny + "\n",
		"sync":    report.DeniedThere(ledger.Transaction{TransactionID: "tx_01M82YFRMRC61F83E0WE66E3NQ", Notes: "s"}, &ledger.ApprovalDecision{Reason: "no", Source: ledger.Source{Author: ledger.Actor{Login: "alice"}}}, true) + report.Publishes("refs/agent/ledger", "https://forge.example/ann/app", 3, 2) + " Go on? [y/N]\n",
		"show":    protected().Text(again, columns, false, cest),
	}
}

func TestScreens(t *testing.T) {
	for _, columns := range []int{80, 120} {
		for name, got := range screens(columns) {
			checkGolden(t, fmt.Sprintf("screens/%s-%d.txt", name, columns), got)
		}
	}
}
