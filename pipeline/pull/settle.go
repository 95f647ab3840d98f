// Package pull settles pull requests: it takes everything on one as far as its
// approvals allow, keeps it from being merged before that, and says there what
// came of it. It decides what a fresh runner demands of the ledger, which bundles are proposed, and whose word about another pull
// request counts. It reaches the forge through package forge alone, and the
// program around it through Host.
package pull

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
)

// A Host is the program that pull requests are settled by. It keeps the secrets
// that were learnt out of what is told.
type Host interface {
	// Learn takes over what a stage has learnt about secrets.
	Learn(k pipeline.Known)
	Redact(text string) string
	RedactDiff(diff []byte) string
	// Report describes a transaction as a run left it, Clean takes the secrets out
	// of that.
	Report(ctx context.Context, o pipeline.Outcome) (report.Report, error)
	Clean(rep report.Report) (report.Report, error)
	// Unanswered reports whether an error is of a server that failed, or could not be
	// reached, however often it was asked.
	Unanswered(err error) bool
	// Resumed hears of an apply that was cut off and taken up.
	Resumed(id string, done pipeline.ApplyOutcome)
	// HandOver puts the ledger where the job finds it that runs commands.
	HandOver() error
}

// A Settler is what it takes to settle pull requests. Whoever runs it is the
// Runner's Actor.
type Settler struct {
	Runner *pipeline.Runner
	Forge  forge.Forge
	Host   Host
	Shared SharedLedger // nil where the ledger is the clone's own
	Event  forge.Event  // that the workflow was started by

	LedgerRef  string
	Apply      pipeline.ApplyOptions
	Bundle     func(limit int64) ([]byte, error) // that was named, nil for none
	InWorkflow bool
	NoGate     bool // pull requests themselves are left alone
	// Dedicated says that checks are written with the token of an app of one's own,
	// which branch protection can expect them from (T67).
	Dedicated bool
	// ActionsToken says that pushes are made with the workflow's own token, which
	// starts no workflows and may not change them.
	ActionsToken bool

	Wait func(ctx context.Context, d time.Duration) error
}

// A settlement is one run over one pull request. What goes wrong with one
// transaction is noted, and the others go on.
type settlement struct {
	Settler
	*Settled
	viewer ledger.Actor
	number int
	pull   forge.PullRequest
	opened *ledger.Transaction // that the pull request was opened for, nil for none
	memory memory

	over      []report.Report          // of transactions that the try before applied: the one comment keeps them
	told      map[string]ledger.Status // what the forge was told in full, by transaction
	untold    bool                     // the check "countersign" could not be written
	moved     string                   // the head after an apply of this run, "" if there was none
	obstacles []report.Obstacle
	said      []approval.Statement // as the last stage read them
	ledger    writing.Snapshot     // as it was before the first stage, and as the last one left it
}

// restart is how long a server may take to come back before a settlement that it cut
// off is begun anew.
const restart = 15 * time.Second

// Settle settles a pull request: first what was proposed for it, which may move
// its head, then the pull request itself. It does so once more where a server did not
// answer: what was done is not done twice.
func (s Settler) Settle(ctx context.Context, number int) *Settled {
	first := NewSettled(s.Host, number)
	s.settle(ctx, first)
	if !first.cut || s.Wait(ctx, restart) != nil {
		return first
	}
	done := NewSettled(s.Host, number)
	if slices.Contains(first.Notes, report.NoteNoCI) {
		done.note(report.NoteNoCI)
	}
	over := slices.DeleteFunc(first.Transactions, func(rep report.Report) bool { return rep.AppliedCommit == "" })
	s.settle(ctx, done, over...)
	for _, rep := range slices.Backward(over) {
		if !done.has(rep.TransactionID) {
			done.Transactions = slices.Insert(done.Transactions, 0, rep)
			done.CheckURLs[rep.TransactionID] = first.CheckURLs[rep.TransactionID]
		}
	}
	return done
}

// settle settles once; over are the transactions that the try before applied.
func (s Settler) settle(ctx context.Context, into *Settled, over ...report.Report) {
	one := &settlement{Settler: s, Settled: into, viewer: s.Runner.Actor, number: into.PullRequest, told: map[string]ledger.Status{}, over: over}
	one.run(ctx)
}

