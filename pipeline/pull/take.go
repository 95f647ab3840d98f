package pull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/report"
)

// notProposed bars a bundle, whatever is wrong with what it holds.
func notProposed(err error) error {
	return &fault.Error{Kind: fault.Barred, Message: err.Error(), Cause: err}
}

// takeBundles proposes what bundles hold: the one that was named, else those of
// runs that nobody has read, and last that of the run which this event is about.
func (s *settlement) takeBundles(ctx context.Context) error {
	rules, err := s.rules(ctx)
	if err != nil {
		return err
	}
	if s.Bundle != nil {
		raw, err := s.Bundle(maxBundle(rules.Policy))
		if err != nil {
			return err
		}
		return s.takeBundle(ctx, raw, nil, rules.Policy)
	}
	runs, err := s.unread(ctx)
	s.fail(err)                // and the event's own is taken all the same
	for _, run := range runs { // what cannot be proposed is told, and keeps nobody from the rest
		if err := s.takeRun(ctx, run, rules.Policy); err != nil {
			s.note("A proposal of an earlier run could not be read: " + s.words(err))
		}
	}
	opens := rules.Policy.Apply.To == policy.ToPullRequest && s.Event.ProposesAnew() != 0
	if id := s.Event.HandsOver(s.number); id != 0 && !opens {
		return s.takeRun(ctx, forge.Run{ID: id, RequestedBy: s.Event.HandedOverFor()}, rules.Policy)
	}
	return nil
}

// unread are the runs on the pull request's head that ended after the newest
// proposal which was taken from a run, without the event's own. GitHub keeps one
// job of a concurrency group waiting and drops it for the next, so that an event
// with a bundle can be lost (T83).
func (s *settlement) unread(ctx context.Context) ([]forge.Run, error) {
	if !s.InWorkflow || s.pull.Head.Repository == nil {
		return nil, nil
	}
	runs, err := s.Forge.PullRuns(ctx, s.pull.Head.Commit, time.Time{})
	if errors.Is(err, forge.ErrPermission) {
		return nil, nil // a token without actions: read reads no bundles
	}
	if err != nil {
		return nil, err
	}
	runs = slices.DeleteFunc(runs, func(run forge.Run) bool { // of a workflow that proposes, on the pull request's own head
		return run.ID == s.Event.HandsOver(s.number) || run.Workflow != forge.EventsWorkflow || run.HeadBranch != s.pull.Head.Branch ||
			run.HeadRepository == nil || run.HeadRepository.ID != s.pull.Head.Repository.ID
	})
	if len(runs) == 0 {
		return nil, nil
	}
	taken, err := s.lastTaken(ctx)
	if err != nil {
		return nil, err
	}
	runs = slices.DeleteFunc(runs, func(run forge.Run) bool { return !run.UpdatedAt.After(taken) })
	if len(runs) == 0 {
		return nil, nil
	}
	head := forge.Head{Owner: runs[0].HeadOwner, Repository: runs[0].HeadRepository.ID, Branch: runs[0].HeadBranch, Commit: runs[0].HeadCommit}
	pulls, err := s.Forge.PullRequestsOf(ctx, head)
	if err != nil || !slices.Equal(pulls, []int{s.number}) { // two pull requests can have one head: only an event tells whose a bundle is
		return nil, err
	}
	return runs, nil
}

// lastTaken is when the newest proposal was recorded that was made by a run.
func (s *settlement) lastTaken(ctx context.Context) (last time.Time, err error) {
	proposer := s.viewer
	if s.pull.Fork() {
		proposer = s.pull.Author
	}
	all, _, err := s.Runner.TransactionsOn(ctx, s.pull.Repository, s.number)
	for _, tx := range all {
		if tx.GateOnly() || tx.Proposer.ID != proposer.ID {
			continue
		}
		at, err := time.Parse(time.RFC3339, tx.CreatedAt)
		if err != nil {
			return last, err
		}
		if at.After(last) {
			last = at
		}
	}
	return last, err
}

