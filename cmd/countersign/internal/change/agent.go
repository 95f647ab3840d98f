package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/agent"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/sandbox"
	"github.com/countersign-dev/countersign/report"
)

// agentFlags say where and how an agent is run, and what becomes of its change.
type agentFlags struct {
	resume, discard        bool
	withChanges, noNetwork bool
	unheld, detach         bool
	profile                string
	read, env              []string
	review                 reviewFlags
	to                     session.TargetFlags
	checks                 session.CheckFlags
}

func agentCommand(a *console.Console, others Others) *cobra.Command {
	f := agentFlags{review: reviewFlags{others: others}}
	cmd := &cobra.Command{
		Use:   "agent [flags] -- COMMAND… | --resume [NAME] [-- COMMAND…] | --discard [NAME]",
		Short: "Run an agent that cannot write what nobody approved",
		Long: `agent runs a program in a scratch tree, a copy of HEAD's files in a directory of its own. The kernel lets it
write that, a temporary home and what its profile says, and nothing else: not the working tree, not .git, not
the ledger. It sees none of your keys. docs/agent.md says what is held and what is not: the network is not, unless
--no-network is given.

When it ends, what it changed is proposed as one transaction, and earlier if it asks for that over "countersign mcp"
or this process gets SIGUSR1. At the end you are shown it and asked, as by run, and what you approve is applied.
After a denial, whose reason is in .git/DENIED there, --resume runs the program once more.
Exit codes are the program's, but for 4 (it waits for approval) and 5 (denied).`,
		Example: `  countersign agent -- claude
  countersign agent --to branch --no-network -- ./fix-everything.sh
  countersign agent --detach --summary "update the docs" -- codex exec "update the docs"
  countersign agent --resume`,
		Args: func(cmd *cobra.Command, args []string) error { return f.check(atDash(cmd, args)) },
		RunE: a.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			names, command := atDash(cmd, args)
			return runAgent(cmd.Context(), a, f, strings.Join(names, ""), command)
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.resume, "resume", false, "run it once more in a scratch tree that was left, `NAME` where there are several")
	flags.BoolVar(&f.discard, "discard", false, "delete a scratch tree that was left")
	flags.BoolVar(&f.withChanges, "with-changes", false, "begin with what is not committed; it is proposed as well")
	flags.BoolVar(&f.noNetwork, "no-network", false, "let it reach no network")
	flags.BoolVar(&f.unheld, "without-sandbox", false, "run it though nothing holds it: it can then write anything, and approve its own change")
	flags.BoolVar(&f.detach, "detach", false, "ask nobody: propose the change, and leave it to approve")
	known := strings.Join(agent.ProfileNames(), ", ")
	flags.StringVar(&f.profile, "profile", "", "which files and variables it gets, by the `NAME` of an agent: "+known+" (default: as the command is called)")
	flags.StringSliceVar(&f.read, "read", nil, "let it read this `DIR` as well")
	flags.StringSliceVar(&f.env, "env", nil, "let it have this variable as well, `NAME`")
	flags.StringVarP(&f.review.summary, "summary", "s", "", "what the change is for, shown to the approver")
	flags.StringSliceVar(&f.review.requestedBy, "requested-by", nil, "who asked for the change: a `LOGIN`, or the address of a Git identity")
	f.to.Add(cmd)
	f.checks.Add(cmd)
	_ = cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(agent.ProfileNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// atDash are the arguments before -- and those behind it.
func atDash(cmd *cobra.Command, args []string) (before, behind []string) {
	if at := cmd.ArgsLenAtDash(); at >= 0 {
		return args[:at], args[at:]
	}
	return args, nil
}

// check refuses what does not go together.
func (f *agentFlags) check(names, command []string) error {
	left := f.resume || f.discard
	_, known := agent.ProfileOf(f.profile, "")
	withheld := slices.ContainsFunc(f.env, agent.Withheld)
	return cmp.Or(
		console.RefuseIf(!left && len(command) == 0, "no command is given", "countersign agent -- claude"),
		console.RefuseIf(!left && len(names) > 0 || len(names) > 1, "the command stands behind --",
			"countersign agent -- "+escape.ShellWords(slices.Concat(names, command))),
		console.RefuseIf(f.resume && f.discard || f.discard && len(command) > 0, "--discard runs nothing", "leave out the rest"),
		console.RefuseIf(left && f.withChanges, "a scratch tree that was left is as it was left", "leave out --with-changes"),
		console.RefuseIf(!known, fmt.Sprintf("no profile is called %+q", f.profile), "--profile "+strings.Join(agent.ProfileNames(), ", ")),
		console.RefuseIf(withheld, "no agent gets a variable of countersign's, or one that leads to your keys", "leave it out of --env"),
		console.RefuseIf(f.unheld && f.noNetwork, "without the sandbox nothing keeps it from the network", "leave out one of them"),
	)
}

func runAgent(ctx context.Context, a *console.Console, f agentFlags, name string, command []string) (done console.Outcome, err error) {
	o, err := f.to.Options(false)
	if err != nil {
		return done, err
	}
	s, err := session.Open(a)
	if err == nil {
		err = f.checks.Apply(s)
	}
	if err != nil {
		return done, err
	}
	t, unlock, err := scratchTree(ctx, s, f, name, command)
	if err != nil {
		return done, err
	}
	defer unlock()
	defer func() { err = errors.Join(err, t.Tidy()) }()
	if f.resume || f.discard {
		over, err := applied(ctx, s, t)
		if err != nil && !f.discard {
			return done, err
		}
		if over || f.discard {
			return done, t.Remove()
		}
		if t.Transaction != "" {
			tx, err := stateOf(ctx, s, t.Transaction)
			if err == nil && tx.Status == ledger.Denied {
				err = noteDenial(ctx, s, t, tx.PatchID())
			}
			if err != nil {
				return done, err
			}
		}
	}
	f.review.to = o.To
	c := courier{s: s, f: f, t: t}
	quiet, err := c.serve(ctx)
	if err != nil {
		return done, err
	}
	exit, err := attend(ctx, s, f, t)
	err = errors.Join(err, quiet())
	if err != nil {
		if !f.resume && errors.As(err, new(*sandbox.UnavailableError)) {
			err = errors.Join(err, t.Remove())
		}
		return done, err
	}
	if exit != 0 {
		s.Say("%s ended with exit code %d", report.Clean(t.Command[0]), exit)
	}
	rest := false
	over, err := applied(ctx, s, t) // of what it proposed while it ran
	if err == nil && !over {
		done, rest, err = offer(ctx, s, f, o, t)
	}
	nested := t.Nested()
	switch {
	case nested != "":
		s.Say("%s is a repository of its own: nothing of it is proposed, and the scratch tree %s is left", report.Clean(nested), report.Clean(t.Dir()))
	case errors.Is(err, patch.ErrUnchanged):
		s.Say("%s changed nothing", report.Clean(t.Command[0]))
		err = t.Remove()
	case err == nil && rest:
		s.Say("what you did not take is left in the scratch tree %s: countersign agent --discard %s deletes it", report.Clean(t.Dir()), t.Name)
	case err == nil:
		err = t.Remove()
	default:
		again := s.Typed("countersign agent --resume "+t.Name, done.Transaction)
		s.Say("the scratch tree %s is left: %s runs it there once more", report.Clean(t.Dir()), again)
	}
	if err == nil && exit != 0 {
		err = &console.ExitError{Code: exit}
	}
	return done, err
}

// scratchTree is a new one, or the one that was left, for this process alone.
func scratchTree(ctx context.Context, s *session.Session, f agentFlags, name string, command []string) (t *agent.Tree, unlock func(), err error) {
	parent, err := agent.Parent(s.Repo, s.Getenv)
	if err != nil {
		return nil, nil, err
	}
	if f.resume || f.discard {
		if t, err = agent.Find(s.Repo, parent, name); err == nil && len(command) > 0 {
			t.Command, t.Profile = command, f.profile
		}
		if err == nil && f.resume && (t.Base == "" || len(t.Command) == 0) {
			err = fault.Refuse(fmt.Sprintf("the scratch tree %s was not made to its end", t.Name), "countersign agent --discard "+t.Name)
		}
	} else {
		begin := agent.State{Command: command, Profile: f.profile, WithChanges: f.withChanges}
		if begin.Base, err = s.Repo.Head(ctx); err != nil {
			return nil, nil, err
		}
		var changes []patch.Change
		if f.withChanges {
			if changes, err = uncommitted(ctx, s, begin.Base); err != nil {
				return nil, nil, err
			}
		}
		t, err = agent.Make(ctx, s.Repo, parent, begin, changes)
	}
	if err != nil {
		return nil, nil, err
	}
	unlock, err = t.Lock(ctx)
	return t, unlock, err
}

// uncommitted is what the working tree has beyond HEAD.
func uncommitted(ctx context.Context, s *session.Session, head string) ([]patch.Change, error) {
	in, err := review.Worktree(ctx, s.Runner, "")
	if err != nil {
		return nil, err
	}
	tree, err := s.Repo.Tree(ctx, head)
	if err != nil {
		return nil, err
	}
	set, err := in.Resolve(tree)
	if errors.Is(err, patch.ErrUnchanged) {
		return nil, nil
	}
	return set.Files(), err
}

// applied reports whether all that a scratch tree has beyond its commit was proposed, and is applied by now.
func applied(ctx context.Context, s *session.Session, t *agent.Tree) (all bool, err error) {
	if t.Transaction == "" {
		return false, nil
	}
	tx, err := stateOf(ctx, s, t.Transaction)
	if err != nil || tx.Status != ledger.Applied && tx.Status != ledger.Completed {
		return false, err
	}
	in, err := t.Change(ctx, math.MaxInt64, "")
	if err != nil && !errors.Is(err, patch.ErrUnchanged) {
		return false, err
	}
	if err == nil {
		tree, err := s.Repo.Tree(ctx, t.Base)
		if err != nil {
			return false, err
		}
		set, err := in.Resolve(tree)
		if err != nil || set.ID() != tx.PatchID() {
			return false, err
		}
	}
	s.Say("%s is applied: the scratch tree is deleted", t.Transaction)
	return true, nil
}

// attend runs the agent at this terminal, and returns its exit code.
func attend(ctx context.Context, s *session.Session, f agentFlags, t *agent.Tree) (exit int, err error) {
	profile, known := agent.ProfileOf(t.Profile, t.Command[0])
	if !known {
		return 0, &console.UsageError{Message: fmt.Sprintf("no profile is called %+q", t.Profile), Hint: "--profile " + strings.Join(agent.ProfileNames(), ", ")}
	}
	empty, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer empty.Close()
	setting := agent.Setting{
		Profile: profile, Getenv: s.Getenv, Env: f.env, NoNetwork: f.noNetwork,
		Read:  slices.Concat(f.read, filepath.SplitList(s.Getenv("COUNTERSIGN_SANDBOX_READ"))),
		Stdio: [3]*os.File{cmp.Or(console.File(s.Stdin), empty), cmp.Or(console.File(s.Stdout), empty), cmp.Or(console.File(s.Stderr), empty)},
	}
	for i, dir := range setting.Read {
		setting.Read[i] = s.Path(dir)
	}
	run := t.Run
	if f.unheld {
		run = t.RunUnheld
		s.Say("WITHOUT A SANDBOX: %s can write your files, .git and the ledger, read your keys, and approve its own change. "+
			"That only approved changes are written is not true of this run.", report.Clean(t.Command[0]))
	}
	defer s.Line.Hold()()
	takeBack := console.Lend(setting.Stdio[0], setting.Stdio[2])
	exit, err = run(ctx, setting)
	takeBack()
	if missing, is := errors.AsType[*sandbox.UnavailableError](err); is { // the hint is what to enable; what runs it all the same is in the help alone
		err = &fault.Error{Kind: fault.Refused, Message: "the agent was not run: " + missing.Error(), Try: missing.Try, Cause: missing}
	}
	return exit, err
}

// offer proposes what the agent changed, and has a person asked about it, who may leave a rest of it.
func offer(ctx context.Context, s *session.Session, f agentFlags, o pipeline.ApplyOptions, t *agent.Tree) (done console.Outcome, rest bool, err error) {
	in, err := scratchChange(ctx, s, f, t)
	if err != nil {
		return done, false, err
	}
	if err := addTrace(ctx, s, t, &in); err != nil {
		s.Say("what the agent did is not recorded with its change: %s", console.OneLine(err))
	}
	if err := t.Tidy(); err != nil { // before anybody is asked, who may end the program there
		return done, false, err
	}
	f.review.made = &in
	began := ledger.FormatTime(s.Runner.Now())
	if f.detach {
		done, err = reviewChange(ctx, s, f.review)
		if err == nil {
			err = &console.ExitError{Code: console.ExitPending}
		}
	} else {
		done, err = run(ctx, s, f.review, o, nil)
	}
	if done.Transaction != "" {
		tx, failed := stateOf(ctx, s, done.Transaction)
		err = errors.Join(err, failed, t.Proposed(done.Transaction, failed != nil || tx.CreatedAt < began))
	}
	if denied, is := errors.AsType[*pipeline.DeniedError](err); is {
		err = errors.Join(err, noteDenial(ctx, s, t, denied.PatchID))
	}
	if err == nil && in.Kind == input.KindPatch { // whose bytes are the patch's
		tx, failed := stateOf(ctx, s, t.Transaction)
		rest, err = tx.PatchID() != canon.Hex(in.Raw), failed
	}
	return done, rest, err
}

// noteDenial tells the agent, and the person, why a patch was denied.
func noteDenial(ctx context.Context, s *session.Session, t *agent.Tree, patchID string) error {
	reason, err := denialOf(ctx, s, patchID)
	if err != nil || reason == "" {
		return err
	}
	s.Say("%s", reason)
	if err := t.NoteDenial(reason); err != nil { // what the agent made of its .git is its own affair
		s.Say("the agent cannot be told: %s", console.OneLine(err))
	}
	return nil
}
