package pull

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/report"
)

// guard settles the pull request's own diff: it is proposed as it is now, its
// decisions are read, and the check "countersign" on its head says what they add
// up to. open are the transactions of the pull request.
func (s *settlement) guard(ctx context.Context, open []ledger.Transaction) {
	rules, err := s.rules(ctx)
	if err != nil {
		s.alarm(ctx, err)
		return
	}
	wanted, err := s.wanted(rules.Policy, open)
	if err != nil {
		s.alarm(ctx, err)
		return
	}
	if s.opened == nil && (s.NoGate || !s.gated(rules.Policy, s.pull.Base.Branch) || !wanted) {
		return
	}
	if err := s.trustServer(ctx); err != nil {
		s.alarm(ctx, err)
		return
	}
	if s.Event.MergeGroup != nil {
		s.fail(s.guardQueue(ctx, open))
		return
	}
	if s.pull.State != forge.PullRequestOpen {
		for _, tx := range open {
			if tx.GateOnly() {
				s.fail(s.close(ctx, tx.TransactionID))
			}
		}
		return
	}
	g := report.Guard{HeadCommit: cmp.Or(s.moved, s.pull.Head.Commit), Dedicated: s.Dedicated}
	rep, err := s.judgeDiff(ctx, &g)
	if err != nil && !waits(err) {
		g.Errors = append(g.Errors, s.words(err))
	}
	s.fail(err)
	if rep != nil {
		s.fail(s.publish(ctx, *rep))
	}
	check := g.CheckRun()
	_, err = s.showCheck(ctx, g.HeadCommit, check)
	s.untold = err != nil
	if s.fail(err); err == nil && check.Conclusion == report.CheckSuccess {
		s.fail(s.merge(ctx, rules.Policy, rep.TransactionID, g.HeadCommit))
	}
}

// wanted reports whether pull requests are guarded here at all: the Policy names
// bases, a workflow runs on the events of pull requests, or this one is guarded, or
// was: the check of one that was denied may still stand from before.
func (s *settlement) wanted(p policy.Policy, open []ledger.Transaction) (bool, error) {
	if len(p.Gate.Bases) > 0 || s.Event.Name == "pull_request_target" || s.Event.Name == "merge_group" {
		return true, nil
	}
	closed, err := s.closedOn()
	return slices.ContainsFunc(append(closed, open...), func(tx ledger.Transaction) bool { return tx.GateOnly() }), err
}

// trustServer refuses a server that takes the file of a pull_request_target
// workflow from the pull request's base.
func (s *settlement) trustServer(ctx context.Context) error {
	if s.Event.Name != "pull_request_target" {
		return nil
	}
	server, err := s.Forge.RunsBaseWorkflows(ctx)
	if err != nil || server == "" {
		return err
	}
	return fault.Bar(
		report.Clean(server)+" runs the workflow file of the pull request's base, so that pull requests themselves cannot be guarded",
		"countersign init --gate=false",
	)
}

// alarm notes an error before anything could be decided, and takes back a check
// that may stand from before: what cannot be decided is not approved.
func (s *settlement) alarm(ctx context.Context, err error) {
	s.fail(err)
	if s.pull.State != forge.PullRequestOpen || s.NoGate && forge.NamedFor(s.pull) == "" {
		return
	}
	g := report.Guard{HeadCommit: s.pull.Head.Commit, Dedicated: s.Dedicated, Errors: []string{s.words(err)}}
	if s.Event.Name != "pull_request_target" { // whether it is guarded is not known: only a check that is there is taken back
		runs, err := s.Forge.CheckRuns(ctx, g.HeadCommit, g.CheckRun().Name)
		if err != nil || len(runs) == 0 {
			s.fail(err)
			return
		}
	}
	_, err = s.showCheck(ctx, g.HeadCommit, g.CheckRun())
	s.fail(err)
}

// gated reports whether pull requests to a branch are guarded. Where nothing tells
// the default branch, every branch may be it.
func (s *settlement) gated(p policy.Policy, base string) bool {
	if len(p.Gate.Bases) > 0 {
		return slices.Contains(p.Gate.Bases, base)
	}
	branch := s.Event.Repository.DefaultBranch
	if name, ok := strings.CutPrefix(s.Event.Ref, "refs/heads/"); ok && s.Event.Name == "schedule" {
		branch = name
	}
	return branch == "" || branch == base
}

