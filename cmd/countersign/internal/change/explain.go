package change

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/report"
)

// ExplainCommand is policy explain, which takes a change in all the forms that review does.
func ExplainCommand(c *console.Console) *cobra.Command {
	var f reviewFlags
	explain := &cobra.Command{
		Use:     "explain --patch FILE",
		Short:   "Say which rules apply to a patch, path by path, and which approvals it needs",
		Example: "  countersign policy explain --patch fix.patch",
		Args:    console.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return policyExplain(cmd.Context(), c, f) },
	}
	f.Add(explain)
	return explain
}

func policyExplain(ctx context.Context, c *console.Console, f reviewFlags) error {
	s, err := session.Open(c)
	if err != nil {
		return err
	}
	in, name, err := Proposed(ctx, s, f)
	if err != nil {
		return err
	}
	e, learnt, err := review.Explain(ctx, s.Runner, in)
	c.Learn(learnt)
	if err != nil {
		return console.InFile(name, err)
	}
	e.Risks = *e.Risks.Redacted(c.Finder().Text)
	return c.Result(e, report.RiskLines(e.Risks, s.Style())+report.Asks(e.PolicyExplanation))
}
