package pulls

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

// actionDispose is the stage dispose: it records what the comment says that the event is about, and answers below it. Who may not approve is
// not answered, and what is refused fails no step: anybody may write comments.
func actionDispose(ctx context.Context, c *console.Console, step console.Step) error {
	e, err := session.TrustedEvent(c)
	if err != nil {
		return err
	}
	s, err := openShared(c, step)
	if err != nil {
		return err
	}
	on, err := session.Issues(c, s.Client)
	if err != nil {
		return err
	}
	issue, id := e.Commented()
	of, err := on.DefaultBranch(ctx)
	if err != nil {
		return err
	}
	if kept, err := explain.IsKept(ctx, on, of.Branch, issue); err != nil || !kept || id == "" {
		c.Say("this is about no new comment on the issue that the watch keeps")
		return err
	}
	answer, err := disposeSaid(ctx, s, on, issue, id)
	if err != nil || answer == "" {
		return err
	}
	c.Say("%s", answer)
	_, err = on.UpsertComment(ctx, issue, "", c.Redact(answer).String())
	return err
}

// actionSettings is the stage settings: it records what protects the default branch, where that is not what the ledger has last.
func actionSettings(ctx context.Context, c *console.Console, step console.Step, record func(context.Context, *session.Session, forge.Auditor) error) error {
	s, err := openShared(c, step)
	if err != nil {
		return err
	}
	client, err := session.ForgeOfWorkflow(c)
	if err == nil && client == nil {
		err = s.NoClient("there is no token to ask the forge with")
	}
	if err != nil {
		return err
	}
	snap, err := s.Store.Snapshot(ctx)
	if err != nil || snap.Tip == "" { // a ledger is not begun by this
		return err
	}
	return record(ctx, s, client)
}

// openShared opens the remote's ledger.
func openShared(c *console.Console, step console.Step) (*session.Session, error) {
	c.Flags.LedgerRef = cmp.Or(step.Input("ledger-ref"), c.Flags.LedgerRef)
	s, err := session.Open(c)
	if err == nil {
		err = s.WorkShared()
	}
	return s, err
}

// disposeSaid records what a comment says, and returns the answer, "" for none.
func disposeSaid(ctx context.Context, s *session.Session, on forge.Reviews, issue int, id string) (string, error) {
	d, fresh, err := s.Runner.DisposeSaid(ctx, on, issue, id)
	switch {
	case errors.Is(err, fault.Barred):
		s.Say("the comment does not count, and is not answered: %v", err)
		return "", nil
	case errors.Is(err, fault.Refused):
		return "This is not recorded: " + escape.Words(err.Error()) + ". What counts, docs/evidence.md says.", nil
	case err != nil:
		return "", err
	case !fresh:
		return "This is recorded already, in `" + d.TransactionID + "`.", nil
	}
	return fmt.Sprintf("Recorded in `%s`: `%s` is %s. The next run of the watch brings this issue up to date.", d.TransactionID, d.About, d.As), nil
}
