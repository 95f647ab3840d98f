// Package review is the first stage of a transaction: it records what is proposed, and
// changes nothing else. It also says what people are told before that: whether a change
// fits, and its risks.
package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A Reviewed is a recorded proposal. Known says that it was there already, and Again what that
// means for this one.
type Reviewed struct {
	ID         string
	Patchset   patch.Patchset
	PatchID    string
	Status     ledger.Status
	BaseCommit string
	Ledger     writing.Snapshot // as the review left it
	Known      bool
	Again      Again
	Learnt     pipeline.Known // of the patch and its secrets
	// InputSHA256 is of the file that was given, "sha256:…"; "" where none was, or
	// where it holds secrets, which a hash of what surrounds them can give away.
	InputSHA256 string
	Risks       risk.List // as people are shown them
	Supersedes  []string  // the transactions whose place it takes, or would take
}

// A reviewer reviews with the parts of a Runner.
type reviewer struct{ *pipeline.Runner }

// Run records a proposal and writes nothing but the ledger: no working
// tree, no index, no other ref. The same change on the same base returns the
// transaction that is open for it. dryRun records nothing.
func Run(ctx context.Context, runner *pipeline.Runner, in input.Change, dryRun bool) (Reviewed, error) {
	r := reviewer{runner}
	p, err := r.gather(ctx, in)
	if err != nil {
		return Reviewed{Learnt: p.known}, err
	}
	r = reviewer{r.With(p.known)}
	if in.Kind != input.KindPullRequest {
		in.RequestedBy = slices.Concat(in.RequestedBy, r.Asked)
	}
	p.pull, p.own, p.proposer, p.replaces, p.placed = in.For, in.Kind == input.KindPullRequest, r.proposer(in), in.Replaces, in.Base != ""
	proposed := Reviewed{Patchset: p.Set, PatchID: p.ID, BaseCommit: p.Base, Learnt: p.known, Risks: p.risks.Under(p.rules.Policy, p.Set.Paths())}
	if (in.Kind == input.KindPatch || in.Kind == input.KindPack || in.Kind == input.KindProposal) && p.Redacted() == "" {
		proposed.InputSHA256 = canon.Sum(in.Raw)
	}
	paths, err := r.rivals(ctx, p)
	if err != nil {
		return proposed, err
	}
	paths = append(paths, ledger.DeniedDir(p.ID), ledger.ProposedDir(p.ID), ledger.Day(r.Now()))
	if p.rules.Policy.Limits.Open > 0 {
		paths = append(paths, ledger.TransactionsDir)
	}
	out, after, err := pipeline.Update(ctx, r.Runner, paths, func(snap writing.Snapshot) (pipeline.Try[Reviewed], error) {
		out := proposed
		known, err := r.recorded(ctx, snap, p)
		if err != nil {
			return pipeline.Nothing(out, err)
		}
		by, err := r.proposers(snap.Tree, p)
		if err != nil {
			return pipeline.Nothing(out, err)
		}
		if known == nil {
			if err := r.refuseDirty(ctx, in, p); err != nil {
				return pipeline.Nothing(out, err)
			}
		}
		old, err := p.superseded(snap.Tree, known)
		if err != nil {
			return pipeline.Nothing(out, err)
		}
		for _, log := range old {
			out.Supersedes = append(out.Supersedes, log.Transaction().TransactionID)
		}
		if known != nil {
			out.ID, out.Status, out.Known = known.TransactionID, known.Status, true
			done, err := r.proposeAgain(snap.Tree, in, p, by, out, dryRun)
			if err == nil && !dryRun {
				done.Entries, err = r.endings(in.Because, old, out.ID, done.Entries...)
			}
			return done, err
		}
		if err := p.refuseCrowd(snap.Tree, out.Supersedes); err != nil || dryRun {
			return pipeline.Nothing(out, err)
		}
		return r.succeed(in, p, by, old, out, snap.Tip == "")
	})
	out.Ledger, out.Learnt = after, p.known
	return out, err
}

// Worktree proposes what the working tree holds beyond HEAD.
func Worktree(ctx context.Context, r *pipeline.Runner, summary string) (input.Change, error) {
	if r.Worktree == nil {
		return input.Change{}, pipeline.ErrNoWorktree
	}
	rules, err := r.CurrentRules(ctx, "")
	if err != nil {
		return input.Change{}, err
	}
	changed, read, err := r.Files().Changed(ctx)
	if err != nil {
		return input.Change{}, err
	}
	return input.Worktree(changed, read, rules.Policy.Limits.Bytes, summary), nil
}

