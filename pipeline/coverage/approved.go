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
	paths := change.Paths()
	var ids []string
	for id, err := range ledger.Backward(tree) {
		if err != nil {
			return Approved{}, err
		}
		tx, err := ledger.State(tree, id)
		if err != nil {
			return Approved{}, err
		}
		if p := tx.Pointers.Proposal; p != nil && within(p, paths) {
			ids = append(ids, id)
		}
	}
	slices.Reverse(ids)
	return Among(tree, ids, code)
}

// maxPatches is how many patches are tried for one change, the newest.
const maxPatches = 64

// Among is Find among some transactions, oldest first, that are known to touch no other
// files than the change does.
func Among(tree fs.FS, ids []string, code func(commit string) (fs.FS, error)) (Approved, error) {
	found := Approved{Claims: map[string]audit.Claim{}}
	older := 0
	for _, id := range slices.Backward(ids) {
		if len(found.Patches) == maxPatches {
			older++
			continue
		}
		tx, err := ledger.State(tree, id)
		if err != nil {
			return found, err
		}
		claims, err := audit.Claims(tree, tx.PatchID())
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
	if older > 0 {
		found.Unknown = append(found.Unknown, fmt.Sprintf("%s: not tried, as %d newer patches of these files were", ledger.Plural(older, "older transaction", "older transactions"), maxPatches))
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
