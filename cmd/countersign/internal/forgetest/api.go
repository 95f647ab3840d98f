package forgetest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// A User is a person or a bot with an account. Token has every scope.
type User struct {
	ID       int64
	Name     string
	Password string
	Token    string
}

// Do asks the REST API as u, with body as JSON unless it is nil, puts the answer into the value that into points to,
// unless it is nil or the answer is a failure, and returns the status. Path begins behind "/api/v1". A user without
// a name asks without a token.
func (s *Server) Do(u User, method, path string, body, into any) int {
	s.t.Helper()
	status, _ := s.do(u, method, path, body, into)
	return status
}

// Must is Do that must succeed.
func (s *Server) Must(u User, method, path string, body, into any) {
	s.t.Helper()
	if status, answer := s.do(u, method, path, body, into); status >= 300 {
		s.t.Fatalf("gitea: %s %s: %d: %s", method, path, status, answer)
	}
}

// do is Do with the answer. It goes past the proxy: what a test arranges is neither counted nor failed.
func (s *Server) do(u User, method, path string, body, into any) (status int, answer []byte) {
	s.t.Helper()
	var raw []byte
	if body != nil {
		var err error
		raw, err = json.Marshal(body)
		check(s.t, err)
	}
	request, err := http.NewRequest(method, "http://gitea/api/v1"+path, bytes.NewReader(raw))
	check(s.t, err)
	request.Host = strings.TrimPrefix(s.URL, "http://")
	request.Header.Set("Content-Type", "application/json")
	switch {
	case u.Token != "":
		request.Header.Set("Authorization", "token "+u.Token)
	case u.Name != "":
		request.SetBasicAuth(u.Name, u.Password)
	}
	response, err := s.direct().Do(request)
	check(s.t, err)
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	check(s.t, err)
	if into != nil && response.StatusCode < 300 {
		if err := json.Unmarshal(answer, into); err != nil {
			s.t.Fatalf("gitea: %s %s: %v: %s", method, path, err, answer)
		}
	}
	return response.StatusCode, answer
}

// token makes a token with the given scopes, or with all.
func (s *Server) token(u User, scopes ...string) string {
	s.t.Helper()
	if len(scopes) == 0 {
		scopes = []string{"all"}
	}
	var made struct {
		SHA1 string `json:"sha1"`
	}
	u.Token = "" // tokens are made with the password
	s.Must(u, http.MethodPost, "/users/"+u.Name+"/tokens", map[string]any{"name": rand.Text(), "scopes": scopes}, &made)
	return made.SHA1
}

// Scoped is the user with a token that may do no more than the scopes, as "write:repository", say.
func (s *Server) Scoped(u User, scopes ...string) User {
	s.t.Helper()
	u.Token = s.token(u, scopes...)
	return u
}

// User makes an account.
func (s *Server) User(name string) User {
	s.t.Helper()
	u := User{Name: name, Password: rand.Text()}
	s.Must(s.Admin, http.MethodPost, "/admin/users", map[string]any{
		"username": name, "email": name + "@example.com", "password": u.Password, "must_change_password": false,
	}, &u)
	u.Token = s.token(u)
	return u
}

// Rename gives an account another name.
func (s *Server) Rename(u User, name string) User {
	s.t.Helper()
	s.Must(s.Admin, http.MethodPost, "/admin/users/"+u.Name+"/rename", map[string]any{"new_username": name}, nil)
	u.Name = name
	return u
}

// Org makes an organization that its owner belongs to.
func (s *Server) Org(name string, owner User) {
	s.t.Helper()
	s.Must(owner, http.MethodPost, "/orgs", map[string]any{"username": name}, nil)
}

// Team makes a team of an organization, with a permission on all its repositories ("read", "write", "admin"), and
// returns its id.
func (s *Server) Team(org, name, permission string, members ...User) int64 {
	s.t.Helper()
	var made struct{ ID int64 }
	s.Must(s.Admin, http.MethodPost, "/orgs/"+org+"/teams", map[string]any{
		"name": name, "permission": permission, "includes_all_repositories": true, "units": []string{"repo.code", "repo.issues", "repo.pulls", "repo.actions"},
	}, &made)
	for _, member := range members {
		s.Must(s.Admin, http.MethodPut, fmt.Sprintf("/teams/%d/members/%s", made.ID, member.Name), nil, nil)
	}
	return made.ID
}
