package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A BranchJudge judges branches of a repository by a ledger, each once. policy is the commit of the
// default branch that the Policy is read from.
type BranchJudge struct {
	explain.Options
	Repo   *gitstore.Repo
	policy string
	judged map[string]explain.Result // by tip
}

// OpenJudge reads what a ledger says of commits.
func OpenJudge(ctx context.Context, s *Session, tree fs.FS, clock *explain.Clock, atLeast string) (j BranchJudge, err error) {
	commit, err := PolicyCommit(ctx, s.Console, s.Repo)
	if err != nil {
		return j, err
	}
	return JudgeBy(commit, s, tree, clock, atLeast)
}

// JudgeBy is OpenJudge where the Policy is read from a commit that is known.
func JudgeBy(commit string, s *Session, tree fs.FS, clock *explain.Clock, atLeast string) (j BranchJudge, err error) {
	j = BranchJudge{
		Options: explain.Options{Ledger: tree, Code: s.Repo, Now: s.Now(), AtLeast: explain.Strength(atLeast)},
		Repo:    s.Repo, judged: map[string]explain.Result{}, policy: commit,
	}
	j.Index, err = explain.NewIndex(tree, clock)
	return j, err
}

// Branch judges the commits that a branch at a commit has since the ledger began, or since a
// commit before that. What is judged does not depend on what is listed: a change that was
// approved once is not approved again because its first commit is not asked about.
func (j BranchJudge) Branch(ctx context.Context, tip, since string) (r explain.Result, all []code.BranchCommit, err error) {
	from := j.Index.First
	if all, err = j.Repo.CommitsBetween(ctx, from, tip); err != nil {
		return r, nil, err
	}
	if since != "" && from != "" && !among(all, since) {
		earlier, err := j.Repo.Descends(ctx, from, since)
		if err == nil && earlier && from != since {
			from = since
			all, err = j.Repo.CommitsBetween(ctx, from, tip)
		}
		if err != nil {
			return r, nil, err
		}
	}
	if j.Default, err = j.main(ctx, from, all); err != nil {
		return r, nil, err
	}
	r, err = explain.Run(ctx, j.Options, all)
	return r, all, err
}

// Quick is explain.Quick of the commits that the default branch gets, the newest first, which is at old.
func Quick(ctx context.Context, s *Session, tree fs.FS, atLeast, old string, commits []string) (bool, error) {
	all, err := s.Repo.Commits(commits)
	if err != nil {
		return false, err
	}
	s.Repo.ReadAhead(ctx, all)
	return explain.Quick(ctx, explain.Options{Ledger: tree, Code: s.Repo, Now: s.Now(), AtLeast: explain.Strength(atLeast)}, old, all,
		func(base string) ([]code.BranchCommit, error) { return s.Repo.CommitsBetween(ctx, base, old) })
}

// Added judges what a branch gets that is at old: the commits that next has and old has not. Those that it has already and that
// these would take their approval from are unexplained as well, and so is what was denied, even after it was applied.
func (j BranchJudge) Added(ctx context.Context, name, old, next string) (b explain.Branch, err error) {
	here, err := j.Repo.Has(j.Index.First)
	if err != nil {
		return b, err
	}
	if !here { // nothing that is known here says where the ledger began
		x := *j.Index
		x.First, j.Index = old, &x
	}
	r, _, err := j.Branch(ctx, next, old)
	if err != nil {
		return b, err
	}
	listed, err := CommitsSince(ctx, j.Repo, next, old)
	b = r.List(name, old, listed)
	for _, e := range b.Explained {
		id, failed := r.Denied(e.Commit)
		if err = cmp.Or(err, failed); id != "" {
			b.Unexplained = append(b.Unexplained, explain.Unexplained{
				Commit: e.Commit, Subject: e.Subject, Code: explain.Denied, Reason: "the patch of " + id + " was denied",
				Transactions: []string{id}, Paths: []string{}, Lines: []explain.Lines{},
			})
		}
	}
	had := func(id string) bool { _, not := r.Unexplained[id]; return not && !listed(id) }
	if err != nil || !slices.ContainsFunc(r.Order(), had) {
		return b, err
	}
	before, _, err := j.Branch(ctx, old, old)
	for _, id := range r.Order() {
		if _, was := before.Explained[id]; was && had(id) {
			lost := r.Unexplained[id]
			lost.Reason = "is there, and a new commit would take its approval: " + lost.Reason
			b.Unexplained = append(b.Unexplained, lost)
		}
	}
	return b, err
}

