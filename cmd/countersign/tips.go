package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/report"
)

// The memory of a workflow. A fresh runner has seen no ledger, so what it must
// descend from is named by check runs of this program's own app, which people
// cannot write, and by the Policy (docs/ledger.md, T51, T81). A tip that is forged
// there can make a ledger be refused, and never makes one be taken.

// A tipMemory is where the ledger's own check run is: on the commit that the
// repository's history began with, which is in the way of nobody.
type tipMemory struct {
	commit string
	runs   []forge.CheckRun // ours that are asked, newest first
	tip    string           // that the newest names
}

// renewTip is after how long the ledger's check run is made anew: GitHub drops
// check runs after 400 days.
const renewTip = 30 * 24 * time.Hour

// demandTips makes the ledger be refused that does not descend from every tip
// that is known of it.
func (s *settlement) demandTips(ctx context.Context) error {
	store, shared := s.r.Store.(*gitstore.Shared)
	if !shared {
		return nil // the clone's own, which it remembers
	}
	rules, err := s.r.Rules(ctx, "")
	if err != nil {
		return err
	}
	var tips []gitstore.Tip
	known := rules.Policy.Ledger
	if known.Tip != "" {
		tips = append(tips, gitstore.Tip{Commit: known.Tip, Source: "the Policy's key ledger.tip"})
	}
	if s.viewer.Kind == "bot" { // a person's token makes no check runs
		said, err := s.saidTips(ctx, known)
		if err != nil {
			return err
		}
		tips = append(tips, said...)
	}
	return store.Demand(tips...)
}

// demandTipsOfAll is demandTips for the sweep, which would find nothing open in a
// ledger that is gone, and say nothing.
func (a *App) demandTipsOfAll(ctx context.Context, r *pipeline.Runner) error {
	if a.client == nil {
		return nil
	}
	viewer, err := a.client.Viewer(ctx)
	if err != nil {
		return err
	}
	s := &settlement{a: a, r: r, client: a.client, viewer: viewer}
	if err := s.demandTips(ctx); err != nil {
		return err
	}
	_, err = r.Ledger(ctx)
	return err
}

// saidTips are those that check runs name: the ledger's own, and those of the
// transactions on the pull request's head.
func (s *settlement) saidTips(ctx context.Context, known policy.Ledger) ([]gitstore.Tip, error) {
	since, err := s.since(known)
	if err != nil {
		return nil, err
	}
	if s.memory, err = s.readMemory(ctx); err != nil {
		return nil, err
	}
	var onHead []forge.CheckRun
	if head := s.pull.Head.Commit; head != "" { // the sweep asks before it knows of a pull request
		if onHead, err = s.client.CheckRuns(ctx, head, ""); err != nil {
			return nil, err
		}
	}
	ours := func(run forge.CheckRun) bool { // another app's is nobody's word
		return run.App == s.viewer.Login && s.isAsked(run, since)
	}
	s.memory.runs = slices.DeleteFunc(s.memory.runs, func(run forge.CheckRun) bool { return !ours(run) })
	onHead = slices.DeleteFunc(onHead, func(run forge.CheckRun) bool { return !ours(run) || !report.IsCheckOf(run.Name) })
	var tips []gitstore.Tip
	for i, run := range slices.Concat(s.memory.runs, onHead) {
		tip, err := report.TipIn(run.Summary, s.a.flags.ledgerRef)
		if err != nil {
			return nil, fmt.Errorf("the check run %s: %w", run.URL, err)
		}
		if i == 0 && len(s.memory.runs) > 0 {
			s.memory.tip = tip
		}
		if tip != "" {
			tips = append(tips, gitstore.Tip{Commit: tip, Source: "the check run " + run.URL})
		}
	}
	return tips, nil
}

// lateClock is how far the clocks of this machine and of the forge may be apart.
const lateClock = time.Hour

// isAsked reports whether a check run is asked for its tip. An owner's ledger.since
// passes over what was said before. Whoever forges a check run can also write a time
// to come, or leave it in progress: neither must keep the owner from going on, and no
// run of ours is of a time to come, so that such a one is passed over as well. What
// does not tell its time is asked.
func (s *settlement) isAsked(run forge.CheckRun, since time.Time) bool {
	at := run.CompletedAt
	if run.Status != report.CheckCompleted {
		at = run.StartedAt
	}
	if since.IsZero() || at.IsZero() {
		return true
	}
	return !at.Before(since) && !at.After(s.a.Now().Add(lateClock))
}

// since is when the Policy says that another ledger began.
func (s *settlement) since(known policy.Ledger) (time.Time, error) {
	if known.Since == "" {
		return time.Time{}, nil
	}
	since, err := time.Parse(time.RFC3339, known.Since)
	if err == nil && since.After(s.a.Now()) {
		err = errors.New("it is not yet over")
	}
	if err != nil {
		return since, &usageError{fmt.Sprintf("the Policy's key ledger.since is %s: %v", known.Since, err), "name a time that is over"}
	}
	return since, nil
}

// readMemory reads the ledger's own check run.
func (s *settlement) readMemory(ctx context.Context) (tipMemory, error) {
	repo, ok := s.r.Repo.(*gitstore.Repo)
	if !ok {
		return tipMemory{}, nil
	}
	commit, err := s.a.policyCommit(ctx, repo)
	if err != nil {
		return tipMemory{}, err
	}
	m := tipMemory{}
	if m.commit, err = repo.Root(ctx, commit); err != nil {
		return m, err
	}
	m.runs, err = s.client.CheckRuns(ctx, m.commit, report.LedgerCheckName(s.a.flags.ledgerRef))
	return m, err
}

// rememberTip says in the ledger's own check run where the ledger is now.
func (s *settlement) rememberTip(ctx context.Context) error {
	tip := s.a.seen()
	if s.memory.commit == "" || tip == "" || tip == s.memory.tip {
		return nil
	}
	runs := s.memory.runs
	if len(runs) > 0 && s.a.Now().Sub(runs[0].StartedAt) > renewTip {
		runs = nil
	}
	_, err := s.client.PublishCheckOver(ctx, s.memory.commit, report.LedgerCheck(s.a.flags.ledgerRef, tip), runs)
	var e *github.Error
	if errors.As(err, &e) && e.Kind == github.KindPermission {
		s.note(noteNoCheck)
		return nil
	}
	return err
}
