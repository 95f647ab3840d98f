package pull

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// Numbers are the pull requests that transactions are for, each once.
func Numbers(open []ledger.Transaction) []int {
	var out []int
	for _, tx := range open {
		if p := tx.Pointers.Proposal; p != nil && p.PullRequest > 0 && !slices.Contains(out, p.PullRequest) {
			out = append(out, p.PullRequest)
		}
	}
	return out
}

// Pulls are the numbers of the pull requests that a sweep settles, each once: those that
// open transactions are for, those on which something was not told, those that it opens,
// those for which a bundle lies there, and those that are guarded and were never asked
// about. What kept it from finding others is noted.
func (s Settler) Pulls(ctx context.Context, open []ledger.Transaction, into *Settled) []int {
	pulls := Numbers(open)
	add := func(more []int, err error) {
		pulls = append(pulls, more...)
		into.fail(err)
	}
	add(s.Untold(ctx, open))
	add(s.OpenAll(ctx, open, pulls, into))
	add(s.Untaken(ctx, pulls))
	add(s.Unasked(ctx, pulls))
	return pulls
}

// OpenAll makes pull requests of the open transactions that are for none, of what the
// sweep's own event hands over, and of what earlier runs do, where the Policy says so. It
// returns their numbers, without those that are settled anyway. What a clone's own
// identity proposed is that person's to open, and what adds what looks like a secret is
// for nobody to open. Of what the token may not push, the run that took it has told.
func (s Settler) OpenAll(ctx context.Context, open []ledger.Transaction, settled []int, into *Settled) ([]int, error) {
	if opens, err := s.Runner.OpensPulls(ctx); err != nil || !opens {
		return nil, err
	}
	var out []int
	var errs []error // one that cannot be opened keeps nobody from the others
	add := func(number int, err error) {
		if errs = append(errs, err); number > 0 && !slices.Contains(slices.Concat(settled, out), number) {
			out = append(out, number)
		}
	}
	add(s.TakeNew(ctx))
	for _, tx := range open {
		waits, p := tx.Status == ledger.Proposed || tx.Status == ledger.Awaiting, tx.Pointers.Proposal
		if !waits || p == nil || p.PullRequest > 0 || p.ContainsSecrets || s.ActionsToken && touchesWorkflows(p) || strings.HasPrefix(tx.Proposer.ID, "local:") {
			continue
		}
		o, err := s.Open(ctx, tx.TransactionID)
		add(o.PullRequest, err)
	}
	runs, err := s.untakenNew(ctx)
	errs = append(errs, err)
	for _, run := range runs { // what cannot be proposed is told, as on a pull request
		number, err := s.takeNew(ctx, run)
		if add(number, nil); err != nil && !waits(err) {
			into.note(fmt.Sprintf("The proposal of run %d could not be read: %s", run.ID, into.words(err)))
		}
	}
	return out, errors.Join(errs...)
}

