package pull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

// The memory of a workflow. A fresh runner has seen no ledger, so what it must
// descend from is named by check runs of this program's own app, which people
// cannot write, and by the Policy (docs/ledger.md, T51, T81). A tip that is forged
// there can make a ledger be refused, and never makes one be taken.

// A SharedLedger is one on a server, which a fresh runner has not seen before.
type SharedLedger interface {
	// Demand makes every later reading refuse a ledger that does not descend from
	// each of these tips.
	Demand(tips ...writing.Tip) error
	// Root is the commit that the history of the commit with the Policy began with.
	Root(ctx context.Context) (string, error)
	// Seen is the ledger's last tip that held, "" before one was read.
	Seen() string
}

// memory is where the ledger's own check run is: on the commit that the
// repository's history began with, which is in the way of nobody.
type memory struct {
	commit string
	runs   []forge.CheckRun // ours that are asked, newest first
	tip    string           // that the newest names
}

// demandTips makes the ledger be refused that does not descend from every tip
// that is known of it: the Policy's, and those that check runs name, which are the
// ledger's own and those of the transactions on a pull request's head ("" for the
// sweep, which asks before it knows of a pull request).
func (s Settler) demandTips(ctx context.Context, viewer ledger.Actor, head string) (memory, error) {
	if s.Shared == nil {
		return memory{}, nil // the clone's own, which it remembers
	}
	rules, err := s.Runner.Rules(ctx, "")
	if err != nil {
		return memory{}, err
	}
	var tips []writing.Tip
	known := rules.Policy.Ledger
	if known.Tip != "" {
		tips = append(tips, writing.Tip{Commit: known.Tip, Source: "the Policy's key ledger.tip"})
	}
	if viewer.Kind != "bot" { // a person's token makes no check runs
		return memory{}, s.Shared.Demand(tips...)
	}
	since, err := s.since(known)
	if err != nil {
		return memory{}, err
	}
	var m memory
	if m.commit, err = s.Shared.Root(ctx); err != nil {
		return memory{}, err
	}
	if m.runs, err = s.Forge.CheckRuns(ctx, m.commit, report.LedgerCheckName(s.LedgerRef)); err != nil {
		return m, err
	}
	var onHead []forge.CheckRun
	if head != "" {
		if onHead, err = s.Forge.CheckRuns(ctx, head, ""); err != nil {
			return m, err
		}
	}
	ours := func(run forge.CheckRun) bool { // another app's is nobody's word
		return run.App == viewer.Login && s.isAsked(run, since)
	}
	m.runs = slices.DeleteFunc(m.runs, func(run forge.CheckRun) bool { return !ours(run) })
	onHead = slices.DeleteFunc(onHead, func(run forge.CheckRun) bool { return !ours(run) || !report.IsCheckOf(run.Name) })
	for i, run := range slices.Concat(m.runs, onHead) {
		tip, err := report.TipIn(run.Summary, s.LedgerRef)
		if err != nil {
			return m, fmt.Errorf("the check run %s: %w", run.URL, err)
		}
		if i == 0 && len(m.runs) > 0 {
			m.tip = tip
		}
		if tip != "" {
			tips = append(tips, writing.Tip{Commit: tip, Source: "the check run " + run.URL})
		}
	}
	return m, s.Shared.Demand(tips...)
}

// lateClock is how far the clocks of this machine and of the forge may be apart.
const lateClock = time.Hour

// isAsked reports whether a check run is asked for its tip. An owner's ledger.since
// passes over what was said before. Whoever forges a check run can also write a time
// to come, or leave it in progress: neither must keep the owner from going on, and no
// run of ours is of a time to come, so that such a one is passed over as well. What
// does not tell its time is asked.
func (s Settler) isAsked(run forge.CheckRun, since time.Time) bool {
	at := run.CompletedAt
	if run.Status != report.CheckCompleted {
		at = run.StartedAt
	}
	if since.IsZero() || at.IsZero() {
		return true
	}
	return !at.Before(since) && !at.After(s.Runner.Now().Add(lateClock))
}

// since is when the Policy says that another ledger began.
func (s Settler) since(known policy.Ledger) (time.Time, error) {
	if known.Since == "" {
		return time.Time{}, nil
	}
	since, err := time.Parse(time.RFC3339, known.Since)
	if err == nil && since.After(s.Runner.Now()) {
		err = errors.New("it is in the future")
	}
	if err != nil {
		return since, fault.Bar(fmt.Sprintf("the Policy's key ledger.since is %s: %v", known.Since, err), "give a time in the past")
	}
	return since, nil
}

// renewTip is after how long the ledger's check run is made anew: GitHub drops
// check runs after 400 days.
const renewTip = 30 * 24 * time.Hour

// rememberTip says in the ledger's own check run where the ledger is now.
func (s *settlement) rememberTip(ctx context.Context) error {
	if s.memory.commit == "" {
		return nil
	}
	tip := s.Shared.Seen()
	if tip == "" || tip == s.memory.tip {
		return nil
	}
	runs := s.memory.runs
	if len(runs) > 0 && s.Runner.Now().Sub(runs[0].StartedAt) > renewTip {
		runs = nil
	}
	_, err := s.Forge.PublishCheckOver(ctx, s.memory.commit, report.LedgerCheck(s.LedgerRef, tip), runs)
	if errors.Is(err, forge.ErrPermission) {
		s.note(noteNoCheck)
		return nil
	}
	return err
}
