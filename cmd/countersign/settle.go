package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/report"
)

// A settlement is one run over one pull request. What goes wrong with one
// transaction is noted, and the others go on.
type settlement struct {
	a       *App
	r       *pipeline.Runner
	client  *github.Client
	viewer  ledger.Actor
	event   event
	flags   settleFlags
	options pipeline.ApplyOptions
	number  int
	errs    []error

	pull      forge.PullRequest
	memory    tipMemory
	proposed  string                   // the transaction of the bundle, "" for none
	told      map[string]ledger.Status // what the forge was told in full, by transaction
	untold    bool                     // the check "countersign" could not be written
	checkURLs map[string]string        // by transaction: where its newest check run is
	moved     string                   // the head after an apply of this run, "" if there was none

	deniedBefore bool // the bundle proposes what was denied
	obstacles    []report.Obstacle
	said         []approval.Statement // as the last stage read them
	ledger       ledger.Snapshot      // as it was before the first stage, and as the last one left it

	Transactions []report.Report
	NeedsChecks  []string
	Notes        []string
}

// document is what --json prints (docs/schema/settle.json).
func (s *settlement) document() any {
	return map[string]any{
		"pull_request": s.number, "transactions": s.Transactions, "needs_checks": s.NeedsChecks, "notes": s.Notes,
	}
}

// fail notes an error, and says on the pull request what it was; that people
// have not approved is no news there.
func (s *settlement) fail(err error) {
	if err == nil {
		return
	}
	if s.errs = append(s.errs, err); !waits(err) {
		s.note(oneLine(err))
	}
}

func (s *settlement) note(text string) {
	if text = s.a.redact(text).String(); !slices.Contains(s.Notes, text) {
		s.Notes = append(s.Notes, text)
	}
}

// run settles: first what was proposed for the pull request, which may move its
// head, then the pull request itself.
func (s *settlement) run(ctx context.Context) {
	var err error
	if s.pull, err = s.client.PullRequest(ctx, s.number); err == nil {
		err = s.event.isOf(s.pull.Repository)
	}
	if err != nil {
		s.fail(err)
		return
	}
	if err := s.demandTips(ctx); err != nil {
		s.alarm(ctx, err)
		return
	}
	if s.pull.State == forge.PullRequestOpen {
		s.fail(s.takeBundles(ctx))
	}
	open, snap, err := s.r.OpenOn(ctx, s.pull.Repository, s.number)
	if err != nil {
		s.alarm(ctx, err)
		return
	}
	s.ledger = snap
	gate, head := s.r.Gates(), s.moved
	for _, tx := range open {
		if tx.GateOnly() {
			continue
		}
		s.fail(s.transaction(ctx, gate, tx.TransactionID))
		if s.moved != head { // what was read is of the head before
			gate, head = s.r.Gates(), s.moved
		}
	}
	s.guard(ctx, open)
	s.fail(s.ends(ctx, open))
	s.fail(s.catchUp(ctx))
	s.fail(s.comment(ctx))
	s.fail(s.rememberTip(ctx))
	s.fail(s.handOver())
}

// learn takes over what a stage has learnt, for the next and for what is printed.
// What is a secret in one patch is none in another: whoever may propose could keep
// others' changes from being applied.
func (s *settlement) learn(k pipeline.Known) {
	s.a.learn(k)
	if k.Secrets != nil {
		k.Secrets = s.r.Secrets
	}
	s.r = s.r.With(k)
}

// rules are those of the pull request; where that is closed, its base branch may
// be gone.
func (s *settlement) rules(ctx context.Context) (pipeline.Rules, error) {
	if s.pull.State != forge.PullRequestOpen {
		return s.r.Rules(ctx, "")
	}
	return s.r.Rules(ctx, s.pull.Base.Branch)
}

// took notes what a stage came to, and returns its report without secrets.
func (s *settlement) took(ctx context.Context, g pipeline.Gated) (raw, clean report.Report, err error) {
	s.said, s.ledger = g.Statements(), g.Ledger
	if raw, err = s.a.report(g); err != nil {
		return raw, clean, err
	}
	s.Transactions = append(s.Transactions, raw)
	clean, err = s.a.cleanReport(raw)
	return raw, clean, err
}