// takeRun proposes what the bundle of a run holds; a run without one had nothing
// to propose.
func (s *settlement) takeRun(ctx context.Context, run forge.Run, p policy.Policy) error {
	raw, err := s.Forge.Artifact(ctx, run.ID, BundleName, maxBundle(p))
	if errors.Is(err, forge.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.takeBundle(ctx, raw, run.RequestedBy, p)
}

// takeBundle proposes what a bundle holds for this pull request, which these asked for beside whom it names.
func (s *settlement) takeBundle(ctx context.Context, raw []byte, asked []ledger.Requester, p policy.Policy) error {
	in, err := readBundle(raw, p)
	if err != nil {
		return notProposed(err)
	}
	in.RequestedBy = append(in.RequestedBy, asked...)
	if in, err = ChangeFor(ctx, s.Runner, in, s.number); err != nil {
		return err
	}
	if in.For.Fork() { // whoever made the fork could have made the bundle (T68)
		in.Proposer = &in.For.Author
	}
	done, err := review.Run(ctx, s.Runner, in, false)
	s.learn(done.Learnt)
	s.proposed = done.ID
	var denied *pipeline.DeniedError
	if errors.As(err, &denied) {
		return errors.Join(err, s.tellDenied(ctx, denied))
	}
	return err
}

// tellDenied says on the pull request that a bundle proposes what was denied
// before, which nobody is asked about again.
func (s *settlement) tellDenied(ctx context.Context, why *pipeline.DeniedError) error {
	s.DeniedBefore = true
	s.note("Proposed again, but nobody is asked about it: " + report.ErrorLine(why))
	_, here, err := s.deniedIn(ctx, why)
	if err != nil || !here {
		return err
	}
	s.proposed = why.In
	_, err = s.tell(ctx, why.In)
	return err
}

// deniedIn is the transaction in which a patch was denied, and whether it is this pull
// request's: another place tells of its own.
func (s *settlement) deniedIn(ctx context.Context, why *pipeline.DeniedError) (g pipeline.Judgement, here bool, err error) {
	if s.ledger, err = s.Runner.Ledger(ctx, ledger.Dir(why.In)); err != nil {
		return g, false, err
	}
	if g, err = s.Runner.History(ctx, s.ledger, why.In); err != nil {
		return g, false, err
	}
	p := g.Transaction().Pointers.Proposal
	return g, p.Repository != nil && p.Repository.ID == s.pull.Repository.ID && p.PullRequest == s.number, nil
}

// TakeNew makes a pull request of what the event's run of the propose workflow hands
// over that was for none, where the Policy says so. It returns the pull request's
// number, 0 for none.
func (s Settler) TakeNew(ctx context.Context) (int, error) {
	id := s.Event.ProposesAnew()
	if id == 0 || !s.InWorkflow {
		return 0, nil
	}
	told := s.Event.WorkflowRun
	return s.takeNew(ctx, forge.Run{ID: id, HeadBranch: told.HeadBranch, HeadCommit: told.HeadSHA, RequestedBy: s.Event.HandedOverFor()})
}

// takeNew is TakeNew of a run of the default branch's own: its commit is on that branch,
// whatever is said of names, as a tag can have the branch's.
func (s Settler) takeNew(ctx context.Context, run forge.Run) (int, error) {
	rules, err := s.Runner.Rules(ctx, "")
	if err != nil || rules.Policy.Apply.To != policy.ToPullRequest {
		return 0, err
	}
	if err := s.CheckLedger(ctx); err != nil {
		return 0, err
	}
	if err := s.isOfDefaultBranch(ctx, run); err != nil {
		return 0, err
	}
	raw, err := s.Forge.Artifact(ctx, run.ID, BundleName, maxBundle(rules.Policy))
	if errors.Is(err, forge.ErrNotFound) {
		return 0, nil // nothing to propose
	}
	if err != nil {
		return 0, err
	}
	in, err := readBundle(raw, rules.Policy)
	if err != nil {
		return 0, notProposed(err)
	}
	in.Base, in.RequestedBy = run.HeadCommit, append(in.RequestedBy, run.RequestedBy...)
	try, err := review.Run(ctx, s.Runner, in, true)
	s.Host.Learn(try.Learnt)
	if err != nil {
		return 0, err
	}
	if known, err := s.openedBefore(ctx, try.PatchID); err != nil || known.ID != "" {
		return known.PullRequest, err
	}
	done, err := review.Run(ctx, s.Runner, in, false)
	if err != nil {
		return 0, err
	}
	opened, err := s.Open(ctx, done.ID)
	return opened.PullRequest, err
}

// isOfDefaultBranch refuses the commit of a run that the default branch does not have.
func (s Settler) isOfDefaultBranch(ctx context.Context, run forge.Run) error {
	to, err := s.Forge.DefaultBranch(ctx)
	if err == nil {
		err = s.Event.IsOf(*to.Repository)
	}
	if err != nil {
		return err
	}
	refs, err := s.Runner.Code.Refs(ctx, to)
	if err != nil {
		return err
	}
	tip, err := refs.Ref(ctx, "refs/heads/"+to.Branch)
	if err != nil {
		return err
	}
	on := false
	if canon.IsGitID(run.HeadCommit) && run.HeadBranch == to.Branch {
		on, err = s.Runner.Repo.Descends(ctx, tip, run.HeadCommit)
	}
	if err == nil && !on {
		err = fault.Bar(fmt.Sprintf("the run is of commit %+q, which %s does not have", ledger.OneLine(run.HeadCommit, 40), report.Clean(to.Branch)), "start the workflow on the default branch")
	}
	return err
}
