package decide

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// deployedCommand records that a commit was deployed.
func deployedCommand(c *console.Console) *cobra.Command {
	var d observation.Deployment
	cmd := &cobra.Command{
		Use:   "deployed COMMIT",
		Short: "Record that a commit was deployed, for the evidence",
		Long: `deployed records that a commit went to an environment; a pipeline runs it after it has deployed. Nothing is
approved or deployed by that. countersign evidence shows for each change the first deployment to each
environment that had its commit, or a later one of the branch, with who recorded it.

The commit is named by all digits of its id, as another name may mean another commit by now.`,
		Example: `  countersign deployed "$GITHUB_SHA" --to production
  countersign deployed "$(git rev-parse HEAD)" --to staging --at 2026-01-05T12:00:00Z --url https://ci.example.org/runs/7`,
		Args: console.ExactlyOne("no commit was named", `give all digits of its id: "$(git rev-parse HEAD)"`),
		RunE: c.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			d.Commit = args[0]
			return console.Outcome{}, deployed(cmd.Context(), c, &d)
		}),
	}
	cmd.Flags().StringVar(&d.Environment, "to", "", "the `ENVIRONMENT`: letters, digits and . _ / - (required)")
	cmd.Flags().StringVar(&d.DeployedAt, "at", "", "when it was deployed: a `TIME` such as 2026-01-05T12:00:00Z (default: now)")
	cmd.Flags().StringVar(&d.URL, "url", "", "where one can see that: a web `ADDRESS`")
	return cmd
}

func deployed(ctx context.Context, c *console.Console, d *observation.Deployment) error {
	at := c.Now()
	if d.DeployedAt != "" {
		var err error
		if at, err = time.Parse(time.RFC3339, d.DeployedAt); err != nil {
			return &console.UsageError{Message: fmt.Sprintf("--at %+q is no time", d.DeployedAt), Hint: "give one such as 2026-01-05T12:00:00Z"}
		}
	}
	d.DeployedAt = ledger.FormatTime(at)
	if !canon.IsGitID(d.Commit) {
		return &console.UsageError{Message: fmt.Sprintf("%+q is no whole id of a commit", d.Commit), Hint: `give all its digits: "$(git rev-parse HEAD)"`}
	}
	s, err := session.Open(c)
	if err != nil {
		return err
	}
	if _, err := session.CodeCommit(ctx, s.Repo, d.Commit); err != nil {
		return err
	}
	if err := s.Runner.Observe(ctx, d, d.Commit); err != nil {
		return err
	}
	return session.Observed(c, d)
}
