package main

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/report"
)

func (a *App) syncCommand() *cobra.Command {
	var setAside bool
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Fetch, join and push the ledger",
		Long: `sync fetches the whole ledger of the remote, adds to it what was recorded here in the meantime,
and pushes the result. It touches no other ref.

Requests, approvals and denials of both sides are joined, and a denial stands whichever side has it.
A transaction that both sides advanced in ways that contradict each other is a conflict: nothing is
changed then, and the denials that were fetched count all the same.
With --set-aside the remote's transactions stand, and what this clone had is kept on a ref.`,
		Example: "  countersign sync\n  countersign sync --remote upstream",
		Args:    cli.NoArgs,
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
	witnessed, err := shared.SyncBeside(ctx, gitstore.Checkpoints, a.Now())
	if err != nil { // the ledger itself is here
		a.say("what witnesses signed could not be brought: %s", oneLine(err))
		witnessed = false
	}
	attested, err := shared.SyncBeside(ctx, gitstore.Attestations, a.Now())
	if err != nil {
		a.say("the attestations could not be brought: %s", oneLine(err))
		attested = false
	}
	text := fmt.Sprintf("%s %.12s  %s fetched, %s sent\n", a.flags.ledgerRef, done.Tip, report.Counted(done.Fetched, "commit"), report.Counted(done.Sent, "commit"))
	if done.Tip == "" {
		text = "there is no ledger yet, here or there\n"
	}
	if witnessed {
		text += "with what witnesses signed of it\n"
	}
	if attested {
		text += "with the attestations beside it\n"
	}
	if len(done.LeftOut) > 0 && !a.flags.json {
		a.say("left out: %s; what was here is kept on %s", strings.Join(done.LeftOut, ", "), done.SetAside)
	}
	return a.result(document{
		"ledger_ref": a.flags.ledgerRef, "ledger_commit": done.Tip, "fetched": done.Fetched, "sent": done.Sent,
		"left_out": append([]string{}, done.LeftOut...), "set_aside": done.SetAside,
		"witnessed": witnessed, "attested": attested,
	}, text)
}

func (a *App) ledgerCommand() *cobra.Command {
	return cli.Group("ledger", "Look at the ledger's tip, or accept one that was rewritten", "  countersign ledger tip\n  countersign ledger accept-tip COMMIT --reason WHY",
		a.acceptTipCommand(), a.tipCommand())
}

func (a *App) tipCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tip",
		Short: "Print the ledger's tip; refuse one that was rewritten since this clone saw it",
		Example: "  countersign ledger tip\n" +
			"  countersign audit --known-tip $(ssh other-machine countersign -C repo ledger tip)",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.open()
			if err != nil {
				return err
			}
			snap, err := r.Store.Snapshot(cmd.Context())
			if err != nil {
				return err
			}
			return a.result(document{"ledger_ref": a.flags.ledgerRef, "ledger_commit": snap.Tip}, snap.Tip+"\n")
		},
	}
}

func (a *App) acceptTipCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "accept-tip COMMIT",
		Short: "Accept a ledger that was rewritten, for good and on the record",
		Long: `accept-tip takes COMMIT, which must be the ledger's tip now, although it does not descend from
the last tip that was seen here. Only a person who knows why the ledger was rewritten should: what
is missing from it is gone. The acceptance is itself an event of the ledger, with your name and the
reason. What this clone had is kept on a ref.`,
		Example: `  countersign ledger accept-tip 3f0c… --reason "the server was restored from last night's backup"`,
		Args:    cli.ExactlyOne("no commit given", "give the ledger's tip as it is now, all 40 digits"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.acceptTip(cmd.Context(), args[0], reason) },
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; recorded with it (required)")
	return cmd
}

func (a *App) acceptTip(ctx context.Context, tip, reason string) error {
	if reason == "" {
		return &cli.UsageError{Message: "an acceptance needs a reason", Hint: `say why: --reason "…"`}
	}
	r, err := a.open()
	if err != nil {
		return err
	}
	store := r.Store.(interface {
		AcceptTip(ctx context.Context, tip string, record gitstore.Record) (string, error)
	})
	made, err := store.AcceptTip(ctx, tip, func(tree fs.FS, remembered string) (ledger.Entry, error) {
		if err := ledger.CheckSchema(tree); err != nil {
			return ledger.Entry{}, err
		}
		return ledger.AcceptEntry(tree, a.Now(), ledger.AcceptTip{
			AcceptedTip: tip, RememberedTip: remembered, Author: r.Actor, Reason: ledger.OneLine(a.redact(reason).String(), 500),
		})
	})
	if err != nil {
		return err
	}
	return a.result(document{"ledger_ref": a.flags.ledgerRef, "ledger_commit": made, "accepted_tip": tip},
		fmt.Sprintf("%s %.12s  accepted %.12s\n", a.flags.ledgerRef, made, tip))
}