func (r reviewer) gather(ctx context.Context, in input.Change) (gathered, error) {
	rules, err := r.CurrentRules(ctx, in.To())
	if err != nil {
		return gathered{}, err
	}
	limits := rules.Policy.Limits
	if size := int64(len(in.Raw)); size > limits.Bytes {
		return gathered{}, &pipeline.LimitError{What: "bytes", Have: size, Max: limits.Bytes}
	}
	base := in.Base
	if base == "" && in.For != nil {
		base = in.For.Head.Commit
	}
	if base == "" {
		base = rules.Head
	}
	if base == "" {
		if base, err = r.Repo.Head(ctx); err != nil {
			return gathered{}, err
		}
	}
	tree, err := r.Repo.Tree(ctx, base)
	if err != nil {
		return gathered{}, err
	}
	if in.Expands != nil {
		if size := in.Expands(tree); size > limits.Bytes {
			return gathered{}, &pipeline.LimitError{What: "bytes", Have: size, Max: limits.Bytes}
		}
	}
	set, err := in.Resolve(tree)
	if large := new(gitpatch.TooLargeError); errors.As(err, &large) {
		return gathered{}, fmt.Errorf("%s: %w", patch.Quote(large.Path), &pipeline.LimitError{What: "bytes", Have: limits.Bytes + 1, Max: limits.Bytes})
	}
	if err != nil {
		return gathered{}, r.unfit(ctx, in, base, tree, err)
	}
	if size := gitpatch.Growth(set); in.Kind != input.KindPullRequest && size > limits.Bytes {
		return gathered{}, &pipeline.LimitError{What: "bytes", Have: size, Max: limits.Bytes}
	}
	if n := len(set.Files()); n > limits.Files {
		return gathered{}, &pipeline.LimitError{What: "files", Have: int64(n), Max: int64(limits.Files)}
	}
	diff := set.Bytes()
	if size := int64(len(diff)); in.Computed() && size > limits.Bytes {
		return gathered{}, &pipeline.LimitError{What: "bytes", Have: size, Max: limits.Bytes}
	}
	finder, found, clean, err := r.secrets(rules.Policy, in, set)
	known := r.Known().Given(finder, diff, set.Offsets)
	r = reviewer{r.With(known)} // from here on it knows what the patch holds
	if err != nil {
		return gathered{known: known}, err
	}
	g := gathered{
		Patch: input.Patch{Set: set, ID: canon.Hex(diff), Base: base, Stored: clean, ContainsSecrets: len(found) > 0},
		diff:  diff, found: found, risks: risk.NewList(canon.Hex(diff), risk.Of(set, found)),
		known: known, rules: rules, mode: rules.Policy.Sandbox,
	}
	if r.Sandbox == policy.ReadOnly {
		g.mode = policy.ReadOnly
	}
	return g, g.seal(rules.Policy)
}

// recorded returns the transaction that there is for the patch on this base, nil
// if there is none: the open one, or the one that put the files on disk where
// they are. A patch that was ever denied is a *DeniedError.
func (r reviewer) recorded(ctx context.Context, snap writing.Snapshot, p gathered) (*ledger.Transaction, error) {
	tree := snap.Tree
	denials, err := ledger.Denials(tree, p.ID)
	if err != nil {
		return nil, err
	}
	unjoined, err := snap.UnjoinedDenials(p.ID)
	if err != nil {
		return nil, err
	}
	if denials = append(denials, unjoined...); len(denials) > 0 {
		d := denials[0]
		why := fmt.Sprintf("denied by %s in %s", ledger.OneLine(d.Author.Login, 80), d.TransactionID)
		if d.Reason != "" {
			why += ": " + ledger.OneLine(d.Reason, 200)
		}
		return nil, &pipeline.DeniedError{PatchID: p.ID, Reason: why, In: d.TransactionID}
	}
	proposals, err := lookup.Proposals(tree, p.ID)
	if err != nil {
		return nil, err
	}
	var done *ledger.Transaction
	for _, known := range proposals {
		t, err := lookup.ListedState(tree, known.TransactionID)
		if err != nil {
			return nil, err
		}
		switch {
		case t.PatchID() != p.ID:
			return nil, &ledger.CorruptError{ID: t.TransactionID, Err: errors.New("it does not propose the patch that it is listed under")}
		case t.Status == ledger.Denied:
			return nil, &pipeline.DeniedError{ID: t.TransactionID, PatchID: p.ID, Reason: "denied", In: t.TransactionID}
		case !p.sameAs(t):
		case !t.Closed:
			return &t, p.heldTo(t)
		case t.Status == ledger.Completed:
			done = &t
		}
	}
	if done == nil || r.Worktree == nil || p.pull != nil {
		return nil, nil
	}
	if there, err := r.Files().Done(ctx, p.Base, p.Set.Files()); err != nil || !there {
		return nil, err
	}
	return done, nil
}

