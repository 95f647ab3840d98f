package coverage

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/audit"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// Approved are the patches in a ledger that may be in a change.
type Approved struct {
	Patches []Patch
	Claims  map[string]audit.Claim // by transaction: what explains that the patch was approved
	Unknown []string               // transactions whose patch cannot be made again here, and why, as text
}

// Find returns, oldest first, the patches of a ledger that touch no other files than a
// change does, and whose transaction explains that they were made (audit.Claims). tree is
// the ledger's tip; code is the tree of a commit of the code, an error where that is not
// here. A record that cannot be read is an error.
func Find(tree fs.FS, change patch.Patchset, code func(commit string) (fs.FS, error)) (Approved, error) {
	found := Approved{Claims: map[string]audit.Claim{}}
	paths := change.Paths()
	for id, err := range ledger.Backward(tree) {
		if err != nil {
			return found, err
		}
		tx, err := ledger.State(tree, id)
		if err != nil {
			return found, err
		}
		p := tx.Pointers.Proposal
		if p == nil || !within(p, paths) {
			continue
		}
		claims, err := audit.Claims(tree, p.PatchID)
		if err != nil {
			return found, err
		}
		i := slices.IndexFunc(claims, func(c audit.Claim) bool { return c.TransactionID == id && c.Explains })
		if i < 0 {
			continue
		}
		set, why, err := remake(tree, tx, code)
		if err != nil {
			return found, err
		}
		if why != "" {
			found.Unknown = append(found.Unknown, id+": "+why)
			continue
		}
		found.Patches, found.Claims[id] = append(found.Patches, Patch{id, set}), claims[i]
	}
	slices.Reverse(found.Patches)
	slices.Reverse(found.Unknown)
	return found, nil
}

// within reports whether a proposal touches only files that are listed.
func within(p *ledger.Proposal, paths []string) bool {
	for path := range p.AfterSHA256 {
		if _, in := slices.BinarySearch(paths, path); !in {
			return false
		}
	}
	return len(p.AfterSHA256) > 0
}

// remake makes the patch of a transaction from its record and the commit that it was
// reviewed on. Where that cannot be done here, it says why.
func remake(tree fs.FS, tx ledger.Transaction, code func(commit string) (fs.FS, error)) (set patch.Patchset, why string, err error) {
	raw, err := ledger.StoredPatch(tree, tx)
	if err != nil {
		return set, "", err
	}
	if tx.Pointers.Proposal.PatchRedactedSHA256 != "" {
		return set, "the ledger has its patch without secrets", nil
	}
	base, err := code(tx.Pointers.Proposal.BaseCommit)
	if err != nil {
		return set, "the commit that it was reviewed on is not here", nil
	}
	diff, err := patch.Parse(raw)
	if err == nil {
		set, err = diff.Resolve(base)
	}
	if err == nil && set.ID() != tx.PatchID() {
		err = fmt.Errorf("it is %s", set.ID())
	}
	if err != nil {
		return set, "", &ledger.CorruptError{ID: tx.TransactionID, Err: fmt.Errorf("its patch, made again: %w", err)}
	}
	return set, "", nil
}
