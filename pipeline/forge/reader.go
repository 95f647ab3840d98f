package forge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// NoForge is an error that says that the approvals of a change are on a pull request that cannot be read here.
func NoForge(id string, number int) error {
	return &fault.Error{
		Kind: fault.Away, Message: fmt.Sprintf("the approvals of %s are on pull request %d, which cannot be read without a token for its server", id, number),
		Try: "set COUNTERSIGN_TOKEN to a token that may read pull requests",
	}
}

// A ReadingError says that a pull request could not be read in full, so that
// nothing on it is an approval.
type ReadingError struct {
	PullRequest int
	Err         error
}

func (e *ReadingError) Error() string {
	return fmt.Sprintf("reading pull request %d: %v", e.PullRequest, e.Err)
}

func (e *ReadingError) Unwrap() error { return e.Err }

// Diffs tell what a commit of a pull request changes.
type Diffs interface {
	// MergeBase is the best common ancestor of a branch of the base repository,
	// as it is there now, and a commit.
	MergeBase(ctx context.Context, branch, commit string) (string, error)
	// Diff is what makes the second commit's tree of the first one's.
	Diff(ctx context.Context, from, to string) (patch.Patchset, error)
}

// Trees are the files of commits.
type Trees interface {
	Tree(ctx context.Context, commit string) (fs.FS, error)
}

// A PullReader reads a pull request for a stage: once, until it is told to forget.
// Forge is nil for nowhere, Diffs nil where no green review can be compared with
// the patch.
type PullReader struct {
	Forge Reader
	Trees Trees // CODEOWNERS is in one
	Diffs Diffs
	Store writing.Store // which transaction a pull request was opened for
	// Witnessed are statements that an event told, with texts that the forge may
	// not have any more, of the pull request WitnessedOn.
	Witnessed   []approval.Statement
	WitnessedOn int

	last *reading
}

// Forget lets the next read ask anew: for so long anything may have been said.
func (r *PullReader) Forget() { r.last = nil }

// Pull is a transaction's pull request.
func (r *PullReader) Pull(ctx context.Context, tx ledger.Transaction) (PullRequest, error) {
	x, err := r.read(ctx, tx)
	if err != nil {
		return PullRequest{}, err
	}
	return x.pull, nil
}

// About is what was said about a transaction whose directory is in a ledger's tree.
func (r *PullReader) About(ctx context.Context, tree fs.FS, log *ledger.Log) (*Conversation, error) {
	tx := log.Transaction()
	x, err := r.read(ctx, tx)
	if err != nil {
		return nil, err
	}
	c := &Conversation{reading: x}
	c.Statements, c.PatchID, c.GateOnly = x.statements, tx.PatchID(), tx.GateOnly()
	if c.Posted, err = ReadPosted(tree, log); err != nil {
		return nil, err
	}
	if c.GateOnly {
		c.Heads = r.heads(ctx, x, tx)
	}
	c.Since, err = since(tree, log)
	c.said = c.Transcript.Said()
	return c, err
}

// PullRequest reads a pull request. Whoever proposed the patch that it was opened for
// is among those who wrote it: their approval must not count, whoever's token opened it.
func (r *PullReader) PullRequest(ctx context.Context, number int) (PullRequest, error) {
	pull, err := r.Forge.PullRequest(ctx, number)
	if err != nil {
		return pull, &ReadingError{number, err}
	}
	return r.WithProposer(ctx, pull)
}

// WithProposer adds to those who wrote a pull request whoever proposed the patch that
// it was opened for.
func (r *PullReader) WithProposer(ctx context.Context, pull PullRequest) (PullRequest, error) {
	tx, err := OpenedFor(ctx, r.Store, pull)
	if err != nil {
		return pull, &ReadingError{pull.Number, err}
	}
	if tx != nil && !slices.ContainsFunc(pull.Committers, func(a ledger.Actor) bool { return a.Kind == tx.Proposer.Kind && a.ID == tx.Proposer.ID }) {
		pull.Committers = append(slices.Clone(pull.Committers), tx.Proposer)
	}
	return pull, nil
}

// Branch is the branch of the pull request that a transaction becomes.
func Branch(id string) string { return branches + id }

const branches = "countersign/"

// IsBranch reports whether a branch is named for a transaction.
func IsBranch(name string) bool {
	id, named := strings.CutPrefix(name, branches)
	return named && ledger.CheckID(id) == nil
}

// NamedFor is the id of the transaction that the head branch of a pull request is named
// for, "" for none.
func NamedFor(pull PullRequest) string {
	if pull.Fork() || !IsBranch(pull.Head.Branch) {
		return ""
	}
	return strings.TrimPrefix(pull.Head.Branch, branches)
}

