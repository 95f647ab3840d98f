package setup

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

type simulateFlags struct {
	policy, since, cache string
	pullRequests         bool
}

func policySimulateCommand(c *console.Console) *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate --policy FILE",
		Short: "Replay what is recorded against a Policy that is not in force",
		Long: `simulate says of each recorded transaction what the Policy in FILE would have made of it: blocked,
asked more or less for, let through, and why. It reads this clone's ledger and asks nobody. What the
record does not tell, such as who was in a team that was not asked about, is never taken for
granted: the verdict is unknown, and it says what that depends on. Nothing is recorded.

With --pull-requests it also asks the forge for the pull requests that were merged without a
transaction, and says whether the reviews that they had would have been enough; --since is then also
when they were merged. What they changed comes from the commits in this clone. What the forge said is
kept in the clone, or in --cache FILE, and asked for once: run it again if it was cut off. With
--cache alone nothing is asked.

docs/policy.md says exactly what is compared.`,
		Example: `  countersign policy simulate --policy strict.yml --since 90d
  countersign policy simulate --policy strict.yml --json
  git fetch origin '+refs/pull/*/head:refs/pulls/*' && countersign policy simulate --policy strict.yml --since 90d --pull-requests`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return policySimulate(cmd.Context(), c, f) },
	}
	cmd.Flags().StringVar(&f.policy, "policy", "", "the Policy to try, in `FILE`")
	cmd.Flags().StringVar(&f.since, "since", "", "only what something was recorded of since `WHEN`: a day, or an age such as 90d")
	cmd.Flags().BoolVar(&f.pullRequests, "pull-requests", false, "also ask for merged pull requests that have no transaction")
	cmd.Flags().StringVar(&f.cache, "cache", "", "keep what is known of these in `FILE`")
	return cmd
}

func policySimulate(ctx context.Context, c *console.Console, f simulateFlags) error {
	if f.policy == "" {
		return &console.UsageError{Message: "no Policy is named", Hint: "countersign policy simulate --policy FILE"}
	}
	p, err := readPolicy(c, f.policy)
	if err != nil {
		return err
	}
	since, ok := c.ReadWhen(f.since) // the zero time is for everything
	if !ok && f.since != "" {
		return &console.UsageError{Message: fmt.Sprintf("--since %+q is no day and no age", f.since), Hint: "--since 2026-01-31, or --since 90d"}
	}
	s, err := session.OpenLocal(c)
	if err != nil {
		return err
	}
	snap, err := s.Local.Snapshot(ctx)
	switch {
	case err != nil:
		return err
	case snap.Tip == "" && !f.pullRequests && f.cache == "":
		return s.Repo.NoLedger()
	}
	r := explain.Simulation{LedgerCommit: snap.Tip, Policy: console.InputName(f.policy), PolicySHA256: p.Sum(), Incomplete: []string{}}
	if !since.IsZero() {
		r.Since = since.UTC().Format(time.RFC3339)
	}
	var cases []explain.Case
	if snap.Tip != "" {
		if err := writing.CheckSchema(snap.Tree); err != nil {
			return err
		}
		s.Seen = s.Local.Seen
		if cases, err = explain.Simulate(snap.Tree, since, p, func(done, total int) { c.Line.Show("transactions", done, total) }); err != nil {
			return err
		}
	}
	var unread error
	if f.pullRequests || f.cache != "" {
		pulls, left, err := mergedPulls(ctx, s, f, since)
		if err != nil {
			return err
		}
		if unread = left.Err; unread != nil {
			r.Incomplete = append(r.Incomplete, ledger.OneLine(unread.Error(), 300))
		}
		if !f.pullRequests {
			r.Incomplete = append(r.Incomplete, fmt.Sprintf("the forge was not asked: of merged pull requests, only those that %s has are here", report.Clean(f.cache)))
		}
		more, err := simulatePulls(ctx, s, snap, p, pulls, left)
		if err != nil {
			return err
		}
		cases = append(cases, more...)
	}
	r.Sum(cases)
	if err := c.Result(r, report.Simulation(r, s.Style())); err != nil {
		return err
	}
	return unread
}
