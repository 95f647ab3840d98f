// Package change has the commands that take a change from its patch to the files: run, agent, review, propose, apply, validate, checks.
package change

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// Others are the commands that a change meets on its way.
type Others struct {
	// Ask asks the person at the terminal, where there is one, about what the gate waits for. It returns the
	// transaction that they were shown last. find tells which one is meant.
	Ask func(ctx context.Context, s *session.Session, g pipeline.Judgement, find func() (string, error)) (pipeline.Judgement, error)
	// Open makes a pull request of a transaction.
	Open func(ctx context.Context, s *session.Session, id string) (pull.Opened, error)
}

// Commands are those that take a change from its patch to the files.
func Commands(c *console.Console, o Others) []*cobra.Command {
	return []*cobra.Command{runCommand(c, o), agentCommand(c, o), reviewCommand(c), proposeCommand(c, o), applyCommand(c), validateCommand(c), checksCommand(c)}
}

func runCommand(a *console.Console, others Others) *cobra.Command {
	f := reviewFlags{others: others}
	var to session.TargetFlags
	var c session.CheckFlags
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
		Args: console.UpToOne,
		RunE: a.Does(func(cmd *cobra.Command, args []string) (done console.Outcome, err error) {
			var s *session.Session
			if !all.all {
				if s, err = session.Open(a); err != nil {
					return done, err
				}
				args = takeFile(cmd.Context(), s, &f, args)
			}
			file, err := f.patchOf(args)
			if err != nil {
				return done, err
			}
			if len(f.given()) == 0 && f.summary != "" {
				return done, &console.UsageError{Message: "--summary belongs to a new proposal, and none was given", Hint: "name one with --patch FILE"}
			}
			o, err := to.Options(false)
			if err != nil {
				return done, err
			}
			switch {
			case f.as == "each":
				return done, &console.UsageError{Message: "run takes one change, and --as each makes several", Hint: strings.Join(f.words("review", "each"), " ")}
			case commit && (all.all || o.To != "" && o.To != policy.ToWorktree):
				return done, &console.UsageError{Message: "--commit commits what was applied to the working tree, of one change", Hint: "leave out --to and --all"}
			case commit:
				o.To = policy.ToWorktree
			}
			if err := all.check(append(f.given(), args...)); err != nil {
				return done, err
			}
			if all.all {
				return done, runAll(cmd.Context(), a, all, c, o)
			}
			if f.suggestion != "" {
				err = s.WorkShared()
			}
			if err == nil {
				err = c.Apply(s)
			}
			if err == nil {
				s, err = s.Give(cmd.Context(), args, file)
			}
			if err != nil {
				return done, err
			}
			if commit {
				o.Checkout = s.Repo
			}
			return run(cmd.Context(), s, f, o, args)
		}),
	}
	f.Add(cmd)
	to.Add(cmd)
	c.Add(cmd)
	all.add(cmd)
	cmd.Flags().BoolVar(&commit, "commit", false, "apply to the working tree, and commit exactly that on the branch that is checked out")
	return cmd
}

// run takes one transaction as far as its approvals allow, a new one for a patch;
// the person at the terminal is asked in between.
func run(ctx context.Context, s *session.Session, f reviewFlags, o pipeline.ApplyOptions, args []string) (console.Outcome, error) {
	opens, err := runOpens(ctx, s, o, f, args)
	if err != nil {
		return console.Outcome{}, err
	}
	id, others := "", f.others
	if opens {
		if s, id, err = openPull(ctx, s, f, args); err != nil {
			return console.About(id), err
		}
		f, args = reviewFlags{}, []string{id}
	}
	find := func() (string, error) {
		_, id, err := s.Find(ctx, args, false)
		return id, err
	}
	if f.to = o.To; len(args) == 0 && len(f.given()) > 0 {
		done, err := propose(ctx, s, f)
		if f.as = askSeveral(s.Console, err, f, false); f.as != "" {
			done, err = propose(ctx, s, f)
		}
		if err != nil {
			return console.About(done.ID), err
		}
		s, find = s.With(s.Runner.With(done.Learnt)), func() (string, error) { return done.ID, nil }
	}
	if id, err = find(); err != nil {
		return console.Outcome{}, err
	}
	r := s.Runner
	g, err := r.Gate(ctx, id)
	decided := ""
	if err == nil {
		tip := g.Ledger.Tip
		if g, err = others.Ask(ctx, s, g, find); g.Ledger.Tip != tip {
			decided = r.Decider.Login
		}
	}
	if err != nil {
		return console.About(id), err
	}
	out, stop := r.Continue(ctx, pipeline.Outcome{Judgement: g}, pipeline.Ahead{Until: pipeline.StageValidate, ApplyOptions: o})
	s.Learn(out.Learnt)
	if out.Applied != nil {
		session.SayResumed(s.Console, out.Transaction().TransactionID, *out.Applied)
	}
	if opens && errors.Is(stop, pipeline.ErrGateOnly) { // approved, and merged by settle or a person
		stop = nil
	}
	rep, err := s.ReportRun(ctx, out)
	if err != nil {
		return console.About(id), errors.Join(err, stop)
	}
	done, err := s.Tell(rep, decided)
	return done, errors.Join(err, stop)
}

// runOpens reports whether what is run becomes a pull request: the Policy says so, no
// flag says otherwise, and it is for none yet.
func runOpens(ctx context.Context, s *session.Session, o pipeline.ApplyOptions, f reviewFlags, args []string) (bool, error) {
	if o.To != "" || f.suggestion != "" {
		return false, nil
	}
	opens, err := s.Runner.OpensPulls(ctx)
	if err != nil || !opens || len(args) == 0 && len(f.given()) > 0 {
		return opens, err
	}
	snap, id, err := s.Find(ctx, args, false)
	if err != nil {
		return false, err
	}
	log, err := lookup.Read(snap.Tree, id)
	return err == nil && pull.WaitsForNone(log), err
}

// askSeveral asks the person at the terminal what several patches in a file are: "one"
// change, or "each" a transaction, where that can be. It is "" where the error is about
// something else, nobody is there, or the answer is neither.
func askSeveral(c *console.Console, err error, f reviewFlags, each bool) string {
	var several *input.SeveralError
	person := c.Person()
	if !errors.As(err, &several) || person == nil {
		return ""
	}
	defer person.Close()
	question := fmt.Sprintf("%s holds %d patches. Propose them as one change? [y/N] ", console.InputName(f.patch), several.Number)
	if each {
		question = fmt.Sprintf("%s holds %d patches. Propose them as [o]ne change, or [e]ach as a transaction of its own? ", console.InputName(f.patch), several.Number)
	}
	answer, err := c.Answer(person, question)
	switch answer = strings.ToLower(strings.TrimSpace(answer)); {
	case err != nil || answer == "":
	case each && strings.HasPrefix("each", answer):
		return "each"
	case each && strings.HasPrefix("one", answer) || !each && strings.HasPrefix("yes", answer):
		return "one"
	}
	return ""
}
