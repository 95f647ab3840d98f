package review

import (
	"context"
	"slices"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/risk"
)

// Explain says what a patch would meet, and records nothing.
func Explain(ctx context.Context, r *pipeline.Runner, in input.Change) (risk.Explanation, pipeline.Known, error) {
	g, err := reviewer{r}.gather(ctx, in)
	if err != nil {
		return risk.Explanation{}, g.known, err
	}
	var secrets []plain.ExplainedSecret
	for _, f := range g.found {
		secrets = append(secrets, plain.ExplainedSecret(f))
	}
	e := plain.Patch(g.rules.Policy, g.rules.Commit, g.ID, g.Set.Paths(), secrets)
	for i, p := range e.Paths {
		if !slices.ContainsFunc(p.Rules, func(m plain.Met) bool { return m.Owners }) || g.rules.OwnersOf == nil {
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
	return risk.Explanation{Explanation: e, Risks: g.risks.Under(g.rules.Policy, g.Set.Paths())}, g.known, nil
}
