package pulls

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/report"
)

// fleetWorkflow is the file that the fleet command starts.
const fleetWorkflow = "countersign-fleet.yml"

func fleetCommand(c *console.Console) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Start the workflow countersign-fleet in every repository of an app's installation",
		Long: `fleet lists the repositories that an app is installed in, and starts the workflow
countersign-fleet of each on its default branch. All the rest happens there, with that
repository's own token, Policy and limits: this token needs actions: write and nothing else.

The token is that of an app's installation, in COUNTERSIGN_TOKEN or the Action's input.`,
		Example: "  countersign fleet --dry-run\n  countersign fleet --json",
		Args:    console.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return startAll(cmd.Context(), c, dryRun) },
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "list the repositories, and start nothing")
	return cmd
}

// The states of a repository after fleet.
const (
	fleetStarted = "started"
	fleetWould   = "would be started"
	fleetWithout = "has no " + fleetWorkflow
	fleetClosed  = "archived or disabled"
	fleetFailed  = "failed"
)

func startAll(ctx context.Context, c *console.Console, dryRun bool) error {
	client, repositories, err := session.Installed(ctx, c)
	if err != nil {
		return err
	}
	rows, text := []any{}, ""
	var errs []error
	for _, r := range repositories {
		state, err := startFleet(ctx, client, r, dryRun)
		errs = append(errs, err)
		rows = append(rows, console.Document{"repository": r.Name, "state": state})
		text += fmt.Sprintf("%-40s %s\n", report.Clean(r.Name), state)
	}
	errs = append(errs, c.Result(console.Document{"repositories": rows, "dry_run": dryRun}, text))
	return errors.Join(errs...)
}

// startFleet starts one repository's workflow; what goes wrong there keeps no
// other from its turn.
func startFleet(ctx context.Context, client *github.Client, r github.Installed, dryRun bool) (state string, err error) {
	switch {
	case r.Closed:
		return fleetClosed, nil
	case dryRun:
		return fleetWould, nil
	}
	err = client.StartWorkflow(ctx, r.Name, fleetWorkflow, r.Branch)
	switch {
	case rest.IsKind(err, rest.KindNotFound):
		return fleetWithout, nil
	case err != nil:
		return fleetFailed, err
	}
	return fleetStarted, nil
}
