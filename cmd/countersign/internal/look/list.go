// Package look has the commands that show what is recorded: status, list, show, log, diff, report, export. site writes a
// whole ledger as HTML files, browse serves them: it is read at one tip, audited, and each page has what was found against it.
package look

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

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

// Commands are those that show transactions, and whole ledgers.
func Commands(c *console.Console) []*cobra.Command {
	return append(pagesCommands(c), statusCommand(c), digestCommand(c), listCommand(c), showCommand(c), logCommand(c), diffCommand(c), exportCommand(c), reportCommand(c))
}

// listFlags say which transactions are listed.
type listFlags struct {
	open, all, mine bool
	fits            bool // as many as fit the terminal
	limit           int
	status, since   string
}

// newestShown is how many transactions list shows without --limit or --all, where it is no terminal that they have to fit.
const newestShown = 50

func listCommand(c *console.Console) *cobra.Command {
	var f listFlags
	var m matrixFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the newest transactions, newest last",
		Example: "  countersign list --open\n  countersign list --status awaiting_approval --json\n  countersign show $(countersign list -q --mine --limit 1)\n  countersign list --matrix --max 40",
		Args:    console.NoArgs,
		RunE: c.Does(func(cmd *cobra.Command, _ []string) (done console.Outcome, err error) {
			if err := m.check(); err != nil {
				return done, err
			}
			limited := cmd.Flags().Changed("limit")
			switch {
			case m.on && (limited || f.all):
				return done, &console.UsageError{Message: "--limit and --all cannot be combined with --matrix", Hint: "use --max"}
			case limited && f.all:
				return done, &console.UsageError{Message: "--limit and --all were given", Hint: "give one of them"}
			case f.status != "" && !slices.Contains(ledger.Statuses, ledger.Status(f.status)):
				return done, &console.UsageError{Message: fmt.Sprintf("--status %+q is not known", f.status), Hint: fmt.Sprintf("it is one of %s", strings.Trim(fmt.Sprint(ledger.Statuses), "[]"))}
			case f.limit < 1:
				return done, &console.UsageError{Message: fmt.Sprintf("--limit %d is less than 1", f.limit), Hint: "list all with --all"}
			case m.on:
				return listMatrix(cmd.Context(), c, m)
			}
			f.fits = console.IsTerminal(c.Stdout) && !limited && !f.all && !c.Flags.JSON && !c.Flags.Quiet
			return done, list(cmd.Context(), c, f)
		}),
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

func list(ctx context.Context, c *console.Console, f listFlags) error {
	since, err := session.Since(c, f.since)
	if err != nil {
		return err
	}
	s, err := session.Open(c)
	if err != nil {
		return err
	}
	r := s.Runner
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
	list, err := s.Listing(ctx, snap, latest)
	if err != nil {
		return err
	}
	if more {
		c.Say("there are older ones: %s", c.Again("list", "--all"))
	}
	if len(list) == 0 && !c.Flags.JSON {
		c.Say("no transactions")
		if address := s.Repo.Config.RemoteURL(c.Flags.Remote); snap.Tip == "" && address != "" {
			c.Say("hint: %s", c.Again("sync"))
		}
	}
	switch {
	case c.Flags.JSON:
		return c.PrintJSON(console.Document{"transactions": report.Documents(list), "more": more})
	case c.Flags.Quiet:
		return c.Print(report.IDs(latest))
	case console.IsTerminal(c.Stdout):
		columns, rows := console.Size(c.Stdout)
		if !f.fits {
			rows = math.MaxInt
		}
		fitting, left := report.Fit(list, rows)
		text := report.Older(left+older, c.Again("list", "--all")) + report.Screen(fitting, c.Now(), columns, s.Style())
		if f.fits {
			return c.Print(text)
		}
		return s.Long(c.Redact(text))
	}
	return c.Print(report.List(list))
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

func showCommand(c *console.Console) *cobra.Command {
	var web, long bool
	cmd := lookCommand(c, "show", "Show a transaction: files, decisions, result", func(ctx context.Context, s *session.Session, snap writing.Snapshot, id string) error {
		if web {
			return browse(s, snap, id)
		}
		switch o, err := session.Observation(snap.Tree, id); {
		case err != nil:
			return err
		case o != nil:
			return session.Observed(c, o)
		}
		rep, err := s.Shown(ctx, snap, id)
		if err != nil {
			return err
		}
		if c.Flags.JSON {
			return c.PrintJSON(rep)
		}
		line, clean, err := console.Cleanly(c, rep)
		if err != nil {
			return err
		}
		return s.Long(line.Show(func(string) string { return clean.Text(c.Again, c.Columns(), long, s.Style()) }))
	})
	cmd.Flags().BoolVar(&long, "long", false, "with all hashes, ids and addresses")
	cmd.Flags().BoolVarP(&web, "web", "w", false, "open its pull request, the comment that asks there, or the commit that was made, in the browser")
	return cmd
}

// browse opens the page of a transaction. Where there is no browser, and for a
// program, it prints the address.
func browse(s *session.Session, snap writing.Snapshot, id string) error {
	log, err := lookup.Read(snap.Tree, id)
	if err != nil {
		return err
	}
	posted, err := forge.ReadPosted(snap.Tree, log)
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
	page := s.Links().Page(log.Transaction().PullRequest(), asked, commit)
	if page == "" {
		return &console.UsageError{Message: id + " has no page: it is for no pull request, has made no commit, or " + report.Clean(s.Flags.Remote) + " is no server with pages", Hint: s.Again("show", id)}
	}
	if s.Flags.JSON || s.OpenBrowser(page) != nil {
		return s.Result(console.Document{"transaction_id": id, "url": page}, page+"\n")
	}
	s.Say("opened %s", page)
	return nil
}

func diffCommand(c *console.Console) *cobra.Command {
	var stat, names bool
	cmd := lookCommand(c, "diff", "Print the exact bytes that are up for approval", func(ctx context.Context, s *session.Session, snap writing.Snapshot, id string) error {
		log, err := lookup.Read(snap.Tree, id)
		if err != nil {
			return err
		}
		diff, err := lookup.StoredPatch(snap.Tree, log.Transaction())
		if err != nil {
			return err
		}
		shown := c.RedactDiff(diff)
		if stat || names {
			if c.Flags.JSON {
				return &console.UsageError{Message: "--stat and --name-only print no JSON", Hint: c.Again("show", id, "--json=files")}
			}
			return s.Long(c.Redact(report.Stat(report.New(log, diff, nil), names)))
		}
		switch {
		case c.Flags.JSON:
			return c.PrintJSON(report.DiffDocument(id, shown.String()))
		case console.IsTerminal(c.Stdout):
			shown = shown.Show(func(diff string) string {
				return report.Diff([]byte(diff), s.Style()) + report.Renamed([]byte(diff), s.Style())
			})
		}
		return s.Long(shown) // a file or a pipe gets the bytes as they are
	})
	cmd.Flags().BoolVar(&stat, "stat", false, "print the files and how many lines of each change, in place of the bytes")
	cmd.Flags().BoolVar(&names, "name-only", false, "print the files alone, one a line")
	cmd.MarkFlagsMutuallyExclusive("stat", "name-only")
	return cmd
}

func logCommand(c *console.Console) *cobra.Command {
	var newest uint
	cmd := lookCommand(c, "log", "Print a transaction's events", func(ctx context.Context, s *session.Session, snap writing.Snapshot, id string) error {
		log, err := lookup.Read(snap.Tree, id)
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
		if c.Flags.JSON {
			return c.PrintJSON(console.Document{"transaction_id": id, "events": events})
		}
		return s.Long(c.Redact(strings.Join(lines, "")))
	})
	cmd.Flags().UintVarP(&newest, "limit", "n", 0, "print the newest, up to this `NUMBER` (default: all)")
	return cmd
}

// lookCommand is a command that only reads: without an argument it takes the
// newest transaction.
func lookCommand(c *console.Console, word, short string, look func(context.Context, *session.Session, writing.Snapshot, string) error) *cobra.Command {
	return &cobra.Command{
		Use: word + " [TX]", Short: short, Args: console.UpToOne,
		Example: "  countersign " + word + "\n  countersign " + word + " tx_01J --json",
		RunE: c.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			s, snap, id, err := session.OpenOne(cmd.Context(), c, args, true)
			if err != nil {
				return console.Outcome{}, err
			}
			return console.About(id), look(cmd.Context(), s, snap, id)
		}),
	}
}

