package session

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

// Give returns the session with a patch which the ledger has only without its
// secrets.
func (s *Session) Give(ctx context.Context, args []string, file string) (*Session, error) {
	if file == "" {
		return s, nil
	}
	snap, id, err := s.Find(ctx, args, false)
	if err != nil {
		return s, err
	}
	rules, err := s.Runner.Rules(ctx, "")
	if err != nil {
		return s, err
	}
	raw, err := s.ReadLimited(file, rules.Policy.Limits.Bytes)
	if err != nil {
		return s, console.InFile(file, err)
	}
	if pieces, err := input.Pieces(raw); err == nil && len(pieces) == 1 {
		raw = pieces[0].Diff
	}
	r, err := s.Runner.Give(ctx, snap, id, raw)
	return s.With(r), console.InFile(file, err)
}

// GivePatch adds the flag for give.
func GivePatch(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "patch", "p", "", "the patch itself, where the ledger has it without its secrets: the Git diff that was proposed, `FILE` or -")
}

// IsNone reports whether an error says that no transaction has a name.
func IsNone(err error) bool {
	return errors.Is(err, lookup.ErrNotFound) || errors.Is(err, lookup.ErrNoTransactions)
}

func CodeCommit(ctx context.Context, repo *gitstore.Repo, name string) (string, error) {
	id, err := repo.Commit(ctx, name)
	if errors.Is(err, gitstore.ErrNoCommit) {
		err = &console.UsageError{Message: err.Error(), Hint: "give all digits of an id, HEAD, a branch or a tag"}
	}
	return id, err
}

// CloseStatus refuses the ends that are not a person's, nor a client's, to set.
func CloseStatus(name, status string) error {
	if status == string(ledger.Interrupted) {
		return nil
	}
	return &console.UsageError{Message: name + " can only be interrupted: countersign sets every other status itself", Hint: ""}
}

// Since is the time that --since names.
func Since(c *console.Console, text string) (time.Time, error) {
	at, err := pipeline.ParseSince(text, c.Now())
	if err != nil {
		err = &console.UsageError{Message: "--since " + err.Error(), Hint: "such as 36h, 7d, 2026-11-20 or 2026-11-20T08:00:00Z"}
	}
	return at, err
}

// Listing are transactions as lists have them, all at one moment.
func (s *Session) Listing(ctx context.Context, snap writing.Snapshot, of []ledger.Transaction) ([]report.Listed, error) {
	return s.listing(ctx, snap, of, func(*report.Listed, pipeline.Judgement) {})
}

// listing is Listing, and looks at each that is open as the ledger tells it.
func (s *Session) listing(ctx context.Context, snap writing.Snapshot, of []ledger.Transaction, look func(*report.Listed, pipeline.Judgement)) ([]report.Listed, error) {
	list, still := make([]report.Listed, len(of)), s.Runner.Still()
	for i, t := range of {
		g, open, err := listed(ctx, still, snap, t, &list[i])
		if err != nil {
			return nil, err
		}
		if open {
			look(&list[i], g)
		}
	}
	return list, nil
}

// Queue are the open transactions of the ledger, each as lists have it, what waits in its turn.
func (s *Session) Queue(ctx context.Context) (snap writing.Snapshot, list []report.Listed, err error) {
	if snap, err = s.Runner.Ledger(ctx, ledger.TransactionsDir); err != nil {
		return snap, nil, err
	}
	open, err := lookup.Open(snap.Tree)
	if err != nil {
		return snap, nil, err
	}
	var due time.Duration
	if len(open) > 0 {
		due = s.Due(ctx)
	}
	list, err = s.listing(ctx, snap, open, func(one *report.Listed, g pipeline.Judgement) {
		if one.State != plain.Waits {
			return
		}
		rank := -1 // what cannot be looked at comes first
		if risks, err := review.Risks(ctx, g); err == nil {
			rank = risks.Rank()
		}
		one.Turn = lookup.NewTurn(one.CreatedAt, due, rank, one.Proposer.Login)
	})
	return snap, report.Queue(list, s.Now()), err
}

// Due is how long the Policy gives people to decide, 0 for ever. Where no Policy can be read it says so, as nothing is decided by it.
func (s *Session) Due(ctx context.Context) time.Duration {
	rules, err := s.Runner.CurrentRules(ctx, "")
	if err != nil {
		s.Say("what is overdue cannot be told: %s", console.OneLine(err))
	}
	return time.Duration(rules.Policy.Approvals.Due)
}

// listed is a transaction as lists have it: of an open one, which can be judged, the verdict as the ledger tells it.
func listed(ctx context.Context, r *pipeline.Runner, snap writing.Snapshot, t ledger.Transaction, one *report.Listed) (g pipeline.Judgement, open bool, err error) {
	one.Transaction = t
	if t.Closed && t.Status != ledger.Failed || t.Pointers.Proposal == nil {
		one.State = plain.StateOf(t.Status, "", t.GateOnly(), false)
		return g, false, nil
	}
	g, err = r.History(ctx, snap, t.TransactionID)
	switch {
	case console.As[*ledger.CorruptError](err):
		one.State = plain.Damaged
		return g, false, nil
	case err != nil:
		one.State = plain.Unknown
		return g, false, ctx.Err()
	}
	one.Verdict, one.State = g.Verdict.State, plain.StateOfLog(g.Log(), g.Verdict.State)
	for _, d := range g.Verdict.Decisions {
		if d.Counted && d.Decision == ledger.Approve {
			one.By = append(one.By, d.Author.Login)
		}
	}
	return g, true, nil
}

// whole is a repository for work on all that is open, oldest first.
type whole struct {
	S       *Session
	Open    []ledger.Transaction
	Damaged []*ledger.CorruptError // which keep nobody from the others
}

// OpenWhole opens it; shares is for the remote's ledger, unless that was declined. The remote's ledger is first brought whole
// into a clone that has none, where that one is meant: what is open is in every part of it, and to ask for each transaction by
// itself takes a request for each.
func OpenWhole(ctx context.Context, c *console.Console, shares bool) (w whole, err error) {
	c.Flags.Push = c.Flags.Push || shares && !c.Flags.NoPush
	s, err := OpenLocal(c)
	if err != nil {
		return w, err
	}
	shared, err := s.shares()
	if err == nil && shared {
		err = s.bringWhole(ctx)
	}
	if err == nil {
		err = s.openStore()
	}
	if err == nil {
		err = s.openRunner()
	}
	if err != nil {
		return w, err
	}
	w.S = s
	w.Open, w.Damaged, err = s.Runner.Open(ctx)
	return w, err
}

// bringWhole brings the remote's ledger into a clone that has none.
func (s *Session) bringWhole(ctx context.Context) error {
	tip, err := s.Repo.Ref(ctx, s.Flags.LedgerRef)
	if err != nil || tip != "" {
		return err
	}
	s.helpers = !console.InWorkflow(s.Getenv)
	if err := s.share(); err != nil {
		return err
	}
	_, err = s.Shared.Sync(ctx, false, nil)
	return err
}
