package commits

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/patch/threeway"
)

// remerge makes a merge again, and says in what it is not exactly that. Nothing that a
// person resolved by hand is.
func (j *judge) remerge(ctx context.Context, c history.BranchCommit) (why string, lines []Lines, err error) {
	if len(c.Parents) > 2 {
		return fmt.Sprintf("is a merge of %d histories, which is not made again here", len(c.Parents)), nil, nil
	}
	ours, theirs := c.Parents[0], c.Parents[1]
	bases, err := j.Code.MergeBases(ctx, ours, theirs)
	if err != nil {
		return "", nil, err
	}
	if len(bases) != 1 {
		return fmt.Sprintf("is a merge of histories that have %s, which is not made again here", ledger.Plural(len(bases), "best common ancestor", "best common ancestors")), nil, nil
	}
	change, why, err := j.files(ctx, bases[0], theirs)
	if why != "" || err != nil {
		return why, nil, err
	}
	merge, why, err := j.files(ctx, ours, c.ID)
	if why != "" || err != nil {
		return why, nil, err
	}
	before, err := j.Code.Tree(ctx, ours)
	if err != nil {
		return "", nil, err
	}
	paths := slices.Collect(maps.Keys(change))
	for path := range merge {
		if _, both := change[path]; !both {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	met := false
	for _, path := range paths {
		mine, err := patch.Lookup(before, path)
		var unfit *patch.Error
		if err != nil && !errors.As(err, &unfit) {
			return "", nil, err
		}
		is, want, clean := mine, mine, unfit == nil
		if m, changed := merge[path]; changed {
			is = m.After
		}
		their := mine
		if t, changed := change[path]; changed && clean {
			want, clean = threeway.Merge(t.Before, mine, t.After)
			their = t.After
		}
		if clean && is.Equal(want) {
			continue
		}
		met = met || !clean
		for _, r := range threeway.Foreign(mine, their, is) {
			lines = append(lines, Lines{path, r.From, r.To})
		}
	}
	switch {
	case len(lines) == 0:
		return "", nil, nil
	case met:
		return "is a merge with a conflict that was resolved by hand", lines, nil
	}
	return "is a merge that has more than both sides, or less", lines, nil
}

// older says which commit a merge brings that was not judged, as it is from before the ledger
// began, "" for none. The first parent does not have it: it was on another branch then.
func (j *judge) older(ctx context.Context, c history.BranchCommit, side []history.BranchCommit) (string, error) {
	ends := slices.Clone(c.Parents[1:])
	for _, s := range side {
		ends = append(ends, s.Parents...)
	}
	slices.Sort(ends)
	for _, id := range slices.Compact(ends) {
		if _, judged := j.commits[id]; judged {
			continue
		}
		bases, err := j.Code.MergeBases(ctx, c.Parents[0], id)
		if err != nil {
			return "", err
		}
		if !slices.Contains(bases, id) {
			return fmt.Sprintf("is a merge that brings commit %.12s, which is from before the oldest transaction and was not on this branch", id), nil
		}
	}
	return "", nil
}

// files are the changes between two commits by path, none for no change. Where they
// cannot be told, it says why.
func (j *judge) files(ctx context.Context, from, to string) (map[string]patch.Change, string, error) {
	set, err := j.Code.Diff(ctx, from, to)
	var unfit *patch.Error
	switch {
	case errors.Is(err, patch.ErrUnchanged):
		return nil, "", nil
	case errors.As(err, &unfit):
		return nil, "is a merge of what cannot be compared: " + ledger.OneLine(unfit.Error(), 300), nil
	case err != nil:
		return nil, "", err
	}
	out := map[string]patch.Change{}
	for _, c := range set.Files() {
		out[c.Path] = c
	}
	return out, "", nil
}
