package pipeline

import (
	"fmt"
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/pack"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/proposal"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/rule"
)

// The kinds of proposal (docs/formats.md).
const (
	KindPatch    = "patch"
	KindPack     = "pack"
	KindProposal = "proposal"
	KindWorktree = "worktree"
	KindRecipe   = "remove_todo_multi"

	KindPullRequest = ledger.KindPullRequest // a pull request's own diff
)

// An Input is a proposed change in any form that Review takes. Resolve puts it
// on the tree of the base commit; Raw is what was given, for provenance.
type Input struct {
	Kind     string
	Summary  string // the proposer's words, untrusted
	Raw      []byte
	Resolve  func(base fs.FS) (patch.Patchset, error)
	Needle   string             // of a recipe
	Source   *result.Source     // the document that the change comes from, if it has an id
	Proposal *proposal.Proposal // what else it asks for
	Trace    []any              // what the proposer did before, as ReadTrace gives it; untrusted

	// For: the pull request that the change is for, nil for none. Its head is
	// the base; of KindPullRequest the base is given.
	For      *forge.PullRequest
	Base     string
	Proposer *ledger.Actor // nil: whoever runs this
}

// computed reports whether the change was not given as a document, but made here.
func (in Input) computed() bool { return in.Kind == KindWorktree || in.Kind == KindRecipe }

// DiffInput reads a Git diff.
func DiffInput(raw []byte, summary string) (Input, error) {
	diff, err := patch.Parse(raw)
	if err != nil {
		return Input{}, err
	}
	return Input{Kind: KindPatch, Summary: summary, Raw: raw, Resolve: diff.Resolve}, nil
}

// An InvalidError is a document that breaks the rules of its format.
type InvalidError struct {
	What       string // "patch.json" or "proposal"
	Violations []rule.Violation
}

func (e *InvalidError) Error() string {
	v := e.Violations[0]
	msg := fmt.Sprintf("%s: %s", v.RuleID, v.Message)
	if v.Path != "" {
		msg = fmt.Sprintf("%s at %s: %s", v.RuleID, v.Path, v.Message)
	}
	if n := len(e.Violations); n > 1 {
		return fmt.Sprintf("%s has %d violations, the first is %s", e.What, n, msg)
	}
	return e.What + " is not valid: " + msg
}

// PackInput reads a patch.json. Unlike pack apply it checks expected_hash.
func PackInput(raw []byte, summary string) (Input, error) {
	doc, err := canon.Parse(raw)
	if err != nil {
		return Input{}, &patch.Error{Message: err.Error()}
	}
	if found := pack.Verify(doc, pack.MaxBytes); len(found) > 0 {
		return Input{}, &InvalidError{"patch.json", found}
	}
	p, err := pack.Decode(doc)
	if err != nil {
		return Input{}, err
	}
	ops := make([]patch.Operation, 0, len(p.Operations))
	for _, o := range p.Operations {
		if err := o.CheckHash(); err != nil {
			return Input{}, &patch.Error{Message: err.Error()}
		}
		ops = append(ops, operation(o.Op, o.Path, o.Content))
	}
	return Input{
		Kind: KindPack, Summary: summary, Raw: raw, Resolve: operations(ops),
		Source: &result.Source{ProposalID: p.SourceProposalID, ProposalHash: p.SourceProposalHash},
	}, nil
}

// ProposalInput reads a Proposal; bundle is the parsed document it must come
// from, nil where none was given, and p says which commands it may name. Its commands, checks and acceptance tests
// travel with the transaction; whatever requires_approval says, the gate stays.
func ProposalInput(raw []byte, bundle any, p policy.Policy, summary string) (Input, error) {
	doc, err := canon.Parse(raw)
	if err != nil {
		return Input{}, &patch.Error{Message: err.Error()}
	}
	if found := proposal.VerifyStrict(doc, proposal.Strict{Bundle: bundle, HasBundle: bundle != nil, Commands: commandNames(p)}); len(found) > 0 {
		return Input{}, &InvalidError{"the proposal", found}
	}
	asked, err := proposal.Decode(doc)
	if err != nil {
		return Input{}, err
	}
	hash, err := proposal.Hash(doc)
	if err != nil {
		return Input{}, err
	}
	var ops []patch.Operation
	for _, a := range asked.Files() {
		ops = append(ops, operation(fileOps[a.Type], a.Target, a.Content))
	}
	if summary == "" {
		summary = asked.Summary
	}
	return Input{
		Kind: KindProposal, Summary: summary, Raw: raw, Resolve: operations(ops), Proposal: &asked,
		Source: &result.Source{ProposalID: asked.ID, ProposalHash: hash},
	}, nil
}

// commandNames are the commands that the Policy runs or allows, as a Proposal
// writes them.
func commandNames(p policy.Policy) []string {
	var out []string
	for _, c := range p.Commands.Run {
		out = append(out, text(c.Command))
	}
	for _, c := range p.Commands.Allow {
		out = append(out, text(c))
	}
	return out
}

var fileOps = map[string]string{
	proposal.CreateFile: "create", proposal.ModifyFile: "modify", proposal.DeleteFile: "delete",
}

func operation(op, path string, content *string) patch.Operation {
	o := patch.Operation{Op: op, Path: path}
	if content != nil {
		o.Content = []byte(*content)
	}
	return o
}

func operations(ops []patch.Operation) func(fs.FS) (patch.Patchset, error) {
	return func(base fs.FS) (patch.Patchset, error) { return patch.FromOperations(base, ops) }
}
