package proofs

import (
	"context"
	"errors"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

// askAbout asks the forge about the changes of a report: those that are drawn if it is a sample, else all. Once no more requests can
// be sent, nothing is known of those that are left.
func askAbout(ctx context.Context, s *session.Session, r *evidence.Report, f evidenceFlags) error {
	client, err := session.Forge(s.Console, s.Repo.Config)
	if err == nil && client == nil {
		err = s.NoClient("there is no token to ask the forge with")
	}
	if err != nil {
		return err
	}
	of, ctx := client.(forge.Auditor), rest.WithBudget(ctx, f.requests)
	if _, err := of.DefaultBranch(ctx); err != nil { // who cannot read the repository hears nothing of it
		return err
	}
	rows := r.Rows
	if f.packets.size > 0 {
		rows, _ = evidence.DrawSample(rows, f.packets.seed, f.packets.size)
	}
	for i, row := range rows {
		if row.Commit == "" {
			continue
		}
		s.Line.Show("changes that the forge is asked about", i, len(rows))
		err := row.Ask(ctx, of, s.Now())
		for n := range r.Rows {
			if r.Rows[n].Commit == row.Commit {
				r.Rows[n].Told = row.Told
			}
		}
		if err != nil && !errors.Is(err, forge.ErrSpent) {
			return err
		}
	}
	return nil
}
