package pipeline

import (
	"context"

	"github.com/countersign-dev/countersign/pipeline/disposition"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Dispose records what the person at hand found of an exception, a commit or a transaction, in a transaction of its own:
// that of the exception may be over. sign, unless it is nil, signs the statement. Whether it counts is judged where
// exceptions are listed.
func (r *Runner) Dispose(ctx context.Context, about string, as disposition.Outcome, reason string, sign func(statement []byte) (armored string, err error)) (disposition.Disposition, error) {
	d := disposition.Disposition{Schema: disposition.Schema, About: about, As: as, Author: r.Decider, Reason: r.OneLine(reason, 500)}
	if d.Author.ID == "" {
		return d, ErrNobody
	}
	rules, err := r.CurrentRules(ctx, "")
	if err != nil {
		return d, err
	}
	if sign == nil && rules.Policy.Approvals.Signing() == policy.SignedOnly {
		return d, &fault.Error{Kind: fault.Refused, Message: "the Policy asks for signatures, and this one has none: it would not count", Try: "sign it: --sign"}
	}
	base, err := r.Repo.Head(ctx)
	if err != nil {
		return d, err
	}
	if d.TransactionID, err = writing.NewID(r.Now(), r.Entropy); err != nil {
		return d, err
	}
	if sign != nil {
		if d.Signature, err = r.signDisposition(d, rules, sign); err != nil {
			return d, err
		}
	}
	_, _, err = Update(ctx, r, []string{ledger.Day(r.Now())}, func(snap writing.Snapshot) (Try[none], error) {
		if snap.Tip == "" {
			return Nothing(none{}, lookup.ErrNoTransactions)
		}
		summary := string(d.As) + " " + about + ": " + d.Reason
		s := r.Stage(&ledger.Log{})
		s.Event(&ledger.Meta{
			TransactionID: d.TransactionID, WorkspaceRoots: []string{"."}, CWD: ".", SandboxPolicy: ledger.SandboxPolicy{Type: string(policy.ReadOnly), WritableRoots: []string{}},
			ApprovalPolicy: ledger.ApprovalPolicy{Required: rules.Policy.Approvals.Required, Local: rules.Policy.Approvals.Local.Counts(false)},
			Proposer:       d.Author, BaseCommit: base, PolicyCommit: rules.Commit, Summary: summary,
		})
		s.Status(ledger.InProgress, "an exception was reviewed")
		s.Artifact(disposition.Kind, d)
		if stored := s.Log.Artifacts(disposition.Kind); len(stored) == 1 && stored[0].Redacted {
			return Nothing(none{}, &fault.Error{Kind: fault.Refused, Message: "what is to be recorded looks like a secret, and the ledger keeps none", Try: "give another reason"})
		}
		began, err := s.Entry(writing.Title{Stage: "review", Outcome: string(ledger.InProgress), Subject: summary}, false)
		if err != nil {
			return Nothing(none{}, err)
		}
		s = r.Stage(s.Log)
		s.Status(ledger.Interrupted, "it proposes nothing")
		s.Close()
		ended, err := s.Entry(writing.Title{Stage: "close", Outcome: string(ledger.Interrupted), Subject: summary}, false)
		if err != nil {
			return Nothing(none{}, err)
		}
		return Try[none]{Entries: []writing.Entry{*began, *ended}}, nil
	})
	return d, err
}

// signDisposition signs it with a key that the Policy lists for its author.
func (r *Runner) signDisposition(d disposition.Disposition, rules Rules, sign func([]byte) (string, error)) (*disposition.Signed, error) {
	if rules.Keys.Err != nil {
		return nil, rules.Keys.Err
	}
	armored, err := sign(d.Statement())
	if err != nil {
		return nil, err
	}
	d.Signature = &disposition.Signed{Armored: armored}
	proof, err := d.Prove(rules.Keys.Allowed, r.Now())
	if err == nil {
		err = rules.Keys.Take(proof)
	}
	if err != nil {
		return nil, &fault.Error{Kind: fault.Refused, Message: "the signature would not count: " + err.Error(), Try: "docs/evidence.md says which key does", Cause: err}
	}
	return &disposition.Signed{Armored: armored, Line: proof.Line}, nil
}
