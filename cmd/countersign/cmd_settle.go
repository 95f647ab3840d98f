package main

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/pipeline/ledger"
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
		Short: "Take everything on a pull request as far as its approvals allow, and report there",
		Long: `settle reads the reviews and comments of a pull request, records the decisions, asks where
approvals are missing, applies what is approved to the pull request's branch, validates it, and
reports on the pull request. It does nothing twice: run it as often as you like.

It needs a token (COUNTERSIGN_TOKEN, or the Action's input) that may write contents, pull
requests and checks. In a workflow the pull request is the event's.`,
		Example: "  countersign settle --pr 12\n  countersign settle --pr 12 --bundle bundle.json --json",
		Args:    upToOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.all {
				return a.settleAll(cmd.Context(), f, args)
			}
			s, err := a.openSettlement(cmd.Context(), f, args)
			if err != nil {
				return err
			}
			s.run(cmd.Context())
			return s.show()
		},
	}
	cmd.Flags().IntVar(&f.pr, "pr", 0, "the pull request's `NUMBER`")
	cmd.Flags().BoolVar(&f.all, "all", false, "every pull request that has an open transaction")
	cmd.Flags().StringVar(&f.bundle, "bundle", "", "propose what is in this bundle of \"review --bundle-out\", `FILE`")
	cmd.Flags().BoolVar(&f.noGate, "no-gate", false, "leave pull requests themselves alone: no check \"countersign\"")
	cmd.Flags().BoolVar(&f.dedicated, "dedicated", false, "the token is that of an app of its own, which branch protection expects the check from")
	f.target.add(cmd)
	f.checks.add(cmd)
	return cmd
}

// openSettlement finds the pull request: by the flag, by the transaction, or by
// the workflow's event.
func (a *App) openSettlement(ctx context.Context, f settleFlags, args []string) (*settlement, error) {
	o, err := f.target.options(false)
	if err != nil {
		return nil, err
	}
	a.shareLedger()
	r, err := a.open()
	if err != nil {
		return nil, err
	}
	if err := f.checks.apply(a, r); err != nil {
		return nil, err
	}
	s := &settlement{a: a, r: r, client: a.client, flags: f, options: o, number: f.pr, Transactions: []report.Report{}, NeedsChecks: []string{}, Notes: []string{}, checkURLs: map[string]string{}, told: map[string]ledger.Status{}}
	if s.client == nil {
		return nil, &usageError{"there is no token to read pull requests with", "set COUNTERSIGN_TOKEN, or give the Action its input token"}
	}
	if a.Getenv("GITHUB_ACTIONS") == "true" {
		if s.event, err = readEvent(a.Getenv); err != nil {
			return nil, err
		}
		if err := s.event.trusted(a.Getenv("GITHUB_REF")); err != nil {
			return nil, err
		}
		if r.Witnessed = s.event.witnessed(); r.Witnessed != nil {
			r.WitnessedOn = s.event.Issue.Number
		}
	}
	if err := s.findPull(ctx, args); err != nil {
		return nil, err
	}
	if r.Actor, err = s.client.Viewer(ctx); err != nil {
		return nil, err
	}
	s.viewer = r.Actor
	return s, nil
}

// settleAll settles the pull requests that have an open transaction, one after
// the other; what goes wrong with one does not stop the next.
func (a *App) settleAll(ctx context.Context, f settleFlags, args []string) error {
	if f.pr != 0 || f.bundle != "" || len(args) > 0 {
		return &usageError{"--all stands alone", "leave out --pr, --bundle and the transaction"}
	}
	a.shareLedger()
	w, err := a.openWhole(ctx)
	if err == nil {
		err = a.demandTipsOfAll(ctx, w.r)
	}
	if err != nil {
		return err
	}
	sum := &settlement{a: a, Transactions: []report.Report{}, NeedsChecks: []string{}, Notes: []string{}, checkURLs: map[string]string{}}
	for _, damaged := range w.damaged {
		sum.fail(damaged)
	}
	untold, err := a.untoldPulls(ctx, w)
	sum.fail(err)
	pulls := append(pullsOf(w.open), untold...)
	untaken, err := a.untakenPulls(ctx, pulls)
	sum.fail(err)
	before := a.finder()
	learnt := before
	for _, f.pr = range append(pulls, untaken...) {
		a.secrets = before
		s, err := a.openSettlement(ctx, f, nil)
		if err != nil {
			sum.fail(err)
			continue
		}
		s.run(ctx)
		sum.add(s)
		learnt = learnt.Also(a.secrets)
	}
	a.secrets = learnt
	return sum.show()
}

