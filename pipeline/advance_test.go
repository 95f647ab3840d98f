package pipeline_test

import (
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// TestNext: the order of the stages, as data.
func TestNext(t *testing.T) {
	w := newWorld(t)
	tx := w.review().ID
	at := func() *ledger.Log {
		log := w.log(tx)
		return log
	}
	proposed := at()
	w.gate(tx)
	w.says(ada, ledger.Approve, tx)
	run := w.as(bot)
	run.Store = &lastStore{w.store, 2}
	if _, err := run.Apply(t.Context(), w.gate(tx), pipeline.ApplyOptions{}); err == nil {
		t.Fatal("the outcome was recorded")
	}
	cutOff := at()
	w.apply(w.gate(tx))
	applied := at()
	asked := func(s approval.State) pipeline.Facts { return pipeline.Facts{Asked: true, Verdict: s} }
	for _, c := range []struct {
		what  string
		log   *ledger.Log
		facts pipeline.Facts
		until pipeline.Stage
		want  pipeline.Step
	}{
		{"nobody was asked", proposed, pipeline.Facts{}, pipeline.StageValidate, pipeline.StepGate},
		{"approved in the record, and nobody was asked in this run", proposed, pipeline.Facts{Verdict: approval.Approved}, pipeline.StageValidate, pipeline.StepGate},
		{"a verdict that is none", proposed, asked(""), pipeline.StageValidate, pipeline.StepStop},
		{"pending", proposed, asked(approval.Pending), pipeline.StageValidate, pipeline.StepStop},
		{"denied", proposed, asked(approval.Denied), pipeline.StageValidate, pipeline.StepStop},
		{"approved", proposed, asked(approval.Approved), pipeline.StageValidate, pipeline.StepApply},
		{"approved, and no further", proposed, asked(approval.Approved), pipeline.StageGate, pipeline.StepStop},
		{"cut off, and denied since", cutOff, asked(approval.Denied), pipeline.StageValidate, pipeline.StepApply},
		{"applied before", applied, asked(approval.Approved), pipeline.StageValidate, pipeline.StepApply},
		{"applied", applied, pipeline.Facts{Asked: true, Verdict: approval.Approved, Applied: true}, pipeline.StageValidate, pipeline.StepValidate},
		{"applied, and no further", applied, pipeline.Facts{Asked: true, Verdict: approval.Approved, Applied: true}, pipeline.StageApply, pipeline.StepStop},
		{"validated", applied, pipeline.Facts{Asked: true, Verdict: approval.Approved, Applied: true, Validated: true}, pipeline.StageValidate, pipeline.StepStop},
	} {
		if got := pipeline.Next(c.log, c.facts, c.until); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}
