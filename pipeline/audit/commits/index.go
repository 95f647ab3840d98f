package commits

import (
	"io/fs"
	"time"

	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// An Index is what a ledger's transactions say of commits of the code.
type Index struct {
	// First is the commit that the oldest transaction was reviewed on, "" in a ledger
	// without one: what was there before the ledger began is not judged.
	First   string
	made    map[string][]string  // by commit: the transactions whose apply made it
	patches map[string]string    // by transaction: its patch_id
	named   map[string]time.Time // by commit: when the ledger first named it
}

// NewIndex reads every transaction of a ledger's tree.
func NewIndex(tree fs.FS) (*Index, error) {
	x := &Index{made: map[string][]string{}, patches: map[string]string{}, named: map[string]time.Time{}}
	ids, err := ledger.IDs(tree)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		log, err := ledger.Read(tree, id)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			x.First = log.Meta().BaseCommit
		}
		if err := x.add(id, log); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *Index) add(id string, log *ledger.Log) error {
	x.patches[id] = log.Transaction().PatchID()
	for i, p := range log.Payloads() {
		at, err := log.Time(i)
		if err != nil {
			return err
		}
		switch p := p.(type) {
		case *ledger.Meta:
			x.name(p.BaseCommit, at)
			x.name(p.PolicyCommit, at)
		case *ledger.ApplyComplete:
			if p.Success && p.CommitAfter != "" {
				x.made[p.CommitAfter] = append(x.made[p.CommitAfter], id)
				x.name(p.CommitAfter, at)
			}
		}
	}
	return nil
}

func (x *Index) name(commit string, at time.Time) {
	if known, is := x.named[commit]; !is || at.Before(known) {
		x.named[commit] = at
	}
}

// Before returns how many commits of a chain, oldest first, were there before a time:
// those up to the last that the ledger named by then. What commits say of their own
// times counts for nothing.
func (x *Index) Before(chain []history.BranchCommit, at time.Time) int {
	for i := len(chain); i > 0; i-- {
		if named, is := x.named[chain[i-1].ID]; is && named.Before(at) {
			return i
		}
	}
	return 0
}
