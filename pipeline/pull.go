package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

func pullName(tx ledger.Transaction) string {
	return strconv.Itoa(tx.Pointers.Proposal.PullRequest)
}

// OnPull makes an input one for a pull request as it is now: its head is
// fetched, and is the base of the change.
func (r *Runner) OnPull(ctx context.Context, in input.Change, number int) (input.Change, error) {
	pull, err := r.pull(ctx, number)
	if err != nil {
		return in, err
	}
	in.For = &pull
	return in, nil
}

// PullInput proposes a pull request's own diff, from the merge base to the head.
// Its author proposes it, and nothing will be applied.
func (r *Runner) PullInput(ctx context.Context, number int, summary string) (input.Change, error) {
	pull, err := r.pull(ctx, number)
	if err != nil {
		return input.Change{}, err
	}
	base, err := r.Code.MergeBase(ctx, pull.Base.Branch, pull.Head.Commit)
	if err != nil {
		return input.Change{}, err
	}
	return input.Change{
		Kind: input.KindPullRequest, Summary: cmp.Or(summary, pull.Title), For: &pull, Base: base, Proposer: &pull.Author,
		Resolve: func(fs.FS) (patch.Patchset, error) { return r.Code.Diff(ctx, base, pull.Head.Commit) },
	}, nil
}

// pull reads an open pull request, and fetches the very head that was read: a
// push in between is an error, and the next run sees it whole (T05).
func (r *Runner) pull(ctx context.Context, number int) (forge.PullRequest, error) {
	if r.Forge == nil || r.Code == nil {
		return forge.PullRequest{}, &NoForgeError{"this change", number}
	}
	pull, err := r.Forge.PullRequest(ctx, number)
	if err != nil {
		return pull, &ReadingError{number, err}
	}
	if pull.State != forge.PullRequestOpen {
		return pull, &PullClosedError{number, pull.State}
	}
	head, err := r.Code.Head(ctx, number)
	if err == nil && head != pull.Head.Commit {
		err = &ReadingError{number, errors.New("its head moved while it was read")}
	}
	return pull, err
}

// A PullClosedError says that a pull request takes no change any more.
type PullClosedError struct {
	PullRequest int
	State       string
}

func (e *PullClosedError) Error() string {
	return fmt.Sprintf("pull request %d is %s", e.PullRequest, e.State)
}

// pullEffect is the way to the head branch of a pull request, or to another ref
// on its repository; an apply that was cut off is finished where it was begun.
func (r *Runner) pullEffect(ctx context.Context, g Gated, o ApplyOptions, from *reader) (effect, error) {
	tx := g.Transaction()
	if r.Forge == nil { // a job without a token takes what was fetched
		return &refEffect{r: r, ref: fetchedHead(tx.Pointers.Proposal.PullRequest), refs: r.Refs}, nil
	}
	pull, err := r.pullOf(ctx, g, from)
	if err != nil {
		return nil, err
	}
	side, ref := pull.Head, "refs/heads/"+pull.Head.Branch
	open, resuming := g.log.OpenApply()
	switch {
	case o.To == TargetRef, o.To == "" && string(g.rules.Policy.Apply.To) == TargetRef:
		side, ref = pull.Base, appliedRef(tx.TransactionID)
	case o.Branch != "" && o.Branch != pull.Head.Branch:
		side, ref = pull.Base, "refs/heads/"+o.Branch
	}
	if resuming && open.Target != ref {
		side, ref = pull.Base, open.Target
		if open.Target == "refs/heads/"+pull.Head.Branch {
			side = pull.Head
		}
	}
	if side.Repository == nil {
		return nil, &NoHeadError{PullRequest: pull.Number}
	}
	if err := r.keepableBranch(ref); err != nil {
		return nil, err
	}
	refs, err := r.Code.Refs(ctx, side)
	if err != nil {
		return nil, err
	}
	to := &refEffect{r: r, ref: ref, refs: refs, host: hostOf(pull.Base.CloneURL)}
	if ref == "refs/heads/"+pull.Head.Branch && side.Repository.ID == pull.Head.Repository.ID {
		to.headOf = pull.Number
	}
	return to, nil
}