// tellDenied says on the pull request that a bundle proposes what was denied
// before, which nobody is asked about again.
func (s *settlement) tellDenied(ctx context.Context, why *pipeline.DeniedError) error {
	s.deniedBefore = true
	s.note("Proposed again, and not asked about: " + oneLine(why))
	var err error
	if s.ledger, err = s.r.Ledger(ctx, ledger.Dir(why.In)); err != nil {
		return err
	}
	g, err := s.r.History(ctx, s.ledger, why.In)
	if err != nil {
		return err
	}
	p := g.Transaction().Pointers.Proposal
	if p.Repository == nil || p.Repository.ID != s.pull.Repository.ID || p.PullRequest != s.number {
		return nil // denied elsewhere, which that place tells
	}
	s.proposed = why.In
	_, err = s.tell(ctx, why.In)
	return err
}

// A gateFunc is pipeline.Runner's Gate, or one of its Gates.
type gateFunc func(ctx context.Context, id string) (pipeline.Gated, error)

// transaction takes one proposal as far as its approvals allow.
func (s *settlement) transaction(ctx context.Context, gate gateFunc, id string) error {
	g, err := gate(ctx, id)
	if err != nil {
		return err
	}
	rep, err := s.a.report(g)
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
	case s.pull.State != forge.PullRequestOpen && s.options.To != pipeline.TargetRef:
		stop = s.interrupt(ctx, &rep)
	case len(obstacles) > 0 && stop == nil:
		stop = &obstacleError{id, obstacles[0]}
	case stop == nil:
		stop = s.apply(ctx, g, &rep)
	case g.Verdict.State == approval.Pending && len(obstacles) == 0:
		s.fail(s.request(ctx, g, &rep))
	}
	s.Transactions = append(s.Transactions, rep)
	s.fail(s.publish(ctx, rep))
	return stop
}

