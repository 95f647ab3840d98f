package githubtest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A test that is a shell script does over HTTP what Go tests do.
func TestControl(t *testing.T) {
	s := New(t)
	post := func(method, arguments string) (int, string) {
		t.Helper()
		answer, err := http.Post(s.URL+"/_test/"+method, "application/json", strings.NewReader(arguments))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	for _, call := range [][2]string{
		{"User", `["ada"]`},
		{"Repository", `{"name": "ada/site", "files": {"a.txt": "1"}}`},
		{"Push", `{"repository": "ada/site", "branch": "fix", "by": "ada", "files": {"a.txt": "2"}}`},
		{"PullRequest", `{"repository": "ada/site", "by": "ada", "head": "fix"}`},
		{"Organization", `["acme"]`},
		{"Team", `["acme", "reviewers", "ada"]`},
		{"Fail", `{"path": "/api/v3/user", "status": 500}`},
	} {
		if status, body := post(call[0], call[1]); status != 200 {
			t.Errorf("%s %s: %d %s", call[0], call[1], status, body)
		}
	}
	status, comment := post("Comment", `{"repository": "ada/site", "number": 1, "by": "ada", "body": "/approve"}`)
	if status != 200 || !strings.Contains(comment, `"Body":"/approve"`) {
		t.Errorf("%d %s", status, comment)
	}
	id := s.Comments("ada/site", 1)[0].ID
	if _, got := post("Event", fmt.Sprintf(`{"name": "issue_comment", "action": "created", "repository": "ada/site", "id": %d}`, id)); !strings.Contains(got, `"/approve"`) {
		t.Errorf("%.200s", got)
	}
	if _, got := post("Ref", `["ada/site", "refs/pull/1/head"]`); got != s.Pull("ada/site", 1).Head+"\n" {
		t.Errorf("%q", got)
	}
	if _, got := post("ActionsToken", `["ada/site", "contents:write"]`); !strings.HasPrefix(got, "token-") {
		t.Errorf("%q", got)
	}
	for _, wrong := range [][2]string{
		{"User", `["ada"]`}, {"User", `[]`}, {"User", `["a", "b"]`}, {"User", `{`}, {"Comment", `{"text": "x"}`}, {"Close", ``}, {"nextID", ``}, {"Nothing", ``},
		{"Pull", `["ada/site", 7]`},
	} {
		if status, body := post(wrong[0], wrong[1]); status != 400 || body == "" {
			t.Errorf("%s %s: %d %s", wrong[0], wrong[1], status, body)
		}
	}
	if n := s.Count(); n != (Count{}) {
		t.Errorf("what tests do counts as requests: %+v", n)
	}
}
