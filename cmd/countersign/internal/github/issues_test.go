package github

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

// TestIssues: issues are opened, found on any page without the pull requests among them,
// changed and closed; a token that may not is told apart.
func TestIssues(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	c := w.as(w.ActionsToken(site, "contents:read", "issues:write"))
	me, err := c.Viewer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 150 {
		w.OpenIssue(site, "ada", fmt.Sprint("other ", n), "")
	}
	made, err := c.CreateIssue(ctx, "title", "body <!-- x -->")
	if err != nil || !made.Open || made.Author.ID != me.ID || !strings.HasSuffix(made.URL, fmt.Sprint("/issues/", made.Number)) {
		t.Fatalf("%+v, %v", made, err)
	}
	open, err := c.OpenIssues(ctx)
	if err != nil || len(open) != 151 || open[150] != made || open[0].Title != "other 0" || open[0].Author.ID == me.ID {
		t.Fatalf("%d issues, %v", len(open), err)
	}
	made.Title, made.Body, made.Open = "another", "text", false
	if err := c.UpdateIssue(ctx, made); err != nil {
		t.Fatal(err)
	}
	closed, err := c.ClosedIssues(ctx)
	if err != nil || len(closed) != 1 || closed[0] != made {
		t.Errorf("%+v, %v", closed, err)
	}
	if _, err := c.UpsertComment(ctx, made.Number, "", "a comment"); err != nil || len(w.Issues(site)[150].Comments) != 1 {
		t.Errorf("%v %+v", err, w.Issues(site)[150])
	}
	w.Fail(githubtest.Fault{Path: "/api/v3/repos/" + site + "/issues", Skip: 1, Status: 404, Times: 100})
	if got, err := c.OpenIssues(ctx); err == nil {
		t.Errorf("without the second page: %d issues", len(got))
	}
	w.Heal()
	reader := w.as(w.ActionsToken(site, "contents:read", "issues:read"))
	if _, err := reader.CreateIssue(ctx, "title", "body"); !rest.IsKind(err, rest.KindPermission) {
		t.Errorf("a token that may not write issues: %v", err)
	}
	if err := reader.UpdateIssue(ctx, made); !rest.IsKind(err, rest.KindPermission) {
		t.Errorf("a token that may not write issues: %v", err)
	}
}

// TestIssueAnswers: what lacks a number or a state is no issue, and no list is shorter for it.
func TestIssueAnswers(t *testing.T) {
	for name, body := range map[string]string{
		"no number": `[{"state":"open","title":"t"}]`, "no state": `[{"number":1}]`, "another state": `[{"number":1,"state":"x"}]`, "cut": `[{"number":1,"state":"open"`, "no list": `{}`, "nothing": ``,
	} {
		s := newScript(t, step{status: 200, body: body})
		if got, err := newClient(t, s.URL, new(pauses)).OpenIssues(t.Context()); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	s := newScript(t, step{status: 200, body: `[{"number":1,"state":"open","user":null}]`})
	if got, err := newClient(t, s.URL, new(pauses)).OpenIssues(t.Context()); err != nil || len(got) != 1 || got[0] != (forge.Issue{Number: 1, Open: true}) {
		t.Errorf("of nobody: %+v, %v", got, err)
	}
	s = newScript(t, step{status: 502}, step{status: 201, body: `{"number":1,"state":"open"}`})
	if _, err := newClient(t, s.URL, new(pauses)).CreateIssue(t.Context(), "t", "b"); err == nil || s.requests() != 1 {
		t.Errorf("a lost answer is not asked for again: %v, %d requests", err, s.requests())
	}
}
