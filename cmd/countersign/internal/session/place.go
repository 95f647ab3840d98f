package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// unplaced is the error of a shared ledger of which it is not known where it is kept: nothing is
// read or written then.
func unplaced(remote string, err error, try string) error {
	return &fault.Error{Kind: fault.Away, Message: fmt.Sprintf("finding out where the ledger of %s is kept: %v", remote, err), Try: try, Cause: err}
}

// Place is where the remote's ledger is kept: in the remote itself, or in the repository
// that the Policy of its default branch names (docs/ledger.md, "A ledger in another
// repository"). Everything that shares a ledger asks here. No other Policy is asked: one that is
// checked out may be anybody's.
func (s *Session) Place(ctx context.Context) (place gitstore.Place, err error) {
	address, err := s.RemoteURL()
	if err != nil {
		return place, err
	}
	remote, err := s.Server(address, "")
	if err != nil {
		return place, err
	}
	place = gitstore.Place{Server: remote, Ref: s.Flags.LedgerRef, Of: remote.Remote()}
	p, err := s.defaultPolicy(ctx, remote)
	if err != nil || p.Ledger.Repository == "" {
		return place, err
	}
	there, err := wire.Sibling(address, p.Ledger.Repository)
	if err != nil {
		return gitstore.Place{}, unplaced(remote.String(), fmt.Errorf("the Policy names %s, on the server of the remote: %w", p.Ledger.Repository, err),
			"give the remote an address over https or ssh, with OWNER/NAME at its end")
	}
	name := repositoryName(remote.Remote())
	if strings.EqualFold(name, p.Ledger.Repository) {
		return gitstore.Place{}, unplaced(remote.String(), fmt.Errorf("the Policy names %s, which is the repository itself", p.Ledger.Repository),
			"leave ledger.repository out of the Policy, or name another repository")
	}
	number, err := s.repositoryNumber(ctx, name)
	if err != nil {
		return gitstore.Place{}, err
	}
	place.Ref += "-" + number
	place.Server, err = s.ledgerServer(there, p.Ledger.Repository)
	return place, errors.Join(err, remote.Close())
}

// defaultPolicy is the Policy of the commit that a remote's HEAD names, and the default
// one only where the remote has no branch yet that could have another.
func (s *Session) defaultPolicy(ctx context.Context, remote *wire.Server) (policy.Policy, error) {
	commit, err := s.Repo.Fetch(ctx, remote, "HEAD", false)
	if console.As[*gitstore.NoRefError](err) {
		branches, err := remote.Branches(ctx)
		branches = slices.DeleteFunc(branches, func(ref string) bool { return ref == s.Flags.LedgerRef })
		if err == nil && len(branches) > 0 {
			return policy.Policy{}, unplaced(remote.String(), errors.New("its HEAD names no branch that is there, and so no Policy"),
				"let the default branch be one that is there")
		}
		return policy.Default(), err
	}
	if err != nil {
		return policy.Policy{}, err
	}
	tree, err := s.Repo.Tree(ctx, commit)
	if err != nil {
		return policy.Policy{}, unplaced(remote.String(), err, "")
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
func (s *Session) repositoryNumber(ctx context.Context, name string) (string, error) {
	number, told := "", ""
	if console.InWorkflow(s.Getenv) {
		e, err := ReadEvent(s.Getenv)
		if err != nil {
			return "", err
		}
		if e.Repository.ID != 0 {
			number, told = strconv.FormatInt(e.Repository.ID, 10), e.Repository.FullName
		}
	}
	if number == "" {
		client, err := Forge(s.Console, s.Repo.Config)
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
		key := "remote." + s.Flags.Remote + ".repositoryId"
		if !console.InWorkflow(s.Getenv) {
			number = s.Repo.Config.RepositoryNumber(s.Flags.Remote)
		}
		if number == "" {
			return "", unplaced(name, fmt.Errorf("there is no token to ask for the repository's number with (COUNTERSIGN_TOKEN_HOST names its host, if that is not origin's), and no %s", key),
				"set COUNTERSIGN_TOKEN to a token that may read the repository")
		}
		told = name
	}
	if !strings.EqualFold(told, name) {
		return "", unplaced(name, fmt.Errorf("the repository that was told of is %+q", told), "the remote has to have the name that the repository has now")
	}
	if !repositoryNumbers().MatchString(number) {
		return "", unplaced(name, fmt.Errorf("%+q is no number of a repository", number), "")
	}
	return number, nil
}

var repositoryNumbers = canon.Regexp(`^[1-9][0-9]{0,18}$`)

// ledgerServer opens the repository that keeps other repositories' ledgers, with the token
// for it alone where there is one and it may go to that host.
func (s *Session) ledgerServer(address, name string) (*wire.Server, error) {
	o, err := Credentials(s.Console, address, s.Repo.Config, "", s.helpers)
	if err != nil {
		return nil, err
	}
	host := github.HostOf(address)
	if token := s.Getenv(console.LedgerTokenName); token != "" && host != "" && host == TokenHost(s.Console, s.Repo.Config) {
		o.Authorization, o.Credentials = wire.Basic("x-access-token", token), nil
	}
	o.Role, o.Exact = "the ledger's repository "+name, true
	return s.serverWith(address, o)
}
