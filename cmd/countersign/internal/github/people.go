package github

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// An account is one as GraphQL tells it; null for one that was deleted.
type account struct {
	Type       string `json:"__typename"`
	Login      string `json:"login"`
	DatabaseID int64  `json:"databaseId"`
}

// typeUser is the only type of account that is a person's.
const typeUser = "User"

// actor is the account in our terms. Whatever is not surely a person's is a bot:
// apps, organizations, accounts of an import, and those that are gone, which
// have no number either and so are nobody. Where GraphQL shows an app as a User
// (the viewer, the author of a commit) its login ends in "[bot]", which no
// person's can.
func (a *account) actor() ledger.Actor {
	if a == nil {
		return ledger.Actor{Kind: "bot", Login: "ghost"}
	}
	login, app := strings.CutSuffix(a.Login, "[bot]")
	actor := ledger.Actor{Kind: "bot", Login: login}
	if a.DatabaseID > 0 {
		actor.ID = strconv.FormatInt(a.DatabaseID, 10)
	}
	if a.Type == typeUser && !app && actor.ID != "" && login != "" {
		actor.Kind = "user"
	}
	return actor
}

// Viewer is the account of the token. That of an app, as GITHUB_TOKEN's, is a
// bot whose login is without "[bot]", as in statements.
func (c *Client) Viewer(ctx context.Context) (ledger.Actor, error) {
	const op = "asking whose token it is"
	got, err := ask[struct{ Viewer *account }](ctx, c, queryViewer, nil)
	if err == nil && (got.Viewer == nil || got.Viewer.Login == "") {
		err = rest.Unusable("the answer names nobody")
	}
	if err != nil {
		return ledger.Actor{}, failed(op, err)
	}
	return got.Viewer.actor(), nil
}

// A number is a BigInt of GraphQL, which is written as a string.
type number string

// UnmarshalJSON takes decimal digits, with or without quotes.
func (n *number) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	if v, err := strconv.ParseUint(text, 10, 64); err != nil || v == 0 {
		return rest.Unusable("%+q is no number of a comment", ledger.OneLine(text, 40))
	}
	*n = number(text)
	return nil
}

func (c *Client) access(ctx context.Context, who ledger.Actor) (approval.Access, error) {
	var got struct {
		Permission string `json:"permission"`
		Role       string `json:"role_name"`
		User       *struct {
			ID int64 `json:"id"`
		} `json:"user"`
	}
	_, err := c.GetBelow(ctx, &got, nil, "collaborators", who.Login, "permission")
	switch {
	case rest.IsKind(err, rest.KindNotFound):
		return approval.Access{Permission: rest.PermissionNone}, nil
	case err != nil:
		return approval.Access{}, err
	case got.User == nil || strconv.FormatInt(got.User.ID, 10) != who.ID:
		return approval.Access{}, rest.Unusable("the login belongs to another account now")
	}
	permission, err := reduce(got.Permission, got.Role)
	return approval.Access{Permission: permission, Role: got.Role}, err
}

// SigningKeys is forge.Reader's (REST API, "List SSH signing keys for a user"). An
// account that may do nothing here is not asked about.
func (c *Client) SigningKeys(ctx context.Context, who ledger.Actor) ([]approval.Registered, error) {
	access, err := c.Access(ctx, who) // the login's number is checked there
	if err != nil || access.Permission == rest.PermissionNone {
		return nil, err
	}
	type key struct {
		Key       string    `json:"key"`
		CreatedAt time.Time `json:"created_at"`
	}
	var keys []approval.Registered
	err = pages(ctx, c, nil, func(page []key) (bool, error) {
		for _, k := range page {
			keys = append(keys, approval.Registered{Key: k.Key, Since: k.CreatedAt})
		}
		return true, nil
	}, "users", who.Login, "ssh_signing_keys")
	if rest.IsKind(err, rest.KindNotFound) { // of an account that is hidden
		return nil, nil
	}
	return keys, failed(fmt.Sprintf("asking for the signing keys of %s", ledger.OneLine(who.Login, 60)), err)
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
	case rest.PermissionNone:
		return rest.PermissionNone, nil
	}
	return "", rest.Unusable("%+q is no permission", ledger.OneLine(permission, 40))
}

func (c *Client) member(ctx context.Context, team string, who ledger.Actor) (bool, error) {
	org, slug, err := rest.SplitTeam(team)
	if err != nil {
		return false, err
	}
	var got struct {
		State string `json:"state"`
	}
	_, err = c.Get(ctx, &got, nil, "orgs", org, "teams", slug, "memberships", who.Login)
	return rest.InTeam(got.State == "active", err, "the token of an App with the permission members: read", func() error {
		_, err := c.Get(ctx, new(struct{}), nil, "orgs", org, "teams", slug)
		return err
	})
}
