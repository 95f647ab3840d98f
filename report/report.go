// Package report says what became of a transaction: as text for a terminal, as
// one JSON document, as Markdown, and as a check run. It is pure, and it is the
// place where foreign text is made safe to show.
package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report/template"
	"github.com/countersign-dev/countersign/report/view"
)

// A Report is a transaction as far as it has got; what is not known yet is
// left out. It is what --json prints (docs/schema/report.json).
type Report struct {
	TransactionID string         `json:"transaction_id"`
	PatchID       string         `json:"patch_id"`
	InputSHA256   string         `json:"input_sha256,omitempty"` // of the file that was given to review; not the patch's
	Fingerprint   string         `json:"fingerprint"`
	Status        ledger.Status  `json:"status"`             // as the record has it
	State         plain.State    `json:"state,omitempty"`    // the same for people
	Redacted      bool           `json:"redacted,omitempty"` // the ledger has the patch without its secrets
	Summary       string         `json:"summary"`
	Proposer      ledger.Actor   `json:"proposer"`
	Author        *ledger.Author `json:"author,omitempty"`   // whom the patch names, unverified
	Message       string         `json:"message,omitempty"`  // what the commit says below its summary, unverified
	Declared      []string       `json:"declared,omitempty"` // and the trailers that the proposer declares
	CreatedAt     string         `json:"created_at"`
	UpdatedAt     string         `json:"updated_at"`
	BaseCommit    string         `json:"base_commit"`
	BaseBranch    string         `json:"base_branch,omitempty"` // the one that is checked out, where it has the commit
	GateOnly      bool           `json:"gate_only,omitempty"`   // the pull request's own diff: nothing is applied
	Ended         string         `json:"ended,omitempty"`       // why it ended without being carried out, nor denied

	// Only for a change of a pull request; HeadCommit is its head at review.
	Repository  *ledger.Repository `json:"repository,omitempty"`
	PullRequest int                `json:"pull_request,omitempty"`
	HeadCommit  string             `json:"head_commit,omitempty"`

	Offsets []patch.Offset `json:"offsets,omitempty"` // where the hunks of what was given were found, if not where they say

	Moved []string `json:"moved,omitempty"` // files that HEAD has not any more as the review found them

	Proposals []Proposed `json:"proposals,omitempty"` // where the patch came from, each time; the first first

	Supersedes    []string            `json:"supersedes,omitempty"` // the transactions whose place it took
	Confidence    *int                `json:"confidence,omitempty"` // 0 to 100, the proposer's own
	Risks         *risk.List          `json:"risks,omitempty"`      // of the patch, and what the Policy protects
	Files         []File              `json:"files"`
	Verdict       *approval.Verdict   `json:"verdict,omitempty"`
	ApplyResult   *ledger.ApplyResult `json:"apply_result,omitempty"`
	AppliedCommit string              `json:"applied_commit,omitempty"`
	AppliedBranch string              `json:"applied_branch,omitempty"` // in full: one of the clone that has the commit
	Validation    *canon.Report       `json:"validation,omitempty"`
	Next          string              `json:"next,omitempty"` // what happens next, in words
	LedgerRef     string              `json:"ledger_ref"`
	LedgerCommit  string              `json:"ledger_commit"`
	LedgerWeb     string              `json:"ledger_web,omitempty"` // address of the repository that keeps the ledger, if that is another than the remote
	Record        string              `json:"record,omitempty"`     // address of the transaction's page as that commit has it; "" where no server is known to have it

	// Diff is what a comment shows while it waits and no request has it: canonical
	// bytes, without secrets. It is nil elsewhere.
	Diff []byte `json:"-"`
}

// MoveLedger makes it a report of a later commit of the ledger.
func (r *Report) MoveLedger(tip string) {
	r.Record = strings.ReplaceAll(r.Record, "/"+r.LedgerCommit+"/", "/"+tip+"/")
	r.LedgerCommit = tip
}

// A File is one changed path.
type File = view.File

