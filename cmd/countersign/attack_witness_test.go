package main

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// T03: the event of a comment that was deleted has its denial. Gitea and Forgejo do not
// tell there what kind an account is of; nobody else's is a person's for that.
func TestT03WitnessWithoutType(t *testing.T) {
	for user, want := range map[string]ledger.Actor{
		`{"id": 2, "login": "bob"}`:                   {Kind: "user", ID: "2", Login: "bob"},
		`{"id": 2, "login": "bob", "type": "User"}`:   {Kind: "user", ID: "2", Login: "bob"},
		`{"id": 3, "login": "helper", "type": "Bot"}`: {Kind: "bot", ID: "3", Login: "helper"},
		`{"id": -2, "login": "gitea-actions"}`:        {Kind: "bot", ID: "-2", Login: "gitea-actions"},
	} {
		event := `{"action": "deleted", "issue": {"number": 1, "pull_request": {}}, "comment": {"id": 9, "body": "/deny it",
			"created_at": "2026-01-02T03:04:05Z", "user": ` + user + `}}`
		e, err := forge.ReadEvent("issue_comment", "", strings.NewReader(event))
		check(t, err)
		if said, on := e.Witnessed(); len(said) != 1 || on != 1 || said[0].Author != want || !said[0].Edited {
			t.Errorf("%s: %+v", user, said)
		}
	}
}