func (s *settlement) run(ctx context.Context) {
	var err error
	if s.pull, err = s.Forge.PullRequest(ctx, s.number); err == nil {
		err = s.Event.IsOf(s.pull.Repository)
	}
	if err != nil {
		s.fail(err)
		return
	}
	if s.memory, err = s.demandTips(ctx, s.viewer, s.pull.Head.Commit); err != nil {
		s.alarm(ctx, err)
		return
	}
	if s.opened, err = forge.OpenedFor(ctx, s.Runner.Store, s.pull); err == nil {
		s.pull, err = s.Runner.Reader().WithProposer(ctx, s.pull)
	}
	if err != nil {
		s.alarm(ctx, err)
		return
	}
	if s.pull.State == forge.PullRequestOpen {
		s.fail(s.takeBundles(ctx))
	}
	open, snap, err := openOn(ctx, s.Runner, s.pull.Repository, s.number)
	if err != nil {
		s.alarm(ctx, err)
		return
	}
	s.ledger = snap
	from, head := s.Runner.Reader(), s.moved
	for _, tx := range open {
		if tx.GateOnly() {
			continue
		}
		s.fail(s.settleProposal(ctx, from, tx.TransactionID))
		if s.cut && !s.has(tx.TransactionID) {
			_, err := s.tell(ctx, tx.TransactionID) // as it is recorded: people are not told of others alone
			s.fail(err)
		}
		if s.moved != head { // what was read is of the head before
			from, head = s.Runner.Reader(), s.moved
		}
	}
	s.guard(ctx, open)
	s.fail(s.tellEnds(ctx, open))
	s.fail(s.catchUp(ctx))
	s.fail(s.comment(ctx))
	s.fail(s.rememberTip(ctx))
	if len(s.NeedsChecks) > 0 {
		if err := s.Host.HandOver(); err != nil {
			s.NeedsChecks = []string{} // no job is started with what was not handed over
			s.fail(err)
		}
	}
}

// learn takes over what a stage has learnt, for the next and for what is printed.
// What is a secret in one patch is none in another: whoever may propose could keep
// others' changes from being applied.
func (s *settlement) learn(k pipeline.Known) {
	s.Host.Learn(k)
	if k.Secrets != nil {
		k.Secrets = s.Runner.Secrets
	}
	s.Runner = s.Runner.With(k)
}

// rules are those of the pull request; where that is closed, its base branch may
// be gone.
func (s *settlement) rules(ctx context.Context) (pipeline.Rules, error) {
	if s.pull.State != forge.PullRequestOpen {
		return s.Runner.Rules(ctx, "")
	}
	return s.Runner.Rules(ctx, s.pull.Base.Branch)
}

// report describes a transaction as a stage left it.
func (s *settlement) report(ctx context.Context, g pipeline.Judgement) (report.Report, error) {
	return s.Host.Report(ctx, pipeline.Outcome{Judgement: g})
}

// waits reports whether an error says no more than that people have not approved.
func waits(err error) bool {
	return errors.As(err, new(*pipeline.PendingError)) || errors.As(err, new(*pipeline.DeniedError))
}

// settleProposal takes one proposal as far as its approvals allow.
func (s *settlement) settleProposal(ctx context.Context, from *forge.PullReader, id string) error {
	g, err := s.Runner.GateFrom(ctx, id, from)
	if err != nil {
		return err
	}
	rep, err := s.report(ctx, g)
	if err != nil {
		return err
	}
	s.said, s.ledger = g.Statements(), g.Ledger
	if g.TeamsUnread() {
		s.note(report.NoteTeams)
	}
	obstacles := s.preflight(g)
	stop := g.Err()
	switch {
	case g.Applying() || g.Transaction().Status == ledger.Applied: // what was begun is ended, whatever came since
		stop = s.apply(ctx, g, &rep)
	case g.Transaction().Closed: // denied
	case s.pull.State != forge.PullRequestOpen && s.Apply.To != policy.ToRef: // nothing is left that it could be applied to
		if g, stop = s.Runner.Interrupt(ctx, id, fmt.Sprintf("pull request %d is %s", s.number, s.pull.State)); stop == nil {
			s.ledger = g.Ledger
			rep, stop = s.report(ctx, g)
		}
	case len(obstacles) > 0 && stop == nil:
		stop = fault.Refuse(id+": "+obstacles[0].What, obstacles[0].Instead)
	case stop == nil:
		stop = s.apply(ctx, g, &rep)
	case g.Verdict.State == approval.Pending && len(obstacles) == 0:
		s.fail(s.request(ctx, g, &rep))
	}
	s.Transactions = append(s.Transactions, rep)
	s.fail(s.publish(ctx, rep))
	return stop
}

// preflight says what will keep a change from being applied, before anybody is
// asked about it.
func (s *settlement) preflight(g pipeline.Judgement) []report.Obstacle {
	pull := g.Pull()
	tx := g.Transaction()
	if pull == nil || s.Apply.To == policy.ToRef || tx.Closed || tx.Status == ledger.Applied {
		return nil
	}
	found := obstacles(tx.TransactionID, pull, touchesWorkflows(tx.Pointers.Proposal) && s.ActionsToken)
	for _, o := range found {
		if !slices.Contains(s.obstacles, o) {
			s.obstacles = append(s.obstacles, o)
		}
	}
	return found
}

const noteCommands = "The commands that the Policy asks for run in a job without rights; what is approved is applied once they succeed."

