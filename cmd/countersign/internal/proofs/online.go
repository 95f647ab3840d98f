package proofs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/online"
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
		console.RefuseIf(!f.ask && f.record, "--record-settings is about what the forge is asked", "ask it: --online"),
		console.RefuseIf(!f.ask && (changed("requests") || changed("max-age")), "--requests and --max-age are about what the forge is asked", "ask it: --online"),
		console.RefuseIf(f.requests < 1 || f.maxAge < 0, "--requests takes a number from 1 on, --max-age an age from 0 on", "countersign audit --online --requests 500 --max-age 24h"),
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
		CheckName: report.CheckName, Gate: report.GuardName, Found: []online.Finding{session.RemoteLedger(ctx, s, tip)},
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
	return &console.ExitError{Code: console.ExitPending, Err: err}
}