// noteStrangers is told where nobody can tell who wrote what (T10).
const noteStrangers = "Some commits belong to no account, or there are too many to list: it cannot be checked that nobody approves commits of their own."

// judgeDiff proposes the diff as it is now and judges it.
func (s *settlement) judgeDiff(ctx context.Context, into *report.Guard) (*report.Report, error) {
	if s.moved != "" {
		pushed := func() bool { return s.pull.Head.Commit == s.moved }
		if err := s.await(ctx, pushed, "the forge does not show the pushed head on the pull request yet: the next run looks at it"); err != nil {
			return nil, err
		}
	}
	in, err := OwnDiff(ctx, s.Runner, s.number, "")
	if err != nil {
		return nil, err
	}
	into.HeadCommit = in.For.Head.Commit
	if in.For.Strangers {
		s.note(noteStrangers)
	}
	done, err := review.Run(ctx, s.Runner, in, false)
	s.learn(done.Learnt)
	if why := (*pipeline.DeniedError)(nil); errors.As(err, &why) {
		return s.tellGuardDenied(ctx, why, into)
	}
	if err != nil {
		return nil, err
	}
	if err := Replace(ctx, s.Runner, *in.For, done.ID); err != nil {
		return nil, err
	}
	g, err := s.Runner.Gate(ctx, done.ID)
	if err != nil {
		return nil, err
	}
	rep, clean, err := s.took(ctx, g)
	if err != nil {
		return nil, err
	}
	into.Transactions = append(into.Transactions, clean)
	if g.Err() == nil {
		into.Siblings, err = s.siblings(ctx, into.HeadCommit)
	}
	return &rep, errors.Join(g.Err(), err)
}

// tellGuardDenied says that the diff was denied before: by the record of that, if it is
// this pull request's. It returns the denial, or what kept it from being read.
func (s *settlement) tellGuardDenied(ctx context.Context, why *pipeline.DeniedError, into *report.Guard) (*report.Report, error) {
	g, here, err := s.deniedIn(ctx, why)
	if err != nil {
		return nil, err
	}
	if !here || g.Verdict.State != approval.Denied {
		into.Denied = append(into.Denied, s.words(why))
		s.note("Nobody is asked about this diff: " + report.ErrorLine(why))
		return nil, why
	}
	rep, clean, err := s.took(ctx, g)
	if err != nil {
		return nil, err
	}
	into.Transactions = append(into.Transactions, clean)
	return &rep, why
}

// took notes what a stage came to, and returns its report with and without
// secrets.
func (s *settlement) took(ctx context.Context, g pipeline.Judgement) (raw, clean report.Report, err error) {
	s.said, s.ledger = g.Statements(), g.Ledger
	if raw, err = s.report(ctx, g); err != nil {
		return raw, clean, err
	}
	s.Transactions = slices.DeleteFunc(s.Transactions, func(before report.Report) bool { return before.TransactionID == raw.TransactionID })
	s.Transactions = append(s.Transactions, raw)
	clean, err = s.Host.Clean(raw)
	return raw, clean, err
}

// await reads the pull request until it is as it was just made, or says that it is not: a forge takes a moment.
func (s *settlement) await(ctx context.Context, is func() bool, not string) (err error) {
	for range 5 {
		if s.pull, err = s.Forge.PullRequest(ctx, s.number); err != nil || is() {
			return err
		}
		if err := s.Wait(ctx, 2*time.Second); err != nil {
			return err
		}
	}
	return errors.New(not)
}

// siblings are other pull requests to a guarded branch with this head that are
// not approved: a check is of a commit, and would pass for them too (T16).
func (s *settlement) siblings(ctx context.Context, head string) ([]report.Sibling, error) {
	rules, err := s.Runner.Rules(ctx, "")
	if err != nil {
		return nil, err
	}
	others, err := s.Forge.PullRequestsAt(ctx, head)
	if err != nil {
		return nil, err
	}
	var out []report.Sibling
	for _, other := range others {
		if other.Number == s.number || !s.gated(rules.Policy, other.Base) {
			continue
		}
		why, err := s.unapproved(ctx, other)
		if err != nil {
			return nil, err
		}
		if why != "" {
			out = append(out, report.Sibling{PullRequest: other.Number, Base: other.Base, Reason: why})
		}
	}
	return out, nil
}