// pullsOf are the pull requests that transactions are for, each once.
func pullsOf(open []ledger.Transaction) []int {
	var out []int
	for _, tx := range open {
		if p := tx.Pointers.Proposal; p != nil && p.PullRequest > 0 && !slices.Contains(out, p.PullRequest) {
			out = append(out, p.PullRequest)
		}
	}
	return out
}

func (s *settlement) add(one *settlement) {
	s.Transactions = append(s.Transactions, one.Transactions...)
	s.NeedsChecks = append(s.NeedsChecks, one.NeedsChecks...)
	s.Notes = append(s.Notes, one.Notes...)
	maps.Copy(s.checkURLs, one.checkURLs)
	s.errs = append(s.errs, one.errs...)
}

func (s *settlement) findPull(ctx context.Context, args []string) (err error) {
	switch {
	case s.number < 0:
		return &usageError{"--pr takes the number of a pull request", ""}
	case s.number > 0:
		return nil
	case len(args) > 0:
		snap, id, err := s.a.find(ctx, s.r, args, false)
		if err != nil {
			return err
		}
		log, err := ledger.Read(snap.Tree, id)
		if err != nil {
			return err
		}
		if p := log.Transaction().Pointers.Proposal; p != nil {
			s.number = p.PullRequest
		}
	default:
		s.number, err = s.event.findPull(ctx, s.client)
	}
	if err == nil && s.number == 0 {
		err = &usageError{"no pull request is meant", "name one: --pr N"}
	}
	return err
}

// show prints what was settled. The exit code is that of the worst: what failed
// before what was denied, before what waits.
func (s *settlement) show() error {
	a := s.a
	a.settled = s
	if a.flags.json {
		if err := a.printJSON(s.document()); err != nil {
			return err
		}
	} else if err := s.print(); err != nil {
		return err
	}
	return s.outcome()
}

// outcome joins what went wrong. Its exit code is that of the worst: a failure
// before a denial, and that before what waits.
func (s *settlement) outcome() error { return s.a.worst(s.errs) }

// worst joins errors, as the one with the exit code of the worst.
func (a *App) worst(errs []error) error {
	worst, code := -1, 0
	for _, err := range errs {
		c, _ := explain(err, a.again)
		rank := 2
		switch c {
		case exitPending:
			rank = 0
		case exitDenied:
			rank = 1
		}
		if rank > worst {
			worst, code = rank, c
		}
	}
	if code == 0 {
		return nil
	}
	return &exitError{code, errors.Join(unlike(errs)...)}
}

// unlike are the errors that say different things.
func unlike(errs []error) []error {
	var out []error
	for _, err := range errs {
		if !slices.ContainsFunc(out, func(o error) bool { return o.Error() == err.Error() }) {
			out = append(out, err)
		}
	}
	return out
}

func (s *settlement) print() error {
	for i, rep := range s.Transactions {
		if i > 0 {
			if err := s.a.print("\n"); err != nil {
				return err
			}
		}
		if err := s.a.show(rep); err != nil {
			return err
		}
	}
	for _, note := range s.Notes {
		s.a.say("%s", note)
	}
	return nil
}

// planCommand says what an event is about, for a job that costs seconds.
func (a *App) planCommand() *cobra.Command {
	var pr int
	cmd := &cobra.Command{
		Use: "plan", Hidden: true, Short: "Say which pull request a workflow's event is about", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			number, act, err := a.plan(cmd.Context(), pr)
			if err != nil {
				return err
			}
			return a.printJSON(map[string]any{"act": act, "pull_request": number})
		},
	}
	cmd.Flags().IntVar(&pr, "pr", 0, "the pull request's `NUMBER`, where it is known")
	return cmd
}

func (a *App) plan(ctx context.Context, number int) (int, bool, error) {
	e, err := readEvent(a.Getenv)
	if err != nil {
		return 0, false, err
	}
	if number > 0 {
		return number, true, nil
	}
	client, err := a.forgeOfWorkflow()
	if err != nil {
		return 0, false, err
	}
	number, err = e.findPull(ctx, client)
	return number, err == nil && number > 0 && e.acts(), err
}
