package githubtest

import (
	"fmt"
	"strings"
	"testing"
)

func TestPermission(t *testing.T) {
	s, c := site(t)
	s.Repository(NewRepository{Name: "acme/secret", Private: true})
	s.CustomRole("acme/site", "security", "maintain")
	secret := c.as(s.ActionsToken("acme/secret", "contents:read"))
	for role, want := range map[string]string{
		"admin": "admin admin", "maintain": "write maintain", "write": "write write", "triage": "read triage", "read": "read read",
		"none": "read read", "security": "write security",
	} {
		s.Role("acme/site", "bob", role)
		got := c.rest(200, "GET", "/repos/acme/site/collaborators/bob/permission", nil)
		if got := fmt.Sprint(at(got, "permission"), " ", at(got, "role_name")); got != want {
			t.Errorf("%s: %s, want %s", role, got, want)
		}
	}
	got := secret.rest(200, "GET", "/repos/acme/secret/collaborators/bob/permission", nil)
	if at(got, "permission") != "none" {
		t.Errorf("a stranger in private: %v", at(got, "permission"))
	}
	c.rest(404, "GET", "/repos/acme/site/collaborators/nobody/permission", nil)
	c.rest(404, "GET", "/repos/acme/secret/collaborators/ada/permission", nil) // not the token's repository
}

func TestRenamedAndDeletedAccounts(t *testing.T) {
	s, c := site(t)
	s.Comment(NewComment{Repository: "acme/site", Number: 1, By: "bob", Body: "x"})
	const permission, comments = "/repos/acme/site/collaborators/%s/permission", "/repos/acme/site/issues/1/comments"
	id := at(c.rest(200, "GET", fmt.Sprintf(permission, "bob"), nil), "user", "id")
	s.Rename("bob", "robert")
	next := s.User("bob")
	if got := at(c.rest(200, "GET", fmt.Sprintf(permission, "robert"), nil), "user", "id"); got != id || float64(next.ID) == id {
		t.Errorf("robert is %v, bob was %v, the new bob is %v", got, id, next.ID)
	}
	if got := at(c.rest(200, "GET", comments, nil), 0, "user", "login"); got != "robert" {
		t.Errorf("the comment is %v's", got)
	}
	s.DeleteAccount("robert")
	if got := at(c.rest(200, "GET", comments, nil), 0, "user", "login"); got != "ghost" {
		t.Errorf("the comment is %v's", got)
	}
	data, _ := c.graphql(conversation, variables())
	if got := at(data, "repository", "pullRequest", "comments", "nodes", 0); at(got, "body") != "x" || at(got, "author") != nil {
		t.Errorf("%v", got)
	}
}

// What an account without the right is answered.
func TestRefusals(t *testing.T) {
	s, c := site(t)
	s.Repository(NewRepository{Name: "acme/secret", Private: true})
	s.Role("acme/secret", "ada", "write")
	one := s.Comment(NewComment{Repository: "acme/site", Number: 1, By: "ada", Body: "x"})
	patch := fmt.Sprintf("/repos/acme/site/issues/comments/%d", one.ID)
	reads := s.ActionsToken("acme/site", "pull_requests:read", "checks:read")
	head := s.Pull("acme/site", 1).Head
	gone := s.Token("ada")
	s.Revoke(gone)
	for _, test := range []struct {
		token, method, path string
		body                map[string]any
		status              int
		says                string
	}{
		{reads, "POST", "/repos/acme/site/issues/1/comments", map[string]any{"body": "x"}, 403, "not accessible by integration"},
		{reads, "POST", "/repos/acme/site/check-runs", map[string]any{"name": "x", "head_sha": head}, 403, "not accessible by integration"},
		{s.Token("bob"), "PATCH", patch, map[string]any{"body": "y"}, 403, "push access"},
		{s.Token("bob"), "GET", "/repos/acme/secret", nil, 404, "Not Found"},
		{"", "GET", "/repos/acme/secret", nil, 404, "Not Found"},
		{c.token, "GET", "/repos/acme/secret", nil, 404, "Not Found"},
		{s.ActionsToken("acme/secret", "checks:read"), "GET", "/repos/acme/secret/actions/runs", nil, 403, "not accessible"},
		{s.Token("ada"), "GET", "/repos/acme/secret/actions/runs", nil, 200, "[]"},
		{gone, "GET", "/repos/acme/site", nil, 401, "Bad credentials"},
	} {
		status, body, _ := c.as(test.token).send(test.method, s.API()+test.path, bodyOf(test.body))
		if status != test.status || !strings.Contains(string(body), test.says) {
			t.Errorf("%s %s: %d %s, want %d %s", test.method, test.path, status, body, test.status, test.says)
		}
	}
}

func TestPages(t *testing.T) {
	s, c := site(t)
	for i := range 7 {
		s.Comment(NewComment{Repository: "acme/site", Number: 1, By: "bob", Body: fmt.Sprint(i)})
	}
	got, next := "", s.URL+commentsPath+"?per_page=3"
	for next != "" {
		status, body, header := c.send("GET", next, nil)
		got += fmt.Sprint(status, strings.Count(string(body), `"issue_url"`), " ")
		next = ""
		for link := range strings.SplitSeq(header.Get("Link"), ", ") {
			if address, rel, _ := strings.Cut(link, "; "); rel == `rel="next"` {
				next = strings.Trim(address, "<>")
			}
		}
	}
	if got != "200 3 200 3 200 1 " {
		t.Error(got)
	}
	if list := c.rest(200, "GET", "/repos/acme/site/issues/1/comments?per_page=3&page=9", nil); len(list.([]any)) != 0 {
		t.Errorf("beyond the last: %v", list)
	}
}

func TestArtifact(t *testing.T) {
	s, c := site(t)
	run := s.WorkflowRun(NewWorkflowRun{Repository: "acme/site", Name: "propose", Path: ".github/workflows/propose.yml", Event: "pull_request", HeadBranch: "fix", By: "ada"})
	id := s.Artifact(NewArtifact{Repository: "acme/site", Run: run, Name: "bundle", Files: map[string]string{"a.json": "{}"}})
	old := s.Artifact(NewArtifact{Repository: "acme/site", Run: run, Name: "old", Expired: true})
	zip := fmt.Sprintf("/repos/acme/site/actions/artifacts/%d/zip", id)
	status, body, _ := c.send("GET", s.API()+zip, nil)
	if status != 200 || !strings.HasPrefix(string(body), "PK") { // the store has another name, so the token stays behind
		t.Errorf("%d %s", status, body)
	}
	status, body, _ = c.as("").send("GET", fmt.Sprintf("%s/_download/%d?signature=good", s.URL, id), nil)
	if status != 200 || !strings.HasPrefix(string(body), "PK") {
		t.Errorf("%d %s", status, body)
	}
	if status, _, _ := c.send("GET", fmt.Sprintf("%s/_download/%d?signature=good", s.URL, id), nil); status != 400 {
		t.Errorf("with a token: %d", status)
	}
	if status, _, _ := c.as("").send("GET", fmt.Sprintf("%s/_download/%d", s.URL, id), nil); status != 403 {
		t.Errorf("without a signature: %d", status)
	}
	c.rest(410, "GET", fmt.Sprintf("/repos/acme/site/actions/artifacts/%d/zip", old), nil)
	c.as("").rest(401, "GET", zip, nil)
}
