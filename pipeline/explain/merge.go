package explain

import (
	"context"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// merged judges a merge and what it brings.
func (j *judge) merged(ctx context.Context, c code.BranchCommit) error {
	side := j.side(c)
	s, err := j.subject(ctx, c.Parents[0], c.ID, append(ids(side), c.ID), c.ID)
	if err != nil {
		return err
	}
	j.subjects[c.ID] = s
	no, err := j.give(ctx, s)
	if err != nil {
		return err
	}
	if no == nil {
		j.take(side)
		return nil
	}
	j.let(c.ID, s)
	brings, err := j.brings(ctx, c, side)
	if err != nil {
		return err
	}
	if t := j.trusted(); t.unknown != "" || t.policy.Explained.Merges != policy.MergesCovered {
		no.graver(BadMerge, no.Reason, no.Transactions...)
		no.Reason = j.pretends(c) + "is a merge, for which the Policy has no rule, and " + no.Reason
		j.refuse(c, *no)
		return nil
	}
	why, lines := brings, []Lines(nil)
	if why == "" {
		if why, lines, err = j.remerge(ctx, c); err != nil {
			return err
		}
	}
	if why != "" {
		no.graver(BadMerge, why, no.Transactions...)
		no.Reason, no.Lines = j.pretends(c)+why, lines
		j.refuse(c, *no)
		return nil
	}
	j.choose(&way{by: ByMerge, cover: []string{c.ID}, whole: c.ID})
	return nil
}

func ids(commits []code.BranchCommit) (out []string) {
	for _, c := range commits {
		out = append(out, c.ID)
	}
	return out
}

// take notes that commits were judged as a part of something.
func (j *judge) take(side []code.BranchCommit) {
	for _, c := range side {
		j.taken[c.ID] = true
	}
}

// brings judges what a merge brings: as the one change that it is beside where it began,
// or commit by commit. It says what nothing accounts for, "" for nothing.
func (j *judge) brings(ctx context.Context, c code.BranchCommit, side []code.BranchCommit) (string, error) {
	if len(c.Parents) == 2 && len(side) > 1 {
		bases, err := j.Code.MergeBases(ctx, c.Parents[0], c.Parents[1])
		if err != nil {
			return "", err
		}
		if len(bases) == 1 {
			s, err := j.subject(ctx, bases[0], c.Parents[1], ids(side), bases[0]+".."+c.Parents[1])
			if err != nil {
				return "", err
			}
			no, err := j.give(ctx, s)
			if err != nil {
				return "", err
			}
			if no == nil {
				j.take(side)
				return "", nil
			}
		}
	}
	for _, parent := range c.Parents[1:] {
		if err := j.line(ctx, parent, false); err != nil {
			return "", err
		}
	}
	n := 0
	for _, s := range side {
		if _, is := j.Unexplained[s.ID]; is {
			n++
		}
	}
	if n > 0 {
		return fmt.Sprintf("is a merge of %s that nothing accounts for", ledger.Plural(n, "commit", "commits")), nil
	}
	if j.brought[c.ID] != "" { // what the branch itself had is told of the merge that brought this one
		return "", nil
	}
	return j.older(ctx, c, side)
}

// remerge makes a merge again, and says in what it is not exactly that. Nothing that a
// person resolved by hand is. Files that one side alone changed are compared by their ids.
func (j *judge) remerge(ctx context.Context, c code.BranchCommit) (why string, lines []Lines, err error) {
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
	var changes [3]map[string]PathChange // theirs, ours and the merge's
	var paths []string
	for i, of := range [3][2]string{{bases[0], theirs}, {bases[0], ours}, {ours, c.ID}} {
		ch, err := j.change(ctx, of[0], of[1])
		if err != nil {
			return "", nil, err
		}
		if ch.unfit != "" && i != 1 {
			return "is a merge of what cannot be compared: " + ch.unfit, nil, nil
		}
		changes[i] = map[string]PathChange{}
		for _, e := range ch.entries {
			changes[i][e.Path] = e
		}
		if i != 1 {
			paths = append(paths, ch.paths...)
		}
	}
	slices.Sort(paths)
	met := false
	for _, path := range slices.Compact(paths) {
		their, both := changes[0][path]
		_, mine := changes[1][path]
		got, changed := changes[2][path]
		if both && !mine && changed && got.New == their.New && got.NewID == their.NewID {
			continue
		}
		clean, foreign, err := j.remergeFile(ctx, path, bases[0], ours, theirs, c.ID)
		if err != nil {
			return "", nil, err
		}
		met = met || !clean
		lines = append(lines, foreign...)
	}
	switch {
	case len(lines) == 0:
		return "", nil, nil
	case met:
		return "is a merge with a conflict that was resolved by hand", lines, nil
	}
	return "is a merge that has more than both sides, or less", lines, nil
}

// remergeFile makes a merge of one file again. It is not clean where the sides meet; lines are
// those that are not as merging makes them.
func (j *judge) remergeFile(ctx context.Context, path, base, ours, theirs, merge string) (clean bool, lines []Lines, err error) {
	var files [4]*patch.File
	fits := true
	for i, commit := range []string{base, ours, theirs, merge} {
		f, fit, err := j.file(ctx, commit, path)
		if err != nil {
			return false, nil, err
		}
		files[i], fits = f, fits && (fit || i > 1)
	}
	mine, their, is := files[1], files[2], files[3]
	if fits {
		want, ok := mergeFile(files[0], mine, their)
		if ok && is.Equal(want) {
			return true, nil, nil
		}
		clean = ok
	}
	return clean, foreignLines(path, mine, their, is), nil
}

// older says which commit a merge brings that was not judged, as it is from before the ledger
// began, "" for none. The first parent does not have it: it was on another branch then.
func (j *judge) older(ctx context.Context, c code.BranchCommit, side []code.BranchCommit) (string, error) {
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
