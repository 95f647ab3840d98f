package github

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// A world is a forge with the repository acme/site, in which ada and bob may
// write, and a pull request 1 by eve, from a branch "fix" of it.
type world struct {
	*githubtest.Server
	t      *testing.T
	client *Client
	waits  pauses
	people map[string]ledger.Actor
}

const site = "acme/site"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Server: githubtest.New(t), t: t, people: map[string]ledger.Actor{}}
	w.Organization("acme")
	w.Bot("helper[bot]")
	for login, role := range map[string]string{"ada": "write", "bob": "maintain", "eve": "triage", "mallory": "write"} {
		w.people[login] = ledger.Actor{Kind: "user", ID: strconv.FormatInt(w.User(login).ID, 10), Login: login}
		defer w.Role(site, login, role)
	}
	w.Repository(githubtest.NewRepository{Name: site, Files: map[string]string{"greet.go": "package greet\n", "README.md": "hello\n"}})
	w.Push(githubtest.NewCommit{Repository: site, Branch: "fix", By: "eve", Message: "fix", Files: map[string]string{"greet.go": "package main\n"}})
	w.PullRequest(githubtest.NewPullRequest{Repository: site, By: "eve", Head: "fix", Title: "A fix"})
	w.client = w.as(w.ActionsToken(site, "contents:write", "pull_requests:write", "issues:write", "checks:write", "actions:read"))
	return w
}

func (w *world) as(token string) *Client {
	w.t.Helper()
	c, err := New(Options{
		APIURL: w.API(), GraphQLURL: w.GraphQL(), ServerURL: w.URL, Repository: site, Token: token,
		Wait: w.waits.wait, Timeout: 10 * time.Second,
	})
	teststand.Fatal(w.t, err)
	return c
}

func (w *world) comment(by, body string) githubtest.Comment {
	return w.Comment(githubtest.NewComment{Repository: site, Number: 1, By: by, Body: body})
}

func (w *world) statements() []approval.Statement {
	w.t.Helper()
	all, err := w.client.Statements(context.Background(), 1)
	teststand.Fatal(w.t, err)
	return all
}

// statement is the one of an id.
func (w *world) statement(id int64) approval.Statement {
	w.t.Helper()
	for _, s := range w.statements() {
		if s.ID == strconv.FormatInt(id, 10) {
			return s
		}
	}
	w.t.Fatalf("no statement %d", id)
	return approval.Statement{}
}
