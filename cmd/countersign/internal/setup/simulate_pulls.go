package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// mergedPulls are the pull requests that were merged since a time, as they are kept or, with
// --pull-requests, told by the forge; and what could not be read.
func mergedPulls(ctx context.Context, s *session.Session, f simulateFlags, since time.Time) ([]MergedPull, leftUnread, error) {
	name := filepath.Join(s.Repo.StateDir(), "merged.json")
	if f.cache != "" {
		name = s.Path(f.cache)
	}
	address := s.LinksOf(s.Repo.Config.RemoteURL(s.Flags.Remote)).Web
	kept, err := loadMerged(name, address)
	if err == nil && address == "" {
		err = &console.UsageError{Message: "the remote " + s.Flags.Remote + " is no repository on a forge", Hint: otherCache}
	}
	if err != nil {
		return nil, leftUnread{}, err
	}
	var left leftUnread
	if f.pullRequests {
		client, err := session.Forge(s.Console, s.Repo.Config)
		if err != nil {
			return nil, left, err
		}
		if client == nil {
			return nil, left, s.NoClient("pull requests cannot be read without a token")
		}
		left, err = kept.Fetch(ctx, client, since, s.Now(), func() error { return kept.Save(name) }, func(done, total int) { s.Line.Show("pull requests", done, total) })
		if err != nil {
			left.Err = err
		}
	} else if len(kept.Pulls) == 0 {
		return nil, left, &console.UsageError{Message: fmt.Sprintf("%s has no pull requests", f.cache), Hint: "--pull-requests asks the forge for them"}
	}
	return kept.Since(since), left, nil
}

// simulatePulls says what a Policy would have made of those pull requests that no
// transaction of the ledger accounts for.
func simulatePulls(ctx context.Context, s *session.Session, snap writing.Snapshot, p policy.Policy, pulls []MergedPull, left leftUnread) ([]explain.Case, error) {
	var cases []explain.Case
	for i, one := range pulls {
		at, err := time.Parse(time.RFC3339, one.MergedAt)
		read, unread := time.Parse(time.RFC3339, one.ReadAt)
		if err := errors.Join(err, unread); err != nil {
			return nil, err
		}
		pull := explain.Pull{PullRequest: one.PullRequest, MergedAt: at, ReadAt: read, Statements: one.Statements, Access: one.Access}
		diff, err := pullDiff(ctx, s, pull)
		if err != nil {
			cases = append(cases, explain.PullUnknown(pull.Number, pull.Title, at, err))
			continue
		}
		if accounted, err := accountedFor(snap, pull, diff.PatchID); err != nil {
			return nil, err
		} else if !accounted {
			cases = append(cases, explain.SimulatePull(pull, diff, p))
		}
		s.Line.Show("pull requests", i+1, len(pulls))
	}
	for _, n := range slices.Sorted(maps.Keys(left.Pulls)) {
		cases = append(cases, explain.PullUnknown(n, "", left.Pulls[n].At, left.Pulls[n].Err))
	}
	return cases, nil
}

// accountedFor reports whether a transaction, which is replayed itself, was about a pull request's
// own diff, or applied exactly that: to its branch, or in becoming it. Another one with the
// same patch says nothing about this merge: what it did may have been taken back since.
func accountedFor(snap writing.Snapshot, pull explain.Pull, patchID string) (bool, error) {
	if snap.Tip == "" {
		return false, nil
	}
	on, err := lookup.StatesOnPull(snap.Tree, pull.Repository, pull.Number)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(on, func(tx ledger.Transaction) bool { return tx.GateOnly() && tx.Status == ledger.Completed }) {
		return true, nil
	}
	proposed, err := lookup.Proposals(snap.Tree, patchID)
	for _, one := range proposed {
		tx, err := lookup.ListedState(snap.Tree, one.TransactionID)
		if err != nil {
			return false, err
		}
		here := tx.PullRequest() == pull.Number || !pull.Fork() && pull.Head.Branch == forge.Branch(tx.TransactionID)
		if here && tx.PatchID() == patchID && !tx.GateOnly() && (tx.Status == ledger.Applied || tx.Status == ledger.Completed) {
			return true, nil
		}
	}
	return false, err
}

// mostReviewed is how many commits of reviews are compared with the head of a pull request.
const mostReviewed = 20

// pullDiff is what a merged pull request changed, by the commits of this clone.
func pullDiff(ctx context.Context, s *session.Session, pull explain.Pull) (explain.PullDiff, error) {
	repo := s.Repo
	base, err := pullBase(ctx, repo, pull)
	if err != nil {
		return explain.PullDiff{}, err
	}
	set, err := repo.Diff(ctx, base, pull.Head.Commit)
	switch {
	case console.As[*patch.Error](err):
		return explain.PullDiff{}, fmt.Errorf("what it changed is nothing that can be proposed, by any Policy: %w", err)
	case err != nil:
		return explain.PullDiff{}, fmt.Errorf("its files are not here: %w", err)
	}
	_, found, _ := s.Finder().Learn(set)
	diff := explain.PullDiff{
		PatchID: set.ID(), Paths: set.Paths(), Files: len(set.Files()), Bytes: int64(len(set.Bytes())), Secrets: len(found) > 0,
		Same: map[string]bool{}, Unread: map[string]bool{},
	}
	for i, commit := range pull.Reviewed() {
		other, err := patch.Patchset{}, error(nil)
		if i < mostReviewed {
			var from string
			if from, err = repo.MergeBase(ctx, base, commit); err == nil {
				other, err = repo.Diff(ctx, from, commit)
			}
		}
		if i >= mostReviewed || err != nil {
			diff.Unread[commit] = true
		} else if other.ID() == diff.PatchID {
			diff.Same[commit] = true
		}
	}
	return diff, nil
}

// pullBase is where the head of a merged pull request left its base. The base that the forge
// names may have what was merged already; before that is then what the merge was made on.
func pullBase(ctx context.Context, repo *gitstore.Repo, pull explain.Pull) (string, error) {
	head := pull.Head.Commit
	if _, err := repo.Tree(ctx, head); err != nil {
		return "", fmt.Errorf("its commits are not here: git fetch %s refs/pull/%d/head", console.DefaultRemote, pull.Number)
	}
	onto := []string{pull.Base.Commit}
	if merge := pull.MergeCommit; merge != "" && merge != head {
		if first, err := repo.FirstParent(ctx, merge); err == nil && first != "" {
			onto = append(onto, first)
		}
	}
	var missing error
	for _, commit := range onto {
		base, err := repo.MergeBase(ctx, commit, head)
		if err == nil && base != head {
			return base, nil
		}
		missing = cmp.Or(missing, err)
	}
	if missing != nil {
		return "", fmt.Errorf("where it left its base is not here: %w", missing)
	}
	return "", errors.New("where it left its base cannot be told")
}