// sameAs reports whether a transaction of this patch is about the same place: the
// same base or pull request, and one that may be applied if this one may. A
// patch names by hash what it changes, so that a push which leaves that alone
// changes nothing on a pull request. Only a patch that is stored without its
// secrets needs its base, which such a push may have taken away. Elsewhere such a patch,
// which is here whole only as it is given, is that of the open transaction wherever HEAD is.
func (p gathered) sameAs(t ledger.Transaction) bool {
	of := t.Pointers.Proposal
	if (p.mode == policy.ReadOnly) != (t.SandboxPolicy.Type == string(policy.ReadOnly)) {
		return false
	}
	if p.pull == nil {
		return of.PullRequest == 0 && (of.BaseCommit == p.Base || of.PatchRedactedSHA256 != "" && !t.Closed && !p.placed && p.heldTo(t) == nil)
	}
	return of.Repository != nil && of.Repository.ID == p.pull.Repository.ID && of.PullRequest == p.pull.Number &&
		t.GateOnly() == p.own && (p.own || of.BaseCommit == p.Base || of.PatchRedactedSHA256 == "")
}

// heldTo compares the record of an open transaction, which is taken up again, with what
// was gathered: whoever can write the ledger could have recorded the same patch with
// other files, secrets or authors, and what people are asked goes by the record.
func (p gathered) heldTo(t ledger.Transaction) error {
	if err := pipeline.CompareFound(t, p.Set, p.found, p.Stored); err != nil || !p.own {
		return err
	}
	return pipeline.ByAuthors(t, p.pull.Author, p.pull.Head.Commit, p.pull.Committers)
}

// refuseDirty: what the human is shown must be what the files in front of them
// would become. A proposal of the working tree is what is in front of them, and a
// change that goes to a ref has nothing to do with them.
func (r reviewer) refuseDirty(ctx context.Context, in input.Change, p gathered) error {
	if r.Worktree == nil || in.Kind == input.KindWorktree || in.For != nil {
		return nil
	}
	if to := cmp.Or(in.Target, p.rules.Policy.Apply.To, policy.ToWorktree); to != policy.ToWorktree {
		return nil
	}
	_, err := r.Files().Clean(ctx, p.Base, p.Set.Files())
	return err
}

// decided has the words of decisions on a patch, which are recorded as they were said.
const decided = "/approve secret /approve protected /approve patchset: /deny secret:patchset: /approve --break-glass protected:patchset:"

// secrets finds what looks like secrets in a proposal, and refuses it where the
// Policy does, or where a path is one: paths tie hashes to files and must stand
// in the ledger as they are. It refuses a Proposal as well whose tests could not be
// run from the ledger, since what they expect is stored without secrets.
//
// The Finder that it returns knows the patch's secrets, and clean is the patch without them.
func (r reviewer) secrets(p policy.Policy, in input.Change, set patch.Patchset) (finder redact.Finder, found []redact.Finding, clean []byte, err error) {
	finder, found, clean = r.Secrets.Learn(set)
	for _, f := range set.Files() { // whose names tell who has to approve: one that is a secret of the patch itself is refused as well
		if err := finder.Refuse(f.Path, f.Path, "a file's name cannot be kept out of the ledger"); err != nil {
			return finder, nil, nil, err
		}
	}
	if err := finder.Refuse(policy.Path, string(p.JSON()), "the Policy is recorded word for word with every transaction, and the patch has a part of it as a secret"); err != nil {
		return finder, nil, nil, err
	}
	if finder.Text(decided) != decided {
		return finder, nil, nil, &redact.FoundError{Found: found, Why: "it is a word of what people decide with, and no decision could be recorded"}
	}
	if len(found) > 0 && p.Secrets.Mode == policy.Refuse {
		return finder, nil, nil, &redact.FoundError{Found: found, Why: "the Policy refuses secrets"}
	}
	if in.Proposal == nil {
		return finder, found, clean, nil
	}
	for _, t := range in.Proposal.AcceptanceTests {
		if err := finder.Refuse(t.Target, t.Expected, "what a test expects is recorded, and cannot be a secret; hash_match takes its SHA-256"); err != nil {
			return finder, nil, nil, err
		}
	}
	return finder, found, clean, nil
}

