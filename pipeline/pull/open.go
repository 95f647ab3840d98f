package pull

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/pipeline/writing"
	"github.com/countersign-dev/countersign/report"
	"github.com/countersign-dev/countersign/report/view"
)

// A transaction that is for no pull request becomes one (docs/pull-requests.md): its
// commit is pushed to a branch of its own, a pull request is opened from there, and
// that one's own diff is the transaction which people approve. Each step finds what an
// earlier run left behind, and goes on from there.

// An Opened is a pull request that a transaction became. ID is the transaction of the
// pull request's own diff.
type Opened struct {
	PullRequest int
	ID          string
}

// unopened says why a transaction does not become a pull request.
func unopened(id, why, try string) error {
	return fault.Refuse(id+" does not become a pull request: "+why, try)
}

// WaitsForNone reports whether a transaction waits for people, and is for no pull
// request.
func WaitsForNone(log *ledger.Log) bool {
	tx := log.Transaction()
	return (tx.Status == ledger.Proposed || tx.Status == ledger.Awaiting) && tx.PullRequest() == 0 && !log.Applying()
}

// PullOf is the number of a transaction's pull request, which is opened where it waits
// and the Policy says so; 0 for none.
func (s Settler) PullOf(ctx context.Context, log *ledger.Log) (int, error) {
	tx := log.Transaction()
	if !WaitsForNone(log) {
		return tx.PullRequest(), nil
	}
	opens, err := s.Runner.OpensPulls(ctx)
	if err != nil || !opens {
		return 0, err
	}
	o, err := s.Open(ctx, tx.TransactionID)
	return o.PullRequest, err
}

// Open makes a pull request of a transaction that is for none.
func (s Settler) Open(ctx context.Context, id string) (Opened, error) {
	if s.Forge == nil || s.Runner.Code == nil {
		return Opened{}, fault.Bar("there is no token to open a pull request with", "set COUNTERSIGN_TOKEN, or give the Action its input token")
	}
	snap, err := s.Runner.Ledger(ctx, ledger.Dir(id))
	if err != nil {
		return Opened{}, err
	}
	g, err := s.Runner.History(ctx, snap, id)
	if err != nil {
		return Opened{}, err
	}
	tx := g.Transaction()
	may := s.mayOpen(g)
	if may != nil && tx.Status != ledger.Superseded {
		return Opened{}, may
	}
	known, err := s.openedBefore(ctx, tx.PatchID())
	switch {
	case may != nil && err == nil && known.ID == "": // another change took its place
		return Opened{}, may
	case may != nil: // its own pull request did
		return known, err
	case err != nil || known.ID != "":
		return known, errors.Join(err, s.became(ctx, id, known))
	}
	to, err := s.Forge.DefaultBranch(ctx)
	if err != nil {
		return Opened{}, err
	}
	if err := s.place(ctx, g, to); err != nil {
		return Opened{}, err
	}
	opened, err := s.openPull(ctx, g, to.Branch)
	if err != nil {
		return opened, err
	}
	return opened, s.became(ctx, id, opened)
}

// became ends a transaction whose place its pull request has taken.
func (s Settler) became(ctx context.Context, id string, o Opened) error {
	if o.ID == "" {
		return nil
	}
	return s.Runner.Supersede(ctx, id, o.ID, fmt.Sprintf("it became pull request %d", o.PullRequest))
}

