package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/terminal"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/artifact"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/state"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

// listFlags say which transactions are listed.
type listFlags struct {
	open, all, mine bool
	fits            bool // as many as fit the terminal
	limit           int
	status, since   string
}

// newestShown is how many transactions list shows without --limit or --all, where it is no terminal that they have to fit.
const newestShown = 50

func (a *App) listCommand() *cobra.Command {
	var f listFlags
	var m matrixFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the newest transactions, newest last",
		Example: "  countersign list --open\n  countersign list --status awaiting_approval --json\n  countersign show $(countersign list -q --mine --limit 1)\n  countersign list --matrix --max 40",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := m.check(); err != nil {
				return err
			}
			limited := cmd.Flags().Changed("limit")
			switch {
			case m.on && (limited || f.all):
				return &cli.UsageError{Message: "--limit and --all cannot be combined with --matrix", Hint: "use --max"}
			case limited && f.all:
				return &cli.UsageError{Message: "--limit and --all were given", Hint: "give one of them"}
			case f.status != "" && !slices.Contains(ledger.Statuses, ledger.Status(f.status)):
				return &cli.UsageError{Message: fmt.Sprintf("--status %+q is not known", f.status), Hint: fmt.Sprintf("it is one of %s", strings.Trim(fmt.Sprint(ledger.Statuses), "[]"))}
			case f.limit < 1:
				return &cli.UsageError{Message: fmt.Sprintf("--limit %d is less than 1", f.limit), Hint: "list all with --all"}
			case m.on:
				return a.listMatrix(cmd.Context(), m)
			}
			f.fits = terminal.Is(a.Stdout) && !limited && !f.all && !a.flags.json && !a.flags.quiet
			return a.list(cmd.Context(), f)
		},
	}
	cmd.Flags().BoolVar(&f.open, "open", false, "only those that are not closed")
	cmd.Flags().IntVarP(&f.limit, "limit", "n", newestShown, "list the newest, up to this `NUMBER`")
	cmd.Flags().BoolVar(&f.all, "all", false, "list all of them")
	cmd.Flags().BoolVar(&f.mine, "mine", false, "only those that you proposed")
	cmd.Flags().StringVar(&f.status, "status", "", "only those with this `STATUS` of the record, such as awaiting_approval")
	cmd.Flags().StringVar(&f.since, "since", "", "only those proposed since a `TIME`: 36h, 7d, 2026-11-20 or 2026-11-20T08:00:00Z")
	m.add(cmd)
	return cmd
}

func (a *App) list(ctx context.Context, f listFlags) error {
	since, err := a.since(f.since)
	if err != nil {
		return err
	}
	r, err := a.open()
	if err != nil {
		return err
	}
	snap, err := r.Ledger(ctx, ledger.TransactionsDir)
	if err != nil {
		return err
	}
	if f.all || f.fits {
		f.limit = math.MaxInt
	}
	latest, more, err := lookup.Latest(snap.Tree, f.limit, func(t ledger.Transaction) bool {
		created, err := time.Parse(ledger.TimeFormat, t.CreatedAt)
		return (err != nil || !created.Before(since)) && (!f.open || !t.Closed) && (!f.mine || t.Proposer.ID == r.Actor.ID) && (f.status == "" || string(t.Status) == f.status)
	})
	if err != nil {
		return err
	}
	older := 0
	if f.fits {
		latest, older = judgeable(latest)
	}
	list, err := a.listing(ctx, snap, latest, r.History)
	if err != nil {
		return err
	}
	if more {
		a.say("there are older ones: %s", a.again("list", "--all"))
	}
	if len(list) == 0 && !a.flags.json {
		a.say("no transactions")
		if address := a.repo.Config.RemoteURL(a.flags.remote); snap.Tip == "" && address != "" {
			a.say("hint: %s", a.again("sync"))
		}
	}
	switch {
	case a.flags.json:
		return a.printJSON(document{"transactions": report.Documents(list), "more": more})
	case a.flags.quiet:
		return a.print(report.IDs(latest))
	case terminal.Is(a.Stdout):
		columns, rows := terminal.Size(a.Stdout)
		if !f.fits {
			rows = math.MaxInt
		}
		fitting, left := report.Fit(list, rows)
		text := report.Older(left+older, a.again("list", "--all")) + report.Screen(fitting, a.Now(), columns, a.style())
		if f.fits {
			return a.print(text)
		}
		return a.long(a.redact(text))
	}
	return a.print(report.List(list))
}