// main are the commits of the default branch since one, which are known already if they are in all.
func (j BranchJudge) main(ctx context.Context, from string, all []code.BranchCommit) ([]string, error) {
	if !among(all, j.policy) {
		var err error
		if all, err = j.Repo.CommitsBetween(ctx, from, j.policy); err != nil {
			return nil, err
		}
	}
	return firstParents(all, j.policy), nil
}

// firstParents are the commits of a branch by first parents, oldest first, with the one before
// the first of some commits.
func firstParents(commits []code.BranchCommit, tip string) []string {
	parents := map[string][]string{}
	for _, c := range commits {
		parents[c.ID] = c.Parents
	}
	out := []string{tip}
	for len(parents[tip]) > 0 {
		tip = parents[tip][0]
		out = append(out, tip)
	}
	slices.Reverse(out)
	return out
}

// Commit says what accounts for one commit, or for all that changed between two: by the
// history of the default branch where that has it, else of a branch that is named, "" for the
// commit's own. Where the history is cut off, it is not known what was used before.
func (j BranchJudge) Commit(ctx context.Context, from, to, branch string) (e explain.Explanation, err error) {
	parent, err := j.Repo.FirstParent(ctx, to)
	if err != nil {
		return e, err
	}
	var r explain.Result
	once := explain.First
	if from == parent {
		tip, err := j.tipWith(ctx, to, branch)
		known := false
		if r, known = j.judged[tip]; err == nil && !known {
			if r, _, err = j.Branch(ctx, tip, ""); err == nil {
				j.judged[tip] = r
			}
		}
		if err != nil && !errors.As(err, new(*gitstore.CutOffError)) {
			return e, err
		}
		if err != nil {
			once = explain.Unknown
		}
	}
	if from != parent || once == explain.Unknown {
		all, err := j.Repo.CommitsBetween(ctx, j.Index.First, from)
		if err == nil {
			j.Default, err = j.main(ctx, j.Index.First, all)
		}
		switch {
		case errors.As(err, new(*gitstore.CutOffError)):
			once, all, j.Default = explain.Unknown, nil, []string{j.policy}
			if on, err := j.Repo.Descends(ctx, j.policy, from); err == nil && on {
				j.Default = []string{from, j.policy}
			}
		case err != nil:
			return e, err
		}
		if r, err = explain.Run(ctx, j.Options, explain.Between(all, from, to)); err != nil {
			return e, err
		}
	}
	e = explain.Explanation{From: from, Commit: to, Code: explain.NothingKnown, Reason: "is from before the oldest transaction", Transactions: []explain.Claim{}, Uncovered: []explain.Lines{}}
	if r.Has(to) {
		if e, err = r.Commit(ctx, to); err != nil {
			return e, err
		}
	}
	if e.Once != "" {
		e.Once = once
	}
	e.Tree, err = j.Repo.TreeID(ctx, to)
	return e, err
}

// tipWith is the tip of the branch by which a commit is judged.
func (j BranchJudge) tipWith(ctx context.Context, commit, branch string) (string, error) {
	tips := []string{j.policy}
	if branch != "" {
		tip, err := j.Repo.BranchTip(ctx, branch)
		if err != nil {
			return "", err
		}
		tips = append([]string{tip}, tips...)
	}
	for _, tip := range tips {
		if has, err := j.Repo.Descends(ctx, tip, commit); err != nil || has {
			return tip, err
		}
	}
	return commit, nil
}

