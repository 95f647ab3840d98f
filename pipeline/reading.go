package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// A NoForgeError says that a transaction's approvals are on a pull request, and
// that nothing is there to read them with.
type NoForgeError struct {
	ID          string
	PullRequest int
}

func (e *NoForgeError) Error() string {
	return fmt.Sprintf("the approvals of %s are on pull request %d, which cannot be read without a token", e.ID, e.PullRequest)
}

// A ReadingError says that a pull request could not be read in full, so that
// nothing on it is an approval (T61).
type ReadingError struct {
	PullRequest int
	Err         error
}

func (e *ReadingError) Error() string {
	return fmt.Sprintf("reading pull request %d: %v", e.PullRequest, e.Err)
}

func (e *ReadingError) Unwrap() error { return e.Err }

// A reading is what one stage read of a pull request. What it asked about
// people is kept: it is recorded with an apply.
type reading struct {
	forge      forge.Reader
	repo       code.Repository
	pull       forge.PullRequest
	statements []approval.Statement
	access     map[string]approval.Access // by account id
	members    map[string]map[string]bool // by team and account id
	owners     map[string]map[string]bool // by path and account id
	unread     bool                       // some team could not be read
	rules      *policy.CodeOwners         // of the Policy's commit
	rulesFrom  string
}

// A reader reads a pull request for a stage: once, however often the ledger
// moves, until it is told to forget.
type reader struct {
	*Runner
	last *reading
}

func (r *Runner) reader() *reader { return &reader{Runner: r} }

// forget lets the next read ask anew: for so long anything may have been said.
func (r *reader) forget() { r.last = nil }

func (r *reader) read(ctx context.Context, tx ledger.Transaction) (*reading, error) {
	p := tx.Pointers.Proposal
	if r.last != nil && r.last.of(p) {
		return r.last, nil
	}
	if r.Forge == nil {
		return nil, &NoForgeError{tx.TransactionID, p.PullRequest}
	}
	fail := func(err error) (*reading, error) { return nil, &ReadingError{p.PullRequest, err} }
	pull, err := r.Forge.PullRequest(ctx, p.PullRequest)
	if err != nil {
		return fail(err)
	}
	if p.Repository == nil || pull.Repository.ID != p.Repository.ID {
		return fail(errors.New("it is in another repository than the one that the transaction is for"))
	}
	said, err := r.Forge.Statements(ctx, p.PullRequest)
	if err != nil {
		return fail(err)
	}
	if r.WitnessedOn == p.PullRequest {
		said = witnessed(said, r.Witnessed)
	}
	r.last = &reading{
		forge: r.Forge, repo: r.Repo, pull: pull, statements: said,
		access: map[string]approval.Access{}, members: map[string]map[string]bool{}, owners: map[string]map[string]bool{},
	}
	return r.last, nil
}

// of reports whether this is what was read of a proposal's pull request.
func (x *reading) of(p *ledger.Proposal) bool {
	return x.pull.Number == p.PullRequest && p.Repository != nil && x.pull.Repository.ID == p.Repository.ID
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

// accessOf asks what an account may do, once.
func (x *reading) accessOf(ctx context.Context, who ledger.Actor) (approval.Access, error) {
	if a, known := x.access[who.ID]; known || who.ID == "" {
		return a, nil
	}
	a, err := x.forge.Access(ctx, who)
	if err != nil {
		return a, &ReadingError{x.pull.Number, err}
	}
	x.access[who.ID] = a
	return a, nil
}

// team reports whether somebody is in a team.
func (x *reading) team(ctx context.Context) func(string, ledger.Actor) (bool, error) {
	return func(team string, who ledger.Actor) (bool, error) {
		return remember(x.members, team, who.ID, func() (bool, error) {
			in, err := x.forge.Member(ctx, team, who)
			x.unread = x.unread || err != nil
			return in, err
		})
	}
}

// owner reports whether somebody owns a path, by the CODEOWNERS of the commit
// that has the Policy: never by what a pull request brings.
func (x *reading) owner(ctx context.Context, commit string) func(string, ledger.Actor) (bool, error) {
	return func(path string, who ledger.Actor) (bool, error) {
		return remember(x.owners, path, who.ID, func() (bool, error) { return x.owns(ctx, commit, path, who) })
	}
}

// remember asks once.
func remember(known map[string]map[string]bool, what, id string, ask func() (bool, error)) (bool, error) {
	if yes, asked := known[what][id]; asked {
		return yes, nil
	}
	yes, err := ask()
	if err != nil {
		return false, err
	}
	if known[what] == nil {
		known[what] = map[string]bool{}
	}
	known[what][id] = yes
	return yes, nil
}

func (x *reading) owns(ctx context.Context, commit, path string, who ledger.Actor) (bool, error) {
	if x.rules == nil || x.rulesFrom != commit {
		tree, err := x.repo.Tree(ctx, commit)
		if err != nil {
			return false, err
		}
		rules, err := policy.ReadCodeOwners(tree)
		if err != nil {
			return false, err
		}
		x.rules, x.rulesFrom = rules, commit
	}
	return x.rules.Owns(path, who.Login, func(team string) (bool, error) { return x.team(ctx)(team, who) })
}