// OpenedFor returns the transaction that a pull request was opened for, nil for none.
// The name of the head branch says which one. Who gives a branch that name adds to those
// who may not approve, and takes nobody away; what else hangs on it is to look at the patch.
func OpenedFor(ctx context.Context, store writing.Store, pull PullRequest) (*ledger.Transaction, error) {
	id := NamedFor(pull)
	if id == "" {
		return nil, nil
	}
	snap, err := store.Snapshot(ctx, ledger.Dir(id))
	if err != nil || snap.Tip == "" {
		return nil, err
	}
	if _, err := fs.Stat(snap.Tree, ledger.Dir(id)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	log, err := lookup.Read(snap.Tree, id) // half of a record is an error, and not none
	if err != nil {
		return nil, err
	}
	tx := log.Transaction()
	return &tx, nil
}

func (r *PullReader) read(ctx context.Context, tx ledger.Transaction) (*reading, error) {
	p := tx.Pointers.Proposal
	if r.last != nil && r.last.pull.Number == p.PullRequest && p.Repository != nil && r.last.pull.Repository.ID == p.Repository.ID {
		return r.last, nil
	}
	if r.Forge == nil {
		return nil, NoForge(tx.TransactionID, p.PullRequest)
	}
	pull, err := r.PullRequest(ctx, p.PullRequest)
	if err != nil {
		return nil, err
	}
	if p.Repository == nil || pull.Repository.ID != p.Repository.ID {
		return nil, &ReadingError{p.PullRequest, errors.New("it is in another repository than the one that the transaction is for")}
	}
	said, err := r.Forge.Statements(ctx, p.PullRequest)
	if err != nil {
		return nil, &ReadingError{p.PullRequest, err}
	}
	if r.WitnessedOn == p.PullRequest {
		said = witnessed(said, r.Witnessed)
	}
	r.last = &reading{
		forge: r.Forge, trees: r.Trees, pull: pull, statements: said,
		access: map[string]approval.Access{}, members: map[question]bool{}, owners: map[question]bool{},
		keys: map[string][]approval.Registered{},
	}
	return r.last, nil
}

// witnessed adds what an event told: a text that a statement had before, or a
// statement that the forge does not have any more.
func witnessed(said, events []approval.Statement) []approval.Statement {
	for _, e := range events {
		i := slices.IndexFunc(said, func(s approval.Statement) bool { return s.Kind == e.Kind && s.ID == e.ID })
		if i < 0 {
			e.Gone = true
			said = append(said, e)
			continue
		}
		said[i].Earlier = append(append(slices.Clone(said[i].Earlier), e.Earlier...), e.Body)
	}
	return said
}

// heads are the commits that were reviewed and whose diff is the patch.
func (r *PullReader) heads(ctx context.Context, x *reading, tx ledger.Transaction) map[string]bool {
	const most = 20 // each takes a merge base and a diff
	heads := map[string]bool{tx.Pointers.Proposal.HeadCommit: true}
	asked := 0
	for _, s := range x.statements {
		if _, known := heads[s.Commit]; known || s.Kind != approval.KindReview || s.State != approval.ReviewApproved || asked == most {
			continue
		}
		asked++
		heads[s.Commit] = r.diffIs(ctx, x.pull, s.Commit, tx.PatchID())
	}
	return heads
}

// diffIs reports whether a commit's diff from its merge base is a patch; what
// cannot be read is not.
func (r *PullReader) diffIs(ctx context.Context, pull PullRequest, commit, patchID string) bool {
	if r.Diffs == nil {
		return false
	}
	base, err := r.Diffs.MergeBase(ctx, pull.Base.Branch, commit)
	if err != nil {
		return false
	}
	set, err := r.Diffs.Diff(ctx, base, commit)
	return err == nil && set.ID() == patchID
}

// A reading is what was read of a pull request. What was asked about people is
// kept: it is recorded with an apply.
type reading struct {
	forge      Reader
	trees      Trees
	pull       PullRequest
	statements []approval.Statement
	access     map[string]approval.Access // by account id
	members    map[question]bool
	owners     map[question]bool
	keys       map[string][]approval.Registered // by account id
	unread     bool                             // some team could not be read
	rules      *Owners                          // of the commit rulesFrom, which has the Policy
	rulesFrom  string
}

// A question is whether the account of an id is in a team, or owns a path.
type question struct{ of, id string }

// answer asks a question once.
func answer(known map[question]bool, of, id string, ask func() (bool, error)) (bool, error) {
	q := question{of, id}
	if yes, asked := known[q]; asked {
		return yes, nil
	}
	yes, err := ask()
	if err != nil {
		return false, err
	}
	known[q] = yes
	return yes, nil
}

// team reports whether somebody is in a team.
func (x *reading) team(ctx context.Context, team string, who ledger.Actor) (bool, error) {
	return answer(x.members, team, who.ID, func() (bool, error) {
		in, err := x.forge.Member(ctx, team, who)
		x.unread = x.unread || err != nil
		return in, err
	})
}

// owns reports whether somebody owns a path, by the CODEOWNERS of the commit that
// has the Policy: never by what a pull request brings.
func (x *reading) owns(ctx context.Context, commit, path string, who ledger.Actor) (bool, error) {
	return answer(x.owners, path, who.ID, func() (bool, error) {
		if x.rules == nil || x.rulesFrom != commit {
			tree, err := x.trees.Tree(ctx, commit)
			if err != nil {
				return false, err
			}
			rules, err := ReadOwners(tree)
			if err != nil {
				return false, err
			}
			x.rules, x.rulesFrom = rules, commit
		}
		return x.rules.Owns(path, who.Login, func(team string) (bool, error) { return x.team(ctx, team, who) })
	})
}
