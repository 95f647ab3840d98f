package proofs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/online"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report"
)

// onlineFlags say whether the forge is asked again, and how much of it.
type onlineFlags struct {
	ask      bool
	record   bool
	requests int
	maxAge   time.Duration
}

func (f *onlineFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.ask, "online", false, "ask the forge whether it tells still what is recorded of it (docs/online.md)")
	cmd.Flags().BoolVar(&f.record, "record-settings", false, "with --online: record what protects the default branch, where that is not what was recorded last")
	cmd.Flags().IntVar(&f.requests, "requests", mostAsked, "with --online: send at most `N` requests, and go on there the next time")
	cmd.Flags().DurationVar(&f.maxAge, "max-age", 24*time.Hour, "with --online: for how long an answer counts, such as 24h; 0 asks everything again")
}

// check refuses values that mean nothing. changed reports whether a flag was given.
func (f *onlineFlags) check(changed func(name string) bool) error {
	return cmp.Or(
		cli.RefuseIf(!f.ask && f.record, "--record-settings is about what the forge is asked", "ask it: --online"),
		cli.RefuseIf(!f.ask && (changed("requests") || changed("max-age")), "--requests and --max-age are about what the forge is asked", "ask it: --online"),
		cli.RefuseIf(f.requests < 1 || f.maxAge < 0, "--requests takes a number from 1 on, --max-age an age from 0 on", "countersign audit --online --requests 500 --max-age 24h"),
	)
}

// keptOnline is the kind of file that has the answers of a former run.
const keptOnline = "online"

// askForge asks the forge about a ledger that verifies, at its tip. What was heard is kept, also
// of a run that was interrupted.
func askForge(ctx context.Context, s *session.Session, tip string, f onlineFlags) (*online.Result, error) {
	client, err := session.Forge(s.Console, s.Repo.Config)
	if err != nil {
		return nil, err
	}
	if client == nil {
		return nil, s.NoClient("there is no token to ask the forge with")
	}
	snap, err := s.Local.At(ctx, tip)
	if err != nil {
		return nil, err
	}
	before, err := s.Local.ReadKept(keptOnline)
	if err != nil {
		s.Say("what a former run heard cannot be read, and is asked again: %v", console.PlainText(err))
	}
	r, kept, err := online.Run(rest.WithBudget(ctx, f.requests), online.Options{
		Ledger: snap.Tree, Tip: tip, Forge: client, Now: s.Now(), Kept: before, MaxAge: f.maxAge,
		CheckName: report.CheckName, Gate: report.GuardName, Found: []online.Finding{RemoteLedger(ctx, s, tip)},
		Progress: func(done, total int) { s.Line.Show("questions", done, total) },
	})
	if kept != nil {
		err = errors.Join(err, s.Local.WriteKept(keptOnline, kept))
	}
	if err == nil && f.record {
		err = recordSettings(ctx, s, client)
	}
	return &r, err
}

// RemoteLedger compares the remote's ledger with the tip that was audited, and with the
// one that this clone remembers of it. Nothing of this clone's ledger is moved.
func RemoteLedger(ctx context.Context, s *session.Session, tip string) online.Finding {
	f := online.Finding{What: online.WhatLedger, About: s.Flags.LedgerRef + " of " + s.Flags.Remote, Recorded: tip, AskedAt: s.Now().UTC().Format(time.RFC3339)}
	if err := compareLedger(ctx, s, tip, &f); err != nil {
		f.Verdict, f.Reason = online.Unknown, ledger.OneLine(err.Error(), 300)
	}
	return f
}

func compareLedger(ctx context.Context, s *session.Session, tip string, f *online.Finding) error {
	repo := s.Repo
	place, err := s.WithHelpers().Place(ctx)
	if err != nil {
		return err
	}
	defer place.Server.Close()
	seen, err := s.Local.SeenAt(place)
	if err != nil {
		return err
	}
	f.Now, err = repo.Fetch(ctx, place.Server, place.Ref, true)
	switch {
	case console.As[*gitstore.NoRefError](err) && seen != "":
		f.Verdict, f.Reason = online.Gone, fmt.Sprintf("the remote has no ledger any more; it was seen at %.12s", seen)
		return nil
	case console.As[*gitstore.NoRefError](err):
		f.Verdict, f.Reason = online.Note, "the remote has no ledger, and was never seen to have one"
		return nil
	case err != nil:
		return err
	}
	held := true // it descends from what was seen there
	if seen != "" {
		if held, err = repo.Descends(ctx, f.Now, seen); err != nil {
			return err
		}
	}
	ahead, err1 := repo.Descends(ctx, f.Now, tip)
	behind, err2 := repo.Descends(ctx, tip, f.Now)
	switch {
	case !held:
		f.Verdict, f.Reason = online.Changed, fmt.Sprintf("the remote's ledger was at %.12s, and does not descend from that", seen)
	case errors.Join(err1, err2) != nil:
		return errors.Join(err1, err2)
	case ahead && behind:
		f.Verdict = online.Same
	case ahead:
		f.Verdict, f.Reason = online.Note, "the remote's goes on after the tip that is here, and nobody looked at what is new there: countersign sync"
	case behind:
		f.Verdict, f.Reason = online.Note, "the remote does not have all that is here: countersign sync"
	case seen != "":
		f.Verdict, f.Reason = online.Note, "both went on after they were the same, and nobody looked at what is new there: countersign sync"
	default:
		f.Verdict, f.Reason = online.Changed, "the remote has another ledger, of another history"
	}
	return nil
}

// onlineVerdict is nil where the forge tells all that is recorded.
func onlineVerdict(r *online.Result) error {
	switch {
	case r == nil || r.Bad() == 0 && r.Open() == 0:
		return nil
	case r.Bad() > 0:
		return fault.Fail("the forge contradicts the record in "+report.Counted(r.Bad(), "finding"), "find out who changed it: docs/online.md says what each finding means")
	}
	text := fmt.Sprintf("the forge does not tell all: %d unknown, %d not asked yet", r.Counts[online.Unknown], r.Remaining)
	err := fault.Fail(text, "docs/online.md says what is unknown when")
	if r.Remaining > 0 {
		err = fault.Fail(text, "countersign audit --online")
	}
	return &cli.ExitError{Code: cli.ExitPending, Err: err}
}
