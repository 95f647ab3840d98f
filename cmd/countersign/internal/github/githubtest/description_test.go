package githubtest

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// An answer that is not as GitHub describes it is noticed.
func TestAnswersThatGitHubWouldNotGive(t *testing.T) {
	s, c := site(t)
	s.Comment(NewComment{Repository: "acme/site", Number: 1, By: "bob", Body: "hello"})
	_, body, _ := c.send("GET", s.URL+commentsPath, nil)
	o := operation{method: "GET", path: "/repos/{owner}/{repo}/issues/{issue_number}/comments"}
	r := httptest.NewRequest("GET", "/repos/acme/site/issues/1/comments", nil)
	for name, value := range map[string]string{"owner": "acme", "repo": "site", "issue_number": "1"} {
		r.SetPathValue(name, value)
	}
	for _, test := range []struct {
		status         int
		from, to, says string
	}{
		{200, "", "", ""},
		{200, `"id":`, `"number":`, `property "id" is missing`},
		{200, `"body":"hello"`, `"body":7`, "/body"},
		{200, `"author_association":"COLLABORATOR"`, `"author_association":"KING"`, "author_association"},
		{200, `"user":{`, `"user":null,"x":{`, ""}, // a deleted account's may be null
		{201, "", "", "status"},
	} {
		recorded := httptest.NewRecorder()
		recorded.Header().Set("Content-Type", "application/json")
		recorded.WriteHeader(test.status)
		_, _ = recorded.Write(bytes.Replace(body, []byte(test.from), []byte(test.to), 1))
		err := s.rest.request(o, r, nil).response(recorded)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.to, err, test.says)
		}
	}
}

// A request that GitHub would refuse, or of which it would ignore a part, is
// noticed.
func TestRequestsThatGitHubWouldNotTake(t *testing.T) {
	s, c := site(t)
	head := s.Pull("acme/site", 1).Head
	for _, test := range []struct {
		method, path string
		body         map[string]any
		status       int
		says         string
	}{
		{"GET", "/repos/acme/site/actions/runs?stat=completed", nil, 200, `no parameter "stat"`},
		{"GET", "/repos/acme/site/actions/runs?status=merged", nil, 200, "status"},
		{"GET", "/repos/acme/site/tags", nil, 404, "no operation"},
		{"POST", "/repos/acme/site/issues/1/comments", map[string]any{"text": "x"}, 422, `no field "text"`},
		{"POST", "/repos/acme/site/check-runs", map[string]any{"name": "x", "head_sha": head, "conclusion": "great"}, 201, "conclusion"},
		{"POST", "/repos/acme/site/check-runs", map[string]any{"name": "x", "head_sha": head, "output": map[string]any{
			"title": "x", "summary": "x", "annotations": annotations(51),
		}}, 422, "annotations"},
	} {
		c.rest(test.status, test.method, test.path, bodyOf(test.body))
		if got := strings.Join(s.TakeViolations(), "\n"); !strings.Contains(got, test.says) {
			t.Errorf("%s %s: %q, want %q", test.method, test.path, got, test.says)
		}
	}
}

func annotations(n int) []any {
	all := []any{}
	for i := range n {
		all = append(all, map[string]any{"path": "a.txt", "start_line": i + 1, "end_line": i + 1, "annotation_level": "notice", "message": "m"})
	}
	return all
}

// The description has the operations that are served, and no others.
func TestDescriptionIsOfTheOperations(t *testing.T) {
	d, err := loadDescription()
	teststand.Fatal(t, err)
	served := map[string]bool{}
	for _, o := range operations {
		served[o.method+" "+o.path] = true
	}
	for path, item := range d.doc.Paths.Map() {
		for method := range item.Operations() {
			if !served[method+" "+path] {
				t.Errorf("%s %s is described and not served", method, path)
			}
			delete(served, method+" "+path)
		}
	}
	for left := range served {
		t.Errorf("%s is served and not described", left)
	}
}
