package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/action"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/report"
)

// settleFlags say which pull request is settled, and how.
type settleFlags struct {
	pr        int
	all       bool
	bundle    string
	noGate    bool
	dedicated bool
	checks    checkFlags
	target    targetFlags
}

func (a *App) settleCommand() *cobra.Command {
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
		Args:    cli.UpToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.all {
				return a.settleAll(cmd.Context(), f, args)
			}
			before := a.finder()
			s, number, err := a.openSettler(cmd.Context(), f, args)
			if err != nil {
				return err
			}
			if number == 0 { // a run that was for no pull request
				a.say("nothing was proposed")
				return a.showSettled(pull.NewSettled(host{a}, 0))
			}
			done := s.Settle(cmd.Context(), number)
			a.cosignSettled(cmd.Context(), s.Runner.Store.(rememberedStore), done)
			a.settleLeft(cmd.Context(), f, s, number, before)
			return a.showSettled(done)
		},
	}
	cmd.Flags().IntVar(&f.pr, "pr", 0, "the pull request's `NUMBER`")
	cmd.Flags().BoolVar(&f.all, "all", false, "every pull request that has an open transaction, or is guarded by the Policy's gate and was not looked at yet")
	cmd.Flags().StringVar(&f.bundle, "bundle", "", "propose what is in this bundle of \"review --bundle-out\", `FILE`")
	cmd.Flags().BoolVar(&f.noGate, "no-gate", false, "do not guard pull requests themselves: no check \"countersign\"")
	cmd.Flags().BoolVar(&f.dedicated, "dedicated", false, "the token is your own App's, and branch protection expects the check from that App")
	f.target.add(cmd)
	f.checks.add(cmd)
	return cmd
}

// openSettler opens the repository, and finds the pull request: by the flag, by
// the transaction, or by the workflow's event.
func (a *App) openSettler(ctx context.Context, f settleFlags, args []string) (pull.Settler, int, error) {
	none := pull.Settler{}
	o, err := f.target.options(false)
	if err != nil {
		return none, 0, err
	}
	a.shareLedger()
	r, err := a.open()
	if err != nil {
		return none, 0, err
	}
	if err := f.checks.apply(a, r); err != nil {
		return none, 0, err
	}
	if a.client == nil {
		return none, 0, a.noClient("there is no token to read pull requests with")
	}
	if f.bundle == "" {
		r.Asked = nil // what it proposes was asked for by who started the run that hands it over
	}
	s := a.settler(r)
	s.Apply, s.NoGate, s.Dedicated = o, f.noGate, s.Dedicated || f.dedicated
	if f.bundle != "" {
		var raw []byte // standard input is read once
		s.Bundle = func(limit int64) (_ []byte, err error) {
			if raw == nil {
				raw, err = a.readInput(f.bundle, limit)
			}
			return raw, err
		}
	}
	if s.InWorkflow {
		if s.Event, err = a.trustedEvent(); err != nil {
			return none, 0, err
		}
		r.Witnessed, r.WitnessedOn = s.Event.Witnessed()
	}
	if r.Actor, err = a.client.Viewer(ctx); err != nil {
		return none, 0, err
	}
	number := 0
	if !f.all && f.pr == 0 && len(args) == 0 { // what is named is what this is about
		number, err = s.TakeNew(ctx)
	}
	if err == nil && number == 0 {
		number, err = a.findPull(ctx, s, f.pr, args)
	}
	return s, number, err
}

// trustedEvent is the event of the workflow that this runs in, if its file is one that
// nobody's pull request brings along.
func (a *App) trustedEvent() (pull.Event, error) {
	e, err := readEvent(a.Getenv)
	if err == nil {
		err = e.Trusted()
	}
	return e, err
}

// settler is what settles pull requests with what the environment says.
func (a *App) settler(r *pipeline.Runner) pull.Settler {
	s := pull.Settler{
		Runner: r, Host: host{a}, LedgerRef: a.flags.ledgerRef, Wait: a.pause,
		InWorkflow: inWorkflow(a.Getenv),
		// action.yml says these.
		Dedicated: a.Getenv("COUNTERSIGN_OWN_APP") == "true", ActionsToken: a.Getenv("COUNTERSIGN_ACTIONS_TOKEN") == "true",
	}
	if a.client != nil {
		s.Forge = a.client
	}
	if store, shared := r.Store.(*gitstore.Shared); shared {
		s.Shared = sharedLedger{store, a}
	}
	return s
}

// sharedLedger is the remote's ledger as package pull asks for it.
type sharedLedger struct {
	*gitstore.Shared
	a *App
}

func (l sharedLedger) Demand(tips ...pull.Tip) error {
	var all []gitstore.Tip
	for _, tip := range tips {
		all = append(all, gitstore.Tip(tip))
	}
	return l.Shared.Demand(all...)
}

func (l sharedLedger) Root(ctx context.Context) (string, error) {
	commit, err := l.a.policyCommit(ctx, l.a.repo)
	if err != nil {
		return "", err
	}
	return l.a.repo.Root(ctx, commit)
}

