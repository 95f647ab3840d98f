package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/report"
)

func (a *App) runCommand() *cobra.Command {
	var f reviewFlags
	var to targetFlags
	var c checkFlags
	var all allFlags
	cmd := &cobra.Command{
		Use:   "run [TX] | run --patch FILE | run --all",
		Short: "Take a patch through review, gate, apply and validate",
		Long: `run takes a patch, or a transaction that is under way, as far as its approvals allow.
In a terminal it shows the diff and asks. Elsewhere it stops at the gate with exit code 4
and says which command records the approval.

With --all every open transaction goes as far as its approvals allow; nothing is asked. What
goes wrong with one stops no other, and the exit code is that of the worst.`,
		Example: `  countersign run --patch fix.patch
  countersign run tx_01J --json
  countersign run --all --since 7d`,
		Args: upToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if given := f.given(); len(given) > 0 && len(args) > 0 {
				return &usageError{"both a transaction and " + given[0] + " were given", "give one of them"}
			}
			if len(f.given()) == 0 && f.summary != "" {
				return &usageError{"--summary belongs to a new proposal, and none was given", "name one with --patch FILE"}
			}
			o, err := to.options(false)
			if err != nil {
				return err
			}
			if err := all.check(append(f.given(), args...)); err != nil {
				return err
			}
			if all.all {
				return a.runAll(cmd.Context(), all, c, o)
			}
			r, err := c.open(cmd.Context(), a, args, "")
			if err != nil {
				return err
			}
			return a.run(cmd.Context(), r, f, o, args)
		},
	}
	f.add(cmd)
	to.add(cmd)
	c.add(cmd)
	all.add(cmd)
	return cmd
}

// run takes one transaction as far as its approvals allow, a new one for a patch;
// the person at the terminal is asked in between.
func (a *App) run(ctx context.Context, r *pipeline.Runner, f reviewFlags, o pipeline.ApplyOptions, args []string) error {
	var id string
	if len(f.given()) == 0 {
		var err error
		if _, id, err = a.find(ctx, r, args, false); err != nil {
			return err
		}
	} else {
		done, err := a.propose(ctx, r, f)
		if err != nil {
			return err
		}
		r, id = r.With(done.Learnt), done.ID
	}
	g, err := r.Gate(ctx, id)
	if err != nil {
		return err
	}
	if person := a.person(); person != nil && !g.Transaction().Closed && g.Err() != nil {
		defer person.Close()
		if g, err = a.ask(ctx, r, g, person); err != nil {
			return err
		}
	}
	out, stop := r.Continue(ctx, pipeline.Outcome{Gated: g}, pipeline.Ahead{Until: pipeline.StageValidate, ApplyOptions: o})
	a.learn(out.Learnt)
	if out.Applied != nil {
		a.sayResumed(id, *out.Applied)
	}
	rep, err := a.reportRun(ctx, out)
	if err == nil {
		err = a.show(rep)
	}
	return errors.Join(err, stop)
}

// ask shows the patch to the person at the terminal and records the answer. What
// was typed before the question is no answer to it (T70): where that cannot be
// told apart, nobody is asked.
func (a *App) ask(ctx context.Context, r *pipeline.Runner, g pipeline.Gated, person io.Writer) (pipeline.Gated, error) {
	id := g.Transaction().TransactionID
	diff, err := g.Diff()
	if err != nil {
		return g, err
	}
	rep, err := a.report(ctx, g)
	if err != nil {
		return g, err
	}
	s := report.Style{Colour: a.colours(person)}
	about, err := a.reportText(rep, s)
	if err != nil {
		return g, err
	}
	shown := a.redactDiff(diff).Show(func(diff string) string {
		return report.Diff([]byte(diff), s) + "\n" + about.String() + "\n"
	})
	if err := emit(person, shown); err != nil {
		return g, err
	}
	empty := a.EmptyInput
	if empty == nil {
		empty = emptyInput
	}
	if err := empty(a.Stdin.(*os.File)); err != nil {
		a.say("not asked: what was typed before cannot be told from an answer: %s", oneLine(err))
		return g, nil
	}
	question := s.Bold("Apply exactly these bytes? [y]es, [d]eny for good, anything else decides later:") + " "
	if err := emit(person, a.redact(question)); err != nil {
		return g, err
	}
	answer, err := bufio.NewReader(a.Stdin).ReadString('\n')
	if errors.Is(err, io.EOF) { // the terminal is gone, or closed: no answer
		return g, nil
	}
	if err != nil {
		return g, err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		g, err := r.Decide(ctx, id, pipeline.Ruling{Decision: ledger.Approve, All: true, Kind: "local"})
		a.sayUncounted(g)
		return g, err
	case "d", "deny":
		return r.Decide(ctx, id, pipeline.Ruling{Decision: ledger.Deny, Kind: "local"})
	}
	return g, nil
}
