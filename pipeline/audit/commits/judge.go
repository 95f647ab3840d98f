package commits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/audit"
	"github.com/countersign-dev/countersign/pipeline/audit/history"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/sshsig"
)

// line judges the commits by first parents up to a tip, with what their merges bring.
func (j *judge) line(ctx context.Context, tip string) error {
	chain := j.chain(tip)
	for _, c := range chain {
		var err error
		if len(c.Parents) < 2 {
			err = j.single(ctx, c)
		} else {
			err = j.merged(ctx, c)
		}
		if err != nil {
			return fmt.Errorf("commit %s: %w", c.ID, err)
		}
	}
	return j.ranges(ctx, chain)
}

// single judges a commit that has at most one parent.
func (j *judge) single(ctx context.Context, c history.BranchCommit) error {
	if len(c.Parents) == 0 {
		j.refuse(c, "has no parent: no patch is all that a repository began with", nil, nil)
		return nil
	}
	by, paths, lines, reason, err := j.commit(ctx, c, nil)
	if err != nil {
		return err
	}
	if by == nil && len(paths) > 0 {
		var why string
		if by, why, err = j.bot(ctx, c, paths); err != nil {
			return err
		}
		reason = strings.TrimSuffix(reason+"; "+why, "; ")
	}
	if by != nil {
		j.accept(c, *by)
		return nil
	}
	j.refuse(c, j.pretends(c)+reason, paths, lines)
	return nil
}

// commit finds the transaction of what a commit changed in its first parent. side are the
// commits that it brings, whose transactions may be its own.
func (j *judge) commit(ctx context.Context, c history.BranchCommit, side []history.BranchCommit) (by *Explained, paths []string, lines []Lines, reason string, err error) {
	made, err := j.made(c.ID)
	if err != nil {
		return nil, nil, nil, "", err
	}
	for _, claim := range made {
		if claim.Explains {
			return &Explained{By: kindOf(claim), Transaction: claim.TransactionID}, nil, nil, "", nil
		}
	}
	by, paths, lines, reason, err = j.change(ctx, c.Parents[0], c.ID, side)
	for _, claim := range made {
		reason = "of the transaction that made it, " + claim.TransactionID + ": " + claim.Why
	}
	return by, paths, lines, reason, err
}

// change finds the transactions of all that changed between two commits, which account for
// the second from then on: one that proposes exactly that, else those whose patches make it
// (replay). Where there are none, by is nil, reason says why, and lines are in no approved
// patch. within are commits of which the change consists.
func (j *judge) change(ctx context.Context, from, to string, within []history.BranchCommit) (by *Explained, paths []string, lines []Lines, reason string, err error) {
	set, err := j.Code.Diff(ctx, from, to)
	var unfit *patch.Error
	switch {
	case errors.Is(err, patch.ErrUnchanged):
		return nil, nil, nil, "changes no file", nil
	case errors.As(err, &unfit):
		return nil, nil, nil, "no transaction can propose it: " + ledger.OneLine(unfit.Error(), 300), nil
	case err != nil:
		return nil, nil, nil, "", err
	}
	claims, err := j.claimsOf(set.ID())
	if err != nil {
		return nil, nil, nil, "", err
	}
	paths = set.Paths()
	for _, c := range claims {
		switch {
		case !c.Explains:
			reason = "of the transaction that proposes it, " + c.TransactionID + ": " + c.Why
		case !j.free(c.TransactionID, to, within):
			reason = fmt.Sprintf("%s was approved for commit %.12s; the same change again takes an approval of its own", c.TransactionID, j.used[c.TransactionID])
		default:
			j.used[c.TransactionID] = to
			return &Explained{By: kindOf(c), Transaction: c.TransactionID}, paths, nil, "", nil
		}
	}
	by, why, lines, err := j.replay(ctx, set, to, within)
	return by, paths, lines, cmp.Or(reason, why, "no transaction proposes this change"), err
}

func kindOf(c audit.Claim) By {
	if c.Kind == ledger.KindPullRequest {
		return ByPullRequest
	}
	return ByTransaction
}