// mostJudged is how many open transactions a list on a terminal is about: the newest, as each is judged.
const mostJudged = 200

// judgeable leaves out the oldest that are open, and says how many.
func judgeable(all []ledger.Transaction) (kept []ledger.Transaction, left int) {
	open := 0
	for _, t := range slices.Backward(all) {
		if !t.Closed {
			open++
		}
		if !t.Closed && open > mostJudged {
			left++
			continue
		}
		kept = append(kept, t)
	}
	slices.Reverse(kept)
	return kept, left
}

// listing are transactions as lists have them.
func (a *App) listing(ctx context.Context, snap writing.Snapshot, of []ledger.Transaction, judge pipeline.Judge) ([]report.Listed, error) {
	list := make([]report.Listed, len(of))
	for i, t := range of {
		var err error
		if list[i], err = a.listed(ctx, snap, t, judge); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// listed is a transaction as lists have it: of an open one, the verdict as the ledger tells it.
func (a *App) listed(ctx context.Context, snap writing.Snapshot, t ledger.Transaction, judge pipeline.Judge) (report.Listed, error) {
	one := report.Listed{Transaction: t}
	if t.Closed && t.Status != ledger.Failed || t.Pointers.Proposal == nil {
		one.State = state.Of(t.Status, "", t.GateOnly(), false)
		return one, nil
	}
	g, err := judge(ctx, snap, t.TransactionID)
	switch {
	case as[*ledger.CorruptError](err):
		one.State = state.Damaged
		return one, nil
	case err != nil:
		one.State = state.Unknown
		return one, ctx.Err()
	}
	one.Verdict, one.State = g.Verdict.State, state.Logged(g.Log(), g.Verdict.State)
	for _, d := range g.Verdict.Decisions {
		if d.Counted && d.Decision == ledger.Approve {
			one.By = append(one.By, d.Author.Login)
		}
	}
	return one, nil
}

func (a *App) showCommand() *cobra.Command {
	var web, long bool
	cmd := a.lookCommand("show", "Show a transaction: files, decisions, result", func(ctx context.Context, r *pipeline.Runner, snap writing.Snapshot, id string) error {
		if web {
			return a.browse(snap, id)
		}
		g, err := r.History(ctx, snap, id)
		if err != nil {
			return err
		}
		rep, err := a.report(ctx, g)
		if err != nil {
			return err
		}
		if rep.ApplyResult, rep.AppliedCommit, err = g.Result(); err != nil {
			return err
		}
		rep.Next, rep.BaseBranch = rep.NextStep(a.again), a.repo.BranchWith(ctx, rep.BaseCommit)
		if a.flags.json {
			return a.printJSON(rep)
		}
		line, clean, err := a.cleanly(rep)
		if err != nil {
			return err
		}
		return a.long(line.Show(func(string) string { return clean.Text(a.again, a.columns(), long, a.style()) }))
	})
	cmd.Flags().BoolVar(&long, "long", false, "with all hashes, ids and addresses")
	cmd.Flags().BoolVarP(&web, "web", "w", false, "open its pull request, the comment that asks there, or the commit that was made, in the browser")
	return cmd
}

// browse opens the page of a transaction. Where there is no browser, and for a
// program, it prints the address.
func (a *App) browse(snap writing.Snapshot, id string) error {
	log, err := ledger.Read(snap.Tree, id)
	if err != nil {
		return err
	}
	posted, err := artifact.ReadPosted(snap.Tree, log)
	if err != nil {
		return err
	}
	asked, commit := forge.Posted{}, ""
	if len(posted) > 0 {
		asked = posted[len(posted)-1]
	}
	if last := ledger.Last[*ledger.ApplyComplete](log); last != nil && last.Success {
		commit = last.CommitAfter
	}
	page := a.links().Page(log.Transaction().PullRequest(), asked, commit)
	if page == "" {
		return &cli.UsageError{Message: id + " has no page: it is for no pull request, has made no commit, or " + report.Clean(a.flags.remote) + " is no server with pages", Hint: a.again("show", id)}
	}
	if a.flags.json || a.openBrowser(page) != nil {
		return a.result(document{"transaction_id": id, "url": page}, page+"\n")
	}
	a.say("opened %s", page)
	return nil
}

// openBrowser opens an address in the person's browser.
func (a *App) openBrowser(address string) error {
	browser := a.Getenv("BROWSER")
	if a.GH != nil {
		browser = cmp.Or(a.Getenv("GH_BROWSER"), browser)
	}
	return terminal.Browse(address, browser, a.Getenv)
}

func (a *App) diffCommand() *cobra.Command {
	var stat, names bool
	cmd := a.lookCommand("diff", "Print the exact bytes that are up for approval", func(ctx context.Context, r *pipeline.Runner, snap writing.Snapshot, id string) error {
		log, err := ledger.Read(snap.Tree, id)
		if err != nil {
			return err
		}
		diff, err := ledger.StoredPatch(snap.Tree, log.Transaction())
		if err != nil {
			return err
		}
		shown := a.redactDiff(diff)
		if stat || names {
			if a.flags.json {
				return &cli.UsageError{Message: "--stat and --name-only print no JSON", Hint: a.again("show", id, "--json=files")}
			}
			return a.long(a.redact(report.Stat(report.New(log, diff), names)))
		}
		switch {
		case a.flags.json:
			return a.printJSON(report.DiffDocument(id, shown.String()))
		case terminal.Is(a.Stdout):
			shown = shown.Show(func(diff string) string {
				return report.Diff([]byte(diff), a.style()) + report.Renamed([]byte(diff), a.style())
			})
		}
		return a.long(shown) // a file or a pipe gets the bytes as they are
	})
	cmd.Flags().BoolVar(&stat, "stat", false, "print the files and how many lines of each change, in place of the bytes")
	cmd.Flags().BoolVar(&names, "name-only", false, "print the files alone, one a line")
	cmd.MarkFlagsMutuallyExclusive("stat", "name-only")
	return cmd
}

// redactDiff is a stored diff as it is shown. It was stored without secrets, so
// that this changes nothing; where it does, as the rules are others by now, the
// person is told.
func (a *App) redactDiff(diff []byte) secret.Redacted {
	shown := a.finder().RedactDiff(diff)
	if shown.String() != string(diff) {
		a.say("the diff is shown without what looks like a secret: these are not the bytes that the approval is about")
	}
	return shown
}

func (a *App) logCommand() *cobra.Command {
	var newest uint
	cmd := a.lookCommand("log", "Print a transaction's events", func(ctx context.Context, r *pipeline.Runner, snap writing.Snapshot, id string) error {
		log, err := ledger.Read(snap.Tree, id)
		if err != nil {
			return err
		}
		events, lines := []json.RawMessage{}, slices.Collect(strings.Lines(report.Events(log)))
		for line := range strings.Lines(string(log.Bytes())) {
			events = append(events, json.RawMessage(line))
		}
		if older := len(events) - int(newest); newest > 0 && older > 0 {
			events, lines = events[older:], lines[older:]
		}
		if a.flags.json {
			return a.printJSON(document{"transaction_id": id, "events": events})
		}
		return a.long(a.redact(strings.Join(lines, "")))
	})
	cmd.Flags().UintVarP(&newest, "limit", "n", 0, "print the newest, up to this `NUMBER` (default: all)")
	return cmd
}

// lookCommand is a command that only reads: without an argument it takes the
// newest transaction.
func (a *App) lookCommand(word, short string, look func(context.Context, *pipeline.Runner, writing.Snapshot, string) error) *cobra.Command {
	return &cobra.Command{
		Use: word + " [TX]", Short: short, Args: cli.UpToOne,
		Example: "  countersign " + word + "\n  countersign " + word + " tx_01J --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, snap, id, err := a.openOne(cmd.Context(), args, true)
			if err != nil {
				return err
			}
			return look(cmd.Context(), r, snap, id)
		},
	}
}