// New reports on a transaction. diff is its canonical bytes, verdict nil where there is none.
func New(log *ledger.Log, diff []byte, verdict *approval.Verdict) Report {
	tx := log.Transaction()
	p := tx.Pointers.Proposal
	r := Report{
		TransactionID: tx.TransactionID, PatchID: p.PatchID, Fingerprint: p.PatchFingerprint, Status: tx.Status,
		Summary: tx.Notes, Proposer: tx.Proposer, CreatedAt: tx.CreatedAt, UpdatedAt: tx.UpdatedAt,
		BaseCommit: p.BaseCommit, Confidence: p.Confidence, Verdict: verdict,
		GateOnly: tx.GateOnly(), Repository: p.Repository, PullRequest: p.PullRequest, HeadCommit: p.HeadCommit,
		Supersedes: p.Supersedes, Author: p.Author, Message: p.Message, Declared: p.Declared,
	}
	r.Ended, r.Redacted = view.Ended(log), p.PatchRedactedSHA256 != ""
	r.State = plain.StateOfLog(log, r.verdict().State)
	item, _ := writing.FileChange(log)
	r.Files = view.Files(item.Item.Changes, p, gitpatch.Stats(diff), gitpatch.Renamings(diff))
	return r
}

// applied is the ApplyResult, an empty one where nothing was begun.
func (r Report) applied() ledger.ApplyResult { return *cmp.Or(r.ApplyResult, &ledger.ApplyResult{}) }

// AppliedOutcome is SUCCESS, PARTIAL or FAILED, "" where nothing was begun: a
// refusal applies nothing.
func (r Report) AppliedOutcome() string {
	if outcome := r.applied().Outcome; outcome != ledger.OutcomeRefused {
		return string(outcome)
	}
	return ""
}

// Operations returns the ApplyResult's operations, failures first.
func (r Report) Operations() []ledger.Operation {
	ops := slices.Clone(r.applied().Operations)
	order := []ledger.OperationStatus{ledger.StatusError, ledger.StatusSkipped, ledger.StatusSuccess}
	slices.SortStableFunc(ops, func(a, b ledger.Operation) int { return slices.Index(order, a.Status) - slices.Index(order, b.Status) })
	return ops
}

// A Row is what became of one of many transactions (docs/schema/run_all.json).
type Row struct {
	TransactionID string         `json:"transaction_id"`
	PatchID       string         `json:"patch_id,omitempty"` // "" of a record that is damaged
	PullRequest   int            `json:"pull_request,omitempty"`
	Summary       string         `json:"summary"`
	Status        ledger.Status  `json:"status,omitempty"` // "" of a record that is damaged
	State         plain.State    `json:"state"`
	Verdict       approval.State `json:"verdict,omitempty"` // "" where there is none, as of a record that is damaged
	Reason        string         `json:"reason,omitempty"`  // of the verdict
	Outcome       ledger.Outcome `json:"outcome,omitempty"` // of the apply
	AppliedCommit string         `json:"applied_commit,omitempty"`
	ExitCode      int            `json:"exit_code"` // that `run` of it alone would have had
	Error         string         `json:"error,omitempty"`
	Risks         *risk.List     `json:"risks,omitempty"` // nil where the transaction could not be read
}

// Table shows rows to a person: one line each, below which the risks are where it waits
// for approvals, and the sum.
func Table(rows []Row, s Style) string {
	sum := map[string]int{}
	for _, r := range rows {
		sum[string(r.State)]++
	}
	counts := func() string {
		return view.Joined(slices.Sorted(maps.Keys(sum)), ", ", func(status string) string { return fmt.Sprintf("%d %s", sum[status], status) })
	}
	return s.with("table", rows, template.Funcs{
		"about": Row.about, "sum": counts, "several": func() bool { return len(rows) > 1 },
		"state": template.Raw(func(at plain.State) string { return s.paint(tones[at.Tone()], fmt.Sprintf("%-23s", at)) }),
		"risks": template.Raw(func(r Row) string {
			if r.Risks == nil || r.Verdict != approval.Pending {
				return ""
			}
			return Risks(*r.Risks, screenWidth, 1, s) // a line a kind
		}),
	})
}

