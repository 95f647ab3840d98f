package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/gitea"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/scaffold"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/record/lazyregexp"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// ledgerTokenName is the variable with the token for the repository that keeps other
// repositories' ledgers. It goes to no other.
const ledgerTokenName = "COUNTERSIGN_LEDGER_TOKEN"

// A placeError is a shared ledger of which it is not known where it is kept: nothing is
// read or written then.
type placeError struct {
	Remote string
	Err    error
	Try    string
}

func (e *placeError) Error() string {
	return fmt.Sprintf("finding out where the ledger of %s is kept: %v", e.Remote, e.Err)
}

func (e *placeError) Hint() string  { return e.Try }
func (e *placeError) Unwrap() error { return e.Err }

// place is where the remote's ledger is kept: in the remote itself, or in the repository
// that the Policy of its default branch names (docs/ledger.md, "A ledger in another
// repository"). Everything that shares a ledger asks here. No other Policy is asked: one that is
// checked out may be anybody's.
func (a *App) place(ctx context.Context, repo *gitstore.Repo, settings gitstore.Settings) (gitstore.Place, error) {
	address, err := a.remoteURL(settings)
	if err != nil {
		return gitstore.Place{}, err
	}
	remote, err := a.server(repo, settings, address, "")
	if err != nil {
		return gitstore.Place{}, err
	}
	place := gitstore.Place{Server: remote, Ref: a.flags.ledgerRef, Of: remote.Remote()}
	p, err := a.defaultPolicy(ctx, repo, remote)
	if err != nil || p.Ledger.Repository == "" {
		return place, err
	}
	there, err := wire.Sibling(address, p.Ledger.Repository)
	if err != nil {
		return gitstore.Place{}, &placeError{
			Remote: remote.String(), Err: fmt.Errorf("the Policy names %s, on the server of the remote: %w", p.Ledger.Repository, err),
			Try: "give the remote an address over https or ssh, with OWNER/NAME at its end",
		}
	}
	name := repositoryName(remote.Remote())
	if strings.EqualFold(name, p.Ledger.Repository) {
		return gitstore.Place{}, &placeError{
			Remote: remote.String(), Err: fmt.Errorf("the Policy names %s, which is the repository itself", p.Ledger.Repository),
			Try: "leave ledger.repository out of the Policy, or name another repository",
		}
	}
	number, err := a.repositoryNumber(ctx, settings, name)
	if err != nil {
		return gitstore.Place{}, err
	}
	place.Ref, a.elsewhere = place.Ref+"-"+number, true
	place.Server, err = a.ledgerServer(repo, settings, there, p.Ledger.Repository)
	return place, errors.Join(err, remote.Close())
}

// defaultPolicy is the Policy of the commit that a remote's HEAD names, and the default
// one only where the remote has no branch yet that could have another.
func (a *App) defaultPolicy(ctx context.Context, repo *gitstore.Repo, remote *wire.Server) (policy.Policy, error) {
	commit, err := repo.Fetch(ctx, remote, "HEAD", false)
	if as[*gitstore.NoRefError](err) {
		branches, err := remote.Branches(ctx)
		branches = slices.DeleteFunc(branches, func(ref string) bool { return ref == a.flags.ledgerRef })
		if err == nil && len(branches) > 0 {
			return policy.Policy{}, &placeError{
				Remote: remote.String(), Err: errors.New("its HEAD names no branch that is there, and so no Policy"),
				Try: "let the default branch be one that is there",
			}
		}
		return policy.Default(), err
	}
	if err != nil {
		return policy.Policy{}, err
	}
	tree, err := repo.Tree(ctx, commit)
	if err != nil {
		return policy.Policy{}, &placeError{Remote: remote.String(), Err: err, Try: ""}
	}
	p, _, err := policy.Read(tree)
	if err != nil {
		return policy.Policy{}, fmt.Errorf("in commit %.12s, which HEAD of %s is at: %w", commit, remote, err)
	}
	return p, nil
}