// apply carries out an approved proposal and validates it.
func (s *settlement) apply(ctx context.Context, g pipeline.Judgement, rep *report.Report) error {
	out, err := s.Runner.Continue(ctx, pipeline.Outcome{Judgement: g}, pipeline.Ahead{Until: pipeline.StageValidate, ApplyOptions: s.Apply})
	s.learn(out.Learnt)
	if out.Applied != nil {
		s.Host.Resumed(rep.TransactionID, *out.Applied)
	}
	s.ledger = out.Ledger
	done, repErr := s.Host.Report(ctx, out)
	if repErr != nil {
		return errors.Join(err, repErr)
	}
	if done.AppliedCommit == "" && s.Host.Unanswered(err) { // nothing was refused: it stays as it was decided
		return err
	}
	*rep = done
	if errors.Is(err, checks.ErrNoCommands) { // the job without rights runs them: nothing is refused yet
		s.NeedsChecks = append(s.NeedsChecks, rep.TransactionID)
		s.note(noteCommands)
		rep.ApplyResult, rep.AppliedCommit = nil, ""
		return nil
	}
	if rep.ApplyResult != nil && rep.ApplyResult.Outcome == ledger.OutcomeSuccess && rep.AppliedCommit != "" {
		s.moved = rep.AppliedCommit
		if s.ActionsToken {
			s.note(report.NoteNoCI)
		}
		s.fail(s.resolve(ctx, rep.TransactionID))
	}
	return err
}

// resolve marks the request's thread as resolved, where the token may.
func (s *settlement) resolve(ctx context.Context, id string) error {
	posted, err := s.posted(id)
	if err != nil {
		return err
	}
	for _, p := range posted {
		if p.Kind == approval.KindReviewComment {
			_, err = s.Forge.ResolveThread(ctx, s.number, p.ID)
		}
	}
	return err
}

// posted are the comments that were made for a transaction, in the order in which
// they were.
func (s *settlement) posted(id string) ([]forge.Posted, error) {
	log, err := lookup.Read(s.ledger.Tree, id)
	if err != nil {
		return nil, err
	}
	return forge.ReadPosted(s.ledger.Tree, log)
}

// policyFile is where people can read the Policy that the change was reviewed
// under. What cannot be read is no more than a link less.
func (s *settlement) policyFile(ctx context.Context, g pipeline.Judgement) report.PolicyFile {
	commit := g.PolicyCommit()
	if commit == "" {
		return report.PolicyFile{}
	}
	tree, err := s.Runner.Repo.Tree(ctx, commit)
	if err != nil {
		return report.PolicyFile{Commit: commit}
	}
	raw, _ := fs.ReadFile(tree, policy.Path)
	return report.PolicyFile{Commit: commit, Lines: plain.Lines(raw)}
}

// request opens the thread in which people can answer: a comment on a file of
// the pull request's diff. Where that has none of the patch's files, any does; the
// one comment on the pull request always works.
func (s *settlement) request(ctx context.Context, g pipeline.Judgement, rep *report.Report) error {
	posted, err := forge.ReadPosted(g.Ledger.Tree, g.Log())
	if err != nil || len(posted) > 0 {
		return err
	}
	diff, err := g.Diff()
	if err != nil {
		return err
	}
	shown := []byte(s.Host.RedactDiff(diff))
	pull, file := *g.Pull(), ""
	if len(pull.Paths) > 0 {
		file = pull.Paths[0]
	}
	targets := g.Transaction().Pointers.Proposal.TargetFiles
	if i := slices.IndexFunc(targets, func(path string) bool { return slices.Contains(pull.Paths, path) }); i >= 0 {
		file = targets[i]
	}
	if file == "" {
		rep.Diff = shown
		return nil
	}
	clean, err := s.Host.Clean(*rep)
	if err != nil {
		return err
	}
	commands, err := g.Commands()
	if err != nil {
		return err
	}
	question := report.Request{
		Report: clean, Diff: shown, Needs: g.Needs(), Approvals: g.Policy().Approvals,
		Commands: commands, Web: report.WebOf(pull.Base.CloneURL), Policy: s.policyFile(ctx, g),
	}
	var comment forge.Posted
	known := slices.IndexFunc(g.Statements(), func(said approval.Statement) bool { // a run that was cut off may have asked
		return said.Kind == approval.KindReviewComment && said.Author.ID == s.viewer.ID && said.ReplyTo == "" && question.Is(said.Body) && !said.Edited
	})
	if known >= 0 {
		said := g.Statements()[known]
		comment = forge.Posted{Kind: said.Kind, ID: said.ID, URL: said.URL, BodySHA256: canon.Sum([]byte(said.Body))}
	} else if comment, err = s.Forge.CreateReviewComment(ctx, s.number, pull.Head.Commit, file, question.Body()); err != nil {
		return err
	}
	after, err := s.Runner.Note(ctx, rep.TransactionID, []forge.Posted{comment})
	if err == nil {
		s.ledger = after
		rep.MoveLedger(after.Tip)
	}
	return err
}
