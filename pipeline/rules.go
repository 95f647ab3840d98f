package pipeline

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Rules are the Policy that holds at a moment, the commit that it was read from, and
// the keys that this commit lists. Found is false where that commit has no Policy
// file.
type Rules struct {
	Policy policy.Policy
	Commit string
	Head   string // HEAD at that moment, where that was asked for
	Found  bool
	Keys   approval.Keys
	// OwnersOf tells the code owners of a path, by CODEOWNERS of the commit. Nil where the
	// Policy asks for none.
	OwnersOf func(path string) ([]string, error)
}

// ReadRules reads the Policy of a commit, and that of another which may only
// make it stricter: the base branch of a pull request ("" for none). A Policy
// that cannot be read, or whose commit is not there, is an error.
func ReadRules(ctx context.Context, repo code.Repository, commit, base string) (Rules, error) {
	tree, err := repo.Tree(ctx, commit)
	if err != nil {
		return Rules{}, fmt.Errorf("reading the Policy: %w", err)
	}
	p, found, err := policy.Read(tree)
	if err != nil {
		return Rules{}, fmt.Errorf("in commit %.12s: %w", commit, err)
	}
	for _, recipient := range p.Secrets.SealTo {
		if err := redact.CheckRecipient(recipient); err != nil {
			return Rules{}, fmt.Errorf("in commit %.12s: %s: secrets.seal_to: %w", commit, policy.Path, err)
		}
	}
	r := Rules{Policy: p, Commit: commit, Found: found, Keys: approval.ReadKeys(tree, p)}
	if base != "" && base != commit {
		tightening, err := ReadRules(ctx, repo, base, "")
		if err != nil {
			return r, err
		}
		if tightening.Found {
			r.Policy = policy.Tighten(p, tightening.Policy)
			r.Keys.Hardware, r.Keys.PIN = r.Policy.Approvals.Hardware, r.Policy.Approvals.PIN
		}
	}
	if slices.ContainsFunc(r.Policy.Protected, func(p policy.Rule) bool { return p.Owners }) {
		rules, err := forge.ReadOwners(tree)
		r.OwnersOf = func(path string) ([]string, error) { return rules.Of(path), err }
	}
	return r, nil
}

// CurrentRules asks for the Policy. It is recorded as it is, so that it must hold
// nothing that would be taken out.
func (r *Runner) CurrentRules(ctx context.Context, base string) (Rules, error) {
	rules, err := r.Rules(ctx, base)
	if err != nil {
		return Rules{}, err
	}
	err = r.Secrets.Refuse(policy.Path, string(rules.Policy.JSON()), "the Policy is recorded with every transaction; name the variable that holds it instead")
	if err != nil {
		return Rules{}, err
	}
	return rules, nil
}

// ref is how events name the Policy that they went by.
func (r Rules) ref() ledger.PolicyRef {
	return ledger.PolicyRef{Commit: r.Commit, SHA256: r.Policy.Sum()}
}

// Note keeps the Policy as an artifact.
func (r Rules) Note(s *writing.Stage) {
	s.Artifact(approval.KindPolicy, forge.PolicyDoc(r.Policy, r.Commit, r.Found))
}

// recorded reads the Policy that an apply went by from the transaction itself.
func recorded(tree fs.FS, log *ledger.Log, ref ledger.PolicyRef) (Rules, error) {
	id := log.Transaction().TransactionID
	dir, err := fs.Sub(tree, ledger.Dir(id))
	if err != nil {
		return Rules{}, err
	}
	p, doc, err := new(approval.Policies).Recorded(dir, log, ref)
	if err != nil {
		return Rules{}, &ledger.CorruptError{ID: id, Err: err}
	}
	return Rules{Policy: p, Commit: doc.Commit, Found: doc.Found}, nil
}

// OpensPulls reports whether the Policy has transactions become pull requests.
func (r *Runner) OpensPulls(ctx context.Context) (bool, error) {
	rules, err := r.Rules(ctx, "")
	return rules.Policy.Apply.To == policy.ToPullRequest, err
}
