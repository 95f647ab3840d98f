package proofs

import (
	"context"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/report"
)

// recordSettings records what protects the default branch, unless the ledger's last word about that says the same. What cannot
// be read as a whole is an error, and not recorded.
func recordSettings(ctx context.Context, s *session.Session, of forge.Auditor) error {
	writing, err := session.Open(s.Console)
	if err != nil {
		return err
	}
	return RecordSettings(ctx, writing, of)
}

// RecordSettings does so by a session that writes the ledger.
func RecordSettings(ctx context.Context, s *session.Session, of forge.Auditor) error {
	with, can := of.(forge.Protector)
	if !can {
		return &console.UsageError{Message: "a forge of this kind does not tell what protects a branch", Hint: "leave out --record-settings"}
	}
	at, err := of.DefaultBranch(ctx)
	if err != nil {
		return err
	}
	now, err := with.Protection(ctx, at.Branch)
	if err != nil {
		return err
	}
	settings := observation.NewSettings(*at.Repository, at.Branch, s.Now(), now.Rules, now.Unread)
	snap, err := s.Store.Snapshot(ctx)
	if err != nil {
		return err
	}
	ids, err := lookup.IDs(snap.Tree)
	if err != nil {
		return err
	}
	switch last, err := lastSettings(snap.Tree, ids, settings); {
	case err != nil:
		return err
	case last != nil && last.Same(settings):
		return nil
	}
	base, err := s.Repo.Head(ctx)
	if err != nil {
		return err
	}
	if err := s.Runner.Observe(ctx, settings, base); err != nil {
		return err
	}
	s.Say("%s: recorded in %s, %d unread", report.Clean(settings.Words()), settings.TransactionID, len(settings.Unread))
	return nil
}

// lastSettings are those of a repository's branch that a ledger has last, by the order of the transactions' ids; nil for none.
func lastSettings(tree fs.FS, ids []string, of *observation.Settings) (*observation.Settings, error) {
	for _, id := range slices.Backward(ids) {
		o, err := session.Observation(tree, id)
		if err != nil {
			return nil, err
		}
		if s, is := o.(*observation.Settings); is && s.Repository.ID == of.Repository.ID && s.Branch == of.Branch {
			return s, nil
		}
	}
	return nil, nil
}