func among(commits []code.BranchCommit, id string) bool {
	return slices.ContainsFunc(commits, func(c code.BranchCommit) bool { return c.ID == id })
}

func CommitsSince(ctx context.Context, repo *gitstore.Repo, tip, since string) (func(string) bool, error) {
	late := map[string]bool{}
	all, err := repo.CommitsBetween(ctx, since, tip)
	for _, c := range all {
		late[c.ID] = true
	}
	return func(id string) bool { return late[id] }, err
}

// Source is what evidence is made of, of a branch that was judged, by the Policy as it is now.
func (j BranchJudge) Source(ctx context.Context, r explain.Result, all []code.BranchCommit) (evidence.Source, error) {
	tree, err := j.Repo.Tree(ctx, j.policy)
	if err != nil {
		return evidence.Source{}, err
	}
	rules, _, err := policy.Read(tree)
	return evidence.Source{
		Ledger: j.Ledger, Index: j.Index, Judged: r, Commits: all, Now: j.Now, Policy: rules, Keys: approval.ReadKeys(tree, rules),
		RawCommit: func(commit string) ([]byte, error) { return j.Repo.RawCommit(ctx, commit) },
	}, err
}

// Exceptions are those of the default branch, by this clone's ledger, which must be at tip and is not audited here, where the
// Policy has people review them: none otherwise, at no cost.
func Exceptions(ctx context.Context, s *Session, tip string) ([]explain.Exception, error) {
	commit, err := PolicyCommit(ctx, s.Console, s.Repo)
	if err != nil {
		return nil, err
	}
	tree, err := s.Repo.Tree(ctx, commit)
	if err != nil {
		return nil, err
	}
	snap, err := s.Local.Snapshot(ctx)
	rules, _, unread := policy.Read(tree)
	if err = cmp.Or(err, unread); err != nil || rules.Exceptions.Review == 0 {
		return nil, err
	}
	switch shared := s.Repo.Config.RemoteURL(s.Flags.Remote) != ""; {
	case snap.Tip == "" && tip == "" && !shared:
		return nil, nil
	case snap.Tip == "":
		return nil, errors.New("this clone has no ledger: countersign sync")
	case snap.Tip != tip:
		return nil, errors.New("this clone has another ledger than the remote: countersign sync")
	}
	clock, err := WholeClock(ctx, s.Local)
	if err != nil {
		return nil, err
	}
	j, err := JudgeBy(commit, s, snap.Tree, clock, "")
	if err != nil {
		return nil, err
	}
	r, all, err := j.Branch(ctx, commit, "")
	if err != nil {
		return nil, err
	}
	source, err := j.Source(ctx, r, all)
	if err != nil {
		return nil, err
	}
	return source.Exceptions()
}

// WholeClock notes in which order the transactions of the whole ledger were recorded.
func WholeClock(ctx context.Context, local *gitstore.Ledger) (*explain.Clock, error) {
	h, err := local.History(ctx, gitstore.HistoryOptions{})
	if err != nil {
		return nil, err
	}
	clock, missing := explain.NewClock(h), atomic.Pointer[history.ID]{}
	err = clock.Commits(func(c history.Commit) {
		if c.Base && len(c.Parents) > 0 {
			missing.Store(&c.Parents[0])
		}
	})
	if id := missing.Load(); err == nil && id != nil {
		err = &gitstore.CutOffError{Missing: id.String()}
	}
	return clock, err
}

// Unaccounted is the error of a commit that nothing accounts for.
func (j BranchJudge) Unaccounted(e explain.Explanation) error {
	try := j.Repo.Config.SyncOr(console.DefaultRemote, "")
	if len(e.Transactions) > 0 {
		try = "countersign show " + e.Transactions[0].TransactionID
	}
	return fault.Fail(fmt.Sprintf("nothing accounts for commit %s: %s", e.Commit, e.Reason), try)
}
