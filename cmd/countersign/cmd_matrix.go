package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/action"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

type matrixFlags struct {
	on, pulls bool
	max, part int
}

func (f *matrixFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.on, "matrix", false, "print the open ones as strategy.matrix of a GitHub workflow takes them")
	cmd.Flags().BoolVar(&f.pulls, "pull-requests", false, "with --matrix, only those that are for a pull request")
	cmd.Flags().IntVar(&f.max, "max", action.MaxJobs, "with --matrix, the greatest `NUMBER` of jobs, up to 256")
	cmd.Flags().IntVar(&f.part, "part", 0, "with --matrix, print part `NUMBER` of a longer list; after the last part comes the first again")
}

func (f matrixFlags) check() error {
	switch {
	case !f.on && (f.pulls || f.max != action.MaxJobs || f.part != 0):
		return &cli.UsageError{Message: "--pull-requests, --max and --part belong to --matrix", Hint: "add --matrix"}
	case f.max < 1 || f.max > action.MaxJobs:
		return &cli.UsageError{Message: fmt.Sprintf("--max %d is not from 1 to %d", f.max, action.MaxJobs), Hint: "GitHub allows no more jobs in one matrix"}
	case f.part < 0:
		return &cli.UsageError{Message: fmt.Sprintf("--part %d is no part", f.part), Hint: "the first part is 0"}
	}
	return nil
}

// whole is a repository for work on all that is open, oldest first.
type whole struct {
	r       *pipeline.Runner
	open    []ledger.Transaction
	damaged []*ledger.CorruptError // which keep nobody from the others
}

// openWhole opens it. The remote's ledger is first brought whole into a clone that
// has none, where that one is meant: what is open is in every part of it, and to
// ask for each transaction by itself takes a request for each.
func (a *App) openWhole(ctx context.Context) (w whole, err error) {
	repo, settings, err := a.openRepo()
	if err != nil {
		return w, err
	}
	shared, err := a.shares(settings)
	if err != nil {
		return w, err
	}
	if shared {
		tip, err := repo.Ref(ctx, a.flags.ledgerRef)
		if err != nil {
			return w, err
		}
		if tip == "" {
			remote, _, err := a.openShared()
			if err != nil {
				return w, err
			}
			if _, err := remote.Sync(ctx, false, nil); err != nil {
				return w, err
			}
		}
	}
	if w.r, err = a.open(); err != nil {
		return w, err
	}
	w.open, w.damaged, err = w.r.Open(ctx)
	return w, err
}

func (a *App) listMatrix(ctx context.Context, f matrixFlags) error {
	w, err := a.openWhole(ctx)
	if err != nil {
		return err
	}
	for _, damaged := range w.damaged {
		a.say("left out: %s", oneLine(damaged))
	}
	m := action.Part(action.Jobs(w.open, f.pulls), f.max, f.part)
	a.matrix = &m
	if m.LeftOut > 0 {
		a.say("%d of %d are left out: another --part lists them", m.LeftOut, m.LeftOut+len(m.Include))
	}
	return a.printJSON(m)
}