// host is what a settlement asks of the program.
type host struct{ a *App }

func (h host) Learn(k pipeline.Known)    { h.a.learn(k) }
func (h host) Redact(text string) string { return h.a.redact(text).String() }
func (h host) Unanswered(err error) bool {
	return wire.Unanswered(err) || rest.IsKind(err, rest.KindNetwork)
}
func (h host) RedactDiff(diff []byte) string { return h.a.redactDiff(diff).String() }
func (h host) Report(ctx context.Context, o pipeline.Outcome) (report.Report, error) {
	return h.a.reportRun(ctx, o)
}
func (h host) Clean(rep report.Report) (report.Report, error) { return h.a.cleanReport(rep) }
func (h host) Resumed(id string, done pipeline.ApplyOutcome)  { h.a.sayResumed(id, done) }

// HandOver puts the ledger into the clone for the job that runs commands.
// It is handed on as an artifact, which whoever may read the repository can download: a ledger that is kept in another one is not.
func (h host) HandOver() error {
	if h.a.elsewhere {
		return &cli.UsageError{
			Message: "the Policy's commands run in a job without rights, which is handed the ledger; and this ledger is in another repository, so that not everybody may read it",
			Hint:    "leave commands.run out of the Policy, and require the checks of the forge instead",
		}
	}
	args := []string{"sync", "--quiet", "--ledger-ref=" + h.a.flags.ledgerRef, "--remote=" + h.a.flags.remote}
	if code, _ := h.a.child(io.Discard, h.a.Stderr, args...); code != 0 {
		return &cli.ExitError{Code: code, Err: errors.New("the ledger could not be put into the clone")}
	}
	return nil
}

// findPull finds the pull request that is meant.
func (a *App) findPull(ctx context.Context, s pull.Settler, number int, args []string) (int, error) {
	switch {
	case number < 0:
		return 0, &cli.UsageError{Message: "--pr takes the number of a pull request", Hint: ""}
	case number > 0:
		return number, nil
	case len(args) > 0:
		snap, id, err := a.find(ctx, s.Runner, args, false)
		if err != nil {
			return 0, err
		}
		log, err := ledger.Read(snap.Tree, id)
		if err != nil {
			return 0, err
		}
		if number, err = s.PullOf(ctx, log); err != nil {
			return 0, err
		}
	default:
		var err error
		if number, err = s.Event.FindPull(ctx, s.Forge); err != nil {
			return 0, err
		}
	}
	if number == 0 && s.Event.ProposesAnew() == 0 {
		return 0, &cli.UsageError{Message: "it is not clear which pull request is meant", Hint: "name one: --pr N"}
	}
	return number, nil
}

// settleAll settles the pull requests of a sweep, one after the other; what goes wrong with one does not stop the next.
func (a *App) settleAll(ctx context.Context, f settleFlags, args []string) error {
	if f.pr != 0 || f.bundle != "" || len(args) > 0 {
		return &cli.UsageError{Message: "--all stands alone", Hint: "leave out --pr, --bundle and the transaction"}
	}
	a.shareLedger()
	w, err := a.openWhole(ctx)
	if err != nil {
		return err
	}
	w.r.Asked = nil
	sweep := a.settler(w.r)
	sweep.NoGate = f.noGate
	if sweep.Forge != nil {
		if err := sweep.CheckLedger(ctx); err != nil {
			return err
		}
		if w.r.Actor, err = a.client.Viewer(ctx); err != nil {
			return err
		}
	}
	sum := pull.NewSettled(host{a}, 0)
	for _, damaged := range w.damaged {
		sum.Fail(damaged)
	}
	if sweep.Event, err = a.trustedEvent(); err != nil { // what it hands over is then not looked at
		sweep.Event = pull.Event{}
	}
	pulls := sweep.Pulls(ctx, w.open, sum)
	a.settleEach(ctx, f, pulls, a.finder(), sum)
	if a.seen != nil && a.seen() != "" { // by the last that was settled
		a.cosignSettled(ctx, w.r.Store.(rememberedStore), sum)
	}
	return a.showSettled(sum)
}

// settleEach settles pull requests, each with what was known of secrets before and what it alone teaches of them.
func (a *App) settleEach(ctx context.Context, f settleFlags, pulls []int, before *secret.Finder, sum *pull.Settled) {
	learnt := a.finder()
	for _, f.pr = range pulls {
		a.secrets = before
		s, number, err := a.openSettler(ctx, f, nil)
		if err != nil {
			sum.Fail(err)
			continue
		}
		one := s.Settle(ctx, number)
		sum.Add(one)
		learnt = learnt.Also(a.secrets)
	}
	a.secrets = learnt
}

