package explain

import (
	"cmp"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/observation"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// An Index is what a ledger's transactions say of commits of the code.
type Index struct {
	// First is the commit that the Policy was read from for the oldest transaction, "" in a ledger
	// without one: what was there before the ledger began is not judged. It is not the commit that was
	// patched: of a pull request that is its head, which has what nobody approved.
	First string
	// Began is when that was, by the ledger's word: nothing is known of the time before. Zero in
	// a ledger without a transaction.
	Began    time.Time
	entries  []entry              // the transactions, oldest first
	at       map[string]int       // by transaction: its place there
	named    map[string]time.Time // by commit: when the ledger first named it
	begun    map[string]time.Time // by commit: when the apply that made it began
	touches  map[string][]int     // by path: which transactions change it
	part     bool                 // whether the ledger has others
	observed []string             // the transactions that have an observation, oldest first
}

// An entry is what is known of a transaction without a look at its decisions. Base is the
// commit whose files were patched, policies those that it went by, made the commits that its
// record names as its making: of an apply, or of the forge's merge, which was at merged. It may
// account for a commit only if it is settled: applied, or a pull request's own diff of which
// some approval is recorded.
type entry struct {
	id, patch string
	base      string
	policies  []string
	files     int
	made      []string
	merged    time.Time
	settled   bool
	ownDiff   bool
	denied    bool         // somebody had denied the patch, in whichever transaction, before it was applied or last added to
	read      bool         // blobs was read
	blobs     []PathChange // the files of the patch, nil if the ledger does not have it as it was
}

// NewIndex reads every transaction of a ledger's tree. What was recorded first is told by the
// order of the ledger's history, which a Clock noted, and no time is before what came before
// it there.
func NewIndex(tree fs.FS, c *Clock) (*Index, error) {
	order, at, denied := c.transactions()
	ids, err := lookup.IDs(tree)
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
	x, read := newIndex(), readAhead(order, func(id string) (*ledger.Log, error) { return lookup.Read(tree, id) })
	for i, id := range order {
		log, err := read(i)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			x.First = strings.Clone(cmp.Or(log.Meta().PolicyCommit, log.Meta().BaseCommit))
			if x.Began, err = log.Time(0); err != nil {
				return nil, err
			}
			x.Began = later(x.Began, at[id].from)
		}
		if err := x.add(tree, id, log, at[id]); err != nil {
			return nil, err
		}
		if e := &x.entries[i]; canon.IsHex64(e.patch) {
			n, is := denied[ledger.DeniedDir(e.patch)]
			e.denied = is && n < at[id].end
		}
	}
	return x, nil
}

func newIndex() *Index {
	return &Index{at: map[string]int{}, named: map[string]time.Time{}, begun: map[string]time.Time{}, touches: map[string][]int{}}
}

// Observations are the transactions that have an observation, the oldest first.
func (x *Index) Observations() []string { return x.observed }

// add takes in a transaction, of which nothing was recorded before some times.
func (x *Index) add(tree fs.FS, id string, log *ledger.Log, floor recorded) error {
	tx := log.Transaction()
	e := entry{id: id, patch: strings.Clone(tx.PatchID()), ownDiff: tx.GateOnly()} // clones, as a text is a part of the whole record
	x.at[id] = len(x.entries)
	if p := tx.Pointers.Proposal; p != nil {
		e.base, e.files = strings.Clone(p.BaseCommit), len(p.AfterSHA256)
		for path := range p.AfterSHA256 {
			if x.touches[path] == nil {
				path = strings.Clone(path)
			}
			x.touches[path] = append(x.touches[path], len(x.entries))
		}
	}
	dir, err := fs.Sub(tree, ledger.Dir(id))
	if err != nil {
		return err
	}
	merge, err := approval.ReadMerge(dir, log)
	if err != nil {
		return &ledger.CorruptError{ID: id, Err: err}
	}
	if merge != nil {
		e.made = append(e.made, strings.Clone(merge.MergeCommit))
		if e.merged, err = time.Parse(time.RFC3339, merge.MergedAt); err != nil {
			return &ledger.CorruptError{ID: id, Err: err}
		}
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
			e.goesBy(p.PolicyCommit)
		case *ledger.ApprovalDecision:
			e.settled = e.settled || e.ownDiff && p.Decision == ledger.Approve
			e.goesBy(p.Policy.Commit)
		case *ledger.ArtifactStored:
			if observation.Is(p.Kind) {
				x.observed = append(x.observed, id)
			}
			if p.Kind == approval.KindMerge && merge != nil {
				x.name(merge.MergeCommit, later(at, floor.to))
			}
		case *ledger.ApplyStart:
			start = at
			e.goesBy(p.Policy.Commit)
		case *ledger.ApplyComplete:
			e.settled = e.settled || p.Success
			if p.Success && p.CommitAfter != "" {
				made := strings.Clone(p.CommitAfter)
				if known, is := x.begun[made]; !is || start.Before(known) {
					x.begun[made] = start
				}
				e.made = append(e.made, made)
				x.name(made, later(at, floor.to))
			}
		}
	}
	x.entries = append(x.entries, e)
	return nil
}

// goesBy notes a commit whose Policy the transaction went by.
func (e *entry) goesBy(commit string) {
	if !slices.Contains(e.policies, commit) {
		e.policies = append(e.policies, strings.Clone(commit))
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func (x *Index) name(commit string, at time.Time) {
	known, is := x.named[commit]
	if !is {
		commit = strings.Clone(commit)
	}
	if !is || at.Before(known) {
		x.named[commit] = at
	}
}

// Before returns how many commits of a chain, oldest first, were there before a time:
// those up to the last that the ledger named by then. What commits say of their own
// times counts for nothing.
func (x *Index) Before(chain []code.BranchCommit, at time.Time) int {
	for i := len(chain); i > 0; i-- {
		if named, is := x.named[chain[i-1].ID]; is && named.Before(at) {
			return i
		}
	}
	return 0
}

// touching are the transactions, oldest first, that change so many of some paths as fits says.
func (x *Index) touching(paths []string, fits func(e *entry, common int) bool) (out []*entry) {
	common := map[int]int{}
	for _, path := range paths {
		for _, n := range x.touches[path] {
			common[n]++
		}
	}
	for _, n := range slices.Sorted(maps.Keys(common)) {
		if e := &x.entries[n]; fits(e, common[n]) {
			out = append(out, e)
		}
	}
	return out
}

// inside are those that change some of the paths and no other.
func (x *Index) inside(paths []string) []*entry {
	return x.touching(paths, func(e *entry, common int) bool { return common == e.files })
}

// around are those that change all of the paths, and perhaps others.
func (x *Index) around(paths []string) []*entry {
	return x.touching(paths, func(e *entry, common int) bool { return common == len(paths) })
}

// entry is that of a transaction, nil for one that the ledger does not have.
func (x *Index) entry(id string) *entry {
	n, known := x.at[id]
	if !known {
		return nil
	}
	return &x.entries[n]
}

// covers reports whether a transaction changes all of some paths.
func (x *Index) covers(e *entry, paths []string) bool {
	n := x.at[e.id]
	return !slices.ContainsFunc(paths, func(path string) bool {
		_, is := slices.BinarySearch(x.touches[path], n)
		return !is
	})
}
