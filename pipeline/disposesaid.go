package pipeline

import (
	"context"
	"errors"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// DisposeSaid records what the author of a comment on an issue found of an exception, as the forge tells it now, and reports whether it was
// not recorded before. It refuses (fault.Refused) what Dispose would, and what the gate would of an approval. A comment that is gone, or by
// somebody who may not approve, is fault.Barred.
func (r *Runner) DisposeSaid(ctx context.Context, on forge.Reviews, issue int, id string) (d *observation.Disposition, fresh bool, err error) {
	rules, err := r.CurrentRules(ctx, "")
	if err != nil { // that is nothing to answer a comment with
		return nil, false, &fault.Error{Kind: fault.Failed, Message: err.Error()}
	}
	c, err := readComment(ctx, on, issue, id)
	if err != nil {
		return nil, false, err
	}
	if who := c.Statement.Author; rules.Policy.IsBot(who.ID, who.Login) {
		return nil, false, fault.Bar("the Policy lists its author under bots", "")
	}
	if why := approval.Refused(rules.Policy, c.Access); why != "" {
		return nil, false, fault.Bar("its author "+why, "")
	}
	if rules.Policy.Approvals.Signing() == policy.SignedOnly {
		return nil, false, fault.Refuse("the Policy asks for signatures, and a comment has none: it would not count", "")
	}
	if d, err = c.Disposition(); err != nil {
		return nil, false, fault.Refuse(err.Error(), "")
	}
	if canon.IsGitID(d.About) {
		err = wroteCommit(ctx, on, d)
	} else {
		err = r.tookPart(ctx, d)
	}
	if err == nil {
		fresh, err = r.observe(ctx, d, rules, rules.Commit)
	}
	return d, fresh, err
}

// readComment reads a comment, and asks what its author may do. Of who is no person nobody asks.
func readComment(ctx context.Context, on forge.Reviews, issue int, id string) (c observation.Comment, err error) {
	c.Statement, err = on.IssueComment(ctx, issue, id)
	if errors.Is(err, forge.ErrNotFound) {
		return c, fault.Bar("it is gone", "")
	}
	if who := c.Statement.Author; err == nil && who.Kind == "user" && who.ID != "" {
		c.Access, err = on.Access(ctx, who)
	}
	return c, err
}

// tookPart refuses a transaction that is not there, and one that the reviewer had a part in.
func (r *Runner) tookPart(ctx context.Context, d *observation.Disposition) error {
	snap, id, err := r.Find(ctx, d.About, false)
	if errors.Is(err, lookup.ErrNotFound) || errors.Is(err, lookup.ErrNoTransactions) {
		return fault.Refuse("the ledger has no such transaction", "")
	}
	if err != nil {
		return err
	}
	part, err := r.Part(ctx, snap.Tree, id, ledger.Source{Kind: approval.KindIssueComment, Author: d.Author})
	if err == nil && part != "" {
		err = fault.Refuse("its author "+part, "")
	}
	return err
}

// wroteCommit refuses a commit that is not there, and one that the reviewer wrote, as the forge tells: where it tells no account of somebody
// who did, no account can review that.
func wroteCommit(ctx context.Context, on forge.Reviews, d *observation.Disposition) error {
	by, strangers, err := on.CommitAuthors(ctx, d.About)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return fault.Refuse("the repository has no such commit", "")
	case err != nil:
		return err
	case slices.ContainsFunc(by, func(who ledger.Actor) bool { return approval.Same(who, d.Author) }):
		return fault.Refuse("its author wrote or committed that", "")
	case strangers:
		return fault.Refuse("somebody of no account wrote or committed that, so that nobody can tell whether its author did: use countersign dispose in a clone", "")
	}
	return nil
}
