package github

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// TestIssues: issues are opened, found on any page without the pull requests among them,
// changed and closed; a token that may not is told apart.
func TestIssues(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	c := w.as(w.ActionsToken(site, "contents:read", "issues:write"))
	me, err := c.Viewer(ctx)
	teststand.Fatal(t, err)
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
	teststand.Fatal(t, c.UpdateIssue(ctx, made))
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

// TestIssueComment: a comment is told with its history and what posted it; one that is gone, or on another issue, is not there.
func TestIssueComment(t *testing.T) {
	w := newWorld(t)
	c := w.as(w.ActionsToken(site, "contents:read", "issues:write"))
	here, other := w.OpenIssue(site, "ada", "one", ""), w.OpenIssue(site, "ada", "two", "")
	id := w.Comment(githubtest.NewComment{Repository: site, Number: here, By: "ada", Body: "first"}).ID
	w.Edit(id, "ada", "second")
	got, err := c.IssueComment(t.Context(), here, fmt.Sprint(id))
	if err != nil || got.Kind != approval.KindIssueComment || got.Body != "second" || !got.Edited || !slices.Equal(got.Earlier, []string{"first"}) || got.Author.Login != "ada" || got.Author.Kind != "user" || got.App != "" {
		t.Errorf("%+v, %v", got, err)
	}
	app := w.Comment(githubtest.NewComment{Repository: site, Number: here, By: "ada", Body: "x", App: "github-actions[bot]"}).ID
	if got, err := c.IssueComment(t.Context(), here, fmt.Sprint(app)); err != nil || got.App != "github-actions" || got.Edited {
		t.Errorf("through an app: %+v, %v", got, err)
	}
	if got, err := c.IssueComment(t.Context(), other, fmt.Sprint(id)); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("on another issue: %+v, %v", got, err)
	}
	w.Delete(id)
	if got, err := c.IssueComment(t.Context(), here, fmt.Sprint(id)); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("gone: %+v, %v", got, err)
	}
}

// TestIssueCommentAnswers: an answer that leaves open what a comment is, or who wrote a commit, is an error.
func TestIssueCommentAnswers(t *testing.T) {
	const listed = `[{"id":7,"node_id":"IC_7","body":"x","user":{"id":1}}]`
	const whole = `"id":"IC_7","fullDatabaseId":"7","url":"u","body":"x","createdAt":"2026-01-05T12:00:00Z","lastEditedAt":null,"includesCreatedEdit":false,"createdViaEmail":false,"isMinimized":false,"author":{"__typename":"User","login":"ada","databaseId":1},"editor":null`
	read := func(nodes string) error {
		s := newScript(t, step{status: 200, body: listed}, step{status: 200, body: `{"data":{"nodes":` + nodes + `}}`})
		_, err := newClient(t, s.URL, new(pauses)).IssueComment(t.Context(), 1, "7")
		return err
	}
	if err := read("[{" + whole + "}]"); err != nil {
		t.Error(err)
	}
	for _, member := range []string{`"id":"IC_7",`, `"fullDatabaseId":"7",`, `"createdAt":"2026-01-05T12:00:00Z",`, `"includesCreatedEdit":false,`, `"createdViaEmail":false,`, `"isMinimized":false,`} {
		if read("[{"+strings.Replace(whole, member, "", 1)+"}]") == nil {
			t.Errorf("without %s", member)
		}
	}
	for _, nodes := range []string{"[]", "[null]", "null", "[{" + whole + "},{" + whole + "}]", "[{" + strings.Replace(whole, "IC_7", "IC_8", 1) + "}]", "[{" + strings.Replace(whole, `"7"`, `"8"`, 1) + "}]"} {
		if read(nodes) == nil {
			t.Errorf("nodes %s", nodes)
		}
	}
	id := strings.Repeat("a", 40)
	for object, ok := range map[string]bool{
		`{"oid":"` + id + `","author":null,"committer":null,"authors":{"totalCount":1,"nodes":[{"user":{"databaseId":1,"login":"ada"}}]}}`: true,
		`{"oid":"` + id + `","authors":{"totalCount":2,"nodes":[{"user":{"databaseId":1,"login":"ada"}}]}}`:                                false,
		`{"oid":"` + id + `"}`:                    false,
		`{"authors":{"totalCount":0,"nodes":[]}}`: false,
		`{}`:   false,
		`null`: false,
	} {
		s := newScript(t, step{status: 200, body: `{"data":{"repository":{"object":` + object + `}}}`})
		by, strangers, err := newClient(t, s.URL, new(pauses)).CommitAuthors(t.Context(), id)
		if (err == nil) != ok || !strangers || ok && (len(by) != 1 || by[0].ID != "1") {
			t.Errorf("%s: %+v %v %v", object, by, strangers, err)
		}
	}
}
