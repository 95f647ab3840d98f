package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/gitstore"
)

func (a *App) syncCommand() *cobra.Command {
	var setAside bool
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Fetch, join and push the ledger",
		Long: `sync brings the whole ledger of the remote here, makes what was recorded here in the meantime
again on top of it, and pushes that. No other ref is touched.

Requests, approvals and denials of both sides are joined. A transaction that both sides advanced in
ways that contradict each other is a conflict: nothing is changed then.
With --set-aside the remote's transactions stand, and what this clone had is kept on a ref.`,
		Example: "  countersign sync\n  countersign sync --remote upstream",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.sync(cmd.Context(), setAside) },
	}
	cmd.Flags().BoolVar(&setAside, "set-aside", false, "leave out transactions that are in conflict")
	return cmd
}

func (a *App) sync(ctx context.Context, setAside bool) error {
	shared, _, err := a.openShared()
	if err != nil {
		return err
	}
	done, err := shared.Sync(ctx, setAside)
	if err != nil {
		return err
	}
	if a.flags.json {
		left := done.LeftOut
		if left == nil {
			left = []string{}
		}
		return a.printJSON(map[string]any{
			"ledger_ref": a.flags.ledgerRef, "ledger_commit": done.Tip, "fetched": done.Fetched, "sent": done.Sent,
			"left_out": left, "set_aside": done.SetAside,
		})
	}
	if len(done.LeftOut) > 0 {
		a.say("left out: %s; what was here is kept on %s", strings.Join(done.LeftOut, ", "), done.SetAside)
	}
	if done.Tip == "" {
		return a.print("there is no ledger yet, here or there\n")
	}
	return a.print(fmt.Sprintf("%s %.12s  %s fetched, %s sent\n", a.flags.ledgerRef, done.Tip, commits(done.Fetched), commits(done.Sent)))
}

func commits(n int) string {
	if n == 1 {
		return "1 commit"
	}
	return fmt.Sprintf("%d commits", n)
}

// openShared opens the remote's ledger, whatever --push says.
func (a *App) openShared() (*gitstore.Shared, gitstore.Settings, error) {
	var none gitstore.Settings
	repo, err := gitstore.Open(a.flags.dir)
	if err != nil {
		return nil, none, a.inDir(err)
	}
	settings, err := repo.Settings(a.Getenv)
	if err != nil {
		return nil, none, err
	}
	local, err := a.localLedger(repo)
	if err != nil {
		return nil, none, err
	}
	shared, err := a.share(local, repo, settings)
	if err != nil {
		return nil, none, err
	}
	a.seen = shared.Seen
	a.flags.push = true // a hint is about the remote's ledger as well
	return shared, settings, nil
}
