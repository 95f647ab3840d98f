package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/report"
)

// mostUntold is how many ended transactions one run tells of again; the next run
// takes the next ones.
const mostUntold = 20

// catchUp tells of the transactions that have ended and of which a run that was
// cut off did not get to tell: the one comment names those that were told in
// full. It is no proof of anything, and nothing but reports hangs on it.
func (s *settlement) catchUp(ctx context.Context) error {
	closed, err := pipeline.ClosedOn(s.ledger, s.pull.Repository, s.number)
	if err != nil {
		return err
	}
	untold := slices.DeleteFunc(closed, func(tx ledger.Transaction) bool {
		tried := slices.ContainsFunc(s.Transactions, func(rep report.Report) bool { return rep.TransactionID == tx.TransactionID })
		return tried || !reported(tx)
	})
	if len(untold) == 0 {
		return nil
	}
	before, err := s.toldBefore(ctx)
	if err != nil {
		return err
	}
	again := 0
	for _, tx := range slices.Backward(untold) { // the newest first
		if before[tx.TransactionID] == tx.Status {
			s.told[tx.TransactionID] = tx.Status
			continue
		}
		if again++; again > mostUntold {
			continue
		}
		_, err := s.tell(ctx, tx.TransactionID)
		s.fail(err)
	}
	return nil
}

// reported reports whether people are told how a transaction ended: not of a pull
// request's own diff that is another now, as its check is of the former head.
func reported(tx ledger.Transaction) bool {
	return !tx.GateOnly() || tx.Status != ledger.Superseded
}

// toldBefore is what the one comment said was told, as the last stage read it.
func (s *settlement) toldBefore(ctx context.Context) (map[string]ledger.Status, error) {
	if s.said == nil { // no stage had to
		return toldOn(ctx, s.client, s.number, s.viewer)
	}
	for _, said := range s.said {
		if told := report.ToldIn(said.Body); told != nil && said.Kind == approval.KindIssueComment && said.Author.ID == s.viewer.ID {
			return told, nil
		}
	}
	return nil, nil
}

// toldOn is what the one comment on a pull request says was told.
func toldOn(ctx context.Context, client *github.Client, number int, viewer ledger.Actor) (map[string]ledger.Status, error) {
	bodies, err := client.CommentsBy(ctx, number, viewer)
	for _, body := range bodies {
		if told := report.ToldIn(body); told != nil {
			return told, err
		}
	}
	return nil, err
}

// sweptFor is how long after its end a transaction is looked after by the sweep.
const sweptFor = 7 * 24 * time.Hour

// untoldPulls are the pull requests without an open transaction on which one that
// ended lately was not told of in full.
func (a *App) untoldPulls(ctx context.Context, w whole) ([]int, error) {
	ended := map[int][]ledger.Transaction{}
	snap, err := w.r.Ledger(ctx, ledger.TransactionsDir)
	if err != nil {
		return nil, err
	}
	all, _, err := ledger.Each(snap.Tree) // what is damaged is told by itself
	if err != nil {
		return nil, err
	}
	settled := pullsOf(w.open)
	for _, tx := range all {
		p := tx.Pointers.Proposal
		at, err := time.Parse(time.RFC3339, tx.UpdatedAt)
		if !tx.Closed || p == nil || p.PullRequest == 0 || !reported(tx) || err == nil && a.Now().Sub(at) > sweptFor || slices.Contains(settled, p.PullRequest) {
			continue
		}
		ended[p.PullRequest] = append(ended[p.PullRequest], tx)
	}
	if len(ended) == 0 || a.client == nil {
		return nil, nil
	}
	viewer, err := a.client.Viewer(ctx)
	if err != nil {
		return nil, err
	}
	var out []int
	var errs []error // one that cannot be read keeps nobody from the others
	for _, number := range slices.Sorted(maps.Keys(ended)) {
		told, err := toldOn(ctx, a.client, number, viewer)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if slices.ContainsFunc(ended[number], func(tx ledger.Transaction) bool { return told[tx.TransactionID] != tx.Status }) {
			out = append(out, number)
		}
	}
	return out, errors.Join(errs...)
}
