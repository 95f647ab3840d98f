package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report"
	"github.com/countersign-dev/countersign/report/html"
)

func statusCommand(c *console.Console) *cobra.Command {
	var repos, cache string
	cmd := &cobra.Command{
		Use: "status", Short: "Say what waits, and what to type", Args: console.NoArgs,
		Long: `status shows what is open: first what waits for people, in the order in which they are to look: what is overdue
by approvals.due of the Policy, then by risk, then the oldest. With --repos it fetches the repositories of a
file, as evidence does, and shows what waits in all of them; the same change to several is one row.`,
		Example: "  countersign status\n  countersign status --json\n  countersign status --repos repositories.txt",
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case repos != "":
				return statusOfAll(cmd.Context(), c, repos, cache)
			case cache != "":
				return &console.UsageError{Message: "--cache is for repositories that are fetched", Hint: "name them: --repos FILE"}
			}
			return Status(cmd.Context(), c)
		},
	}
	cmd.Flags().StringVar(&repos, "repos", "", "fetch and show the repositories in `FILE`, one a line: NAME ADDRESS")
	cmd.Flags().StringVar(&cache, "cache", "", "with --repos: keep what was fetched in `DIR` (XDG_CACHE_HOME has one otherwise)")
	return cmd
}

// statusOfAll shows what waits in many repositories. One that cannot be read is named, and keeps nobody from the others.
func statusOfAll(ctx context.Context, c *console.Console, repos, cache string) error {
	all, err := session.Each(ctx, c, session.Repositories{File: repos, Cache: cache}, func(f session.Fetched) ([]report.Listed, error) { return waiting(ctx, f) })
	if err != nil {
		return err
	}
	var rows []report.Listed
	unread := 0
	for _, one := range all {
		rows = append(rows, one.Is...)
		switch {
		case one.NoLedger:
			c.Say("%s has no ledger on %s", report.Clean(one.Listed.Name), c.Flags.LedgerRef)
		case one.Err != nil:
			unread++
			c.Say("%s cannot be read: %s", report.Clean(one.Listed.Name), console.OneLine(one.Err))
		}
	}
	if c.Flags.JSON {
		slices.SortStableFunc(rows, func(a, b report.Listed) int { return a.Turn.Compare(b.Turn, c.Now()) })
		err = c.PrintJSON(console.Document{"transactions": report.Documents(rows), "more": unread > 0})
	} else {
		text := report.Screen(report.Queue(rows, c.Now()), c.Now(), c.Columns(), session.Style(c))
		if text == "" && unread == 0 {
			text = "Nothing waits.\n"
		}
		err = c.LongWith(gitstore.Settings{}, c.Redact(text))
	}
	if unread > 0 {
		err = errors.Join(err, &console.ExitError{Code: console.ExitIO, Err: fmt.Errorf("%s of %d cannot be read", ledger.Plural(unread, "repository", "repositories"), len(all))})
	}
	return err
}

// waiting is what waits in a repository, as its ledger tells it.
func waiting(ctx context.Context, f session.Fetched) (rows []report.Listed, err error) {
	snap, err := f.Local.Snapshot(ctx, ledger.TransactionsDir)
	if err != nil {
		return nil, err
	}
	all, damaged, err := lookup.Each(snap.Tree)
	var reader html.Reader
	for _, tx := range all {
		if tx.Closed {
			continue
		}
		t, err := reader.Read(snap.Tree, tx.TransactionID)
		if err != nil {
			return nil, err
		}
		switch t.State {
		case plain.Damaged, plain.Unknown:
			damaged = append(damaged, &ledger.CorruptError{ID: tx.TransactionID, Err: errors.New(string(t.State))})
		case plain.Waits:
			turn := lookup.NewTurn(tx.CreatedAt, time.Duration(f.Policy.Approvals.Due), t.Rank, tx.Proposer.Login)
			rows = append(rows, report.Listed{Transaction: tx, State: t.State, Turn: turn, In: []string{f.Listed.Name}})
		}
	}
	for _, one := range damaged {
		err = errors.Join(err, one)
	}
	return rows, err
}