// repositoryName is the OWNER/NAME at the end of a remote's path.
func repositoryName(r wire.Remote) string {
	parts := strings.Split(strings.Trim(strings.TrimSuffix(r.String(), ".git"), "/"), "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}

// repositoryNumber is the number of the remote's repository, whose name is what the remote says: as the event of the
// workflow has it, or as the forge tells it, or, on a person's machine where nobody can be asked, as the clone's configuration has it for that remote.
func (a *App) repositoryNumber(ctx context.Context, settings gitstore.Settings, name string) (string, error) {
	number, told := "", ""
	if inWorkflow(a.Getenv) {
		e, err := readEvent(a.Getenv)
		if err != nil {
			return "", err
		}
		if e.Repository.ID != 0 {
			number, told = strconv.FormatInt(e.Repository.ID, 10), e.Repository.FullName
		}
	}
	if number == "" {
		client, err := a.forge(settings)
		if err != nil {
			return "", err
		}
		if client != nil {
			side, err := client.DefaultBranch(ctx)
			if err != nil {
				return "", err
			}
			number, told = side.Repository.ID, side.Repository.Name
		}
	}
	if number == "" {
		key := "remote." + a.flags.remote + ".repositoryId"
		if !inWorkflow(a.Getenv) {
			number = settings.RepositoryNumber(a.flags.remote)
		}
		if number == "" {
			return "", &placeError{
				Remote: name, Err: fmt.Errorf("there is no token to ask for the repository's number with (COUNTERSIGN_TOKEN_HOST names its host, if that is not origin's), and no %s", key),
				Try: "set COUNTERSIGN_TOKEN to a token that may read the repository",
			}
		}
		told = name
	}
	if !strings.EqualFold(told, name) {
		return "", &placeError{
			Remote: name, Err: fmt.Errorf("the repository that was told of is %+q", told),
			Try: "the remote has to have the name that the repository has now",
		}
	}
	if !repositoryNumbers().MatchString(number) {
		return "", &placeError{Remote: name, Err: fmt.Errorf("%+q is no number of a repository", number), Try: ""}
	}
	return number, nil
}

var repositoryNumbers = lazyregexp.New(`^[1-9][0-9]{0,18}$`)

// ledgerServer opens the repository that keeps other repositories' ledgers, with the token
// for it alone where there is one and it may go to that host.
func (a *App) ledgerServer(repo *gitstore.Repo, settings gitstore.Settings, address, name string) (*wire.Server, error) {
	o, err := a.credentials(address, settings, "")
	if err != nil {
		return nil, err
	}
	host := github.HostOf(address)
	if token := a.Getenv(ledgerTokenName); token != "" && host != "" && host == a.tokenHost(settings) {
		o.Authorization, o.Credentials = wire.Basic("x-access-token", token), nil
	}
	o.Role, o.Exact = "the ledger's repository "+name, true
	return a.serverWith(repo, address, o)
}

// lookElsewhere is what can be told of the repository that keeps the ledger.
func (a *App) lookElsewhere(ctx context.Context, repo *gitstore.Repo, settings gitstore.Settings, name string) *scaffold.Elsewhere {
	found := &scaffold.Elsewhere{Repository: name}
	place, err := a.place(ctx, repo, settings)
	if err == nil {
		defer place.Server.Close()
		found.Ref = place.Ref
		_, err = place.Server.Tip(ctx, place.Ref)
	}
	if err != nil {
		found.Err = err
		return found
	}
	client, err := a.asLedgers(name).forge(settings)
	if err == nil && client != nil {
		found.Public, err = client.IsPublic(ctx)
	}
	if client == nil || err != nil {
		found.Err = err
		return found
	}
	branch, isBranch := strings.CutPrefix(place.Ref, "refs/heads/")
	if !isBranch {
		branch = ""
	}
	switch client := client.(type) {
	case *github.Client:
		var facts github.Facts
		facts, found.Err = client.Probe(ctx, branch)
		found.GitHub = &facts
	case *gitea.Client:
		var facts gitea.Facts
		facts, found.Err = client.Probe(ctx, branch)
		found.Gitea = &facts
	}
	return found
}

// asLedgers is this program where it asks the forge about the repository that keeps the ledger, with the token for that.
func (a *App) asLedgers(name string) *App {
	there, token := *a, a.Getenv(ledgerTokenName)
	there.Getenv = func(variable string) string {
		switch {
		case variable == "GITHUB_REPOSITORY":
			return name
		case token == "":
		case variable == "COUNTERSIGN_TOKEN":
			return token
		case slices.Contains([]string{"INPUT_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"}, variable):
			return ""
		}
		return a.Getenv(variable)
	}
	return &there
}
