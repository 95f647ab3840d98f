package storetest

import (
	"context"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/review"
)

// A forgeOf has one pull request, on which people who may write said something.
type forgeOf struct {
	pull forge.PullRequest
	said []approval.Statement
}

func (f forgeOf) PullRequest(context.Context, int) (forge.PullRequest, error) { return f.pull, nil }
func (f forgeOf) Statements(context.Context, int) ([]approval.Statement, error) {
	return f.said, nil
}
func (f forgeOf) Access(context.Context, ledger.Actor) (approval.Access, error) {
	return approval.Access{Permission: "write", Role: "write"}, nil
}
func (f forgeOf) Member(context.Context, string, ledger.Actor) (bool, error) { return false, nil }
func (f forgeOf) SigningKeys(context.Context, ledger.Actor) ([]approval.Registered, error) {
	return nil, nil
}

// pull is pull request 1, of Bea's.
func (l *life) pull() *forge.PullRequest {
	author, repository := ledger.Actor{Kind: "user", ID: "7", Login: "bea"}, ledger.Repository{ID: "1", Name: "acme/app"}
	side := func(branch string) forge.Side {
		return forge.Side{Repository: &repository, Owner: "Organization", Branch: branch, Commit: l.base}
	}
	return &forge.PullRequest{
		Repository: repository, Number: 1, State: forge.PullRequestOpen, Title: "greet", Author: author,
		Head: side("greet"), Base: side("main"), Committers: []ledger.Actor{author}, Paths: []string{l.name},
	}
}

// guarded is that pull request's own diff.
func (l *life) guarded() error {
	in, err := l.change()
	if err != nil {
		return err
	}
	in.Kind, in.Base, in.For = input.KindPullRequest, l.base, l.pull()
	in.Proposer = &in.For.Author
	out, err := review.Run(context.Background(), l.bot(), in, false)
	l.id = out.ID
	return err
}

// commented is an approval of it, in a comment of Ada's.
func (l *life) commented() error {
	snap, err := l.Snapshot(context.Background())
	if err != nil {
		return err
	}
	tx, err := lookup.State(snap.Tree, l.id)
	if err != nil {
		return err
	}
	r := l.bot()
	r.Forge = forgeOf{*l.pull(), []approval.Statement{{
		Kind: approval.KindIssueComment, ID: "20", URL: "https://forge.example/acme/app/pull/1#20", Author: ledger.Actor{Kind: "user", ID: "8", Login: "ada"},
		Body: "/approve patchset:" + tx.PatchID(), CreatedAt: l.now.Add(2 * time.Second).Format(time.RFC3339),
	}}}
	_, err = r.Gate(context.Background(), l.id)
	return err
}
