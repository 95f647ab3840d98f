package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A Stage is one of those that a proposal goes through after its review.
type Stage int

// The stages, in their order.
const (
	StageGate Stage = iota + 1
	StageApply
	StageValidate
)

// Facts are what a run knows of a transaction beside its record. Nobody changes
// them.
type Facts struct {
	Asked     bool           // the gate was asked in this run
	Verdict   approval.State // what it said
	Applied   bool           // the change was applied in this run, or found to have been before
	Validated bool           // this run has validated it
}

// A Step is what a transaction's record and the facts ask for next.
type Step int

// The steps. StepStop says that there is nothing more to do on the way, or that
// people, or what they decided, keep the transaction from going on.
const (
	StepStop Step = iota
	StepGate
	StepApply
	StepValidate
)

// Next says what a transaction needs next to get as far as a stage. It is the
// one place that knows in which order things happen:
//
//   - nothing is applied that was not at the gate in the same run;
//   - what was begun is ended, whatever was decided since: apply then records
//     what it finds, and writes nothing that was denied;
//   - a pull request's own diff is merged, and never applied.
func Next(log *ledger.Log, f Facts, until Stage) Step {
	tx := log.Transaction()
	begun := log.Applying() || tx.Status == ledger.Applied
	switch {
	case !f.Asked:
		return StepGate
	case f.Verdict != approval.Approved && !begun && !f.Applied:
		return StepStop
	case until < StageApply || tx.GateOnly():
		return StepStop
	case !f.Applied:
		return StepApply
	case until < StageValidate || f.Validated:
		return StepStop
	}
	return StepValidate
}

// Ahead says how far a transaction is to go, and where its change goes.
type Ahead struct {
	Until Stage
	ApplyOptions
}

// An Outcome is what became of a transaction in one run: the record as the last
// stage left it with the Verdict on it, and what each stage came to, nil where
// the run did not get so far.
type Outcome struct {
	Judgement
	Applied   *ApplyOutcome
	Validated *Validation
	Learnt    Known
}

// facts are those that the stages so far have found.
func (o Outcome) facts() Facts {
	return Facts{
		Asked: o.log != nil, Verdict: o.Verdict.State,
		Applied: o.Applied != nil && o.Applied.Result.Outcome == ledger.OutcomeSuccess, Validated: o.Validated != nil,
	}
}

// Status is that of the transaction.
func (o Outcome) Status() ledger.Status { return o.Transaction().Status }

// Advance takes a transaction as far as its approvals allow. The error is why it
// did not get there: people have not approved, or denied, or what a stage met.
// Without one the last stage has succeeded. An Outcome comes with it wherever the
// transaction could be read.
func (r *Runner) Advance(ctx context.Context, id string, to Ahead) (Outcome, error) {
	g, err := r.Gate(ctx, id)
	if err != nil {
		return Outcome{Judgement: g, Learnt: r.Known()}, err
	}
	return r.Continue(ctx, Outcome{Judgement: g, Learnt: r.Known()}, to)
}

// Continue is Advance for a transaction that was at the gate in this run, and of
// which a person, or a pull request, has been asked in between.
func (r *Runner) Continue(ctx context.Context, o Outcome, to Ahead) (Outcome, error) {
	for {
		var err error
		switch Next(o.log, o.facts(), to.Until) {
		case StepStop:
			return o, o.stopped(to.Until)
		case StepGate:
			o.Judgement, err = r.Gate(ctx, o.Transaction().TransactionID)
		case StepApply:
			err = r.With(o.Learnt).applyTo(ctx, &o, to.ApplyOptions)
		case StepValidate:
			err = r.With(o.Learnt).validated(ctx, &o)
		}
		if err != nil {
			return o, err
		}
	}
}

// stopped is Ending, and of an approved diff of a pull request itself, which has
// nothing that could be applied, ErrGateOnly.
func (o Outcome) stopped(until Stage) error {
	err, tx := o.Ending(), o.Transaction()
	if err == nil && until >= StageApply && tx.GateOnly() {
		return gateOnly(tx)
	}
	return err
}

// applyTo adds what Apply came to.
func (r *Runner) applyTo(ctx context.Context, o *Outcome, options ApplyOptions) error {
	applied, err := r.Apply(ctx, o.Judgement, options)
	o.Applied = &applied
	if applied.Learnt.Secrets != nil {
		o.Learnt = applied.Learnt
	}
	if err == nil && applied.Result.Outcome != ledger.OutcomeSuccess {
		err = Unapplied(applied.Result)
	}
	if err != nil { // and on record, perhaps
		applied.Ledger = writing.Snapshot{}
	}
	return errors.Join(err, r.reread(ctx, o, applied.Ledger))
}

// validated adds what Validate came to.
func (r *Runner) validated(ctx context.Context, o *Outcome) error {
	v, err := r.Validate(ctx, o.Transaction().TransactionID)
	if err != nil {
		return err
	}
	o.Validated = &v
	if !v.Report.OK {
		err = unproven(v)
	}
	return errors.Join(err, r.reread(ctx, o, v.Ledger))
}

// reread takes over the record as a stage left it; the Verdict stays what the
// gate said.
func (r *Runner) reread(ctx context.Context, o *Outcome, after writing.Snapshot) (err error) {
	id := o.Transaction().TransactionID
	if after.Tree == nil {
		if after, err = r.Ledger(ctx, Paths(id)...); err != nil {
			return err
		}
	}
	log, err := lookup.Read(after.Tree, id)
	if err == nil {
		o.Ledger, o.log = after, log
	}
	return err
}

// Ending is why a transaction goes no further: nil where it is approved, else a
// *PendingError or a *DeniedError, and of one that has ended, which waits for
// nobody any more, a *SupersededError or *ClosedError.
func (g Judgement) Ending() error {
	err := g.Err()
	if err == nil || g.Verdict.State == approval.Denied {
		return err
	}
	return cmp.Or(ended(g.Transaction()), err)
}

// unproven is an error that says of a transaction what does not validate.
func unproven(v Validation) error {
	first, try := v.Report.Violations[0], "countersign validate "+v.ID
	if slices.ContainsFunc(v.Report.Violations, func(v canon.Violation) bool { return v.RuleID == "READBACK" }) {
		try = "run it in the working tree where it was applied, with the files as the patch leaves them"
	}
	return fault.Fail(fmt.Sprintf("%s does not validate: %s %s: %s", v.ID, first.RuleID, first.Path, first.Message), try)
}
