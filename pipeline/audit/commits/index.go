package commits

import (
	"cmp"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// An Index is what a ledger's transactions say of commits of the code.
type Index struct {
	// First is the commit that the Policy was read from for the oldest transaction, "" in a ledger
	// without one: what was there before the ledger began is not judged. It is not the commit that was
	// patched: of a pull request that is its head, which has what nobody approved.
	First string
	// Began is when that was, by the ledger's word: nothing is known of the time before. Zero in
	// a ledger without a transaction.
	Began   time.Time
	made    map[string][]string  // by commit: the transactions whose apply made it
	patches map[string]string    // by transaction: its patch_id
	named   map[string]time.Time // by commit: when the ledger first named it
	order   []string             // the transactions, oldest first
	touches map[string][]int     // by path: which of these change it
	files   []int                // of each of these: how many paths it changes
	begun   map[string]time.Time // by commit: when the apply that made it began
}

// NewIndex reads every transaction of a ledger's tree. What was recorded first is told by the
// order of the ledger's history, which a Clock noted, and no time is before what came before
// it there.
func NewIndex(tree fs.FS, c *Clock) (*Index, error) {
	order, at := c.transactions()
	ids, err := ledger.IDs(tree)
	if err != nil {
		return nil, err
	}
	here := map[string]bool{}
	for _, id := range ids {
		here[id] = true
		if err := at[id].check(id); err != nil {
			return nil, err
		}
	}
	order = slices.DeleteFunc(order, func(id string) bool { return !here[id] })
	x := &Index{made: map[string][]string{}, patches: map[string]string{}, named: map[string]time.Time{}, begun: map[string]time.Time{}, touches: map[string][]int{}}
	for i, id := range order {
		log, err := ledger.Read(tree, id)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			x.First = cmp.Or(log.Meta().PolicyCommit, log.Meta().BaseCommit)
			if x.Began, err = log.Time(0); err != nil {
				return nil, err
			}
			x.Began = later(x.Began, at[id].from)
		}
		if err := x.add(id, log, at[id]); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// add takes in a transaction, of which nothing was recorded before some times.
func (x *Index) add(id string, log *ledger.Log, floor recorded) error {
	x.patches[id] = log.Transaction().PatchID()
	if p := log.Transaction().Pointers.Proposal; p != nil {
		for path := range p.AfterSHA256 {
			x.touches[path] = append(x.touches[path], len(x.order))
		}
		x.order, x.files = append(x.order, id), append(x.files, len(p.AfterSHA256))
	}
	var start time.Time
	for i, p := range log.Payloads() {
		at, err := log.Time(i)
		if err != nil {
			return err
		}
		switch p := p.(type) {
		case *ledger.Meta:
			x.name(p.BaseCommit, later(at, floor.from))
			x.name(p.PolicyCommit, later(at, floor.from))
		case *ledger.ApplyStart:
			start = at
		case *ledger.ApplyComplete:
			if p.Success && p.CommitAfter != "" {
				if known, is := x.begun[p.CommitAfter]; !is || start.Before(known) {
					x.begun[p.CommitAfter] = start
				}
				x.made[p.CommitAfter] = append(x.made[p.CommitAfter], id)
				x.name(p.CommitAfter, later(at, floor.to))
			}
		}
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
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

// inside are the transactions, oldest first, that change some of these paths and no other.
func (x *Index) inside(paths []string) (ids []string) {
	changes := map[int]int{}
	for _, path := range paths {
		for _, n := range x.touches[path] {
			changes[n]++
		}
	}
	for _, n := range slices.Sorted(maps.Keys(changes)) {
		if changes[n] == x.files[n] {
			ids = append(ids, x.order[n])
		}
	}
	return ids
}
