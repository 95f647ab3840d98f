package pipeline

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// maxAdvice is how many records of advice a transaction takes, but for those that add a need.
const maxAdvice = 20

// Advise records what tools are said to have found in the patch of a transaction, by the word of who runs this. Where the Policy asks
// for people because of it, they are asked: those of a pull request by its next gate, as it is not read here.
func (r *Runner) Advise(ctx context.Context, id string, said []approval.Advice) (Judgement, error) {
	g, after, err := Update(ctx, r, Paths(id), func(snap writing.Snapshot) (Try[Judgement], error) {
		g, err := r.judge(ctx, snap, id, nil)
		if err != nil {
			return Nothing(g, err)
		}
		tx := g.Transaction()
		if tx.Closed {
			return Nothing(g, ClosedError(id, tx.Status))
		}
		s := r.Stage(g.log)
		clean := r.claims(ctx, g)
		var tools []string
		for _, a := range said {
			before := len(s.Log.Events())
			if err := r.addAdvice(s, &g, clean(a)); err != nil {
				return Nothing(g, err)
			}
			if len(s.Log.Events()) > before {
				tools = append(tools, fmt.Sprintf("%s found %s", a.Tool, ledger.Plural(len(a.Findings)+a.More, "thing", "things")))
			}
		}
		if len(tools) == 0 {
			return Nothing(g, nil)
		}
		if g.Recorded = true; tx.PullRequest() == 0 && !g.Applying() && !g.history {
			g.Verdict = g.verdict(ctx, g.at)
			r.recordVerdict(ctx, s, g)
		}
		return Recording(g, s, writing.Title{Stage: "gate", Outcome: string(outcomeOf(s.Log.Transaction().Status, g.Verdict.State)), Subject: "advice: " + strings.Join(tools, ", ")})
	})
	g.Ledger = after
	return g, err
}

// outcomeOf is the outcome of a gate that did not look at a pull request: what its status says, where that says it.
func outcomeOf(status ledger.Status, state approval.State) approval.State {
	switch status {
	case ledger.Awaiting:
		return approval.Pending
	case ledger.Proposed:
		return approval.Approved
	}
	return state
}

// claims returns what makes advice one of the transaction, and takes out of its texts what looks like a secret, also one that the patch
// has. Where that cannot be read, messages are left out: they may quote it.
func (r *Runner) claims(ctx context.Context, g Judgement) func(approval.Advice) approval.Advice {
	tx := g.Transaction()
	set, err := g.Patchset(ctx)
	unknown := err != nil && tx.Pointers.Proposal.ContainsSecrets
	if err == nil {
		known := r.Known()
		known.Secrets, _, _ = r.Secrets.Learn(set)
		r = r.With(known)
	}
	return func(a approval.Advice) approval.Advice {
		a.Schema, a.TransactionID, a.Author, a.Version = approval.Schema(ledger.KindAdvice), tx.TransactionID, r.Actor, r.OneLine(a.Version, 100)
		if a.PatchID == "" {
			a.PatchID = tx.PatchID()
		}
		findings := a.Findings
		a.Findings = make([]approval.Claim, len(findings))
		for i, f := range findings {
			if unknown {
				f.Message = ""
			}
			f.Rule, f.File, f.Message = r.OneLine(f.Rule, 100), r.OneLine(f.File, approval.MaxAdviceText), r.OneLine(f.Message, approval.MaxAdviceText)
			a.Findings[i] = f
		}
		return a
	}
}

// asked are the needs of a Judgement, whatever they are behind.
func asked(g Judgement) []policy.Need {
	needs := slices.Clone(g.Needs())
	for i := range needs {
		needs[i].After = min(needs[i].After, 1)
	}
	return needs
}

// addAdvice records advice, unless it is there already, and tells the Judgement of it.
func (r *Runner) addAdvice(s *writing.Stage, g *Judgement, a approval.Advice) error {
	refuse := func(why string) error {
		return &fault.Error{Kind: fault.Refused, Message: why, Try: "docs/policy.md says what advice can be recorded"}
	}
	if err := a.Check(g.Transaction()); err != nil {
		return refuse(err.Error())
	}
	with, now := *g, len(s.Log.Events())
	for _, f := range a.Findings[:min(len(a.Findings), 1)] {
		with.advised = append(g.advised[:len(g.advised):len(g.advised)], policy.Advice{Tool: a.Tool, Level: f.Level, Event: now})
	}
	stored := len(s.Log.Artifacts(ledger.KindAdvice))
	if stored >= maxAdvice && (g.history || reflect.DeepEqual(asked(with), asked(*g))) {
		return refuse(fmt.Sprintf("%d records of advice are there already, and this one would ask for nothing more", stored))
	}
	s.Artifact(ledger.KindAdvice, a)
	all := s.Log.Artifacts(ledger.KindAdvice)
	if len(all) > stored && all[stored].Redacted {
		return refuse("the name or version of the tool looks like a secret, and the ledger keeps none")
	}
	if len(all) > stored && !g.history {
		*g = with
	}
	return nil
}