// listing is what waits, as JSON; untold is why it cannot be told what is to be reviewed.
func listing(rows []report.Listed, more bool, due []explain.Exception, untold error) console.Document {
	doc := console.Document{"transactions": report.Documents(rows), "more": more}
	if open, overdue := explain.Unreviewed(due); untold != nil {
		doc["exceptions"] = nil
	} else if len(open) > 0 {
		doc["exceptions"] = console.Document{"due": len(open), "overdue": overdue}
	}
	return doc
}

// toReview are the exceptions that people review; untold is why that cannot be told. There are none where the repository is empty:
// without a commit and a ledger.
func toReview(ctx context.Context, s *session.Session, tip string) (due []explain.Exception, empty bool, untold error) {
	due, untold = session.Exceptions(ctx, s, tip)
	if tip == "" && errors.Is(untold, gitstore.ErrNoCommits) {
		return nil, true, nil
	}
	return due, false, untold
}

// begins are the commands for where nothing waits. Who is not told what is to be reviewed has that to mend first.
func begins(s *session.Session, empty, told bool) []report.Step {
	list := report.Step{Type: s.Again("list"), For: "shows what was decided"}
	switch {
	case s.Repo.Worktree() == "" || !told && !empty: // nothing can be proposed
		return []report.Step{list}
	case empty:
		return []report.Step{{Type: s.Typed(console.HintOf(gitstore.ErrNoCommits), ""), For: "makes a commit to begin with"}}
	}
	return []report.Step{{Type: s.Again("run", "--worktree"), For: "proposes what you have changed"}, list}
}

// Status shows what is open, and the commands that take it on.
func Status(ctx context.Context, c *console.Console) error {
	s, err := session.Open(c)
	if err != nil {
		return err
	}
	r := s.Runner
	snap, rows, err := s.Queue(ctx)
	if err != nil {
		return err
	}
	at := map[plain.State][]string{}
	for _, row := range rows {
		at[row.State] = append(at[row.State], row.TransactionID)
	}
	due, empty, untold := toReview(ctx, s, snap.Tip)
	if c.Flags.JSON {
		return c.PrintJSON(listing(rows, false, due, untold))
	}
	var steps []report.Step
	for _, all := range []struct {
		of      plain.State
		command []string
		what    string
	}{
		{plain.Waits, []string{"approve"}, "shows what waits and asks"}, {plain.Approved, []string{"run", "--all"}, "applies what is approved"},
		{plain.Unchecked, []string{"run", "--all"}, "checks what was applied"},
		{plain.CheckFailed, []string{"run", "--all"}, "tries again where a check failed"},
	} {
		switch ids := at[all.of]; {
		case len(ids) == 1:
			g, err := r.History(ctx, snap, ids[0])
			var rep report.Report
			if err == nil {
				rep, err = s.Report(ctx, g)
			}
			if err != nil {
				return err
			}
			next := rep.Steps(lookup.ShortID(ids[0]), s.Again)
			steps = append(steps, next[:min(1, len(next))]...)
		case len(ids) > 1:
			steps = append(steps, report.Step{Type: c.Again(all.command...), For: all.what})
		}
	}
	exceptions := report.Due(due, s.Style())
	if open, _ := explain.Unreviewed(due); len(open) > 0 {
		steps = append(steps, report.Step{Type: c.Again("dispose", open[0].Commit, "--as", "accepted", "-m", "…"), For: "records that you reviewed it"})
	}
	if untold != nil {
		exceptions = s.Style().Red("what is to be reviewed cannot be told: "+report.Clean(console.OneLine(untold))) + "\n"
	}
	text := report.Screen(rows, c.Now(), c.Columns(), s.Style()) + exceptions + report.StepLines(steps)
	if len(rows) == 0 {
		text = "Nothing waits.\n" + exceptions + report.StepLines(append(steps, begins(s, empty, untold == nil)...))
	}
	return s.Long(c.Redact(text))
}
