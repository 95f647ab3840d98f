package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

func (a *App) runCommand() *cobra.Command {
	var f reviewFlags
	var to targetFlags
	var c checkFlags
	var all allFlags
	var commit bool
	cmd := &cobra.Command{
		Use:   "run [FILE | TX [--patch FILE] | --all]",
		Short: "Take a patch through review, gate, apply and validate",
		Long: `run takes the patch in a file, or a transaction that is under way, as far as its approvals allow.
In a terminal it shows the risks and the diff and asks, as approve does. Elsewhere it stops at
the gate with exit code 4 and says which command records the approval. A transaction with --patch is
that one, whose patch the ledger has only without its secrets.

With --all every open transaction goes as far as its approvals allow; nothing is asked. A
failure of one does not stop the others, and the exit code is that of the worst.`,
		Example: `  countersign run fix.patch
  countersign run tx_01J --json
  countersign run --all --since 7d`,
		Args: cli.UpToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := a.takeFile(cmd.Context(), &f, args)
			if err != nil {
				return err
			}
			file, err := f.patchOf(args)
			if err != nil {
				return err
			}
			if len(f.given()) == 0 && f.summary != "" {
				return &cli.UsageError{Message: "--summary belongs to a new proposal, and none was given", Hint: "name one with --patch FILE"}
			}
			o, err := to.options(false)
			if err != nil {
				return err
			}
			switch {
			case f.as == "each":
				return &cli.UsageError{Message: "run takes one change, and --as each makes several", Hint: strings.Join(f.words("review", "each"), " ")}
			case commit && (all.all || o.To != "" && o.To != policy.ToWorktree):
				return &cli.UsageError{Message: "--commit commits what was applied to the working tree, of one change", Hint: "leave out --to and --all"}
			case commit:
				o.To = policy.ToWorktree
			}
			if err := all.check(append(f.given(), args...)); err != nil {
				return err
			}
			if all.all {
				return a.runAll(cmd.Context(), all, c, o)
			}
			if f.suggestion != "" {
				a.shareLedger()
			}
			r, err := c.open(cmd.Context(), a, args, file)
			if err != nil {
				return err
			}
			if commit {
				o.Checkout = a.repo
			}
			return a.run(cmd.Context(), r, f, o, args)
		},
	}
	f.add(cmd)
	to.add(cmd)
	c.add(cmd)
	all.add(cmd)
	cmd.Flags().BoolVar(&commit, "commit", false, "apply to the working tree, and commit exactly that on the branch that is checked out")
	return cmd
}

// run takes one transaction as far as its approvals allow, a new one for a patch;
// the person at the terminal is asked in between.
func (a *App) run(ctx context.Context, r *pipeline.Runner, f reviewFlags, o pipeline.ApplyOptions, args []string) error {
	opens, err := a.runOpens(ctx, r, o, f, args)
	if err != nil {
		return err
	}
	if opens {
		var id string
		if r, id, err = a.openPull(ctx, f, args); err != nil {
			return err
		}
		f, args = reviewFlags{}, []string{id}
	}
	find := func() (string, error) {
		_, id, err := a.find(ctx, r, args, false)
		return id, err
	}
	if f.to = o.To; len(args) == 0 && len(f.given()) > 0 {
		done, err := a.propose(ctx, r, f)
		if f.as = a.askSeveral(err, f, false); f.as != "" {
			done, err = a.propose(ctx, r, f)
		}
		if err != nil {
			return err
		}
		r, find = r.With(done.Learnt), func() (string, error) { return done.ID, nil }
	}
	id, err := find()
	if err != nil {
		return err
	}
	g, err := r.Gate(ctx, id)
	decided := ""
	if err == nil {
		tip := g.Ledger.Tip
		if g, err = a.askInRun(ctx, r, g, find); g.Ledger.Tip != tip {
			decided = r.Decider.Login
		}
	}
	if err != nil {
		return err
	}
	out, stop := r.Continue(ctx, pipeline.Outcome{Gated: g}, pipeline.Ahead{Until: pipeline.StageValidate, ApplyOptions: o})
	a.learn(out.Learnt)
	if out.Applied != nil {
		a.sayResumed(out.Transaction().TransactionID, *out.Applied)
	}
	if opens && as[*pipeline.GateOnlyError](stop) { // approved, and merged by settle or a person
		stop = nil
	}
	rep, err := a.reportRun(ctx, out)
	if err == nil {
		err = a.tell(rep, decided)
	}
	return errors.Join(err, stop)
}

// runOpens reports whether what is run becomes a pull request: the Policy says so, no
// flag says otherwise, and it is for none yet.
func (a *App) runOpens(ctx context.Context, r *pipeline.Runner, o pipeline.ApplyOptions, f reviewFlags, args []string) (bool, error) {
	if o.To != "" || f.suggestion != "" {
		return false, nil
	}
	opens, err := a.settler(r).OpensPulls(ctx)
	if err != nil || !opens || len(args) == 0 && len(f.given()) > 0 {
		return opens, err
	}
	snap, id, err := a.find(ctx, r, args, false)
	if err != nil {
		return false, err
	}
	log, err := ledger.Read(snap.Tree, id)
	return err == nil && pull.WaitsForNone(log), err
}

// askInRun asks the person at the terminal, where there is one, about what the gate
// waits for and they can decide on. It returns the transaction that they were shown last.
func (a *App) askInRun(ctx context.Context, r *pipeline.Runner, g pipeline.Gated, find func() (string, error)) (pipeline.Gated, error) {
	person := a.person()
	if person == nil || g.Transaction().Closed || !errors.As(g.Err(), new(*pipeline.PendingError)) {
		return g, nil
	}
	defer person.Close()
	if r.Decider.ID == "" {
		a.say("not asked: %s; hint: %s", pipeline.ErrNobody, a.typed(hintOf(pipeline.ErrNobody)))
		return g, nil
	}
	ruling := pipeline.Ruling{Decision: ledger.Approve, Kind: "local"}
	about, err := r.Asks(g, ruling)
	if err != nil {
		return g, nil // a decision that cannot be taken here, as where the Policy has none
	}
	about, refused, err := countable(ctx, r, g, about, ruling)
	if err != nil {
		return g, err
	}
	if len(about) == 0 {
		for _, why := range refused {
			a.say("not asked: %s", why)
		}
		return g, nil
	}
	decided, _, err := a.decideHere(ctx, r, find, ruling, nil, person)
	if errors.Is(err, errNotAsked) {
		return g, nil
	}
	a.sayUncounted(decided)
	return decided, err
}
