package pull

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report"
)

// Settled is what became of pull requests.
type Settled struct {
	PullRequest  int // 0 for several
	Transactions []report.Report
	NeedsChecks  []string // the transactions whose commands run in another job
	Notes        []string
	CheckURLs    map[string]string // by transaction: where its newest check run is
	Errs         []error
	DeniedBefore bool // the bundle proposes what was denied

	proposed string // the transaction of the bundle, "" for none
	cut      bool   // a server did not answer
	host     Host
}

// NewSettled is what became of a pull request to which nothing happened yet, 0 for
// several.
func NewSettled(host Host, number int) *Settled {
	return &Settled{
		PullRequest: number, Transactions: []report.Report{}, NeedsChecks: []string{}, Notes: []string{}, CheckURLs: map[string]string{},
		host: host,
	}
}

// Add adds what became of one of several pull requests.
func (s *Settled) Add(one *Settled) {
	s.Transactions = append(s.Transactions, one.Transactions...)
	s.NeedsChecks = append(s.NeedsChecks, one.NeedsChecks...)
	s.Notes = append(s.Notes, one.Notes...)
	s.Errs = append(s.Errs, one.Errs...)
	maps.Copy(s.CheckURLs, one.CheckURLs)
}

// Fail notes errors, and says on the pull request what they were; that people
// have not approved is no news there.
func (s *Settled) Fail(errs ...error) {
	for _, err := range errs {
		s.fail(err)
	}
}

func (s *Settled) fail(err error) {
	if err == nil {
		return
	}
	s.cut = s.cut || s.host.Unanswered(err)
	if s.Errs = append(s.Errs, err); !waits(err) {
		s.note(s.words(err))
	}
}

// words are an error as people are told of it on a pull request. What exactly a server did
// not answer is for the log of the run.
func (s *Settled) words(err error) string {
	if s.host.Unanswered(err) {
		return report.NoteUnanswered
	}
	return s.host.Redact(report.ErrorLine(err))
}

func (s *Settled) note(text string) {
	if text = s.host.Redact(text); !slices.Contains(s.Notes, text) {
		s.Notes = append(s.Notes, text)
	}
}

// has reports whether there is a report of a transaction.
func (s *Settled) has(id string) bool {
	return slices.ContainsFunc(s.Transactions, func(rep report.Report) bool { return rep.TransactionID == id })
}

// About is which transaction a step's outputs are of (docs/action.md): what its
// bundle proposed, else the newest proposal, else the pull request's own diff;
// -1 for none.
func (s *Settled) About() int {
	if s.DeniedBefore || s.proposed != "" {
		return slices.IndexFunc(s.Transactions, func(r report.Report) bool { return s.proposed != "" && r.TransactionID == s.proposed })
	}
	for i, r := range slices.Backward(s.Transactions) {
		if !r.GateOnly {
			return i
		}
	}
	return len(s.Transactions) - 1
}

const noteNoCheck = "This token may not write check runs: only an app's may, with checks: write."

// publish shows a transaction as a check run on the commit that it is about:
// the pull request's head, and what an apply made of it.
func (s *settlement) publish(ctx context.Context, rep report.Report) error {
	clean, err := s.Host.Clean(rep)
	if err != nil {
		return err
	}
	heads := []string{s.pull.Head.Commit}
	if rep.AppliedCommit != "" && rep.AppliedCommit == s.moved {
		heads = append(heads, s.moved)
	}
	for _, head := range heads {
		run, err := s.showCheck(ctx, head, clean.CheckRun())
		if errors.Is(err, forge.ErrPermission) { // a person's token
			s.note(noteNoCheck)
			break
		}
		if err != nil {
			return err
		}
		s.CheckURLs[rep.TransactionID] = run.URL
	}
	s.told[rep.TransactionID] = rep.Status
	return nil
}

// showCheck publishes a check run, unless the newest of ours of that name says the
// same already. Another app's is no reason to leave ours out (T67).
func (s *settlement) showCheck(ctx context.Context, head string, check forge.Check) (forge.CheckRun, error) {
	known, err := s.Forge.CheckRuns(ctx, head, check.Name)
	if err != nil {
		return forge.CheckRun{}, err
	}
	if len(known) > 0 && known[0].App == s.viewer.Login && known[0].Says(check) {
		return known[0], nil
	}
	return s.Forge.PublishCheckOver(ctx, head, check, known)
}

