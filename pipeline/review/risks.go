package review

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

// Risks are what people are shown of the patch before its diff: what this program
// finds in it, the list that the review recorded, and what the Policy of the Verdict
// protects. Whoever can write the ledger can record a list that leaves things out;
// where this program cannot look at the patch, the list says so before all else.
func Risks(ctx context.Context, g pipeline.Judgement) (risk.List, error) {
	recorded, err := recordedRisks(g)
	if err != nil {
		return risk.List{}, err
	}
	list, err := ownRisks(ctx, g)
	if err != nil {
		list = unlisted(ctx, g, err)
	}
	paths := g.Transaction().Pointers.Proposal.TargetFiles
	list = list.Under(g.Policy(), paths).Also(recorded)
	said, err := g.Advice()
	for _, a := range said {
		list = list.Claimed(a, paths)
	}
	return list, err
}

// recordedRisks reads the list that the review recorded, empty where there is none.
func recordedRisks(g pipeline.Judgement) (list risk.List, err error) {
	recorded := g.Log().Artifacts(ledger.KindRisks)
	if len(recorded) == 0 {
		return list, nil
	}
	id, file := g.Transaction().TransactionID, recorded[0].Path
	raw, err := ledger.ReadFile(g.Ledger.Tree, id, file)
	if err != nil {
		return list, fmt.Errorf("reading the risks: %w", err)
	}
	if list, err = risk.Read(raw); err != nil {
		return list, &ledger.CorruptError{ID: id, Err: fmt.Errorf("%s: %w", file, err)}
	}
	return list, nil
}

// ownRisks lists what this program finds in the patch.
func ownRisks(ctx context.Context, g pipeline.Judgement) (risk.List, error) {
	tx := g.Transaction()
	set, err := g.Patchset(ctx)
	if err != nil {
		return risk.List{}, err
	}
	_, found, _ := g.Secrets().Learn(set)
	return risk.NewList(tx.PatchID(), risk.Of(set, found)), nil
}

// unlisted says that this program could not look at the patch, and lists what the
// stored diff tells by itself.
func unlisted(ctx context.Context, g pipeline.Judgement, why error) risk.List {
	reason := ledger.OneLine(g.Secrets().Text(why.Error()), 200)
	if redacted := (*pipeline.RedactedError)(nil); errors.As(why, &redacted) {
		reason = "kept without secrets"
	} else if _, err := g.Source().Repo.Tree(ctx, g.Transaction().Pointers.Proposal.BaseCommit); err != nil {
		reason = "no base commit here"
	}
	all := []risk.Risk{{Kind: risk.Unlisted, Detail: "only the record says: " + reason}}
	if diff, err := g.Diff(); err == nil {
		if parsed, err := patch.Parse(diff); err == nil {
			all = append(risk.OfDiff(parsed, g.Secrets()), risk.Risk{Kind: risk.Unlisted, Detail: risk.DiffAlone + reason})
		}
	}
	return risk.NewList(g.Transaction().PatchID(), all)
}

// Explain says what a patch would meet, and records nothing.
func Explain(ctx context.Context, r *pipeline.Runner, in input.Change) (risk.Explanation, pipeline.Known, error) {
	g, err := reviewer{r}.gather(ctx, in)
	if err != nil {
		return risk.Explanation{}, g.known, err
	}
	var secrets []risk.ExplainedSecret
	for _, f := range g.found {
		secrets = append(secrets, risk.ExplainedSecret(f))
	}
	e := risk.ExplainPatch(g.rules.Policy, g.rules.Commit, g.ID, g.Set.Paths(), secrets)
	for i, p := range e.Paths {
		if !slices.ContainsFunc(p.Rules, func(m risk.Met) bool { return m.Owners }) || g.rules.OwnersOf == nil {
			continue
		}
		owners, err := g.rules.OwnersOf(p.Path)
		if err != nil {
			return risk.Explanation{}, g.known, err
		}
		e.Paths[i].OwnedBy = append([]string{}, owners...)
	}
	asked := checks.Asked{}
	if in.Proposal != nil {
		asked = askedBy(*in.Proposal)
	}
	for _, w := range checks.WantedCommands(g.rules.Policy, asked) {
		e.Commands = append(e.Commands, w.Target)
	}
	return risk.Explanation{PolicyExplanation: e, Risks: g.risks.Under(g.rules.Policy, g.Set.Paths())}, g.known, nil
}
