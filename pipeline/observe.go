package pipeline

import (
	"context"
	"errors"
	"io/fs"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Dispose records what the person at hand found of an exception, a commit or a transaction. sign, unless it is nil, signs the
// statement. Whether it counts is judged where exceptions are listed.
func (r *Runner) Dispose(ctx context.Context, d *observation.Disposition, sign func(statement []byte) (armored string, err error)) error {
	if d.Author, d.Reason = r.Decider, r.OneLine(d.Reason, 500); d.Author.ID == "" {
		return ErrNobody
	}
	rules, err := r.CurrentRules(ctx, "")
	if err != nil {
		return err
	}
	if sign == nil && rules.Policy.Approvals.Signing() == policy.SignedOnly {
		return &fault.Error{Kind: fault.Refused, Message: "the Policy asks for signatures, and this one has none: it would not count", Try: "sign it: --sign"}
	}
	if err := r.identify(d); err != nil {
		return err
	}
	if sign != nil {
		if d.Signature, err = r.signDisposition(*d, rules, sign); err != nil {
			return err
		}
	}
	base, err := r.Repo.Head(ctx)
	if err != nil {
		return err
	}
	_, err = r.observe(ctx, d, rules, base)
	return err
}

// Part says which part somebody had in the change of a transaction, as observation.Part does, whose ledger is given.
func (r *Runner) Part(ctx context.Context, tree fs.FS, id string, who ledger.Source) (string, error) {
	log, err := lookup.Read(tree, id)
	if err != nil {
		return "", err
	}
	dir, err := fs.Sub(tree, ledger.Dir(id))
	if err != nil {
		return "", err
	}
	rules, err := r.CurrentRules(ctx, "")
	return observation.Part(dir, log, who, rules.Keys.Allowed), err
}

// Observe records what whoever runs this observed: a deployment, or settings. base is a commit of the repository that it names.
func (r *Runner) Observe(ctx context.Context, o observation.Observation, base string) error {
	o.Base().Author = r.Actor
	if err := r.identify(o); err != nil {
		return err
	}
	rules, err := r.CurrentRules(ctx, "")
	if err != nil {
		return err
	}
	_, err = r.observe(ctx, o, rules, base)
	return err
}

// identify gives an observation the id of its transaction.
func (r *Runner) identify(o observation.Observation) (err error) {
	o.Base().Schema = observation.Schema(o)
	o.Base().TransactionID, err = writing.NewID(r.Now(), r.Entropy)
	return err
}

// observe records an observation, which has its id, in a transaction of its own: that of what it is about may be over. base is the
// commit that it names. It reports whether the transaction was not there yet.
func (r *Runner) observe(ctx context.Context, o observation.Observation, rules Rules, base string) (bool, error) {
	if err := o.Check(r.Now()); err != nil {
		return false, &fault.Error{Kind: fault.Refused, Message: err.Error(), Try: "docs/evidence.md says what can be recorded", Cause: err}
	}
	fresh, _, err := Update(ctx, r, []string{ledger.Day(r.Now()), ledger.Dir(o.Base().TransactionID)}, func(snap writing.Snapshot) (Try[bool], error) {
		if snap.Tip == "" {
			return Nothing(false, lookup.ErrNoTransactions)
		}
		if _, err := fs.Stat(snap.Tree, ledger.Dir(o.Base().TransactionID)); !errors.Is(err, fs.ErrNotExist) {
			return Nothing(false, err)
		}
		s := r.Stage(&ledger.Log{})
		s.Event(&ledger.Meta{
			TransactionID: o.Base().TransactionID, WorkspaceRoots: []string{"."}, CWD: ".", SandboxPolicy: ledger.SandboxPolicy{Type: string(policy.ReadOnly), WritableRoots: []string{}},
			ApprovalPolicy: ledger.ApprovalPolicy{Required: rules.Policy.Approvals.Required, Local: rules.Policy.Approvals.Local.Counts(false)},
			Proposer:       o.Base().Author, BaseCommit: base, PolicyCommit: rules.Commit, Summary: o.Words(),
		})
		s.Status(ledger.InProgress, "it is about what is there")
		s.Artifact(o.Kind(), o)
		if stored := s.Log.Artifacts(o.Kind()); len(stored) == 1 && stored[0].Redacted {
			return Nothing(false, &fault.Error{Kind: fault.Refused, Message: "what is to be recorded looks like a secret, and the ledger keeps none", Try: "say it in other words"})
		}
		began, err := s.Entry(writing.Title{Stage: "review", Outcome: string(ledger.InProgress), Subject: o.Words()}, false)
		if err != nil {
			return Nothing(false, err)
		}
		s = r.Stage(s.Log)
		s.Status(ledger.Interrupted, "it proposes nothing")
		s.Close()
		ended, err := s.Entry(writing.Title{Stage: "close", Outcome: string(ledger.Interrupted), Subject: o.Words()}, false)
		if err != nil {
			return Nothing(false, err)
		}
		return Try[bool]{Value: true, Entries: []writing.Entry{*began, *ended}}, nil
	})
	return fresh, err
}

// signDisposition signs it with a key that the Policy lists for its author.
func (r *Runner) signDisposition(d observation.Disposition, rules Rules, sign func([]byte) (string, error)) (*observation.Signed, error) {
	if rules.Keys.Err != nil {
		return nil, rules.Keys.Err
	}
	armored, err := sign(d.Statement())
	if err != nil {
		return nil, err
	}
	d.Signature = &observation.Signed{Armored: armored}
	proof, err := d.Prove(rules.Keys.Allowed, r.Now())
	if err == nil {
		err = rules.Keys.Take(proof)
	}
	if err != nil {
		return nil, &fault.Error{Kind: fault.Refused, Message: "the signature would not count: " + err.Error(), Try: "docs/evidence.md says which key does", Cause: err}
	}
	return &observation.Signed{Armored: armored, Line: proof.Line}, nil
}
