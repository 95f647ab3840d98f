package gitea

import (
	"context"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// account is one as the API tells it; null for one that was deleted.
type account struct {
	ID         int64  `json:"id"`
	Login      string `json:"login"`
	Restricted *bool  `json:"restricted"`
}

// ghostID is of whoever wrote something and was deleted since; -2 is the account of all
// jobs of workflows.
const ghostID = -1

// actor is the account in our terms. The API does not tell what kind an account is of.
// Those without a number of their own are no person's, and those that the server's
// administrator has restricted are not taken for one; the Policy's bots names others.
func (a *account) actor() ledger.Actor {
	if a == nil || a.ID == ghostID || a.ID == 0 || a.Login == "" {
		return ledger.Actor{Kind: "bot", Login: "ghost"}
	}
	who := ledger.Actor{Kind: "bot", ID: strconv.FormatInt(a.ID, 10), Login: a.Login}
	if a.ID > 0 && a.Restricted != nil && !*a.Restricted {
		who.Kind = "user"
	}
	return who
}

// Viewer is the account of the token; that of a job is a bot. It is asked for once.
func (c *Client) Viewer(ctx context.Context) (ledger.Actor, error) {
	who, err := c.known.viewer.Get(struct{}{}, func() (ledger.Actor, error) {
		var got account
		if _, err := c.Get(ctx, &got, nil, "user"); err != nil {
			return ledger.Actor{}, err
		}
		if got.actor().ID == "" {
			return ledger.Actor{}, rest.Unusable("the answer names nobody")
		}
		return got.actor(), nil
	})
	return who, failed("asking whose token it is", err)
}

// memory holds what was told in one reading of branches, commits and names, and of the
// token's own account.
type memory struct {
	viewer    rest.Memory[struct{}, ledger.Actor]
	protected rest.Memory[string, bool]
	commits   rest.Memory[span, []commit]
	named     rest.Memory[string, []*account]
}

func (m *memory) clear() {
	m.protected.Clear()
	m.commits.Clear()
	m.named.Clear()
}

// access is rest.People's. Only an administrator of the repository is told what others may do.
func (c *Client) access(ctx context.Context, who ledger.Actor) (approval.Access, error) {
	var got struct {
		Permission string   `json:"permission"`
		User       *account `json:"user"`
	}
	_, err := c.GetBelow(ctx, &got, nil, "collaborators", who.Login, "permission")
	switch {
	case rest.IsKind(err, rest.KindNotFound):
		return approval.Access{Permission: rest.PermissionNone}, nil
	case rest.IsKind(err, rest.KindPermission):
		return approval.Access{}, &rest.Error{
			Kind: rest.KindPermission, Message: "the server tells it to administrators of the repository alone, and to no job: give the token of such an account", Err: err,
		}
	case err != nil:
		return approval.Access{}, err
	case got.User.actor().ID != who.ID:
		return approval.Access{}, rest.Unusable("the login belongs to another account now")
	case got.User.actor().Kind != "user": // restricted meanwhile
		return approval.Access{Permission: rest.PermissionNone, Role: got.Permission}, nil
	}
	if got.Permission == "read" || got.Permission == rest.PermissionNone {
		switch writes, err := c.writesByTeam(ctx, who); {
		case err != nil:
			return approval.Access{}, err
		case writes:
			return approval.Access{Permission: "write", Role: "team"}, nil
		}
	}
	switch got.Permission {
	case "owner":
		return approval.Access{Permission: "admin", Role: got.Permission}, nil
	case "admin", "write", "read", rest.PermissionNone:
		return approval.Access{Permission: got.Permission, Role: got.Permission}, nil
	}
	return approval.Access{}, rest.Unusable("%+q is no permission", ledger.OneLine(got.Permission, 40))
}

// SigningKeys is forge.Reader's, and always refused: an account's keys are those that it
// logs in with, on every machine that pushes for it, and the API does not tell whether
// one was verified.
func (c *Client) SigningKeys(_ context.Context, who ledger.Actor) ([]approval.Registered, error) {
	return nil, failed("asking for the signing keys of "+ledger.OneLine(who.Login, 60), &rest.Error{
		Kind: rest.KindRefused, Message: "the server has login keys alone: list keys to sign with in the repository, and leave approvals.forge_keys out",
	})
}

func (c *Client) member(ctx context.Context, team string, who ledger.Actor) (bool, error) {
	org, name, err := rest.SplitTeam(team)
	if err != nil {
		return false, err
	}
	var got account
	number, unseen := c.team(ctx, org, name)
	if err = unseen; err == nil {
		_, err = c.Get(ctx, &got, nil, "teams", number, "members", who.Login)
	}
	const needs = "an account which is in the team or owns the organization, and the scope read:organization"
	return rest.InTeam(got.actor().ID == who.ID, err, needs, func() error {
		if unseen == nil {
			_, unseen = c.Get(ctx, new(struct{}), nil, "teams", number)
		}
		return unseen
	})
}

// team is one as the API tells it. Units are the parts of repositories, such as
// "repo.code", with what the team may do there.
type team struct {
	ID    int64             `json:"id"`
	Name  string            `json:"name"`
	Units map[string]string `json:"units_map"`
}

// team returns the number of a team.
func (c *Client) team(ctx context.Context, org, name string) (string, error) {
	teams, err := list[team](ctx, c, false, nil, "orgs", org, "teams")
	if err != nil {
		return "", err
	}
	for _, t := range teams {
		if t.ID > 0 && strings.EqualFold(t.Name, name) {
			return strconv.FormatInt(t.ID, 10), nil
		}
	}
	return "", &rest.Error{Kind: rest.KindNotFound, Message: "there is no such team"}
}

// writesByTeam reports whether an account is in a team that may write to the code here.
// Of who writes as part of a team the server tells the least that the team may do in any
// part of a repository, which is to read: an outside wiki, say. A team that cannot be
// read adds nothing.
func (c *Client) writesByTeam(ctx context.Context, who ledger.Actor) (bool, error) {
	var teams []team
	_, err := c.GetBelow(ctx, &teams, nil, "teams")
	if rest.IsKind(err, rest.KindRefused) { // the repository is not an organization's
		return false, nil
	}
	for _, t := range teams {
		if level := t.Units["repo.code"]; t.ID <= 0 || level != "write" && level != "admin" {
			continue
		}
		var got account
		_, err := c.Get(ctx, &got, nil, "teams", strconv.FormatInt(t.ID, 10), "members", who.Login)
		if err == nil && got.actor() == who {
			return true, nil
		}
		if err != nil && !rest.IsKind(err, rest.KindNotFound, rest.KindPermission) {
			return false, err
		}
	}
	return false, err
}