type matrixFlags struct {
	on, pulls bool
	max, part int
}

func (f *matrixFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.on, "matrix", false, "print the open ones as strategy.matrix of a GitHub workflow takes them")
	cmd.Flags().BoolVar(&f.pulls, "pull-requests", false, "with --matrix, only those that are for a pull request")
	cmd.Flags().IntVar(&f.max, "max", console.MaxJobs, "with --matrix, the greatest `NUMBER` of jobs, up to 256")
	cmd.Flags().IntVar(&f.part, "part", 0, "with --matrix, print part `NUMBER` of a longer list; after the last part comes the first again")
}

func (f matrixFlags) check() error {
	return cmp.Or(
		console.RefuseIf(!f.on && (f.pulls || f.max != console.MaxJobs || f.part != 0), "--pull-requests, --max and --part belong to --matrix", "add --matrix"),
		console.RefuseIf(f.max < 1 || f.max > console.MaxJobs, fmt.Sprintf("--max %d is not from 1 to %d", f.max, console.MaxJobs), "GitHub allows no more jobs in one matrix"),
		console.RefuseIf(f.part < 0, fmt.Sprintf("--part %d is no part", f.part), "the first part is 0"),
	)
}

func listMatrix(ctx context.Context, c *console.Console, f matrixFlags) (console.Outcome, error) {
	w, err := session.OpenWhole(ctx, c, false)
	if err != nil {
		return console.Outcome{}, err
	}
	for _, damaged := range w.Damaged {
		c.Say("left out: %s", console.OneLine(damaged))
	}
	m := console.Part(console.Jobs(w.Open, f.pulls), f.max, f.part)
	if m.LeftOut > 0 {
		c.Say("%d of %d are left out: another --part lists them", m.LeftOut, m.LeftOut+len(m.Include))
	}
	return console.Outcome{Matrix: &m}, c.PrintJSON(m)
}