// settleLeft takes up what runs of other pull requests left that failed. What goes wrong with these is told, and
// no failure of this one.
func (a *App) settleLeft(ctx context.Context, f settleFlags, s pull.Settler, number int, before *secret.Finder) {
	left, err := s.Left(ctx, number)
	if err != nil {
		a.say("what earlier runs left could not be looked for: %v", err)
	}
	f.bundle, f.checks.results = "", ""
	for _, other := range left {
		a.say("the last run of pull request %d failed: it is settled as well", other)
		done := pull.NewSettled(host{a}, other)
		a.settleEach(ctx, f, []int{other}, before, done)
		for _, note := range done.Notes {
			a.say("pull request %d: %s", other, note)
		}
	}
}

// showSettled prints what was settled (docs/schema/settle.json). The exit code is
// that of the worst: what failed before what was denied, before what waits.
func (a *App) showSettled(s *pull.Settled) error {
	a.settled = s
	if a.flags.json {
		err := a.printJSON(map[string]any{
			"pull_request": s.PullRequest, "transactions": s.Transactions, "needs_checks": s.NeedsChecks, "notes": s.Notes,
		})
		if err != nil {
			return err
		}
		return a.worst(s.Errs)
	}
	for _, rep := range s.Transactions {
		if err := a.tell(rep, ""); err != nil {
			return err
		}
	}
	for _, note := range s.Notes {
		a.say("%s", note)
	}
	return a.worst(s.Errs)
}

// worst joins errors that say different things, as the one with the exit code of
// the worst.
func (a *App) worst(errs []error) error {
	worst, code := -1, 0
	var unlike []error
	for _, err := range errs {
		c := codeOf(err)
		rank := 2
		switch c {
		case cli.ExitPending:
			rank = 0
		case cli.ExitDenied:
			rank = 1
		}
		if rank > worst {
			worst, code = rank, c
		}
		if !slices.ContainsFunc(unlike, func(o error) bool { return o.Error() == err.Error() }) {
			unlike = append(unlike, err)
		}
	}
	if code == 0 {
		return nil
	}
	return &cli.ExitError{Code: code, Err: errors.Join(unlike...)}
}

// planCommand says what an event is about, for a job that costs seconds.
func (a *App) planCommand() *cobra.Command {
	var pr int
	cmd := &cobra.Command{
		Use: "plan", Hidden: true, Short: "Say which pull request a workflow's event is about", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.plan(cmd.Context(), pr)
			if err != nil {
				return err
			}
			return a.printJSON(map[string]any{"act": p.Act, "pull_request": p.PullRequest, "stage": p.Stage})
		},
	}
	cmd.Flags().IntVar(&pr, "pr", 0, "the pull request's `NUMBER`, where it is known")
	return cmd
}

func (a *App) plan(ctx context.Context, number int) (action.Plan, error) {
	e, err := readEvent(a.Getenv)
	if err != nil {
		return action.Plan{}, err
	}
	if number == 0 && e.Sweeps() {
		return action.Plan{Act: true, Stage: "sweep"}, nil
	}
	client, err := a.forgeOfWorkflow()
	if err != nil {
		return action.Plan{}, err
	}
	stage, named := "settle", number > 0
	switch {
	case named:
	case e.WorkflowRun != nil && onGiteaRunner(a.Getenv): // whose name says nothing
		stage = "sweep"
	default:
		var finder forge.Finder
		if client != nil {
			finder = client
		}
		number, err = e.FindPull(ctx, finder)
	}
	act := err == nil && (number > 0 || stage == "sweep" || e.ProposesAnew() != 0) && (named || e.Acts()) && mayCount(ctx, client, e, number)
	return action.Plan{PullRequest: number, Act: act, Stage: stage}, err
}

// mayCount reports whether what an event tells of can count. On a public repository anybody can
// say something: what those say who may only read is left to the next run, unless the pull request is theirs.
// What cannot be asked is left to settle.
func mayCount(ctx context.Context, client forgeClient, e pull.Event, number int) bool {
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

// startedBy are those who started the workflow's run that this runs in, as its event and its variables say.
func startedBy(getenv func(string) string) ([]ledger.Requester, error) {
	if !inWorkflow(getenv) || getenv("GITHUB_EVENT_PATH") == "" {
		return nil, nil
	}
	e, err := readEvent(getenv)
	if err != nil {
		return nil, err
	}
	login, id := getenv("GITHUB_TRIGGERING_ACTOR"), ""
	if login == getenv("GITHUB_ACTOR") { // GITHUB_ACTOR_ID is of who started it first
		if id = getenv("GITHUB_ACTOR_ID"); e.Name == "schedule" {
			login = "" // who last changed the workflow's file
		}
	}
	return e.StartedBy(login, id), nil
}

// readEvent reads the event of the workflow that this runs in.
func readEvent(getenv func(string) string) (pull.Event, error) {
	f, err := os.Open(getenv("GITHUB_EVENT_PATH"))
	if err != nil {
		return pull.Event{}, fmt.Errorf("reading the workflow's event: %w", plainText(err))
	}
	defer f.Close()
	return pull.ReadEvent(getenv("GITHUB_EVENT_NAME"), getenv("GITHUB_REF"), f)
}