// tellEnds tells what ended beside the transactions that are settled: what was
// denied after its place was taken, and what the open ones took the place of, so
// that nobody is asked about it any more.
func (s *settlement) tellEnds(ctx context.Context, open []ledger.Transaction) error {
	denied, after, err := RecordLateDenials(ctx, s.Runner, s.pull.Repository, s.number)
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
func (s *settlement) tell(ctx context.Context, id string) (pipeline.Judgement, error) {
	g, err := s.Runner.History(ctx, s.ledger, id)
	if err != nil {
		return g, err
	}
	if tx := g.Transaction(); g.Verdict.State == approval.Denied && tx.Status != ledger.Denied {
		s.told[id] = tx.Status
		return g, nil
	}
	rep, err := s.report(ctx, g)
	if err != nil {
		return g, err
	}
	if rep.ApplyResult, rep.AppliedCommit, err = g.Result(); err != nil {
		return g, err
	}
	s.Transactions = slices.Insert(s.Transactions, 0, rep)
	return g, s.publish(ctx, rep)
}

// mostUntold is how many ended transactions one run tells of again; the next run
// takes the next ones.
const mostUntold = 20

// catchUp tells of the transactions that have ended and of which a run that was
// cut off did not get to tell: the one comment names those that were told in
// full. It is no proof of anything, and nothing but reports hangs on it.
func (s *settlement) catchUp(ctx context.Context) error {
	closed, err := s.closedOn()
	if err != nil {
		return err
	}
	untold := slices.DeleteFunc(closed, func(tx ledger.Transaction) bool {
		return s.has(tx.TransactionID) || !reported(tx)
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
		over := slices.ContainsFunc(s.over, func(rep report.Report) bool { return rep.TransactionID == tx.TransactionID })
		if before[tx.TransactionID] == tx.Status && !over {
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
		return toldOn(ctx, s.Forge, s.number, s.viewer)
	}
	for _, said := range s.said {
		if told := report.ToldIn(said.Body); told != nil && said.Kind == approval.KindIssueComment && said.Author.ID == s.viewer.ID {
			return told, nil
		}
	}
	return nil, nil
}

// toldOn is what the one comment on a pull request says was told.
func toldOn(ctx context.Context, f forge.Board, number int, viewer ledger.Actor) (map[string]ledger.Status, error) {
	bodies, err := f.CommentsBy(ctx, number, viewer)
	for _, body := range bodies {
		if told := report.ToldIn(body); told != nil {
			return told, err
		}
	}
	return nil, err
}

// comment keeps the one comment on the pull request up to date. Where there is
// nothing to say none is made.
func (s *settlement) comment(ctx context.Context) error {
	if len(s.Transactions) == 0 && len(s.Notes) == 0 {
		return nil
	}
	c := report.Comment{Cut: s.cut, Threads: map[string]string{}, Web: report.WebOf(s.pull.Base.CloneURL), Notes: s.Notes, Obstacles: s.obstacles, Told: s.told}
	if s.untold { // the next run, or the sweep, tells all of it again
		c.Told = nil
	}
	proposed := slices.ContainsFunc(s.Transactions, func(rep report.Report) bool { return !rep.GateOnly })
	for _, rep := range s.Transactions {
		if s.cut && proposed && rep.GateOnly && (rep.Status == ledger.Proposed || rep.Status == ledger.Awaiting) {
			continue // nobody is asked about a diff that is about to change
		}
		clean, err := s.Host.Clean(rep)
		if err != nil {
			return err
		}
		clean.Diff = rep.Diff // without secrets already
		c.Transactions = append(c.Transactions, clean)
		posted, err := s.posted(rep.TransactionID)
		if err != nil {
			return err
		}
		for _, p := range posted {
			c.Threads[rep.TransactionID] = p.URL
		}
	}
	if s.said == nil { // no stage got as far as reading them
		var err error
		if s.said, err = s.Forge.Statements(ctx, s.number); err != nil {
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
	_, err := s.Forge.UpsertComment(ctx, s.number, id, body)
	return err
}

// obstacles lists what stands in the way of writing a change to a pull request's branch, none if
// nothing does. Of a pull request that is over, nothing else is said. workflows says that the change
// is below .github/workflows, and the token must not write there.
func obstacles(id string, on *forge.PullRequest, workflows bool) (out []report.Obstacle) {
	export := "take the patch as a file (countersign export " + report.Clean(id) + " --out DIR)"
	ref := export + ", or, once it is approved, as its own ref (countersign apply " + report.Clean(id) + " --to ref)"
	add := func(is bool, code, what, instead string) {
		if is {
			out = append(out, report.Obstacle{Code: code, What: what, Instead: instead})
		}
	}
	merged := on.State == forge.PullRequestMerged
	closed := !merged && on.State == forge.PullRequestClosed
	add(merged, "pull_request_merged", "the pull request is merged already", "propose the change on a new pull request, or "+ref)
	add(closed, "pull_request_closed", "the pull request is closed", "open it again, or "+ref)
	add(!merged && !closed && on.Head.Repository == nil, "head_deleted", "the head branch of the pull request is gone", ref)
	if len(out) > 0 {
		return out
	}
	ofOrganisation := on.Fork() && on.Head.Owner == "Organization"
	add(on.Head.Protected, "head_protected", "the head branch is protected, so a push may be refused", "let the push token bypass the protection, or "+ref)
	add(ofOrganisation, "fork_of_organisation", "the head branch is in a fork that an organisation owns, to which maintainers cannot push", ref)
	add(on.Fork() && !ofOrganisation && !on.MaintainerCanModify, "fork_closed", "the head branch is in a fork, and its owner does not allow maintainers to push to it", `ask the author to tick "Allow edits by maintainers", or `+ref)
	add(workflows, "workflows_permission", "the change touches workflow files, and the push token must not write them", "use an App's token with the permission workflows as push-token, or "+export)
	return out
}
