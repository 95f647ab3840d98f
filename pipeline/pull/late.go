package pull

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// RecordLateDenials records the denials on a pull request of patches whose transactions
// there were superseded: a denial is for ever and everywhere, whether somebody
// was asked for it or not. A record that is closed takes nothing more, so that
// the patch is entered once more, as denied. The ids of these records are
// returned, and the ledger as it is then.
func RecordLateDenials(ctx context.Context, r *pipeline.Runner, in ledger.Repository, number int) ([]string, writing.Snapshot, error) {
	from := r.Reader()
	snap, err := r.Ledger(ctx, ledger.PullDir(number))
	if err != nil {
		return nil, snap, err
	}
	all, err := lookup.StatesOnPull(snap.Tree, in, number)
	if err != nil {
		return nil, snap, err
	}
	var denied []string
	for _, tx := range all {
		if tx.Status != ledger.Superseded {
			continue
		}
		id, after, err := r.EnterDenied(ctx, tx, from, func(dir fs.FS, log *ledger.Log) (*writing.Stage, error) {
			return proposeAgain(r, dir, log)
		})
		if err != nil {
			return denied, snap, err
		}
		if snap = after; id != "" {
			denied = append(denied, id)
		}
	}
	return denied, snap, nil
}

// proposeAgain begins a transaction that proposes what a closed one did: its
// patch, what the proposal consists of, and which comments asked about it.
func proposeAgain(r *pipeline.Runner, dir fs.FS, from *ledger.Log) (*writing.Stage, error) {
	now, tx := r.Now(), from.Transaction()
	meta := from.Meta()
	id, err := writing.NewID(now, r.Entropy)
	if err != nil {
		return nil, err
	}
	meta.TransactionID, meta.Summary = id, fmt.Sprintf("a denial that came after %s was superseded", tx.TransactionID)
	s := writing.NewStage(&ledger.Log{}, now, r.Secrets)
	s.Event(&meta)
	s.Status(ledger.InProgress, "review started")
	s.Event(&ledger.TurnStart{TransactionID: id, TurnID: "turn_1", Input: meta.Summary, Mode: "review"})
	if err := copyPatch(s, dir, *tx.Pointers.Proposal); err != nil {
		return nil, err
	}
	s.Proposed(tx.PatchID(), tx.PullRequest())
	for _, a := range ledger.Of[*ledger.ArtifactStored](from) {
		if !slices.Contains([]string{"proposal", "checks", ledger.KindRisks, forge.KindPosted}, a.Kind) {
			continue
		}
		raw, err := fs.ReadFile(dir, path.Clean(a.Path))
		if err != nil {
			return nil, err
		}
		s.Artifact(a.Kind, json.RawMessage(raw))
	}
	item, _ := writing.FileChange(from)
	proposal := *item.Item.Metadata
	proposal.Supersedes = nil
	item.TransactionID, item.TurnID, item.Item.Metadata = id, "turn_1", &proposal
	s.Event(&item)
	s.Status(ledger.Proposed, "review recorded the proposal")
	return s, nil
}

func copyPatch(s *writing.Stage, dir fs.FS, p ledger.Proposal) error {
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