// ends tells what ended beside the transactions that are settled: what was
// denied after its place was taken, and what the open ones took the place of, so
// that nobody is asked about it any more.
func (s *settlement) ends(ctx context.Context, open []ledger.Transaction) error {
	denied, after, err := s.r.RecordLateDenials(ctx, s.pull.Repository, s.number)
	s.fail(err)
	if err == nil || len(denied) > 0 {
		s.ledger = after
	}
	for _, id := range denied {
		g, err := s.tell(ctx, id)
		s.fail(errors.Join(err, g.Err()))
	}
	for _, tx := range open {
		for _, id := range tx.Pointers.Proposal.Supersedes {
			if _, err := s.tell(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell reports on a transaction that has ended, before those that go on: the
// last one is what a step's outputs are about. Of one whose patch was denied
// since, the record that says so tells more.
func (s *settlement) tell(ctx context.Context, id string) (pipeline.Gated, error) {
	g, err := s.r.History(ctx, s.ledger, id)
	if err != nil {
		return g, err
	}
	if tx := g.Transaction(); g.Verdict.State == approval.Denied && tx.Status != ledger.Denied {
		s.told[id] = tx.Status
		return g, nil
	}
	rep, err := s.a.report(g)
	if err != nil {
		return g, err
	}
	if rep.ApplyResult, rep.AppliedCommit, err = g.Result(); err != nil {
		return g, err
	}
	s.Transactions = slices.Insert(s.Transactions, 0, rep)
	return g, s.publish(ctx, rep)
}

// interrupt ends a proposal whose pull request was closed: nothing is left that it
// could be applied to.
func (s *settlement) interrupt(ctx context.Context, rep *report.Report) error {
	g, err := s.r.Interrupt(ctx, rep.TransactionID, fmt.Sprintf("pull request %d is %s", s.number, s.pull.State))
	if err == nil {
		s.ledger = g.Ledger
		*rep, err = s.a.report(g)
	}
	return err
}

// An obstacleError says why an approved change cannot be applied.
type obstacleError struct {
	id       string
	obstacle report.Obstacle
}

func (e *obstacleError) Error() string { return e.id + ": " + e.obstacle.What }

// preflight says what will keep a change from being applied, before anybody is
// asked about it.
func (s *settlement) preflight(g pipeline.Gated) []report.Obstacle {
	pull := g.Pull()
	tx := g.Transaction()
	if pull == nil || s.options.To == pipeline.TargetRef || tx.Closed || tx.Status == ledger.Applied {
		return nil
	}
	found := report.Facts{
		TransactionID: tx.TransactionID, Closed: pull.State == forge.PullRequestClosed, Merged: pull.State == forge.PullRequestMerged,
		HeadDeleted: pull.Head.Repository == nil, HeadProtected: pull.Head.Protected, Fork: pull.Fork(),
		MaintainersCanModify: pull.MaintainerCanModify, OrganisationFork: pull.Fork() && pull.Head.Owner == "Organization",
		TouchesWorkflows:    slices.ContainsFunc(tx.Pointers.Proposal.TargetFiles, isWorkflow),
		WorkflowsPermission: !s.a.pushesAsActions(),
	}.Obstacles()
	for _, o := range found {
		if !slices.Contains(s.obstacles, o) {
			s.obstacles = append(s.obstacles, o)
		}
	}
	return found
}

func isWorkflow(path string) bool { return strings.HasPrefix(path, ".github/workflows/") }

// pushesAsActions reports whether pushes are made with the workflow's own token,
// which starts no workflows and may not change them. action.yml says so.
func (a *App) pushesAsActions() bool {
	return a.Getenv("COUNTERSIGN_ACTIONS_TOKEN") == "true"
}

// apply carries out an approved proposal and validates it.
func (s *settlement) apply(ctx context.Context, g pipeline.Gated, rep *report.Report) error {
	out, err := s.r.Continue(ctx, pipeline.Outcome{Gated: g}, pipeline.Ahead{Until: pipeline.StageValidate, ApplyOptions: s.options})
	s.learn(out.Learnt)
	if out.Applied != nil {
		s.a.sayResumed(rep.TransactionID, *out.Applied)
	}
	s.ledger = out.Ledger
	done, repErr := s.a.reportRun(out)
	if repErr != nil {
		return errors.Join(err, repErr)
	}
	*rep = done
	if errors.As(err, new(*pipeline.NoCommandsError)) { // the job without rights runs them: nothing is refused yet
		s.NeedsChecks = append(s.NeedsChecks, rep.TransactionID)
		s.note(noteCommands)
		rep.ApplyResult, rep.AppliedCommit = nil, ""
		return nil
	}
	if rep.ApplyResult != nil && rep.ApplyResult.Outcome == result.Success && rep.AppliedCommit != "" {
		s.moved = rep.AppliedCommit
		if s.a.pushesAsActions() {
			s.note(report.NoteNoCI)
		}
		s.fail(s.resolve(ctx, rep.TransactionID))
	}
	return err
}

const noteCommands = "The commands that the Policy asks for run in a job without rights; what is approved is applied once they succeed."

// resolve marks the request's thread as resolved, where the token may.
func (s *settlement) resolve(ctx context.Context, id string) error {
	posted, err := pipeline.Posted(s.ledger, id)
	if err != nil {
		return err
	}
	for _, p := range posted {
		if p.Kind == approval.KindReviewComment {
			_, err = s.client.ResolveThread(ctx, s.number, p.ID)
		}
	}
	return err
}

// request opens the thread in which people can answer: a comment on a file of
// the pull request's diff. Where it has none of the patch's files, any does; the
// one comment on the pull request always works.
func (s *settlement) request(ctx context.Context, g pipeline.Gated, rep *report.Report) error {
	id := rep.TransactionID
	posted, err := g.Posted()
	if err != nil || len(posted) > 0 {
		return err
	}
	pull := g.Pull()
	file := s.fileFor(g, *pull)
	if file == "" {
		return nil
	}
	body, err := s.requestBody(ctx, g, *rep)
	if err != nil {
		return err
	}
	comment, found := s.ours(g, approval.KindReviewComment, func(said approval.Statement) bool {
		return said.Body == body && !said.Edited
	})
	if !found {
		if comment, err = s.client.CreateReviewComment(ctx, s.number, pull.Head.Commit, file, body); err != nil {
			return err
		}
	}
	after, err := s.r.Note(ctx, id, []approval.Posted{comment})
	if err == nil {
		s.ledger, rep.LedgerCommit = after, after.Tip
	}
	return err
}

// fileFor is the file of the pull request's diff that the thread is opened on.
func (s *settlement) fileFor(g pipeline.Gated, pull forge.PullRequest) string {
	for _, path := range g.Transaction().Pointers.Proposal.TargetFiles {
		if slices.Contains(pull.Paths, path) {
			return path
		}
	}
	if len(pull.Paths) == 0 {
		return ""
	}
	return pull.Paths[0]
}

func (s *settlement) requestBody(ctx context.Context, g pipeline.Gated, rep report.Report) (string, error) {
	clean, err := s.a.cleanReport(rep)
	if err != nil {
		return "", err
	}
	diff, err := g.Diff()
	if err != nil {
		return "", err
	}
	return report.Request{
		Report: clean, Diff: []byte(s.a.redactDiff(diff).String()), Needs: g.Needs(), Approvals: g.Policy().Approvals,
		Commands: g.Commands(),
	}.Body(), nil
}

// ours finds a comment of this program's own among what was read.
func (s *settlement) ours(g pipeline.Gated, kind string, is func(approval.Statement) bool) (approval.Posted, bool) {
	for _, said := range g.Statements() {
		if said.Kind == kind && said.Author.ID == s.viewer.ID && said.ReplyTo == "" && is(said) {
			return approval.Posted{Kind: kind, ID: said.ID, URL: said.URL, BodySHA256: canon.Sum([]byte(said.Body))}, true
		}
	}
	return approval.Posted{}, false
}

// publish shows a transaction as a check run on the commit that it is about:
// the pull request's head, and what an apply made of it.
func (s *settlement) publish(ctx context.Context, rep report.Report) error {
	clean, err := s.a.cleanReport(rep)
	if err != nil {
		return err
	}
	heads := []string{s.pull.Head.Commit}
	if rep.AppliedCommit != "" && rep.AppliedCommit == s.moved {
		heads = append(heads, s.moved)
	}
	for _, head := range heads {
		run, err := s.showCheck(ctx, head, clean.CheckRun())
		var e *github.Error
		if errors.As(err, &e) && e.Kind == github.KindPermission { // a person's token
			s.note(noteNoCheck)
			break
		}
		if err != nil {
			return err
		}
		s.checkURLs[rep.TransactionID] = run.URL
	}
	s.told[rep.TransactionID] = rep.Status
	return nil
}

// showCheck publishes a check run, unless the newest of ours of that name says the
// same already. Another app's is no reason to leave ours out (T67).
func (s *settlement) showCheck(ctx context.Context, head string, run forge.Check) (forge.CheckRun, error) {
	known, err := s.client.CheckRuns(ctx, head, run.Name)
	if err != nil {
		return forge.CheckRun{}, err
	}
	if len(known) > 0 && known[0].App == s.viewer.Login && known[0].Says(run) {
		return known[0], nil
	}
	return s.client.PublishCheckOver(ctx, head, run, known)
}

const noteNoCheck = "This token may not write check runs: only an app's may, with checks: write."

// comment keeps the one comment on the pull request up to date. Where there is
// nothing to say none is made.
func (s *settlement) comment(ctx context.Context) error {
	if len(s.Transactions) == 0 && len(s.Notes) == 0 {
		return nil
	}
	c := report.Comment{Threads: map[string]string{}, Notes: s.Notes, Obstacles: s.obstacles, Told: s.told}
	if s.untold { // the next run, or the sweep, tells all of it again
		c.Told = nil
	}
	for _, rep := range s.Transactions {
		clean, err := s.a.cleanReport(rep)
		if err != nil {
			return err
		}
		c.Transactions = append(c.Transactions, clean)
		posted, err := pipeline.Posted(s.ledger, rep.TransactionID)
		if err != nil {
			return err
		}
		for _, p := range posted {
			c.Threads[rep.TransactionID] = p.URL
		}
	}
	if s.said == nil { // no stage got as far as reading them
		var err error
		if s.said, err = s.client.Statements(ctx, s.number); err != nil {
			return err
		}
	}
	id, same := "", false
	body := c.Body()
	for _, said := range s.said {
		if said.Kind == approval.KindIssueComment && said.Author.ID == s.viewer.ID && strings.HasSuffix(strings.TrimSpace(said.Body), report.CommentMarker) {
			id, same = said.ID, strings.TrimSpace(said.Body) == strings.TrimSpace(body)
		}
	}
	if same {
		return nil
	}
	_, err := s.client.UpsertComment(ctx, s.number, id, body)
	return err
}

// handOver puts the ledger into the clone for the job that runs commands.
func (s *settlement) handOver() error {
	if len(s.NeedsChecks) == 0 {
		return nil
	}
	args := []string{"sync", "--quiet", "--ledger-ref=" + s.a.flags.ledgerRef, "--remote=" + s.a.flags.remote}
	if code, _ := s.a.child(io.Discard, s.a.Stderr, args...); code != 0 {
		return &exitError{code, fmt.Errorf("the ledger could not be put into the clone")}
	}
	return nil
}
