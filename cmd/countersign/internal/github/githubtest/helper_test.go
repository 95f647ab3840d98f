package githubtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// A client asks a server and reads what it answers.
type client struct {
	t     *testing.T
	s     *Server
	token string
}

// site is a server with acme/site, its owner, ada who may write, bob who may
// read, and a pull request of ada's with the files a.txt and b.txt.
func site(t *testing.T) (*Server, client) {
	t.Helper()
	s := New(t)
	s.Organization("acme")
	s.User("ada")
	s.User("bob")
	s.Repository(NewRepository{Name: "acme/site", Files: map[string]string{"a.txt": "1\n", "README.md": "x\n"}})
	s.Role("acme/site", "ada", "write")
	s.Role("acme/site", "bob", "read")
	s.Push(NewCommit{Repository: "acme/site", Branch: "fix", By: "ada", Files: map[string]string{"a.txt": "2\n", "b.txt": "new\n"}})
	s.PullRequest(NewPullRequest{Repository: "acme/site", By: "ada", Head: "fix", Title: "Fix"})
	return s, client{t, s, s.ActionsToken("acme/site", "contents:write", "pull_requests:write", "issues:write", "checks:write", "actions:read")}
}

func (c client) as(token string) client { return client{c.t, c.s, token} }

// send sends a request and returns the status, the body and the header.
func (c client) send(method, url string, body any) (int, []byte, http.Header) {
	c.t.Helper()
	data := []byte{}
	if body != nil {
		data, _ = json.Marshal(body)
	}
	r, err := http.NewRequest(method, url, bytes.NewReader(data))
	teststand.Fatal(c.t, err)
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	// A client of its own: the default one keeps connections to servers of other tests.
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return 0, nil, nil
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return -1, text, answer.Header
	}
	return answer.StatusCode, text, answer.Header
}

// rest asks the REST API; it fails unless the status is as said.
func (c client) rest(want int, method, path string, body any) any {
	c.t.Helper()
	status, data, _ := c.send(method, c.s.API()+path, body)
	if status != want {
		c.t.Fatalf("%s %s = %d, want %d: %.300s", method, path, status, want, data)
	}
	var v any
	if len(data) > 0 {
		teststand.Fatal(c.t, json.Unmarshal(data, &v))
	}
	return v
}

// graphql asks the GraphQL API and returns the data and the errors.
func (c client) graphql(query string, variables map[string]any) (data any, errors []any) {
	c.t.Helper()
	status, body, _ := c.send("POST", c.s.GraphQL(), map[string]any{"query": query, "variables": variables})
	var answer struct {
		Data   any
		Errors []any
	}
	if err := json.Unmarshal(body, &answer); err != nil || status != 200 {
		c.t.Fatalf("%d: %v: %.300s", status, err, body)
	}
	return answer.Data, answer.Errors
}

// at follows names and indexes into a value.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			o, _ := v.(map[string]any)
			v = o[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}