// mayOpen refuses what has ended or was begun, what people must excuse before anybody
// sees it, and what nobody can be kept from approving who proposed it: a name that a
// clone made up is no account. Only the person who has it may open what it proposed, as
// that person's account is then the author.
func (s Settler) mayOpen(g pipeline.Judgement) error {
	tx, r := g.Transaction(), s.Runner
	p := tx.Pointers.Proposal
	switch {
	case g.Verdict.State == approval.Denied:
		return g.Err()
	case tx.Closed:
		return pipeline.ClosedError(tx.TransactionID, tx.Status)
	case p.PullRequest > 0:
		return unopened(tx.TransactionID, fmt.Sprintf("it is for pull request %d", p.PullRequest), "countersign settle "+tx.TransactionID)
	case g.Applying() || tx.Status == ledger.Applied:
		return unopened(tx.TransactionID, "its apply was begun", "countersign apply "+tx.TransactionID)
	case slices.Contains([]policy.Sandbox{r.Sandbox, g.Policy().Sandbox, policy.Sandbox(tx.SandboxPolicy.Type)}, policy.ReadOnly):
		return checks.ErrReadOnly
	case p.ContainsSecrets:
		return unopened(
			tx.TransactionID, "it adds what looks like a secret, which its branch would show before anybody has excused that",
			"take the secret out, or approve it here and apply it with --to branch",
		)
	case s.ActionsToken && touchesWorkflows(p):
		return unopened(
			tx.TransactionID, "it changes workflow files, which GitHub lets no workflow's own token push",
			"give the token of an App with the permission workflows as push-token",
		)
	case strings.HasPrefix(tx.Proposer.ID, "local:") && (s.InWorkflow || tx.Proposer.ID != r.Decider.ID || r.Actor.Kind != "user"):
		return unopened(
			tx.TransactionID, "the forge has no account of "+report.Clean(tx.Proposer.Login)+", who proposed it",
			"who proposed it can open it, with a token of their own",
		)
	}
	return nil
}

// touchesWorkflows reports whether a proposal changes what no workflow's own token may push.
func touchesWorkflows(p *ledger.Proposal) bool {
	return slices.ContainsFunc(p.TargetFiles, func(path string) bool { return strings.HasPrefix(path, ".github/workflows/") })
}

// openedBefore finds the open pull request from a branch of ours whose own diff is a
// patch: another run opened it.
func (s Settler) openedBefore(ctx context.Context, patchID string) (Opened, error) {
	snap, err := s.Runner.Ledger(ctx, ledger.ProposedDir(patchID))
	if err != nil || snap.Tip == "" {
		return Opened{}, err
	}
	listed, err := lookup.Proposals(snap.Tree, patchID)
	if err != nil || len(listed) == 0 {
		return Opened{}, err
	}
	var paths []string
	for _, l := range listed {
		if ledger.CheckID(l.TransactionID) == nil {
			paths = append(paths, ledger.Dir(l.TransactionID))
		}
	}
	if snap, err = s.Runner.Ledger(ctx, paths...); err != nil {
		return Opened{}, err
	}
	for _, l := range listed {
		tx, err := lookup.ListedState(snap.Tree, l.TransactionID)
		if err != nil {
			return Opened{}, err
		}
		if tx.Closed || !tx.GateOnly() || tx.PatchID() != patchID {
			continue
		}
		pull, err := s.Forge.PullRequest(ctx, tx.PullRequest())
		if err != nil {
			return Opened{}, err
		}
		if forge.NamedFor(pull) == "" { // its owner can push there what cannot be compared
			continue
		}
		in, err := OwnDiff(ctx, s.Runner, tx.PullRequest(), "")
		if errors.Is(err, errClosed) {
			continue
		}
		if err != nil {
			return Opened{}, err
		}
		set, err := in.Resolve(nil)
		of := tx.Pointers.Proposal.Repository
		if err != nil || set.ID() != patchID || of == nil || of.ID != in.For.Repository.ID { // somebody pushed since
			continue
		}
		if from, err := forge.OpenedFor(ctx, s.Runner.Store, *in.For); err != nil || from != nil {
			return Opened{in.For.Number, tx.TransactionID}, err
		}
	}
	return Opened{}, nil
}

// place puts a transaction's commit onto its branch: that very commit, or nothing.
func (s Settler) place(ctx context.Context, g pipeline.Judgement, to forge.Side) error {
	tx := g.Transaction()
	refs, err := s.Runner.Code.Refs(ctx, to)
	if err != nil {
		return err
	}
	commit, err := s.build(ctx, refs, g, to)
	if err != nil {
		return err
	}
	name := "refs/heads/" + forge.Branch(tx.TransactionID)
	tip, err := refs.Ref(ctx, name)
	if err == nil && (tip == "" || tip == commit) { // what an earlier run pushed may be merged by now
		err = s.fits(ctx, refs, tx, to.Branch)
	}
	if err == nil && tip == "" {
		if err = refs.MoveRef(ctx, name, "", commit); err == nil || errors.Is(err, writing.ErrMoved) {
			tip, err = refs.Ref(ctx, name) // whoever was faster
		}
	}
	if err == nil && tip != commit {
		err = unopened(tx.TransactionID, fmt.Sprintf("its branch has another commit, %.12s: somebody moved it", tip), "find out who did, and delete the branch "+forge.Branch(tx.TransactionID))
	}
	return err
}