// hostOf is the name of the server that a repository is cloned from.
func hostOf(cloneURL string) string {
	u, err := url.Parse(cloneURL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// fetchedHead is where the repository has the head of a pull request that was
// fetched.
func fetchedHead(number int) string { return fmt.Sprintf("refs/countersign/pull/%d/head", number) }

// A NoHeadError says that the head branch of a pull request is gone, or, where
// Branch is "", the repository that it was in.
type NoHeadError struct {
	PullRequest int
	Branch      string
}

func (e *NoHeadError) Error() string {
	if e.Branch != "" {
		return fmt.Sprintf("the head branch %+q of pull request %d is gone", e.Branch, e.PullRequest)
	}
	return fmt.Sprintf("the repository that the head of pull request %d was in is gone", e.PullRequest)
}

// pullOf is the transaction's pull request, as this stage read it.
func (r *Runner) pullOf(ctx context.Context, g Gated, from *reader) (forge.PullRequest, error) {
	if g.reading != nil {
		return g.reading.pull, nil
	}
	tx := g.Transaction()
	if r.Forge == nil || r.Code == nil {
		return forge.PullRequest{}, &NoForgeError{tx.TransactionID, tx.Pointers.Proposal.PullRequest}
	}
	x, err := from.read(ctx, tx)
	if err != nil {
		return forge.PullRequest{}, err
	}
	return x.pull, nil
}

// Pull is the pull request that a stage read, nil where it read none.
func (g Gated) Pull() *forge.PullRequest {
	if g.reading == nil {
		return nil
	}
	return &g.reading.pull
}

// Statements are what was said on the pull request that a stage read.
func (g Gated) Statements() []approval.Statement { return g.talk.Statements }

// TeamsUnread reports whether a team was asked about that the forge does not show.
func (g Gated) TeamsUnread() bool { return g.reading != nil && g.reading.unread }

// Policy is the one that the Verdict goes by.
func (g Gated) Policy() policy.Policy { return g.rules.Policy }

// Needs are the approvals that the change takes.
func (g Gated) Needs() []policy.Need {
	p := g.Transaction().Pointers.Proposal
	return g.rules.Policy.Needs(p.TargetFiles, p.ContainsSecrets)
}

// PatchBetween returns the patch_id of what a commit of a remote ref does to
// another commit.
func (r *Runner) PatchBetween(ctx context.Context, ref, base, commit string) (string, error) {
	if err := r.Code.Fetch(ctx, ref, commit); err != nil {
		return "", err
	}
	set, err := r.Code.Diff(ctx, base, commit)
	return set.ID(), err
}

// onRecord is the verdict as anybody can find it again from the record alone:
// what the forge answered when it was asked again goes into it.
func (g Gated) onRecord(ctx context.Context, s *ledger.Stage) approval.Verdict {
	if g.reading == nil {
		return g.Verdict
	}
	g.rules.note(s)
	doc := approval.NewStanding(g.at, g.reading.pull.Number, g.reading.pull.Head.Commit)
	doc.Policy = g.rules.ref()
	for _, d := range ledger.Of[*ledger.ApprovalDecision](s.Log) {
		if d.Decision == ledger.Approve && d.Source.Evidence != "" {
			doc.Add(*d, g.talk.Stands(*d), g.reading.access[d.Source.Author.ID])
		}
	}
	eachYes(g.reading.members, doc.AddMember)
	eachYes(g.reading.owners, doc.AddOwner)
	s.Artifact(approval.KindStanding, doc)
	g.standing = &doc
	return g.verdict(ctx, g.at)
}

// eachYes calls add for every answer that was yes.
func eachYes(known map[string]map[string]bool, add func(what, id string)) {
	for _, what := range slices.Sorted(maps.Keys(known)) {
		for _, id := range slices.Sorted(maps.Keys(known[what])) {
			if known[what][id] {
				add(what, id)
			}
		}
	}
}

// fetchApplied brings the commit that was made where this clone has it not.
func (r *Runner) fetchApplied(ctx context.Context, log *ledger.Log) error {
	done := log.LastApply()
	p := log.Transaction().Pointers.Proposal
	if p.PullRequest == 0 || done.CommitAfter == "" || r.Code == nil {
		return nil
	}
	if _, err := r.Repo.Tree(ctx, done.CommitAfter); err == nil {
		return nil
	}
	_, err := r.Code.Head(ctx, p.PullRequest)
	return err
}

// Merged ends a transaction of a pull request's own diff after the pull request
// was closed: as completed if it was approved and what was merged is the patch,
// as it can be proved by hashing that again, else as interrupted.
func (r *Runner) Merged(ctx context.Context, id string) (Gated, error) {
	from := r.reader()
	g, after, err := update(ctx, r, transaction(id), func(snap ledger.Snapshot) (try[Gated], error) {
		g, err := r.judge(ctx, snap, id, from)
		if err != nil || g.Transaction().Closed {
			return nothing(g, err)
		}
		s := r.stage(g.log)
		if err := r.recordDecisions(ctx, s, &g); err != nil {
			return nothing(g, err)
		}
		if g.Verdict.State != approval.Pending { // nobody is asked any more
			r.recordVerdict(s, g)
		}
		g.Recorded = true
		if s.Log.Transaction().Closed { // denied
			return recording(g, s, ledger.Title{Stage: "gate", Outcome: string(g.Verdict.State), Subject: gateSubject(g.Verdict)})
		}
		why := r.unmerged(ctx, g)
		if why == "" {
			if g.onRecord(ctx, s).State == approval.Approved {
				return recording(g, s, completeMerged(s))
			}
			why = "the pull request was merged without every approval"
		}
		s.Status(ledger.Interrupted, why)
		s.Close()
		return recording(g, s, ledger.Title{Stage: "close", Outcome: string(ledger.Interrupted), Subject: "interrupted: " + why})
	})
	g.Ledger = after
	return g, err
}

// unmerged says why what became of a pull request is not what was approved.
func (r *Runner) unmerged(ctx context.Context, g Gated) string {
	pull := g.reading.pull
	tx := g.Transaction()
	switch {
	case pull.State != forge.PullRequestMerged:
		return "the pull request was closed"
	case g.Err() != nil:
		return "the pull request was merged without every approval"
	}
	set, err := r.mergedDiff(ctx, pull)
	if err != nil {
		return r.oneLine("what was merged cannot be read: "+err.Error(), 300)
	}
	if set.ID() != tx.PatchID() {
		return "what was merged is another patch"
	}
	return ""
}

// mergedDiff is what the merge of a pull request did to its base.
func (r *Runner) mergedDiff(ctx context.Context, pull forge.PullRequest) (patch.Patchset, error) {
	if err := r.Code.Fetch(ctx, "refs/heads/"+pull.Base.Branch, pull.MergeCommit); err != nil {
		return patch.Patchset{}, err
	}
	return r.Code.Diff(ctx, "", pull.MergeCommit)
}

// completeMerged ends a transaction whose patch was merged.
func completeMerged(s *ledger.Stage) ledger.Title {
	id := s.Log.Transaction().TransactionID
	s.Event(&ledger.ValidateStart{TransactionID: id, ValidateID: "validate_1"})
	s.Event(&ledger.ValidateComplete{TransactionID: id, ValidateID: "validate_1", Success: true})
	s.Status(ledger.Completed, "what was merged is the approved patch")
	s.Close()
	return ledger.Title{Stage: "validate", Outcome: string(ledger.Completed), Subject: "completed, what was merged is the approved patch"}
}

// Replace ends the open transactions of a pull request's own diff that its diff
// is no more; keep is the one that it is now.
func (r *Runner) Replace(ctx context.Context, pull forge.PullRequest, keep string) error {
	open, _, err := r.OpenOn(ctx, pull.Repository, pull.Number)
	if err != nil {
		return err
	}
	for _, tx := range open {
		if !tx.GateOnly() || tx.TransactionID == keep {
			continue
		}
		if err := r.replaced(ctx, tx.TransactionID, keep); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) replaced(ctx context.Context, id, by string) error {
	_, _, err := update(ctx, r, transaction(id), func(snap ledger.Snapshot) (try[none], error) {
		log, err := ledger.Read(snap.Tree, id)
		if err != nil || log.Transaction().Closed {
			return nothing(none{}, err)
		}
		s, title := r.succeeded(log, by, "the pull request's diff is another now")
		return recording(none{}, s, title)
	})
	return err
}

// TransactionsOn returns all transactions of a pull request, oldest first.
func (r *Runner) TransactionsOn(ctx context.Context, in ledger.Repository, number int) ([]ledger.Transaction, error) {
	all, _, err := r.onPull(ctx, in, number)
	return all, err
}

// OpenOn returns the open transactions of a pull request, oldest first, and the
// ledger that has them.
func (r *Runner) OpenOn(ctx context.Context, in ledger.Repository, number int) ([]ledger.Transaction, ledger.Snapshot, error) {
	all, snap, err := r.onPull(ctx, in, number)
	return slices.DeleteFunc(all, func(tx ledger.Transaction) bool { return tx.Closed }), snap, err
}

// ClosedOn returns the transactions of a pull request that have ended, oldest
// first.
func ClosedOn(snap ledger.Snapshot, in ledger.Repository, number int) ([]ledger.Transaction, error) {
	all, err := statesOnPull(snap.Tree, in, number)
	return slices.DeleteFunc(all, func(tx ledger.Transaction) bool { return !tx.Closed }), err
}

// Open returns the open transactions, oldest first, and those of which nobody can
// tell whether they are.
func (r *Runner) Open(ctx context.Context) (open []ledger.Transaction, damaged []*ledger.CorruptError, err error) {
	snap, err := r.Ledger(ctx, ledger.TransactionsDir)
	if err != nil {
		return nil, nil, err
	}
	all, damaged, err := ledger.Each(snap.Tree)
	return slices.DeleteFunc(all, func(tx ledger.Transaction) bool { return tx.Closed }), damaged, err
}
