package review

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/document"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// gathered is what Review gathered before it looks at the ledger.
type gathered struct {
	input.Patch
	diff  []byte           // the canonical bytes
	found []redact.Finding // what the patch introduces
	risks risk.List        // of the patch alone
	rules pipeline.Rules
	mode  policy.Sandbox // the Policy's, or read-only where the proposer asks for that
	pull  *forge.PullRequest
	own   bool // it is the pull request's own diff
	known pipeline.Known

	proposer ledger.Actor
	replaces string // the transaction whose place it takes; only of no pull request
	placed   bool   // on a commit that was named
}

// seal encrypts a patch that is stored redacted for those that the Policy names.
func (g *gathered) seal(p policy.Policy) error {
	if g.Redacted() == "" || len(p.Secrets.SealTo) == 0 {
		return nil
	}
	var err error
	if g.Sealed, err = redact.Seal(g.diff, p.Secrets.SealTo); err != nil {
		err = fmt.Errorf("sealing the patch: %w", err)
	}
	return err
}

// propose builds the first stage: what is proposed, by whom, on what base, in
// the place of what.
func (r reviewer) propose(in input.Change, p gathered, supersedes []string) (*writing.Stage, error) {
	now := r.Now()
	id, err := writing.NewID(now, r.Entropy)
	if err != nil {
		return nil, err
	}
	in.Summary = r.OneLine(in.Summary, 500)
	in.Author = writing.AuthorIf(in.Author, now, r.Secrets.Text)
	s := writing.NewStage(&ledger.Log{}, now, r.Secrets)
	s.Event(&ledger.Meta{
		TransactionID: id, WorkspaceRoots: []string{"."}, CWD: ".",
		SandboxPolicy:  ledger.SandboxPolicy{Type: string(p.mode), WritableRoots: writable(p.mode)},
		ApprovalPolicy: ledger.ApprovalPolicy{Required: p.rules.Policy.Approvals.Required, Local: p.rules.Policy.Approvals.Local.Counts(in.For != nil)},
		Proposer:       p.proposer, BaseCommit: p.Base, PolicyCommit: p.rules.Commit, Summary: in.Summary,
	})
	s.Status(ledger.InProgress, "review started")
	s.Event(&ledger.TurnStart{TransactionID: id, TurnID: "turn_1", Input: in.Summary, Mode: "review"})
	s.Patch(p.ID, p.diff)
	if p.Sealed != nil {
		s.Sealed(p.ID, p.Sealed)
	}
	s.Proposed(p.ID, in.Number())
	p.rules.Note(s)
	s.Artifact(ledger.KindProvenance, in.Provenance(p.Patch, p.proposer, r.Tool))
	s.Artifact(ledger.KindRisks, p.risks.Under(p.rules.Policy, p.Set.Paths()))
	if in.Trace != nil {
		in.RecordTrace(s, r.Secrets.Text)
	}
	change := in.FileChange(p.Patch, p.rules.Policy)
	change.Metadata.Supersedes, change.Metadata.RequestedBy = supersedes, ledger.SortRequesters(in.RequestedBy)
	change.Metadata.Message, change.Metadata.Declared = in.Claims(r.Secrets.Text)
	if in.Proposal != nil {
		change.Metadata.Checks = s.Artifact("checks", askedBy(*in.Proposal))
	}
	s.Event(&ledger.TurnItem{TransactionID: id, TurnID: "turn_1", Item: change})
	s.Event(&ledger.TurnItem{TransactionID: id, TurnID: "turn_1", Item: p.Patch.Diff()})
	if in.Proposal != nil {
		s.Event(&ledger.TurnItem{TransactionID: id, TurnID: "turn_1", Item: in.Plan(r.Secrets.Text)})
	}
	s.Status(ledger.Proposed, "review recorded the proposal")
	return s, nil
}

// proposer is who proposes a change.
func (r reviewer) proposer(in input.Change) ledger.Actor {
	if in.Proposer != nil {
		return *in.Proposer
	}
	return r.Actor
}

// writable are the directories that a transaction's effects may write to.
func writable(mode policy.Sandbox) []string {
	if mode == policy.ReadOnly {
		return []string{}
	}
	return []string{"."}
}

// askedBy is what a Proposal asks for.
func askedBy(p document.Proposal) checks.Asked {
	doc := checks.Asked{Schema: checks.AskedSchema, ProposalID: p.ID, Actions: []checks.Action{}, Tests: []checks.Test{}}
	for _, a := range append(p.Commands(), p.Checks()...) {
		doc.Actions = append(doc.Actions, checks.Action{ID: a.ID, Type: a.Type, Target: a.Target, Content: a.Content, Required: a.Required, Description: a.Description})
	}
	for _, t := range p.AcceptanceTests {
		doc.Tests = append(doc.Tests, checks.Test(t))
	}
	return doc
}
