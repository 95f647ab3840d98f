package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// proposeWorkflow is the file whose runs hand over bundles.
const proposeWorkflow = ".github/workflows/countersign-propose.yml"

// takeBundles proposes what bundles hold: the one that was named, else those of
// runs that nobody has read, and last that of the run which this event is about.
func (s *settlement) takeBundles(ctx context.Context) error {
	rules, err := s.rules(ctx)
	if err != nil {
		return err
	}
	if s.flags.bundle != "" {
		raw, err := s.a.readInput(s.flags.bundle, maxBundle(rules.Policy))
		if err != nil {
			return err
		}
		return s.takeBundle(ctx, raw, rules.Policy)
	}
	runs, err := s.unread(ctx)
	s.fail(err)                // and the event's own is taken all the same
	for _, run := range runs { // what cannot be proposed is told, and keeps nobody from the rest
		if err := s.takeRun(ctx, run.ID, rules.Policy); err != nil {
			s.note("What an earlier run proposed could not be taken: " + oneLine(err))
		}
	}
	if id := s.event.proposed(); id != 0 {
		return s.takeRun(ctx, id, rules.Policy)
	}
	return nil
}

// proposed is the run of the propose workflow that an event is about, 0 for none.
func (e event) proposed() int64 {
	run := e.WorkflowRun
	if run == nil || e.Action != "completed" || run.Conclusion != "success" || !run.is(proposeWorkflow) {
		return 0
	}
	return run.ID
}

// unread are the runs on the pull request's head that ended after the newest
// proposal which was taken from a run, without the event's own. GitHub keeps one
// job of a concurrency group waiting and drops it for the next, so that an event
// with a bundle can be lost (T83).
func (s *settlement) unread(ctx context.Context) ([]forge.Run, error) {
	if s.a.Getenv("GITHUB_ACTIONS") != "true" || s.pull.Head.Repository == nil {
		return nil, nil
	}
	runs, err := s.client.PullRuns(ctx, s.pull.Head.Commit, time.Time{})
	var e *github.Error
	if errors.As(err, &e) && e.Kind == github.KindPermission {
		return nil, nil // a token without actions: read reads no bundles
	}
	if err != nil {
		return nil, err
	}
	runs = slices.DeleteFunc(runs, func(run forge.Run) bool { return !s.proposes(run) })
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
	pulls, err := s.client.PullRequestsOf(ctx, head)
	if err != nil || !slices.Equal(pulls, []int{s.number}) { // two pull requests can have one head: only an event tells whose a bundle is
		return nil, err
	}
	return runs, nil
}

// proposes tells whether a run is one of the propose workflow on the pull
// request's own head, and not the event's.
func (s *settlement) proposes(run forge.Run) bool {
	return run.ID != s.event.proposed() && run.Workflow == proposeWorkflow && run.HeadBranch == s.pull.Head.Branch &&
		run.HeadRepository != nil && run.HeadRepository.ID == s.pull.Head.Repository.ID
}

// lastTaken is when the newest proposal was recorded that was made by a run.
func (s *settlement) lastTaken(ctx context.Context) (last time.Time, err error) {
	proposer := s.viewer
	if s.pull.Fork() {
		proposer = s.pull.Author
	}
	all, err := s.r.TransactionsOn(ctx, s.pull.Repository, s.number)
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
func (s *settlement) takeRun(ctx context.Context, id int64, p policy.Policy) error {
	raw, err := s.client.Artifact(ctx, id, bundleName, maxBundle(p))
	var e *github.Error
	if errors.As(err, &e) && e.Kind == github.KindNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return s.takeBundle(ctx, raw, p)
}

// takeBundle proposes what a bundle holds for this pull request.
func (s *settlement) takeBundle(ctx context.Context, raw []byte, p policy.Policy) error {
	in, err := readBundle(raw, p)
	if err != nil {
		return &exitError{exitRefused, err}
	}
	if in, err = s.r.OnPull(ctx, in, s.number); err != nil {
		return err
	}
	if in.For.Fork() { // whoever made the fork could have made the bundle (T68)
		in.Proposer = &in.For.Author
	}
	done, err := s.r.Review(ctx, in, false)
	s.learn(done.Learnt)
	s.proposed = done.ID
	var denied *pipeline.DeniedError
	if errors.As(err, &denied) {
		return errors.Join(err, s.tellDenied(ctx, denied))
	}
	return err
}

// untakenFor is for how long the sweep looks after runs: artifacts of the workflow
// that init writes are kept for longer.
const untakenFor = 2 * 24 * time.Hour

// untakenPulls are the open pull requests, but for those that are settled anyway,
// on whose head a run has handed over a bundle lately.
func (a *App) untakenPulls(ctx context.Context, settled []int) ([]int, error) {
	if a.Getenv("GITHUB_ACTIONS") != "true" || a.client == nil {
		return nil, nil
	}
	runs, err := a.client.PullRuns(ctx, "", a.Now().Add(-untakenFor))
	var e *github.Error
	if errors.As(err, &e) && e.Kind == github.KindPermission {
		return nil, nil
	}
	runs = slices.DeleteFunc(runs, func(run forge.Run) bool { return run.Workflow != proposeWorkflow || run.HeadRepository == nil })
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	open, err := a.client.Open(ctx)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, pull := range open {
		at := slices.IndexFunc(runs, func(run forge.Run) bool {
			return run.HeadCommit == pull.Head.Commit && run.HeadBranch == pull.Head.Branch && run.HeadRepository.ID == pull.Head.Repository
		})
		if at < 0 || slices.Contains(settled, pull.Number) {
			continue
		}
		handed, err := a.client.HasArtifact(ctx, runs[at].ID, bundleName)
		if err != nil {
			return out, err
		}
		if handed {
			out = append(out, pull.Number)
		}
	}
	return out, nil
}