// build builds a transaction's commit on the commit that was reviewed. It follows from
// the transaction alone, and is not signed: nothing was approved yet.
func (s Settler) build(ctx context.Context, refs code.Refs, g pipeline.Judgement, to forge.Side) (string, error) {
	tx := g.Transaction()
	set, err := g.Patchset(ctx)
	if err != nil {
		return "", err
	}
	if _, err := pipeline.ComparePatch(tx, set, s.Runner.Secrets); err != nil {
		return "", err
	}
	server, err := url.Parse(to.CloneURL)
	if err != nil {
		return "", err
	}
	return effect.Builder{Refs: refs}.Build(ctx, effect.Change{Log: g.Log(), Set: set, Base: tx.Pointers.Proposal.BaseCommit}, server.Hostname(), "")
}

// fits refuses a transaction whose pull request would show another patch, or a conflict:
// the default branch does not have the commit that was reviewed, or has changed its files
// since.
func (s Settler) fits(ctx context.Context, refs code.Refs, tx ledger.Transaction, branch string) error {
	p := tx.Pointers.Proposal
	tip, err := refs.Ref(ctx, "refs/heads/"+branch)
	if err != nil {
		return err
	}
	on, err := s.Runner.Repo.Descends(ctx, tip, p.BaseCommit)
	if err != nil {
		return err
	}
	if !on {
		return unopened(
			tx.TransactionID, fmt.Sprintf("it was proposed on commit %.12s, which %s does not have", p.BaseCommit, report.Clean(branch)),
			"push that commit first, or propose the patch again on "+escape.ShellQuote(branch),
		)
	}
	tree, err := s.Runner.Repo.Tree(ctx, tip)
	if err != nil {
		return err
	}
	changed, err := pipeline.ChangedFiles(tree, *p)
	if err != nil || len(changed) == 0 {
		return err
	}
	superseded := &pipeline.SupersededError{ID: tx.TransactionID, Files: changed, PullRequest: tx.PullRequest()}
	_, err = s.Runner.Interrupt(ctx, tx.TransactionID, "its files have changed on "+branch+" since")
	return errors.Join(superseded, err)
}

// openPull finds or opens the pull request of a transaction's branch, and records its
// own diff, if that is the transaction's patch.
func (s Settler) openPull(ctx context.Context, g pipeline.Judgement, base string) (Opened, error) {
	tx := g.Transaction()
	rep, err := s.Host.Report(ctx, pipeline.Outcome{Judgement: g})
	if err == nil {
		rep, err = s.Host.Clean(rep)
	}
	if err != nil {
		return Opened{}, err
	}
	number, err := s.Forge.OpenPullRequest(ctx, forge.NewPull{
		Branch: forge.Branch(tx.TransactionID), Base: base,
		Title: s.Host.Redact(effect.Subject(tx)), Body: report.OpenedBody(rep),
	})
	if err != nil {
		return Opened{}, err
	}
	in, err := OwnDiff(ctx, s.Runner, number, tx.Notes)
	if err != nil {
		return Opened{}, err
	}
	set, err := in.Resolve(nil)
	if err != nil {
		return Opened{}, err
	}
	if set.ID() != tx.PatchID() || in.For.Base.Branch != base || in.For.Head.Branch != forge.Branch(tx.TransactionID) {
		return Opened{}, unopened(tx.TransactionID, fmt.Sprintf("pull request %d has another patch or another branch", number), "close it, and run the same command again")
	}
	in.Summary, in.Resolve = tx.Notes, func(fs.FS) (patch.Patchset, error) { return set, nil }
	done, err := review.Run(ctx, s.Runner, in, false)
	s.Host.Learn(done.Learnt)
	return Opened{number, done.ID}, err
}

// unproved says why what was merged is not proved to be what was approved.
func unproved(number int, commit, why string) error {
	return fault.Fail(
		fmt.Sprintf("pull request %d was merged as %.12s, and that is not proved to be the approved patch: %s", number, commit, why),
		"look at what was merged, and revert it if it is not what was approved",
	)
}