// A proposal for a pull request takes the place of the open ones that its
// proposer made for the same pull request and that touch one of its files. A
// file is a path, byte for byte; a rename touches both of its names. Paths that
// are only in each other's way ("a" and "a/b", or by case) are two files: both
// are asked about, and the second does not fit any more once the first is
// applied. What is applied, or being applied, is left alone.

// rivals are what Review reads to know which transactions a proposal supersedes.
func (r reviewer) rivals(ctx context.Context, p gathered) ([]string, error) {
	if p.pull == nil || p.own {
		return pipeline.Paths(p.replaces), nil
	}
	all, _, err := r.TransactionsOn(ctx, p.pull.Repository, p.pull.Number)
	paths := []string{ledger.PullDir(p.pull.Number)}
	for _, tx := range all {
		if p.supersedes(tx) {
			paths = append(paths, pipeline.Paths(tx.TransactionID)...)
		}
	}
	return paths, err
}

// superseded are the logs of the transactions that a proposal takes the place of, whether it is known or not.
func (p gathered) superseded(tree fs.FS, known *ledger.Transaction) ([]*ledger.Log, error) {
	if known != nil && known.TransactionID == p.replaces {
		return nil, nil
	}
	if p.replaces != "" {
		log, err := lookup.Read(tree, p.replaces)
		if err != nil || log.Transaction().Closed {
			return nil, err
		}
		if log.Applying() || log.Transaction().Status == ledger.Applied {
			return nil, pipeline.ClosedError(p.replaces, log.Transaction().Status)
		}
		return []*ledger.Log{log}, nil
	}
	if p.pull == nil || p.own || known != nil {
		return nil, nil
	}
	all, err := lookup.StatesOnPull(tree, p.pull.Repository, p.pull.Number)
	if err != nil {
		return nil, err
	}
	var out []*ledger.Log
	for _, tx := range all {
		if !p.supersedes(tx) {
			continue
		}
		log, err := lookup.Read(tree, tx.TransactionID)
		if err != nil {
			return nil, err
		}
		if !log.Applying() {
			out = append(out, log)
		}
	}
	return out, nil
}

// supersedes reports whether a transaction of the same pull request is one whose
// place the proposal takes, unless it is being applied.
func (p gathered) supersedes(tx ledger.Transaction) bool {
	if tx.Closed || tx.Status == ledger.Applied || tx.GateOnly() || tx.Proposer.Kind != p.proposer.Kind || tx.Proposer.ID != p.proposer.ID {
		return false
	}
	return slices.ContainsFunc(p.Set.Files(), func(f patch.Change) bool {
		return slices.Contains(tx.Pointers.Proposal.TargetFiles, f.Path)
	})
}

// succeed records a proposal, after the end of what it supersedes, and with all who proposed it.
func (r reviewer) succeed(in input.Change, p gathered, by []ledger.Actor, old []*ledger.Log, out Reviewed, first bool) (pipeline.Try[Reviewed], error) {
	supersedes := out.Supersedes
	if p.pull == nil { // whose end alone says it
		supersedes = nil
	}
	stage, err := r.propose(in, p, supersedes)
	if err != nil {
		return pipeline.Nothing(out, err)
	}
	tx := stage.Log.Transaction()
	out.ID, out.Status = tx.TransactionID, tx.Status
	entry, err := stage.Entry(writing.Title{Stage: "review", Outcome: string(tx.Status), Subject: p.Subject(in.Summary)}, first)
	if err != nil {
		return pipeline.Nothing(out, err)
	}
	others, err := r.addProposals(stage.Log, nil, in, p, by[1:], out)
	if err != nil {
		return pipeline.Nothing(out, err)
	}
	entries, err := r.endings(in.Because, old, out.ID, append([]writing.Entry{*entry}, others.Entries...)...)
	return pipeline.Try[Reviewed]{Value: out, Entries: entries}, err
}

// endings are the entries that end transactions whose place another one has taken, for the reason that it gives, before those that follow.
func (r reviewer) endings(because string, old []*ledger.Log, by string, then ...writing.Entry) (entries []writing.Entry, err error) {
	for _, log := range old {
		why := "the proposer proposed another change of its files for this pull request"
		if log.Transaction().PullRequest() == 0 {
			why = because
		}
		s, title := r.Succeeded(log, by, why)
		e, err := s.Entry(title, false)
		if err != nil {
			return nil, err
		}
		entries = append(entries, *e)
	}
	return append(entries, then...), nil
}
