package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// maxMatrix is how many jobs GitHub makes of one matrix (GitHub's documentation,
// "Actions limits").
const maxMatrix = 256

type matrixFlags struct {
	on, pulls bool
	max, part int
}

func (f *matrixFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.on, "matrix", false, "print the open ones as strategy.matrix of a GitHub workflow takes them")
	cmd.Flags().BoolVar(&f.pulls, "pull-requests", false, "with --matrix, only those that are for a pull request")
	cmd.Flags().IntVar(&f.max, "max", maxMatrix, "with --matrix, the greatest `NUMBER` of jobs, up to 256")
	cmd.Flags().IntVar(&f.part, "part", 0, "with --matrix, the part to print of a list that is longer, by `NUMBER`; after the last comes the first again")
}

func (f matrixFlags) check() error {
	switch {
	case !f.on && (f.pulls || f.max != maxMatrix || f.part != 0):
		return &usageError{"--pull-requests, --max and --part belong to --matrix", "add --matrix"}
	case f.max < 1 || f.max > maxMatrix:
		return &usageError{fmt.Sprintf("--max %d is not from 1 to %d", f.max, maxMatrix), "GitHub makes no more jobs of one matrix"}
	case f.part < 0:
		return &usageError{fmt.Sprintf("--part %d is no part", f.part), "the first part is 0"}
	}
	return nil
}

// A matrixJob is one element of a matrix: a pull request, whose transactions are
// settled together, or a transaction that is for none. It has nothing in it that
// a proposer or a pull request chose.
type matrixJob struct {
	Name        string `json:"name"`
	PullRequest int    `json:"pull_request,omitempty"`
	Transaction string `json:"transaction,omitempty"`
}

// A matrix is what strategy.matrix takes. Of a list that is too long it is one
// part, and leftOut counts the others' jobs.
type matrix struct {
	Include []matrixJob `json:"include"`
	leftOut int
}

// matrixOf makes jobs of open transactions, in their order.
func matrixOf(open []ledger.Transaction, pullsOnly bool) []matrixJob {
	jobs := []matrixJob{}
	seen := map[int]bool{}
	for _, tx := range open {
		number := 0
		if p := tx.Pointers.Proposal; p != nil {
			number = p.PullRequest
		}
		switch {
		case number == 0 && !pullsOnly:
			jobs = append(jobs, matrixJob{Name: tx.TransactionID, Transaction: tx.TransactionID})
		case number > 0 && !seen[number]:
			seen[number] = true
			jobs = append(jobs, matrixJob{Name: fmt.Sprintf("pull request %d", number), PullRequest: number})
		}
	}
	return jobs
}

// partOf is one part of the jobs, of at most limit. A number that goes up by one
// from run to run takes every job in its turn, also where the oldest stay open
// because people have not answered.
func partOf(jobs []matrixJob, limit, number int) matrix {
	parts := max((len(jobs)+limit-1)/limit, 1)
	from := number % parts * limit
	part := jobs[from:min(from+limit, len(jobs))]
	return matrix{part, len(jobs) - len(part)}
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
			if _, err := remote.Sync(ctx, false); err != nil {
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
	m := partOf(matrixOf(w.open, f.pulls), f.max, f.part)
	a.matrix = &m
	if m.leftOut > 0 {
		a.say("%d of %d are left out: another --part has them", m.leftOut, m.leftOut+len(m.Include))
	}
	return a.printJSON(m)
}
