// Package pulls has the commands for pull requests, as workflows run them: settle, plan, fleet, and files from job to job; and
// the Action: the inputs of a step become the flags of the commands that a person types, and what a command came to becomes the
// step's outputs, its summary and a check run.
package pulls

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Commands are those for pull requests, as workflows run them.
func Commands(c *console.Console, o Others) []*cobra.Command {
	return []*cobra.Command{settleCommand(c, o.Cosign), planCommand(c), fleetCommand(c), artifactCommand(c)}
}

// Others are what other commands do for these.
type Others struct {
	Cosign cosigning                                                              // shows the tip that a settlement left to witnesses
	Watch  func(ctx context.Context, c *console.Console, step console.Step) error // audits the default branch, and keeps the issue
	Record func(ctx context.Context, s *session.Session, of forge.Auditor) error  // records what protects the default branch
}

type cosigning func(ctx context.Context, s *session.Session, sum *pull.Settled)

// settleFlags say which pull request is settled, and how.
type settleFlags struct {
	pr        int
	all       bool
	bundle    string
	noGate    bool
	dedicated bool
	checks    session.CheckFlags
	target    session.TargetFlags
}

func settleCommand(c *console.Console, cosign cosigning) *cobra.Command {
	var f settleFlags
	cmd := &cobra.Command{
		Use:   "settle --pr N [TX]",
		Short: "Take all that is proposed on a pull request as far as its approvals allow, and report there",
		Long: `settle reads the reviews and comments of a pull request, records the decisions, asks where
approvals are missing, applies what is approved to the pull request's branch, validates it, and
reports on the pull request. It does nothing twice: run it as often as you like.

It needs a token (COUNTERSIGN_TOKEN, or the Action's input) that may write contents, pull
requests and checks. In a workflow the pull request is the event's.`,
		Example: "  countersign settle --pr 12\n  countersign settle --pr 12 --bundle bundle.json --json",
		Args:    console.UpToOne,
		RunE: c.Does(func(cmd *cobra.Command, args []string) (console.Outcome, error) {
			if f.all {
				return settleAll(cmd.Context(), c, f, args, cosign)
			}
			before := c.Finder()
			w, err := openSettler(cmd.Context(), c, f, args)
			if err != nil {
				return console.About(w.id), err
			}
			if w.number == 0 { // a run that was for no pull request
				c.Say("nothing was proposed")
				return showSettled(w.Session, pull.NewSettled(host{w.Session}, 0), w.id)
			}
			done := w.Settle(cmd.Context(), w.number)
			cosign(cmd.Context(), w.Session, done)
			w.settleLeft(cmd.Context(), f, before)
			return showSettled(w.Session, done, w.id)
		}),
	}
	cmd.Flags().IntVar(&f.pr, "pr", 0, "the pull request's `NUMBER`")
	cmd.Flags().BoolVar(&f.all, "all", false, "every pull request that has an open transaction, or is guarded by the Policy's gate and was not looked at yet")
	cmd.Flags().StringVar(&f.bundle, "bundle", "", "propose what is in this bundle of \"review --bundle-out\", `FILE`")
	cmd.Flags().BoolVar(&f.noGate, "no-gate", false, "do not guard pull requests themselves: no check \"countersign\"")
	cmd.Flags().BoolVar(&f.dedicated, "dedicated", false, "the token is your own App's, and branch protection expects the check from that App")
	f.target.Add(cmd)
	f.checks.Add(cmd)
	return cmd
}

// A settling is a session for a pull request that is to be settled.
type settling struct {
	*session.Session
	pull.Settler
	number int    // of the pull request, 0 where nothing was proposed
	id     string // of the transaction that was named, "" for none
}

