package githubtest

import (
	"fmt"
	"strings"
	"testing"
)

// Every operation is answered as GitHub describes it: New's cleanup fails
// otherwise.
func TestOperations(t *testing.T) {
	s, c := site(t)
	s.Team("acme", "reviewers", "ada")
	s.Set("acme/site", Settings{Pages: "workflow"})
	head := s.Pull("acme/site", 1).Head
	comment := s.Comment(NewComment{Repository: "acme/site", Number: 1, By: "bob", Body: "hello", App: "github-actions[bot]"})
	other := s.Comment(NewComment{Repository: "acme/site", Number: 1, By: "ada", Body: "hello too"})
	line := s.ReviewComment(NewComment{Repository: "acme/site", Number: 1, By: "bob", Body: "why", Path: "a.txt", Line: 1})
	s.Review(NewComment{Repository: "acme/site", Number: 1, By: "bob", State: "APPROVED"})
	run := s.WorkflowRun(NewWorkflowRun{Repository: "acme/site", Name: "relay", Path: ".github/workflows/relay.yml", Event: "pull_request_review", HeadBranch: "fix", By: "bob"})
	file := s.Artifact(NewArtifact{Repository: "acme/site", Run: run, Name: "bundle", Files: map[string]string{"a": "b"}})
	old := s.Artifact(NewArtifact{Repository: "acme/site", Run: run, Name: "old", Expired: true})
	s.Repository(NewRepository{Name: "acme/secret", Private: true})
	push := s.AddRuleset("acme/site", Ruleset{Name: "paths", Target: "push", Rules: []map[string]any{
		{"type": "file_path_restriction", "parameters": map[string]any{"restricted_file_paths": []string{".github/**"}}},
	}})
	s.AddRuleset("acme/site", Ruleset{Name: "main", Target: "branch", Branches: []string{"main"}, Rules: []map[string]any{{"type": "deletion"}}})
	s.Push(NewCommit{Repository: "acme/site", Branch: "main", By: "ada", Files: map[string]string{".github/workflows/relay.yml": "on: push\n"}})
	members := s.AppToken(AppToken{Bot: "github-actions[bot]", Permissions: map[string]string{"members": "read"}})
	ada := s.Token("ada")

	repo := "/repos/acme/site"
	for _, test := range []struct {
		token        string
		method, path string
		body         map[string]any
		status       int
	}{
		{c.token, "GET", repo, nil, 200},
		{"", "GET", repo, nil, 200},
		{"wrong", "GET", repo, nil, 401},
		{s.Token("bob"), "GET", "/repos/acme/secret", nil, 404},
		{"", "GET", "/repos/acme/secret", nil, 404},
		{c.token, "GET", "/repos/acme/other", nil, 404},
		{c.token, "GET", repo + "/branches/main", nil, 200},
		{c.token, "GET", repo + "/branches/none", nil, 404},
		{c.token, "GET", repo + "/collaborators/ada/permission", nil, 200},
		{c.token, "GET", repo + "/collaborators/github-actions%5Bbot%5D/permission", nil, 404},
		{s.Token("bob"), "GET", repo + "/collaborators/ada/permission", nil, 403},
		{members, "GET", "/orgs/acme/teams/reviewers", nil, 200},
		{members, "GET", "/orgs/acme/teams/none", nil, 404},
		{c.token, "GET", "/orgs/acme/teams/reviewers", nil, 403},
		{members, "GET", "/orgs/acme/teams/reviewers/memberships/ada", nil, 200},
		{c.token, "GET", repo + "/rulesets?includes_parents=true", nil, 200},
		{c.token, "GET", fmt.Sprintf("%s/rulesets/%d", repo, push), nil, 200},
		{c.token, "GET", repo + "/rulesets/1", nil, 404},
		{c.token, "GET", repo + "/rules/branches/main", nil, 200},
		{c.token, "POST", repo + "/git/refs", map[string]any{"ref": "refs/countersign/probe", "sha": strings.Repeat("0", 40)}, 422},
		{c.token, "POST", repo + "/git/refs", map[string]any{"ref": "refs/heads/twin", "sha": head}, 201},
		{ada, "POST", repo + "/git/refs", map[string]any{"ref": "refs/heads/twin", "sha": head}, 422},
		{s.Token("bob"), "POST", repo + "/git/refs", map[string]any{"ref": "refs/heads/other", "sha": head}, 403},
		{c.token, "POST", repo + "/pulls", map[string]any{"title": "x", "head": "twin", "base": "main"}, 403},
		{ada, "POST", repo + "/pulls", map[string]any{"title": "x", "head": "main", "base": "main"}, 422},
		{ada, "POST", repo + "/pulls", map[string]any{"title": "x", "head": "twin", "base": "main"}, 201},
		{ada, "POST", repo + "/pulls", map[string]any{"title": "x", "head": "twin", "base": "main"}, 422},
		{s.Token("bob"), "PUT", repo + "/pulls/2/merge", map[string]any{"sha": head}, 403},
		{ada, "PUT", repo + "/pulls/2/merge", map[string]any{"sha": strings.Repeat("0", 40)}, 409},
		{ada, "PUT", repo + "/pulls/2/merge", map[string]any{"sha": head, "merge_method": "squash"}, 200},
		{ada, "PUT", repo + "/pulls/2/merge", map[string]any{"sha": head}, 405},
		{members, "GET", "/orgs/acme/teams/reviewers/memberships/bob", nil, 404},
		{c.token, "GET", "/orgs/acme/teams/reviewers/memberships/ada", nil, 403},
		{c.token, "GET", repo + "/pulls/1", nil, 200},
		{c.token, "GET", repo + "/pulls/9", nil, 404},
		{c.token, "POST", repo + "/pulls/1/comments", map[string]any{"body": "x", "path": "b.txt", "commit_id": head, "subject_type": "file"}, 201},
		{c.token, "POST", repo + "/pulls/1/comments", map[string]any{"body": "x", "path": "none", "commit_id": head, "subject_type": "file"}, 422},
		{c.token, "GET", repo + "/issues/1/comments", nil, 200},
		{"", "POST", repo + "/issues/1/comments", map[string]any{"body": "x"}, 401},
		{ada, "POST", repo + "/issues/1/comments", map[string]any{"body": "x"}, 201},
		{ada, "POST", repo + "/issues/1/comments", map[string]any{"body": strings.Repeat("é", 65536)}, 201},
		{ada, "POST", repo + "/issues/1/comments", map[string]any{"body": strings.Repeat("é", 65537)}, 422},
		{c.token, "POST", repo + "/pulls/1/comments", map[string]any{"body": "x", "path": "b.txt", "commit_id": head, "in_reply_to": line.ID}, 422},
		{ada, "PATCH", fmt.Sprintf("%s/issues/comments/%d", repo, line.ID), map[string]any{"body": "y"}, 404},
		{s.Token("bob"), "PATCH", fmt.Sprintf("%s/issues/comments/%d", repo, other.ID), map[string]any{"body": "y"}, 403},
		{ada, "PATCH", fmt.Sprintf("%s/issues/comments/%d", repo, comment.ID), map[string]any{"body": "y"}, 200},
		{c.token, "POST", repo + "/check-runs", map[string]any{"name": "countersign", "head_sha": head}, 201},
		{c.token, "POST", repo + "/check-runs", map[string]any{"name": "x", "head_sha": strings.Repeat("0", 40)}, 422},
		{ada, "POST", repo + "/check-runs", map[string]any{"name": "countersign", "head_sha": head}, 403},
		{c.token, "GET", repo + "/commits/fix/check-runs?check_name=countersign", nil, 200},
		{c.token, "GET", repo + "/commits/heads%2Ffix/check-runs", nil, 200},
		{c.token, "GET", repo + "/actions/runs?per_page=1&status=completed", nil, 200},
		{c.token, "GET", fmt.Sprintf("%s/actions/runs/%d/artifacts?name=bundle", repo, run), nil, 200},
		{ada, "GET", fmt.Sprintf("%s/actions/artifacts/%d/zip", repo, file), nil, 200},
		{c.token, "GET", fmt.Sprintf("%s/actions/artifacts/%d/zip", repo, old), nil, 410},
		{"", "GET", fmt.Sprintf("%s/actions/artifacts/%d/zip", repo, file), nil, 401},
		{c.token, "GET", repo + "/actions/workflows/relay.yml", nil, 200},
		{c.token, "GET", repo + "/actions/workflows/none.yml", nil, 404},
		{c.token, "GET", repo + "/pages", nil, 200},
		{c.token, "GET", repo + "/actions/permissions/workflow", nil, 403},
		{ada, "GET", repo + "/actions/permissions/workflow", nil, 403},
		{s.Token("acme"), "GET", repo + "/actions/permissions/workflow", nil, 200},
	} {
		status, body, _ := c.as(test.token).send(test.method, s.API()+test.path, bodyOf(test.body))
		if status != test.status {
			t.Errorf("%s %s = %d, want %d: %.200s", test.method, test.path, status, test.status, body)
		}
	}
}

// The store has another name than the API: the token is not for it, and its own signature is.
func TestDownload(t *testing.T) {
	s, c := site(t)
	run := s.WorkflowRun(NewWorkflowRun{Repository: "acme/site", Name: "propose", Path: ".github/workflows/propose.yml", Event: "pull_request", HeadBranch: "fix", By: "ada"})
	file := fmt.Sprintf("%s/_download/%d", s.URL, s.Artifact(NewArtifact{Repository: "acme/site", Run: run, Name: "bundle", Files: map[string]string{"a.json": "{}"}}))
	for _, test := range []struct {
		token, query string
		status       int
	}{{"", "?signature=good", 200}, {c.token, "?signature=good", 400}, {"", "", 403}} {
		if status, body, _ := c.as(test.token).send("GET", file+test.query, nil); status != test.status {
			t.Errorf("%+v: %d %s", test, status, body)
		}
	}
}

func bodyOf(m map[string]any) any {
	if m == nil {
		return nil
	}
	return m
}
