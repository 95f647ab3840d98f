package proofs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

func syncCommand(c *console.Console) *cobra.Command {
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
		Args:    console.NoArgs,
		RunE: c.Does(func(cmd *cobra.Command, _ []string) (console.Outcome, error) {
			return syncLedger(cmd.Context(), c, setAside, dryRun)
		}),
	}
	cmd.Flags().BoolVar(&setAside, "set-aside", false, "leave out transactions that are in conflict")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "fetch, say what would be joined and sent, and do neither")
	return cmd
}

// errDryRun ends a sync that is to do nothing.
var errDryRun = errors.New("nothing is sent")

func syncLedger(ctx context.Context, c *console.Console, setAside, dryRun bool) (console.Outcome, error) {
	s, err := session.OpenShared(c)
	if err != nil {
		return console.Outcome{}, err
	}
	out, shared := console.Outcome{Elsewhere: s.Elsewhere}, s.Shared
	var planned gitstore.Joined
	done, err := shared.Sync(ctx, setAside, func(next gitstore.Joined) (err error) {
		if planned = next; next.Begins {
			err = publishes(ctx, s, next, dryRun)
		}
		if dryRun && err == nil {
			err = errDryRun
		}
		return err
	})
	if dryRun && (err == nil || errors.Is(err, errDryRun)) {
		return out, c.Result(syncDocument(c.Flags.LedgerRef, planned), fmt.Sprintf("%s: %d to get, %d to send; nothing was joined or sent\n", report.Clean(c.Flags.Remote), planned.Fetched, planned.Sent))
	}
	if err != nil {
		return out, err
	}
	witnessed, err := shared.SyncBeside(ctx, gitstore.Checkpoints, c.Now())
	if err != nil { // the ledger itself is here
		c.Say("what witnesses signed could not be brought: %s", console.OneLine(err))
		witnessed = false
	}
	attested, err := shared.SyncBeside(ctx, gitstore.Attestations, c.Now())
	if err != nil {
		c.Say("the attestations could not be brought: %s", console.OneLine(err))
		attested = false
	}
	text := fmt.Sprintf("%s: got %d, sent %d.\n", report.Clean(c.Flags.Remote), done.Fetched, done.Sent)
	denied, err := deniedThere(ctx, shared, done)
	if err != nil {
		return out, err
	}
	left, twice, err := appliedTwice(ctx, s, done)
	if err != nil {
		return out, err
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
	if len(left) > 0 && !c.Flags.JSON {
		c.Say("left out: %s; what was here is kept on %s", strings.Join(left, ", "), done.SetAside)
	}
	doc := syncDocument(c.Flags.LedgerRef, done)
	doc["witnessed"], doc["attested"] = witnessed, attested
	return out, c.Result(doc, text)
}

func syncDocument(ref string, done gitstore.Joined) console.Document {
	return console.Document{
		"ledger_ref": ref, "ledger_commit": cmp.Or(done.Tip, done.Former), "fetched": done.Fetched, "sent": done.Sent,
		"left_out": append([]string{}, done.LeftOut...), "set_aside": done.SetAside, "witnessed": false, "attested": false,
	}
}

// mailAddress is what may be one in a record.
var mailAddress = canon.Regexp(`[^\s"<>:;,()\\@]+@[^\s"<>:;,()\\@]+`)

// publishes says what a first sync shows to all who may read the repository, and asks the person
// at the terminal.
func publishes(ctx context.Context, s *session.Session, next gitstore.Joined, dryRun bool) error {
	snap, err := s.Shared.At(ctx, next.Former)
	if err != nil {
		return err
	}
	patches, addresses := map[string]bool{}, map[string]bool{}
	for id, err := range lookup.Backward(snap.Tree) {
		if err != nil {
			return err
		}
		log, err := lookup.Read(snap.Tree, id)
		if err != nil {
			return err
		}
		patches[log.Transaction().PatchID()] = true
		for _, one := range mailAddress().FindAllString(string(log.Bytes()), -1) {
			addresses[strings.ToLower(one)] = true
		}
	}
	says := report.Publishes(s.Flags.LedgerRef, s.Shared.String(), len(patches), len(addresses))
	person := s.Person()
	if person == nil || dryRun {
		s.Say("%s", says)
		return nil
	}
	defer person.Close()
	if !s.Agrees(person, says+" Go on? [y/N] ") {
		return &console.UsageError{Message: "nothing was sent", Hint: ""}
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
		was, wasErr := lookup.Read(before.Tree, id)
		is, isErr := lookup.Read(after.Tree, id)
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
func appliedTwice(ctx context.Context, s *session.Session, done gitstore.Joined) (left []string, text string, err error) {
	for _, id := range done.LeftOut {
		var logs [2]*ledger.Log
		for i, tip := range []string{done.Former, done.Tip} {
			snap, err := s.Shared.At(ctx, tip)
			if err != nil {
				return nil, "", err
			}
			if logs[i], err = lookup.Read(snap.Tree, id); err != nil {
				return nil, "", err
			}
		}
		if writing.Repeats(logs[0], logs[1]) {
			text += report.AppliedTwice(logs[0].Transaction(), ledger.Last[*ledger.ApplyComplete](logs[0]).CommitAfter, s.Flags.Remote, done.SetAside)
		} else {
			left = append(left, id)
		}
	}
	return left, text, nil
}

func ledgerCommand(c *console.Console) *cobra.Command {
	return console.Group("ledger", "Look at the ledger's tip, or accept one that was rewritten", "  countersign ledger tip\n  countersign ledger accept-tip COMMIT --reason WHY",
		acceptTipCommand(c), tipCommand(c))
}

func tipCommand(c *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "tip",
		Short: "Print the ledger's tip; refuse one that was rewritten since this clone saw it",
		Example: "  countersign ledger tip\n" +
			"  countersign audit --known-tip $(ssh other-machine countersign -C repo ledger tip)",
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := session.Open(c)
			if err != nil {
				return err
			}
			snap, err := s.Store.Snapshot(cmd.Context())
			if err != nil {
				return err
			}
			return c.Result(console.Document{"ledger_ref": c.Flags.LedgerRef, "ledger_commit": snap.Tip}, snap.Tip+"\n")
		},
	}
}

func acceptTipCommand(c *console.Console) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "accept-tip COMMIT",
		Short: "Accept a ledger that was rewritten, for good and on the record",
		Long: `accept-tip takes COMMIT, which must be the ledger's tip now, although it does not descend from
the last tip that was seen here. Only a person who knows why the ledger was rewritten should: what
is missing from it is gone. The acceptance is itself an event of the ledger, with your name and the
reason. What this clone had is kept on a ref.`,
		Example: `  countersign ledger accept-tip 3f0c… --reason "the server was restored from last night's backup"`,
		Args:    console.ExactlyOne("no commit given", "give the ledger's tip as it is now, all its digits"),
		RunE:    func(cmd *cobra.Command, args []string) error { return acceptTip(cmd.Context(), c, args[0], reason) },
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; recorded with it (required)")
	return cmd
}

func acceptTip(ctx context.Context, c *console.Console, tip, reason string) error {
	if reason == "" {
		return &console.UsageError{Message: "an acceptance needs a reason", Hint: `say why: --reason "…"`}
	}
	s, err := session.Open(c)
	if err != nil {
		return err
	}
	store := s.Store.(interface {
		AcceptTip(ctx context.Context, tip string, record gitstore.Record) (string, error)
	})
	made, err := store.AcceptTip(ctx, tip, func(tree fs.FS, remembered string) (writing.Entry, error) {
		if err := writing.CheckSchema(tree); err != nil {
			return writing.Entry{}, err
		}
		return writing.OwnEntry(tree, c.Now(), &ledger.AcceptTip{
			AcceptedTip: tip, RememberedTip: remembered, Author: s.Runner.Actor, Reason: ledger.OneLine(c.Redact(reason).String(), 500),
		})
	})
	if err != nil {
		return err
	}
	return c.Result(console.Document{"ledger_ref": c.Flags.LedgerRef, "ledger_commit": made, "accepted_tip": tip},
		fmt.Sprintf("%s %.12s  accepted %.12s\n", c.Flags.LedgerRef, made, tip))
}