// openSettler opens the repository, and finds the pull request: by the flag, by
// the transaction, or by the workflow's event.
func openSettler(ctx context.Context, c *console.Console, f settleFlags, args []string) (w settling, err error) {
	o, err := f.target.Options(false)
	if err != nil {
		return w, err
	}
	if w.Session, err = session.Open(c); err == nil {
		err = w.WorkShared()
	}
	if err == nil {
		err = f.checks.Apply(w.Session)
	}
	if err == nil && w.Client == nil {
		err = c.NoClient("there is no token to read pull requests with")
	}
	if err != nil {
		return w, err
	}
	r := w.Session.Runner
	if f.bundle == "" {
		r.Asked = nil // what it proposes was asked for by who started the run that hands it over
	}
	w.Settler = newSettler(w.Session)
	w.Apply, w.NoGate, w.Dedicated = o, f.noGate, w.Dedicated || f.dedicated
	if f.bundle != "" {
		var raw []byte // standard input is read once
		w.Bundle = func(limit int64) (_ []byte, err error) {
			if raw == nil {
				raw, err = c.ReadInput(f.bundle, limit)
			}
			return raw, err
		}
	}
	if w.InWorkflow {
		if w.Event, err = session.TrustedEvent(c); err != nil {
			return w, err
		}
		r.Witnessed, r.WitnessedOn = w.Event.Witnessed()
	}
	if r.Actor, err = w.Client.Viewer(ctx); err != nil {
		return w, err
	}
	if !f.all && f.pr == 0 && len(args) == 0 { // what is named is what this is about
		w.number, err = w.TakeNew(ctx)
	}
	if err == nil && w.number == 0 {
		w.number, w.id, err = findPull(ctx, w.Session, w.Settler, f.pr, args)
	}
	return w, err
}

// findPull finds the pull request that is meant.
func findPull(ctx context.Context, a *session.Session, s pull.Settler, number int, args []string) (_ int, id string, err error) {
	switch {
	case number < 0:
		return 0, "", &console.UsageError{Message: "--pr takes the number of a pull request", Hint: ""}
	case number > 0:
		return number, "", nil
	case len(args) > 0:
		var snap writing.Snapshot
		if snap, id, err = a.Find(ctx, args, false); err != nil {
			return 0, "", err
		}
		log, err := lookup.Read(snap.Tree, id)
		if err != nil {
			return 0, id, err
		}
		if number, err = s.PullOf(ctx, log); err != nil {
			return 0, id, err
		}
	default:
		if number, err = s.Event.FindPull(ctx, s.Forge); err != nil {
			return 0, "", err
		}
	}
	if number == 0 && s.Event.ProposesAnew() == 0 {
		return 0, id, &console.UsageError{Message: "it is not clear which pull request is meant", Hint: "name one: --pr N"}
	}
	return number, id, nil
}

// settleAll settles the pull requests of a sweep, one after the other; what goes wrong with one does not stop the next.
func settleAll(ctx context.Context, c *console.Console, f settleFlags, args []string, cosign cosigning) (console.Outcome, error) {
	if f.pr != 0 || f.bundle != "" || len(args) > 0 {
		return console.Outcome{}, &console.UsageError{Message: "--all stands alone", Hint: "leave out --pr, --bundle and the transaction"}
	}
	w, err := session.OpenWhole(ctx, c, true)
	if err != nil {
		return console.Outcome{}, err
	}
	w.S.Runner.Asked = nil
	sweep := newSettler(w.S)
	sweep.NoGate = f.noGate
	if sweep.Forge == nil {
		return console.Outcome{}, c.NoClient("there is no token to read pull requests with")
	}
	if err := sweep.CheckLedger(ctx); err != nil {
		return console.Outcome{}, err
	}
	if w.S.Runner.Actor, err = w.S.Client.Viewer(ctx); err != nil {
		return console.Outcome{}, err
	}
	sum := pull.NewSettled(host{w.S}, 0)
	for _, damaged := range w.Damaged {
		sum.Fail(damaged)
	}
	if sweep.Event, err = session.TrustedEvent(c); err != nil { // what it hands over is then not looked at
		sweep.Event = forge.Event{}
	}
	pulls := sweep.Pulls(ctx, w.Open, sum)
	settleEach(ctx, c, f, pulls, c.Finder(), sum)
	cosign(ctx, w.S, sum)
	return showSettled(w.S, sum, "")
}

// settleEach settles pull requests, each with what was known of secrets before and what it alone teaches of them.
func settleEach(ctx context.Context, c *console.Console, f settleFlags, pulls []int, before *secret.Finder, sum *pull.Settled) {
	for _, number := range pulls {
		alone := c.Knowing(before)
		f.pr = number
		w, err := openSettler(ctx, alone, f, nil)
		if err == nil {
			sum.Add(w.Settle(ctx, w.number))
			c.Known.Secrets = c.Finder().Also(alone.Finder())
		}
		if err = errors.Join(err, alone.End()); err != nil {
			sum.Fail(err)
		}
	}
}

