package github

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// memory holds what was told of accounts in one reading.
type memory struct {
	mu      sync.Mutex
	access  map[ledger.Actor]approval.Access
	members map[membership]bool
}

type membership struct {
	team string
	who  ledger.Actor
}

func (m *memory) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.access, m.members = nil, nil
}

// permissionNone is of an account that is no collaborator.
const permissionNone = "none"

// Access is forge.Reader's. An account that is no person's is not asked
// about: it may do nothing here. An answer is remembered until Statements is
// called again, or by nobody: see Fresh.
func (c *Client) Access(ctx context.Context, who ledger.Actor) (approval.Access, error) {
	if who.Kind != "user" {
		return approval.Access{Permission: permissionNone}, nil
	}
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	if a, ok := c.known.access[who]; ok {
		return a, nil
	}
	a, err := c.access(ctx, who)
	if err != nil {
		return approval.Access{}, failed(fmt.Sprintf("asking what %s may do", ledger.OneLine(who.Login, 60)), err)
	}
	if c.known.access == nil {
		c.known.access = map[ledger.Actor]approval.Access{}
	}
	c.known.access[who] = a
	return a, nil
}

func (c *Client) access(ctx context.Context, who ledger.Actor) (approval.Access, error) {
	var got struct {
		Permission string `json:"permission"`
		Role       string `json:"role_name"`
		User       *struct {
			ID int64 `json:"id"`
		} `json:"user"`
	}
	_, err := c.inRepository(ctx, &got, nil, "collaborators", who.Login, "permission")
	switch {
	case isKind(err, KindNotFound):
		return approval.Access{Permission: permissionNone}, nil
	case err != nil:
		return approval.Access{}, err
	case got.User == nil || strconv.FormatInt(got.User.ID, 10) != who.ID:
		return approval.Access{}, unusable("the login belongs to another account now")
	}
	permission, err := reduce(got.Permission, got.Role)
	return approval.Access{Permission: permission, Role: got.Role}, err
}

// reduce returns the Policy's word for a role. The permission that GitHub tells
// beside it knows neither maintain nor triage; a role that does not agree with
// it, which is one of the owner's own, counts as no more than the permission.
func reduce(permission, role string) (string, error) {
	told := map[string]string{"admin": "admin", "maintain": "write", "write": "write", "triage": "read", "read": "read"}
	switch permission {
	case "admin", "write", "read":
		if told[role] == permission {
			return role, nil
		}
		return permission, nil
	case permissionNone:
		return permissionNone, nil
	}
	return "", unusable("%+q is no permission", ledger.OneLine(permission, 40))
}

// Member is forge.Reader's. A team that the token cannot see is an error:
// GitHub tells it like somebody who is not in the team.
func (c *Client) Member(ctx context.Context, team string, who ledger.Actor) (bool, error) {
	if _, err := c.Access(ctx, who); err != nil || who.Kind != "user" {
		return false, err // the login's number is checked there
	}
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	key := membership{team, who}
	if is, ok := c.known.members[key]; ok {
		return is, nil
	}
	is, err := c.member(ctx, team, who.Login)
	if err != nil {
		return false, failed(fmt.Sprintf("asking whether %s is in %s", ledger.OneLine(who.Login, 60), ledger.OneLine(team, 120)), err)
	}
	if c.known.members == nil {
		c.known.members = map[membership]bool{}
	}
	c.known.members[key] = is
	return is, nil
}

func (c *Client) member(ctx context.Context, team, login string) (bool, error) {
	org, slug, ok := strings.Cut(team, "/")
	if !ok {
		return false, unusable("a team is org/team")
	}
	var got struct {
		State string `json:"state"`
	}
	_, err := c.get(ctx, &got, nil, "orgs", org, "teams", slug, "memberships", login)
	if err == nil {
		return got.State == "active", nil
	}
	if isKind(err, KindNotFound) {
		if err = c.seesTeam(ctx, org, slug); err == nil {
			return false, nil
		}
	}
	if isKind(err, KindNotFound, KindPermission) {
		return false, &Error{
			Kind:    KindPermission,
			Message: "the team cannot be read with this token: that takes the token of an App with the permission members: read", Err: err,
		}
	}
	return false, err
}

func (c *Client) seesTeam(ctx context.Context, org, slug string) error {
	var got struct {
		Slug string `json:"slug"`
	}
	_, err := c.get(ctx, &got, nil, "orgs", org, "teams", slug)
	return err
}
