package report

import (
	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/result"
)

// The states of a check run.
const (
	CheckCompleted  = "completed"
	CheckInProgress = "in_progress"
)

// The conclusions of a completed check run that this package draws.
const (
	CheckSuccess        = "success"
	CheckNeutral        = "neutral"
	CheckFailure        = "failure"
	CheckActionRequired = "action_required"
)

// transactionCheck begins the name of each transaction's check run.
const transactionCheck = "countersign/"

// CheckRun renders the report as a check run of its own name. A proposal that
// nobody answered, or that a human denied, is neutral: it must not paint a pull
// request red.
func (r Report) CheckRun() forge.Check {
	c := forge.Check{
		Name: transactionCheck + r.PatchID[:min(12, len(r.PatchID))], Title: r.title(), ExternalID: r.TransactionID,
		Status: CheckCompleted, Conclusion: r.conclusion(), Text: r.resultBlock(),
	}
	if r.Status == ledger.Created || r.Status == ledger.InProgress {
		c.Status, c.Conclusion = CheckInProgress, ""
	}
	marker := tipMarker(r.LedgerRef, r.LedgerCommit)
	p := newPage(MaxCheckText - len(marker))
	var cut string
	c.Annotations, cut = r.annotations()
	r.write(p, "###")
	p.write(cut)
	c.Summary = p.String() + marker
	return c
}

func (r Report) title() string {
	title := string(r.Status)
	switch {
	case r.ApplyResult != nil:
		title = string(r.ApplyResult.Outcome) + ", " + r.filesLine()
	case r.Ended != "":
		title += ", " + r.filesLine()
	case r.Verdict != nil:
		title = string(r.Verdict.State) + ", " + r.filesLine()
	}
	if r.glassBroken() {
		title = "BREAK-GLASS: " + title
	}
	return Clean(title)
}

func (r Report) conclusion() string {
	switch {
	case r.Validation != nil && !r.Validation.OK, r.Status == ledger.Failed:
		return CheckFailure
	case r.ApplyResult != nil && r.ApplyResult.Outcome != result.Success:
		return CheckFailure
	case r.Status == ledger.Applied || r.Status == ledger.Completed:
		return CheckSuccess
	case r.GateOnly && r.Ended == "" && r.Verdict != nil && r.Verdict.State == approval.Approved:
		return CheckSuccess
	}
	return CheckNeutral
}

// resultBlock is the canonical ApplyResult, whole or not at all: half of a
// document has another hash and no meaning.
func (r Report) resultBlock() string {
	if r.ApplyResult == nil {
		return ""
	}
	line, err := canon.Line(r.ApplyResult)
	if err != nil {
		return "The ApplyResult cannot be written: " + words(err.Error()) + "\n"
	}
	if text := fenced("json", string(line)); len(text) <= MaxCheckText {
		return text
	}
	return "The ApplyResult is too long to be shown here; the ledger has it" + r.seeAll() + ".\n"
}