// untakenNew are the runs on the default branch, for no pull request, that have ended lately
// and of whose commit nothing was proposed since they began: the settle that followed one failed.
func (s Settler) untakenNew(ctx context.Context) ([]forge.Run, error) {
	if !s.InWorkflow {
		return nil, nil
	}
	to, err := s.Forge.DefaultBranch(ctx)
	if err != nil {
		return nil, err
	}
	runs, err := s.Forge.EndedRuns(ctx, to.Branch, "success", s.Runner.Now().Add(-untakenFor))
	if errors.Is(err, forge.ErrPermission) {
		return nil, nil
	}
	runs = slices.DeleteFunc(runs, func(run forge.Run) bool {
		return run.Workflow != forge.EventsWorkflow || !slices.Contains(forge.OfNoPull, run.Event) || run.ID == s.Event.ProposesAnew()
	})
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	all, err := s.transactions(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(runs, func(run forge.Run) bool {
		return slices.ContainsFunc(all, func(tx ledger.Transaction) bool {
			p := tx.Pointers.Proposal
			at, err := time.Parse(time.RFC3339, tx.CreatedAt)
			return p != nil && p.BaseCommit == run.HeadCommit && tx.Proposer.ID == s.Runner.Actor.ID && err == nil && !at.Before(run.CreatedAt)
		})
	}), nil
}

// transactions are all in the ledger but what is damaged, which is told by itself.
func (s Settler) transactions(ctx context.Context) ([]ledger.Transaction, error) {
	snap, err := s.Runner.Ledger(ctx, ledger.TransactionsDir)
	if err != nil {
		return nil, err
	}
	all, _, err := lookup.Each(snap.Tree)
	return all, err
}

// CheckLedger refuses a ledger that does not descend from every tip that is known
// of it. It is for the sweep, which would find nothing open in a ledger that is
// gone, and say nothing.
func (s Settler) CheckLedger(ctx context.Context) error {
	viewer, err := s.Forge.Viewer(ctx)
	if err != nil {
		return err
	}
	if _, err := s.demandTips(ctx, viewer, ""); err != nil {
		return err
	}
	_, err = s.Runner.Ledger(ctx)
	return err
}

// sweptFor is how long after its end a transaction is looked after by the sweep.
const sweptFor = 7 * 24 * time.Hour

// Untold are the pull requests without an open transaction on which one that
// ended lately was not told of in full.
func (s Settler) Untold(ctx context.Context, open []ledger.Transaction) ([]int, error) {
	ended := map[int][]ledger.Transaction{}
	all, err := s.transactions(ctx)
	if err != nil {
		return nil, err
	}
	settled := Numbers(open)
	for _, tx := range all {
		p := tx.Pointers.Proposal
		at, err := time.Parse(time.RFC3339, tx.UpdatedAt)
		if !tx.Closed || p == nil || p.PullRequest == 0 || !reported(tx) || err == nil && s.Runner.Now().Sub(at) > sweptFor || slices.Contains(settled, p.PullRequest) {
			continue
		}
		ended[p.PullRequest] = append(ended[p.PullRequest], tx)
	}
	if len(ended) == 0 {
		return nil, nil
	}
	viewer, err := s.Forge.Viewer(ctx)
	if err != nil {
		return nil, err
	}
	var out []int
	var errs []error // one that cannot be read keeps nobody from the others
	for _, number := range slices.Sorted(maps.Keys(ended)) {
		told, err := toldOn(ctx, s.Forge, number, viewer)
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

// untakenFor is for how long the sweep looks after runs: artifacts of the workflow
// that init writes are kept for longer.
const untakenFor = 2 * 24 * time.Hour

// Untaken are the open pull requests, but for those that are settled anyway, on
// whose head a run has handed over a bundle lately.
func (s Settler) Untaken(ctx context.Context, settled []int) ([]int, error) {
	if !s.InWorkflow {
		return nil, nil
	}
	runs, err := s.Forge.PullRuns(ctx, "", s.Runner.Now().Add(-untakenFor))
	if errors.Is(err, forge.ErrPermission) {
		return nil, nil
	}
	runs = slices.DeleteFunc(runs, func(run forge.Run) bool { return run.Workflow != forge.EventsWorkflow || run.HeadRepository == nil })
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	open, err := s.Forge.Open(ctx)
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
		handed, err := s.Forge.HasArtifact(ctx, runs[at].ID, BundleName)
		if err != nil {
			return out, err
		}
		if handed {
			out = append(out, pull.Number)
		}
	}
	return out, nil
}

// What is taken up of settlements that failed: for so long, as then there was a sweep, so many pull
// requests at once, and each by so many runs.
const (
	leftFor  = 24 * time.Hour
	mostLeft = 3
	takenUp  = 5
)

// settleWorkflow is the file whose runs settle. The last word of their titles is the number of
// the pull request, where it is of one.
const settleWorkflow = ".github/workflows/countersign.yml"

// Left are other pull requests than that of a number whose last run failed, or was killed: what
// such a run left is only known once they are settled. Where none has failed lately, that is one request.
func (s Settler) Left(ctx context.Context, number int) ([]int, error) {
	if !s.InWorkflow {
		return nil, nil
	}
	failed, err := s.runsOf(ctx, "failure", s.Runner.Now().Add(-leftFor))
	if err != nil || len(failed) == 0 {
		return nil, err
	}
	done, err := s.runsOf(ctx, "success", failed[0].UpdatedAt)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, run := range slices.Backward(failed) {
		of := pullOf(run)
		after := slices.DeleteFunc(slices.Clone(done), func(d forge.Run) bool { return !d.CreatedAt.After(run.UpdatedAt) })
		again := slices.ContainsFunc(after, func(d forge.Run) bool { return pullOf(d) == of })
		if of != 0 && of != number && !again && len(after) < takenUp && len(out) < mostLeft && !slices.Contains(out, of) {
			out = append(out, of)
		}
	}
	return out, nil
}

// runsOf are the runs that settle, none where the token may not read them.
func (s Settler) runsOf(ctx context.Context, conclusion string, since time.Time) ([]forge.Run, error) {
	runs, err := s.Forge.EndedRuns(ctx, "", conclusion, since)
	if errors.Is(err, forge.ErrPermission) {
		return nil, nil
	}
	return slices.DeleteFunc(runs, func(run forge.Run) bool { return run.Workflow != settleWorkflow }), err
}

// pullOf is the pull request that a run was about, 0 for none.
func pullOf(run forge.Run) int {
	n, err := forge.ReadNumber(run.Title[strings.LastIndexByte(run.Title, ' ')+1:])
	if err != nil {
		return 0
	}
	return n
}

// Unasked are the open pull requests to a branch that the Policy's gate names, but for those
// that are settled anyway, on whose head nobody was asked about their own diff: its event was
// lost, or the server starts nothing for it.
func (s Settler) Unasked(ctx context.Context, settled []int) ([]int, error) {
	if s.NoGate {
		return nil, nil
	}
	rules, err := s.Runner.Rules(ctx, "")
	if err != nil || len(rules.Policy.Gate.Bases) == 0 {
		return nil, err
	}
	open, err := s.Forge.Open(ctx)
	if err != nil {
		return nil, err
	}
	all, err := s.transactions(ctx)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, pull := range open {
		asked := func(tx ledger.Transaction) bool {
			p := tx.Pointers.Proposal
			return tx.GateOnly() && p != nil && p.PullRequest == pull.Number && p.HeadCommit == pull.Head.Commit
		}
		if slices.Contains(rules.Policy.Gate.Bases, pull.Base) && !slices.Contains(settled, pull.Number) && !slices.ContainsFunc(all, asked) {
			out = append(out, pull.Number)
		}
	}
	return out, nil
}
