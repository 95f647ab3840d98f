package commits

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/coverage"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
)

// maxWork is how much one audit puts into making patches again: the bytes that these
// change, each as often as there are patches to try with it, and perPatch for reading and verifying
// the record of each, which takes a millisecond or two however small it is.
const (
	maxWork  = 1 << 30
	perPatch = 64 << 10
)

// replay looks for approved patches that make exactly this change of the files before it
// (package coverage): one whose files changed in other lines after it was approved, or
// several together. Those that account for another commit are not taken. Where the patches
// make only a part of it, by is nil and lines are in none of them.
func (j *judge) replay(ctx context.Context, set patch.Patchset, to string, within []history.BranchCommit) (by *Explained, why string, lines []Lines, err error) {
	ids := slices.DeleteFunc(j.Index.inside(set.Paths()), func(id string) bool { return !j.free(id, to, within) })
	const tooMuch = "approved patches of its files were not made again, as this audit has made too many"
	if len(ids) == 0 {
		return nil, "", nil, nil
	}
	if j.work += len(ids) * perPatch; j.work > maxWork {
		return nil, tooMuch, nil, nil
	}
	approved, err := coverage.Among(j.Ledger, ids, func(commit string) (fs.FS, error) { return j.Code.Tree(ctx, commit) })
	if err != nil {
		return nil, "", nil, err
	}
	for _, p := range approved.Patches {
		for _, c := range p.Set.Files() {
			for _, f := range []*patch.File{c.Before, c.After} {
				if f != nil {
					j.work += len(f.Data) * len(approved.Patches)
				}
			}
		}
	}
	if j.work > maxWork {
		return nil, tooMuch, nil, nil
	}
	report := coverage.Of(set, approved.Patches)
	switch n := len(report.Transactions); {
	case report.Result != coverage.NotCovered:
		by = &Explained{By: kindOf(approved.Claims[report.Transactions[0]]), Transaction: report.Transactions[0], With: report.Transactions[1:]}
		for _, id := range report.Transactions {
			j.used[id] = to
		}
		return by, "", nil, nil
	case n > 0:
		why = ledger.Plural(n, "approved patch is", "approved patches are") + " in it, and more than that"
		for _, l := range report.Lines {
			lines = append(lines, Lines(l))
		}
	}
	if n := len(approved.Unknown); n > 0 {
		why += fmt.Sprintf("; %s could not be made again here, as of %s", ledger.Plural(n, "approved patch", "approved patches"), ledger.OneLine(approved.Unknown[0], 200))
	}
	return nil, strings.TrimPrefix(why, "; "), lines, nil
}

// free reports whether a transaction accounts for no other commit than one, or those that
// it consists of.
func (j *judge) free(id, to string, within []history.BranchCommit) bool {
	other := j.used[id]
	return other == "" || other == to || slices.ContainsFunc(within, func(c history.BranchCommit) bool { return c.ID == other })
}
