package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/report"
)

// allFlags choose among the open transactions.
type allFlags struct {
	all         bool
	concurrency int
	pr          int
	since       string
}

func (f *allFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "every open transaction, oldest first")
	flags.IntVar(&f.concurrency, "concurrency", runtime.GOMAXPROCS(0), "with --all: work on `N` at a time")
	flags.IntVar(&f.pr, "pr", 0, "with --all: only those of the pull request with this `NUMBER`")
	flags.StringVar(&f.since, "since", "", "with --all: only those proposed since a `TIME`: 36h, 7d, 2026-11-20 or 2026-11-20T08:00:00Z")
}

// check refuses flags that do not go together; given are what else was named.
func (f *allFlags) check(given []string) error {
	return cmp.Or(
		console.RefuseIf(!f.all && (f.pr != 0 || f.since != ""), "--pr and --since choose among all transactions", "add --all"),
		console.RefuseIf(f.all && len(given) > 0, "--all and "+strings.Join(given[:min(1, len(given))], "")+" were given", "give one of them"),
		console.RefuseIf(f.concurrency < 1, "--concurrency must be 1 or more", ""),
		console.RefuseIf(f.pr < 0, "--pr takes the number of a pull request", ""),
	)
}

// runAll takes every open transaction as far as its approvals allow.
func runAll(ctx context.Context, a *console.Console, f allFlags, c session.CheckFlags, o pipeline.ApplyOptions) error {
	since, err := session.Since(a, f.since)
	if err != nil {
		return err
	}
	w, err := session.OpenWhole(ctx, a, f.pr > 0)
	if err == nil && !a.Flags.Push && !a.Flags.NoPush && len(pull.Numbers(w.Open)) > 0 { // others look at these
		w, err = session.OpenWhole(ctx, a, true)
	}
	if err == nil {
		err = c.Apply(w.S)
	}
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(w.Open, func(tx ledger.Transaction) bool {
		p := tx.Pointers.Proposal
		created, err := time.Parse(ledger.TimeFormat, tx.CreatedAt)
		return f.pr > 0 && (p == nil || p.PullRequest != f.pr) || err == nil && created.Before(since)
	})
	all := &advancing{Session: w.S, options: o, rows: make([]report.Row, len(chosen)), errs: make([]error, len(chosen))}
	if err := all.run(ctx, f.concurrency, chosen); err != nil { // those that were not begun have this reason
		code := console.CodeOf(err)
		for i, tx := range chosen {
			if all.rows[i].TransactionID == "" {
				all.rows[i] = report.Row{
					TransactionID: tx.TransactionID, PatchID: tx.PatchID(), Summary: tx.Notes, Status: tx.Status, State: plain.StateOf(tx.Status, "", tx.GateOnly(), false), ExitCode: code, Error: console.OneLine(err),
				}
				all.errs[i] = err
			}
		}
	}
	for _, err := range w.Damaged { // too much to be chosen or not
		all.rows = append(all.rows, report.Row{TransactionID: err.ID, State: plain.Damaged, ExitCode: console.ExitFailed, Error: console.OneLine(err)})
		all.errs = append(all.errs, err)
	}
	if a.Flags.JSON {
		err = a.PrintJSON(map[string]any{"transactions": all.rows})
	} else {
		if len(all.rows) == 0 {
			a.Say("no open transactions")
		}
		err = a.Print(report.Table(all.rows, w.S.Style()))
	}
	return errors.Join(err, all.outcome())
}

// outcome is the exit code of the worst, and how many ended how; each has its
// own line in the table.
func (all *advancing) outcome() error {
	worst := all.Worst(slices.DeleteFunc(slices.Clone(all.errs), func(err error) bool { return err == nil }))
	if worst == nil {
		return nil
	}
	counts := map[int]int{}
	for _, row := range all.rows {
		counts[row.ExitCode]++
	}
	failed := len(all.rows) - counts[0] - counts[console.ExitPending] - counts[console.ExitDenied]
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{failed, "failed"}, {counts[console.ExitDenied], "denied"}, {counts[console.ExitPending], "not approved yet"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	code := console.CodeOf(worst)
	return &console.ExitError{Code: code, Err: fault.Fail(fmt.Sprintf("of %s: %s", report.Counted(len(all.rows), "transaction"), strings.Join(parts, ", ")), "countersign list")}
}

// advancing is a run of many transactions, and what became of each.
type advancing struct {
	*session.Session
	options pipeline.ApplyOptions
	rows    []report.Row
	errs    []error
}

func (all *advancing) run(ctx context.Context, concurrency int, chosen []ledger.Transaction) error {
	r, stderr := all.Runner, all.Stderr
	all.Stderr = &console.Locked{W: stderr}
	defer func() { all.Stderr = stderr }()
	ended := 0
	to := pipeline.Ahead{Until: pipeline.StageValidate, ApplyOptions: all.options}
	return pipeline.AdvanceAll(ctx, r, chosen, to, concurrency, func(i int, out pipeline.Outcome, err error) {
		all.rows[i], all.errs[i] = all.row(ctx, r.With(out.Learnt).Secrets, chosen[i], out, err)
		ended++
		all.Line.Show("transactions", ended, len(chosen))
	})
}

// row is what became of a transaction, without the secrets of its patch, which
// only this run of it knows.
func (all *advancing) row(ctx context.Context, known redact.Finder, tx ledger.Transaction, out pipeline.Outcome, err error) (report.Row, error) {
	row := report.Row{
		TransactionID: tx.TransactionID, PatchID: tx.PatchID(), Summary: tx.Notes, Status: tx.Status, State: plain.StateOf(tx.Status, "", tx.GateOnly(), false),
	}
	if p := tx.Pointers.Proposal; p != nil {
		row.PullRequest = p.PullRequest
	}
	if errors.Is(err, pipeline.ErrGateOnly) {
		err = nil // it is merged, not applied
	}
	if out.Log() != nil {
		row.Status, row.Verdict, row.Reason = out.Status(), out.Verdict.State, out.Verdict.Reason
		row.State = plain.StateOfLog(out.Log(), row.Verdict)
		if risks, err := review.Risks(ctx, out.Judgement); err == nil {
			row.Risks = risks.Redacted(known.Text)
		}
	}
	if out.Applied != nil {
		row.Outcome, row.AppliedCommit = out.Applied.Result.Outcome, out.Applied.Commit
	}
	if console.As[*ledger.CorruptError](err) {
		row.State = plain.Damaged
	}
	if err != nil {
		row.ExitCode = console.CodeOf(err)
		if pending, is := errors.AsType[*pipeline.PendingError](err); is { // of a later look than the gate's
			row.Verdict, row.Reason = pending.Verdict.State, pending.Verdict.Reason
		}
		if row.ExitCode != console.ExitPending {
			row.Error = known.Text(console.OneLine(err))
		}
	}
	row.Summary, row.Reason = known.Text(row.Summary), known.Text(row.Reason)
	return row, err
}