// unapproved says why another pull request's diff is not approved, "" if it is.
func (s *settlement) unapproved(ctx context.Context, other forge.Open) (string, error) {
	in, err := OwnDiff(ctx, s.Runner, other.Number, "")
	if err != nil {
		return "", err
	}
	done, err := review.Run(ctx, s.Runner, in, true)
	s.learn(done.Learnt)
	if err != nil {
		return s.words(err), nil
	}
	if done.ID == "" {
		return "nobody was asked about it yet", nil
	}
	g, err := s.Runner.Gate(ctx, done.ID)
	if err != nil {
		return "", err
	}
	if g.Err() != nil {
		return g.Verdict.Reason, nil
	}
	return "", nil
}

// close ends a transaction of a pull request that was closed.
func (s *settlement) close(ctx context.Context, id string) error {
	g, err := End(ctx, s.Runner, id)
	if err != nil {
		return err
	}
	rep, _, err := s.took(ctx, g)
	if err != nil {
		return err
	}
	return s.publish(ctx, rep)
}

// guardQueue puts the check onto a commit of the merge queue: it passes if what
// the commit does to its base is the very patch that was approved.
func (s *settlement) guardQueue(ctx context.Context, open []ledger.Transaction) error {
	group := s.Event.MergeGroup
	g := report.Guard{HeadCommit: group.HeadSHA, Dedicated: s.Dedicated}
	if !canon.IsGitID(group.HeadSHA) || !canon.IsGitID(group.BaseSHA) || !strings.HasPrefix(group.HeadRef, "refs/heads/gh-readonly-queue/") {
		return fmt.Errorf("the event names no merge group: %+q", ledger.OneLine(group.HeadRef, 100))
	}
	err := s.judgeQueue(ctx, open, &g)
	if err != nil && !waits(err) {
		g.Errors = append(g.Errors, s.words(err))
	}
	_, checkErr := s.showCheck(ctx, g.HeadCommit, g.CheckRun())
	return errors.Join(err, checkErr)
}

func (s *settlement) judgeQueue(ctx context.Context, open []ledger.Transaction, into *report.Guard) error {
	group := s.Event.MergeGroup
	if err := s.Runner.Code.Fetch(ctx, group.HeadRef, group.HeadSHA); err != nil {
		return err
	}
	g, err := JudgeQueue(ctx, s.Runner, s.pull, open, group.BaseSHA, group.HeadSHA)
	if err != nil {
		return err
	}
	_, clean, err := s.took(ctx, g)
	if err != nil {
		return err
	}
	into.Transactions = append(into.Transactions, clean)
	return g.Err()
}

// JudgeQueue judges a commit that the merge queue made for a pull request on a base:
// by the open transaction whose patch is what the commit does to its base, a
// pipeline.ErrUnasked where there is none. The record is held to that patch and to who wrote
// the pull request, as nothing else is applied that would be.
func JudgeQueue(ctx context.Context, r *pipeline.Runner, pull forge.PullRequest, open []ledger.Transaction, base, commit string) (pipeline.Judgement, error) {
	merging, err := r.Code.Diff(ctx, base, commit)
	if err != nil {
		return pipeline.Judgement{}, err
	}
	id := merging.ID()
	i := slices.IndexFunc(open, func(tx ledger.Transaction) bool { return tx.GateOnly() && tx.PatchID() == id })
	if i < 0 {
		text := fmt.Sprintf("what the queue would merge for pull request %d is the patch %.12s, which nobody was asked about", pull.Number, id)
		return pipeline.Judgement{}, &fault.Error{Kind: fault.Failed, Message: text, Cause: pipeline.ErrUnasked}
	}
	if _, err := pipeline.ComparePatch(open[i], merging, r.Secrets); err != nil {
		return pipeline.Judgement{}, err
	}
	if err := pipeline.ByAuthors(open[i], pull.Author, pull.Head.Commit, pull.Committers); err != nil {
		return pipeline.Judgement{}, err
	}
	return r.Gate(ctx, open[i].TransactionID)
}
