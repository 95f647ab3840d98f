package github

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/ledger"
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
	got, err := ask[struct{ Viewer *account }](ctx, c, op, queryViewer, nil)
	if err != nil {
		return ledger.Actor{}, err
	}
	if got.Viewer == nil || got.Viewer.Login == "" {
		return ledger.Actor{}, failed(op, unusable("the answer names nobody"))
	}
	return got.Viewer.actor(), nil
}

// A number is a BigInt of GraphQL, which is written as a string.
type number string

// UnmarshalJSON takes decimal digits, with or without quotes.
func (n *number) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	if v, err := strconv.ParseUint(text, 10, 64); err != nil || v == 0 {
		return unusable("%+q is no number of a comment", ledger.OneLine(text, 40))
	}
	*n = number(text)
	return nil
}

var _ json.Unmarshaler = (*number)(nil)
