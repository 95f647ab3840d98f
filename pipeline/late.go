package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/conversation"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// RecordLateDenials records the denials on a pull request of patches whose transactions
// there were superseded: a denial is for ever and everywhere, whether somebody
// was asked for it or not. A record that is closed takes nothing more, so that
// the patch is entered once more, as denied. The ids of these records are
// returned, and the ledger as it is then.
func (r *Runner) RecordLateDenials(ctx context.Context, in ledger.Repository, number int) ([]string, ledger.Snapshot, error) {
	from := r.reader()
	snap, err := r.Ledger(ctx, ledger.PullDir(number))
	if err != nil {
		return nil, snap, err
	}
	all, err := ledger.StatesOnPull(snap.Tree, in, number)
	if err != nil {
		return nil, snap, err
	}
	var denied []string
	for _, tx := range all {
		if tx.Status != ledger.Superseded {
			continue
		}
		id, after, err := r.recordLateDenial(ctx, tx, from)
		if err != nil {
			return denied, snap, err
		}
		if snap = after; id != "" {
			denied = append(denied, id)
		}
	}
	return denied, snap, nil
}

// recordLateDenial returns the id of the record that a late denial was entered as, "" for
// none.
func (r *Runner) recordLateDenial(ctx context.Context, tx ledger.Transaction, from *conversation.Reader) (string, ledger.Snapshot, error) {
	paths := append(transaction(tx.TransactionID), ledger.DeniedDir(tx.PatchID()), ledger.Day(r.Now()))
	return update(ctx, r, paths, func(snap ledger.Snapshot) (try[string], error) {
		g, err := r.judge(ctx, snap, tx.TransactionID, nil)
		if err != nil || len(g.denials) > 0 {
			return nothing("", err)
		}
		said, access, err := r.denial(ctx, snap, &g, from)
		if said == nil || err != nil {
			return nothing("", err)
		}
		s, err := r.enterDenied(ctx, snap.Tree, &g, *said, access)
		if err != nil {
			return nothing("", err)
		}
		entered := s.Log.Transaction()
		return recording(entered.TransactionID, s, ledger.Title{Stage: "review", Outcome: string(entered.Status), Subject: entered.Notes})
	})
}

// denial is the first that is heard of a closed transaction's patch, nil for
// none.
func (r *Runner) denial(ctx context.Context, snap ledger.Snapshot, g *Gated, from *conversation.Reader) (*approval.Said, approval.Access, error) {
	var err error
	if g.talk, err = from.About(ctx, snap.Tree, g.log); err != nil {
		return nil, approval.Access{}, err
	}
	if g.rules, err = r.rulesFor(ctx, snap.Tree, *g); err != nil {
		return nil, approval.Access{}, err
	}
	g.head = r.headOf(ctx, *g)
	for _, said := range g.talk.Said() {
		if decision, _ := said.Decision(); decision != ledger.Deny || said.Void != "" || said.Author.ID == "" {
			continue
		}
		access, err := g.talk.Access(ctx, said.Author)
		if err != nil {
			return nil, access, err
		}
		if g.talk.WhyNoDenial(g.rules.Policy, g.log.Meta().Proposer, said.Author) == "" {
			return &said, access, nil
		}
	}
	return nil, approval.Access{}, nil
}

// enterDenied enters the patch of a closed transaction as one that was denied:
// the proposal as it is recorded, and the decision on it.
func (r *Runner) enterDenied(ctx context.Context, tree fs.FS, g *Gated, said approval.Said, access approval.Access) (*ledger.Stage, error) {
	dir, err := fs.Sub(tree, ledger.Dir(g.Transaction().TransactionID))
	if err != nil {
		return nil, err
	}
	s, err := r.copied(dir, g.log)
	if err != nil {
		return nil, err
	}
	g.log = s.Log
	r.record(s, g, said, access)
	g.Verdict = g.verdict(ctx, g.at)
	r.recordVerdict(s, *g)
	return s, nil
}

// copied begins a transaction that proposes what a closed one did.
func (r *Runner) copied(dir fs.FS, from *ledger.Log) (*ledger.Stage, error) {
	now, tx := r.Now(), from.Transaction()
	meta := from.Meta()
	id, err := ledger.NewID(now, r.Entropy)
	if err != nil {
		return nil, err
	}
	meta.TransactionID, meta.Summary = id, fmt.Sprintf("a denial that came after %s was superseded", tx.TransactionID)
	s := ledger.NewStage(&ledger.Log{}, now, r.Secrets)
	s.Event(&meta)
	s.Status(ledger.InProgress, "review started")
	s.Event(&ledger.TurnStart{TransactionID: id, TurnID: "turn_1", Input: meta.Summary, Mode: "review"})
	if err := copyPatch(s, dir, *tx.Pointers.Proposal); err != nil {
		return nil, err
	}
	s.Proposed(tx.PatchID(), tx.Pointers.Proposal.PullRequest)
	if err := copyArtifacts(s, dir, from); err != nil {
		return nil, err
	}
	item, _ := from.FileChange()
	proposal := *item.Item.Metadata
	proposal.Supersedes = nil
	item.TransactionID, item.TurnID, item.Item.Metadata = id, "turn_1", &proposal
	s.Event(&item)
	s.Status(ledger.Proposed, "review recorded the proposal")
	return s, nil
}

func copyPatch(s *ledger.Stage, dir fs.FS, p ledger.Proposal) error {
	stored, err := fs.ReadFile(dir, ledger.PatchFile(p.PatchID))
	if err != nil {
		return err
	}
	var sealed []byte
	if p.PatchSealedSHA256 != "" {
		if sealed, err = fs.ReadFile(dir, ledger.SealedFile(p.PatchID)); err != nil {
			return err
		}
	}
	s.Stored(p.PatchID, stored, sealed)
	return nil
}

// copyArtifacts takes over what a proposal consists of, and which comments asked
// about it.
func copyArtifacts(s *ledger.Stage, dir fs.FS, from *ledger.Log) error {
	for _, a := range ledger.Of[*ledger.ArtifactStored](from) {
		if !slices.Contains([]string{"proposal", "checks", ledger.KindRisks, approval.KindPosted}, a.Kind) {
			continue
		}
		raw, err := fs.ReadFile(dir, path.Clean(a.Path))
		if err != nil {
			return err
		}
		s.Artifact(a.Kind, json.RawMessage(raw))
	}
	return nil
}