// made are the transactions whose apply made a commit.
func (j *judge) made(commit string) (out []audit.Claim, err error) {
	for _, id := range j.own[commit] {
		claims, err := j.claimsOf(j.Index.patches[id])
		if err != nil {
			return nil, err
		}
		for _, c := range claims {
			if c.TransactionID == id && c.AppliedCommit == commit {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// claimsOf are the transactions that propose a patch, each read and verified once.
func (j *judge) claimsOf(patchID string) ([]audit.Claim, error) {
	if claims, known := j.claims[patchID]; known {
		return claims, nil
	}
	claims, err := audit.Claims(j.Ledger, patchID)
	if err == nil {
		j.claims[patchID] = claims
	}
	return claims, err
}

// bot tries the Policy's rules for bots.
func (j *judge) bot(ctx context.Context, c history.BranchCommit, paths []string) (*Explained, string, error) {
	if len(j.Policy.Explained.Bots) == 0 {
		return nil, "", nil
	}
	raw, err := j.Code.RawCommit(ctx, c.ID)
	if err != nil {
		return nil, "", err
	}
	payload, signature, err := sshsig.Split(raw)
	if errors.Is(err, sshsig.ErrNoSignature) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "no bot of the Policy signed it: " + ledger.OneLine(err.Error(), 200), nil
	}
	why := ""
	for i, bot := range j.Policy.Explained.Bots {
		if j.BotKeys[i].Err != nil {
			why = j.BotKeys[i].Err.Error()
			continue
		}
		who, _, err := j.BotKeys[i].Allowed.Verify(payload, signature, j.Now)
		if err != nil {
			why = fmt.Sprintf("explained.bots[%d] does not have who signed it: %v", i, err)
			continue
		}
		if file, beyond := j.Policy.Beyond(bot, paths); file != "" {
			why = fmt.Sprintf("%s signed it, but %s %s", who, file, beyond)
			continue
		}
		return &Explained{By: ByBot, Signer: who}, "", nil
	}
	return nil, ledger.OneLine(why, 300), nil
}

// merged judges a merge and what it brings.
func (j *judge) merged(ctx context.Context, c history.BranchCommit) error {
	side := j.side(c)
	by, paths, covered, reason, err := j.commit(ctx, c, side)
	if err != nil {
		return err
	}
	if by != nil {
		j.accept(c, *by)
		return j.within(side, Explained{By: by.By, Transaction: by.Transaction, With: by.With, PartOf: c.ID})
	}
	brings, err := j.brings(ctx, c, side)
	if err != nil {
		return err
	}
	if j.Policy.Explained.Merges != policy.MergesCovered {
		j.refuse(c, j.pretends(c)+"is a merge, for which the Policy has no rule, and "+reason, paths, covered)
		return nil
	}
	if brings != "" {
		j.refuse(c, j.pretends(c)+brings, paths, nil)
		return nil
	}
	why, lines, err := j.remerge(ctx, c)
	if err != nil {
		return err
	}
	if why != "" {
		j.refuse(c, j.pretends(c)+why, paths, lines)
		return nil
	}
	j.accept(c, Explained{By: ByMerge})
	return nil
}

// brings judges what a merge brings: as the one change that it is beside where it began,
// or commit by commit. It says what nothing accounts for, "" for nothing.
func (j *judge) brings(ctx context.Context, c history.BranchCommit, side []history.BranchCommit) (string, error) {
	if len(c.Parents) == 2 && len(side) > 0 {
		bases, err := j.Code.MergeBases(ctx, c.Parents[0], c.Parents[1])
		if err != nil {
			return "", err
		}
		if len(bases) == 1 {
			by, _, _, _, err := j.change(ctx, bases[0], c.Parents[1], side)
			if err != nil {
				return "", err
			}
			if by != nil {
				by.PartOf = bases[0] + ".." + c.Parents[1]
				return "", j.within(side, *by)
			}
		}
	}
	for _, parent := range c.Parents[1:] {
		if err := j.line(ctx, parent); err != nil {
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

// within accepts what a merge brings as a part of the whole, but for what a transaction
// made by itself.
func (j *judge) within(side []history.BranchCommit, whole Explained) error {
	for _, c := range side {
		made, err := j.made(c.ID)
		if err != nil {
			return err
		}
		j.taken[c.ID] = true
		one := whole
		for _, claim := range made {
			if claim.Explains {
				one = Explained{By: kindOf(claim), Transaction: claim.TransactionID}
			}
		}
		j.accept(c, one)
	}
	return nil
}

// maxRange is how many commits in a row are taken together for one approved change, and
// maxRanges how often that is tried.
const (
	maxRange  = 50
	maxRanges = 2000
)

// ranges looks for commits in a row that nothing accounts for, and that are together one
// approved change: a pull request that was rebased onto the branch.
func (j *judge) ranges(ctx context.Context, chain []history.BranchCommit) error {
	for end := len(chain) - 1; end > 0; end-- {
		for start := end - 1; start >= 0 && end-start < maxRange && j.loose(chain[start]) && j.loose(chain[end]); start-- {
			if j.tried++; j.tried > maxRanges {
				return nil
			}
			from, to := chain[start].Parents[0], chain[end].ID
			by, _, _, _, err := j.change(ctx, from, to, chain[start:end+1])
			if err != nil {
				return err
			}
			if by == nil {
				continue
			}
			by.PartOf = from + ".." + to
			for _, c := range chain[start : end+1] {
				delete(j.Unexplained, c.ID)
				j.accept(c, *by)
			}
		}
	}
	return nil
}

// loose reports whether nothing accounts for a commit that a range may have.
func (j *judge) loose(c history.BranchCommit) bool {
	_, is := j.Unexplained[c.ID]
	return is && len(c.Parents) == 1
}

func (j *judge) accept(c history.BranchCommit, e Explained) {
	e.Commit, e.Subject, e.With = c.ID, subject(c), append([]string{}, e.With...)
	j.Explained[c.ID] = e
}

func (j *judge) refuse(c history.BranchCommit, reason string, paths []string, lines []Lines) {
	j.Unexplained[c.ID] = Unexplained{
		Commit: c.ID, Subject: subject(c), Reason: reason, MorePaths: max(0, len(paths)-maxPaths),
		Paths: append([]string{}, paths[:min(len(paths), maxPaths)]...), Lines: append([]Lines{}, lines[:min(len(lines), maxPaths)]...),
	}
}

func subject(c history.BranchCommit) string {
	first, _, _ := strings.Cut(c.Message, "\n")
	return ledger.OneLine(first, 120)
}

// pretends says which transaction a commit's message names that did not make it.
func (j *judge) pretends(c history.BranchCommit) string {
	id := ""
	for line := range strings.Lines(c.Message) {
		if value, ok := strings.CutPrefix(line, "Countersign-Transaction: "); ok {
			id = strings.TrimSpace(value)
		}
	}
	_, known := j.Index.patches[id]
	switch {
	case id == "":
		return ""
	case ledger.CheckID(id) != nil:
		return fmt.Sprintf("names %s, which is not a transaction id; ", ledger.OneLine(id, 60))
	case !known:
		return fmt.Sprintf("names %s, which the ledger does not have; ", id)
	}
	return fmt.Sprintf("names %s, which did not make it; ", id)
}
