package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

func (a *App) syncCommand() *cobra.Command {
	var setAside, dryRun bool
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Fetch, join and push the ledger",
		Long: `sync fetches the whole ledger of the remote, adds to it what was recorded here in the meantime,
and pushes the result. It touches no other ref.

Requests, approvals and denials of both sides are joined, and a denial stands whichever side has it.
Of a change that both sides applied, the remote's record stands; this clone's is kept on a ref.
A transaction that both sides advanced in ways that contradict each other is a conflict: nothing is
changed then, and the denials that were fetched count all the same.
With --set-aside the remote's transactions stand, and what this clone had is kept on a ref.

Where the remote has no ledger yet, sync says what it publishes and, in a terminal, asks.`,
		Example: "  countersign sync\n  countersign sync --remote upstream",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.sync(cmd.Context(), setAside, dryRun) },
	}
	cmd.Flags().BoolVar(&setAside, "set-aside", false, "leave out transactions that are in conflict")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "fetch, say what would be joined and sent, and do neither")
	return cmd
}

// errDryRun ends a sync that is to do nothing.
var errDryRun = errors.New("nothing is sent")

func (a *App) sync(ctx context.Context, setAside, dryRun bool) error {
	shared, _, err := a.openShared()
	if err != nil {
		return err
	}
	var planned gitstore.Joined
	done, err := shared.Sync(ctx, setAside, func(next gitstore.Joined) (err error) {
		if planned = next; next.Begins {
			err = a.publishes(ctx, shared, next, dryRun)
		}
		if dryRun && err == nil {
			err = errDryRun
		}
		return err
	})
	if dryRun && (err == nil || errors.Is(err, errDryRun)) {
		return a.result(syncDocument(a.flags.ledgerRef, planned), fmt.Sprintf("%s: %d to get, %d to send; nothing was joined or sent\n", report.Clean(a.flags.remote), planned.Fetched, planned.Sent))
	}
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
	text := fmt.Sprintf("%s: got %d, sent %d.\n", report.Clean(a.flags.remote), done.Fetched, done.Sent)
	denied, err := deniedThere(ctx, shared, done)
	if err != nil {
		return err
	}
	left, twice, err := a.appliedTwice(ctx, shared, done)
	if err != nil {
		return err
	}
	text += denied + twice
	if done.Tip == "" {
		text = "there is no ledger yet, here or there\n"
	}
	if witnessed {
		text += "with what witnesses signed of it\n"
	}
	if attested {
		text += "with the attestations beside it\n"
	}
	if len(left) > 0 && !a.flags.json {
		a.say("left out: %s; what was here is kept on %s", strings.Join(left, ", "), done.SetAside)
	}
	doc := syncDocument(a.flags.ledgerRef, done)
	doc["witnessed"], doc["attested"] = witnessed, attested
	return a.result(doc, text)
}

func syncDocument(ref string, done gitstore.Joined) document {
	return document{
		"ledger_ref": ref, "ledger_commit": cmp.Or(done.Tip, done.Former), "fetched": done.Fetched, "sent": done.Sent,
		"left_out": append([]string{}, done.LeftOut...), "set_aside": done.SetAside, "witnessed": false, "attested": false,
	}
}

// mailAddress is what may be one in a record.
var mailAddress = lazyregexp.New(`[^\s"<>:;,()\\@]+@[^\s"<>:;,()\\@]+`)

// publishes says what a first sync shows to all who may read the repository, and asks the person
// at the terminal.
func (a *App) publishes(ctx context.Context, shared *gitstore.Shared, next gitstore.Joined, dryRun bool) error {
	snap, err := shared.At(ctx, next.Former)
	if err != nil {
		return err
	}
	patches, addresses := map[string]bool{}, map[string]bool{}
	for id, err := range lookup.Backward(snap.Tree) {
		if err != nil {
			return err
		}
		log, err := ledger.Read(snap.Tree, id)
		if err != nil {
			return err
		}
		patches[log.Transaction().PatchID()] = true
		for _, one := range mailAddress().FindAllString(string(log.Bytes()), -1) {
			addresses[strings.ToLower(one)] = true
		}
	}
	says := report.Publishes(a.flags.ledgerRef, shared.String(), len(patches), len(addresses))
	person := a.person()
	if person == nil || dryRun {
		a.say("%s", says)
		return nil
	}
	defer person.Close()
	typed, err := a.answer(person, says+" Go on? [y/N] ")
	if word := strings.ToLower(strings.TrimSpace(typed)); err != nil || word != "y" && word != "yes" {
		return &cli.UsageError{Message: "nothing was sent", Hint: ""}
	}
	return nil
}

// deniedThere says, a line each, which of the transactions that were open here a sync found denied.
func deniedThere(ctx context.Context, shared *gitstore.Shared, done gitstore.Joined) (text string, err error) {
	if done.Fetched == 0 || done.Former == "" {
		return "", nil
	}
	before, err := shared.At(ctx, done.Former)
	if err != nil {
		return "", err
	}
	after, err := shared.At(ctx, done.Tip)
	if err != nil {
		return "", err
	}
	open, err := lookup.Open(before.Tree)
	for _, tx := range open {
		id := tx.TransactionID
		was, wasErr := ledger.Read(before.Tree, id)
		is, isErr := ledger.Read(after.Tree, id)
		if err := errors.Join(wasErr, isErr); err != nil {
			return "", err
		}
		for _, p := range is.Payloads() {
			if d, ok := p.(*ledger.ApprovalDecision); ok && d.Decision == ledger.Deny && is.Transaction().Status == ledger.Denied {
				said := ledger.Last[*ledger.ApprovalDecision](was)
				text += report.DeniedThere(tx, d, said != nil && said.Decision == ledger.Approve)
				break
			}
		}
	}
	return text, err
}

// appliedTwice says, a line each, which of the transactions that a sync left out were applied on both sides, and
// returns the others.
func (a *App) appliedTwice(ctx context.Context, shared *gitstore.Shared, done gitstore.Joined) (left []string, text string, err error) {
	for _, id := range done.LeftOut {
		var logs [2]*ledger.Log
		for i, tip := range []string{done.Former, done.Tip} {
			snap, err := shared.At(ctx, tip)
			if err != nil {
				return nil, "", err
			}
			if logs[i], err = ledger.Read(snap.Tree, id); err != nil {
				return nil, "", err
			}
		}
		if writing.Repeats(logs[0], logs[1]) {
			text += report.AppliedTwice(logs[0].Transaction(), ledger.Last[*ledger.ApplyComplete](logs[0]).CommitAfter, a.flags.remote, done.SetAside)
		} else {
			left = append(left, id)
		}
	}
	return left, text, nil
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
	made, err := store.AcceptTip(ctx, tip, func(tree fs.FS, remembered string) (writing.Entry, error) {
		if err := writing.CheckSchema(tree); err != nil {
			return writing.Entry{}, err
		}
		return writing.OwnEntry(tree, a.Now(), &ledger.AcceptTip{
			AcceptedTip: tip, RememberedTip: remembered, Author: r.Actor, Reason: ledger.OneLine(a.redact(reason).String(), 500),
		})
	})
	if err != nil {
		return err
	}
	return a.result(document{"ledger_ref": a.flags.ledgerRef, "ledger_commit": made, "accepted_tip": tip},
		fmt.Sprintf("%s %.12s  accepted %.12s\n", a.flags.ledgerRef, made, tip))
}