// settleLeft takes up what runs of other pull requests left that failed. What goes wrong with these is told, and
// no failure of this one.
func (a settling) settleLeft(ctx context.Context, f settleFlags, before *secret.Finder) {
	left, err := a.Left(ctx, a.number)
	if err != nil {
		a.Say("what earlier runs left could not be looked for: %v", err)
	}
	f.bundle, f.checks.Results = "", ""
	for _, other := range left {
		a.Say("the last run of pull request %d failed: it is settled as well", other)
		done := pull.NewSettled(host{a.Session}, other)
		settleEach(ctx, a.Session.Console, f, []int{other}, before, done)
		for _, note := range done.Notes {
			a.Say("pull request %d: %s", other, note)
		}
	}
}

// showSettled prints what was settled (docs/schema/settle.json). The exit code is
// that of the worst: what failed before what was denied, before what waits.
func showSettled(a *session.Session, s *pull.Settled, id string) (console.Outcome, error) {
	done := console.Outcome{Transaction: id}
	var err error
	if done.Settled, err = outputs(a.Console, s); err != nil {
		return done, err
	}
	if a.Flags.JSON {
		err := a.PrintJSON(map[string]any{
			"pull_request": s.PullRequest, "transactions": s.Transactions, "needs_checks": s.NeedsChecks, "notes": s.Notes,
		})
		if err != nil {
			return done, err
		}
		return done, a.Worst(s.Errs)
	}
	for _, rep := range s.Transactions {
		told, err := a.Tell(rep, "")
		if done.Shown = told.Shown; err != nil {
			return done, err
		}
	}
	for _, note := range s.Notes {
		a.Say("%s", note)
	}
	return done, a.Worst(s.Errs)
}

// planCommand says what an event is about, for a job that costs seconds.
func planCommand(c *console.Console) *cobra.Command {
	var pr int
	cmd := &cobra.Command{
		Use: "plan", Hidden: true, Short: "Say which pull request a workflow's event is about", Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := Plan(cmd.Context(), c, pr)
			if err != nil {
				return err
			}
			return c.PrintJSON(map[string]any{"act": p.Act, "pull_request": p.PullRequest, "stage": p.Stage})
		},
	}
	cmd.Flags().IntVar(&pr, "pr", 0, "the pull request's `NUMBER`, where it is known")
	return cmd
}

func Plan(ctx context.Context, c *console.Console, number int) (console.Plan, error) {
	e, err := session.ReadEvent(c.Getenv)
	if err != nil {
		return console.Plan{}, err
	}
	if number == 0 && e.Sweeps() {
		return console.Plan{Act: true, Stage: "sweep"}, nil
	}
	client, err := session.ForgeOfWorkflow(c)
	if err != nil {
		return console.Plan{}, err
	}
	stage, named := "settle", number > 0
	switch {
	case named:
	case e.WorkflowRun != nil && console.OnGiteaRunner(c.Getenv): // whose name says nothing
		stage = "sweep"
	default:
		var finder forge.Finder
		if client != nil {
			finder = client
		}
		number, err = e.FindPull(ctx, finder)
	}
	act := err == nil && (number > 0 || stage == "sweep" || e.ProposesAnew() != 0) && (named || e.Acts()) && mayCount(ctx, client, e, number)
	return console.Plan{PullRequest: number, Act: act, Stage: stage}, err
}

// mayCount reports whether what an event tells of can count. On a public repository anybody can
// say something: what those say who may only read is left to the next run, unless the pull request is theirs.
// What cannot be asked is left to settle.
func mayCount(ctx context.Context, client session.ForgeClient, e forge.Event, number int) bool {
	who, author, said := e.Speaker()
	if !said || client == nil {
		return true
	}
	may, err := client.Access(ctx, who)
	if err != nil || may.Permission != "none" && may.Permission != string(policy.CanRead) {
		return true
	}
	if author.ID == "" && number > 0 {
		there, err := client.PullRequest(ctx, number)
		if err != nil {
			return true
		}
		author = there.Author
	}
	return who.ID == author.ID
}