// pagesCommands are the commands that show a whole ledger.
func pagesCommands(c *console.Console) []*cobra.Command {
	return Program{
		Version: console.Version(), Now: c.Now, SetGCPercent: c.SetGCPercent, Path: c.Path, Say: c.Say, Result: c.Result, OpenBrowser: c.OpenBrowser,
		Progress: func(what string, done, total int) { c.Line.Show(what, done, total) },
		Open: func() (Source, error) {
			s, err := session.OpenLocal(c)
			if err != nil {
				return Source{}, err
			}
			elsewhere := s.Elsewhere || s.Local.KeptElsewhere(s.Repo.Config.RemoteURL(c.Flags.Remote))
			source := Source{Repo: s.Repo, Ledger: s.Local, Ref: c.Flags.LedgerRef, Elsewhere: elsewhere, Links: s.Links(), Exceptions: func(ctx context.Context) ([]explain.Exception, error) {
				snap, err := s.Local.Snapshot(ctx)
				if err != nil {
					return nil, err
				}
				return session.Exceptions(ctx, s, snap.Tip)
			}}
			tree, p, err := s.Policy(context.Background())
			if err != nil { // pages need no Policy
				return source, nil
			}
			source.Due = time.Duration(p.Approvals.Due)
			if p.Approvals.Signing() != policy.SignedOff {
				source.Passkeys = Passkeys{Origin: p.Approvals.Passkeys, List: approval.ReadKeys(tree, p).Allowed}
			}
			return source, nil
		},
		Audit: func(ctx context.Context, repo *gitstore.Repo, h *gitstore.History, o verdict.Options) (audit.Result, error) {
			return session.RunAudit(ctx, (&session.Session{Console: c, Repo: repo}), h, o, c.Line.Show)
		},
		Masks: c.Masks,
	}.Commands()
}
