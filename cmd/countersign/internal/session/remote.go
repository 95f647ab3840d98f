package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/online"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// RemoteLedger compares the remote's ledger with the tip that was audited, and with the
// one that this clone remembers of it. Nothing of this clone's ledger is moved.
func RemoteLedger(ctx context.Context, s *Session, tip string) online.Finding {
	f := online.Finding{What: online.WhatLedger, About: s.Flags.LedgerRef + " of " + s.Flags.Remote, Recorded: tip, AskedAt: s.Now().UTC().Format(time.RFC3339)}
	if err := compareLedger(ctx, s, tip, &f); err != nil {
		f.Verdict, f.Reason = online.Unknown, ledger.OneLine(err.Error(), 300)
	}
	return f
}

func compareLedger(ctx context.Context, s *Session, tip string, f *online.Finding) error {
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

// TakeLedger makes the clone's ledger the remote's, also one that does not verify, which sync
// would not bring: it is only looked at, in the clone of one job. It reports whether the remote
// has one.
func TakeLedger(ctx context.Context, c *console.Console, ref string) (found, elsewhere bool, err error) {
	s, err := OpenRepo(c)
	if err != nil {
		return false, false, err
	}
	c.Flags.LedgerRef = ref
	place, err := s.WithHelpers().Place(ctx)
	if err != nil {
		return false, false, err
	}
	defer place.Server.Close()
	repo, elsewhere := s.Repo, s.Elsewhere || place.Elsewhere()
	tip, err := repo.Fetch(ctx, place.Server, place.Ref, true)
	if none := (*gitstore.NoRefError)(nil); errors.As(err, &none) {
		return false, elsewhere, nil
	}
	if err != nil {
		return false, elsewhere, err
	}
	have, err := repo.Ref(ctx, ref)
	if err != nil || have == tip {
		return true, elsewhere, err
	}
	return true, elsewhere, repo.MoveRef(ctx, ref, have, tip)
}