// about is the most that a line has room for: what went wrong, else what is
// missing, else what it was about.
func (r Row) about() string {
	switch {
	case r.Error != "":
		return Clean(r.Error)
	case r.Verdict == approval.Pending && r.Reason != "":
		return Clean(plain.Reason(r.Reason))
	}
	return Quoted(r.Summary)
}

// Drift says in a line what else has changed since an approval; "" where nothing
// has, or nobody looked. It is safe to show on a terminal.
func Drift(d *approval.Drift) string {
	return driftIn(d, Clean, func(names []string) string { return Clean(shortenTo(strings.Join(names, ", "), 2*escape.MaxWords)) })
}

// drift is that in Markdown, with a link to the forge's comparison, or where there
// is none the command that compares.
func (r Report) drift(to Links) string {
	d := r.verdict().Drift
	text := driftIn(d, words, func(names []string) string { return codes(names, len(names)) })
	if text == "" {
		return ""
	}
	if d.From != "" && d.To != "" {
		text += " (" + to.compare(d.From, d.To) + ")"
	}
	return "What else has changed: " + text + ".\n\n"
}

func driftIn(d *approval.Drift, show func(string) string, list func([]string) string) string {
	switch {
	case d == nil || d.None():
		return ""
	case d.Unknown != "":
		return "since the approval, nobody can tell: " + show(d.Unknown)
	}
	text := Counted(d.Commits, "commit") + " since the approval, "
	switch {
	case d.Files == 0:
		return text + "but no file differs"
	case d.Beside == 0:
		return text + Counted(d.Files, "file") + " changed, none of them in a directory that this change touches"
	}
	text += fmt.Sprintf("%s changed, %d of them in a directory that this change touches: ", Counted(d.Files, "file"), d.Beside) + list(d.Names)
	if more := d.Beside - len(d.Names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// driftRow says in words how far the Policy lets the base move, "" for however far.
func driftRow(bound *policy.Drift) string {
	if bound == nil {
		return ""
	}
	var until []string
	if bound.Commits != nil {
		until = append(until, fmt.Sprintf("there are more than %s since", Counted(*bound.Commits, "commit")))
	}
	if bound.SameDirectory == policy.Ask {
		until = append(until, "another file changes in a directory of a touched one")
	}
	return "an approval holds until " + strings.Join(until, ", or ")
}

// A Proposed is one proposal of a patch: by whom, of what input, and with which words, none of the first,
// whose words are the report's.
type Proposed struct {
	Proposer ledger.Actor   `json:"proposer"`
	Input    ledger.Input   `json:"input"`
	Summary  string         `json:"summary,omitempty"`
	Author   *ledger.Author `json:"author,omitempty"`
	Message  string         `json:"message,omitempty"`
	Declared []string       `json:"declared,omitempty"`
	Trace    string         `json:"trace,omitempty"` // the path of the artifact

	RequestedBy []ledger.Requester `json:"requested_by,omitempty"`
}

// Proposals are those that a record has, the first first.
func Proposals(all []ledger.Provenance) []Proposed {
	var out []Proposed
	for i, p := range all {
		one := Proposed{Proposer: p.Proposer, Input: p.Input, RequestedBy: p.RequestedBy}
		if i > 0 {
			one = Proposed{p.Proposer, p.Input, p.Summary, p.Author, p.Message, p.Declared, p.Trace, p.RequestedBy}
		}
		out = append(out, one)
	}
	return out
}

// further are the proposals of the patch after the first.
func (r Report) further() []Proposed {
	return r.Proposals[min(1, len(r.Proposals)):]
}

// from says who made a proposal, and what it was.
func from(p Proposed) string {
	return Clean(p.Proposer.Login + " (" + p.Proposer.Kind + ", " + p.Proposer.ID + ") as " + lookup.Form(p.Input))
}