// merge merges a pull request of ours whose check has just passed on a head, if the
// Policy says so, and holds what was merged to the approved patch.
func (s *settlement) merge(ctx context.Context, p policy.Policy, id, head string) error {
	if s.opened == nil || p.Apply.To != policy.ToPullRequest || p.Apply.Merge != policy.MergeAuto {
		return nil
	}
	why, err := s.whyNotMerged(ctx, p, id, head)
	if err != nil {
		return err
	}
	if why != "" {
		s.note("Not merged by countersign: " + why + ".")
		return nil
	}
	// Everybody's word is read once more: what was taken back since merges nothing.
	g, err := s.Runner.GateToMerge(ctx, id)
	if err == nil && g.Err() != nil {
		var rep report.Report
		if rep, _, err = s.took(ctx, g); err == nil {
			err = errors.Join(g.Err(), s.publish(ctx, rep))
		}
	}
	if err != nil {
		s.alarm(ctx, err) // takes back the check as well
		return nil
	}
	base := s.pull.Base.Branch
	if now := g.Pull(); now.State != forge.PullRequestOpen || now.Draft || now.Head.Commit != head || now.Base.Branch != base {
		s.note("Not merged: the pull request was changed in that moment. The next run looks at it as it is now.")
		return nil
	}
	commit, err := s.Forge.Merge(ctx, s.number, head)
	switch {
	case errors.Is(err, forge.ErrMoved):
		s.note("Not merged: somebody pushed in that moment. The next run asks about what is there now.")
		return nil
	case errors.Is(err, forge.ErrRefused): // as where another check is required, and still runs
		s.note("Not merged: " + s.words(err) + " The next run tries again.")
		return nil
	case err != nil:
		return err
	}
	merged := func() bool { return s.pull.State == forge.PullRequestMerged && s.pull.MergeCommit != "" }
	if err := s.await(ctx, merged, "the forge does not show the merge yet: the next run records it"); err != nil {
		return err
	}
	if s.pull.Base.Branch != base {
		return unproved(s.number, commit, "it was merged into "+report.Clean(s.pull.Base.Branch))
	}
	if err := s.close(ctx, id); err != nil { // the next run ends it
		return err
	}
	log, err := lookup.Read(s.ledger.Tree, id)
	if err == nil && log.Transaction().Status != ledger.Completed {
		err = unproved(s.number, commit, view.Ended(log))
	}
	return err
}

// whyNotMerged says why an approved pull request is left to a person, "" if it is not.
func (s *settlement) whyNotMerged(ctx context.Context, p policy.Policy, id, head string) (string, error) {
	log, err := lookup.Read(s.ledger.Tree, id)
	if err != nil {
		return "", err
	}
	tx := log.Transaction()
	to, err := s.Forge.DefaultBranch(ctx)
	if err != nil {
		return "", err
	}
	switch {
	case s.pull.Draft:
		return "it is a draft", nil
	case s.pull.Head.Commit != head || tx.Pointers.Proposal.HeadCommit == "":
		return "its head has moved", nil
	case s.pull.Base.Branch != to.Branch:
		return "it is to another branch than the default one", nil
	case tx.PatchID() != s.opened.PatchID():
		return "its diff is no longer the patch that it was opened for", nil
	case !risk.Merges(p):
		return "the Policy has commands.run, and nothing runs these on the merge", nil
	case s.opened.Pointers.Proposal.Checks != "":
		return "the proposal asks for tests or commands, and nothing runs these on the merge", nil
	}
	open, _, err := openOn(ctx, s.Runner, s.pull.Repository, s.number)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(open, func(tx ledger.Transaction) bool { return !tx.GateOnly() }) {
		return "another change is proposed for it, and not decided", nil
	}
	refs, err := s.Runner.Code.Refs(ctx, s.pull.Base)
	if err != nil {
		return "", err
	}
	tip, err := refs.Ref(ctx, "refs/heads/"+s.pull.Base.Branch)
	if err != nil {
		return "", err
	}
	set, err := pipeline.PatchSource{Repo: s.Runner.Repo, Diffs: s.Runner.Diffs}.On(ctx, s.ledger.Tree, tx, tip)
	var unfit *patch.Error
	switch {
	case errors.As(err, &unfit), err == nil && set.ID() != tx.PatchID():
		return "its files have changed on " + s.pull.Base.Branch + " since, so that the merge would be another patch. Propose it anew", nil
	case errors.As(err, new(*pipeline.RedactedError)):
		return "the ledger has its patch only without secrets", nil
	}
	return "", err
}
