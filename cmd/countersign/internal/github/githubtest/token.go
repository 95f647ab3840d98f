package githubtest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// An AppToken is what the token of an app's installation allows. Permissions
// are "read" or "write" by name: contents, pull_requests, issues, checks,
// actions, members, workflows.
type AppToken struct {
	Bot          string
	Repositories []string
	Permissions  map[string]string
}

type token struct {
	account     *account
	app         bool // the token of an installation
	repos       []int64
	permissions map[string]string
}

// Token makes a token that stands for an account, with all its rights.
func (s *Server) Token(login string) string {
	defer s.lock()()
	return s.addToken(&token{account: s.account(login)})
}

// AppToken makes a token of an app's installation.
func (s *Server) AppToken(a AppToken) string {
	defer s.lock()()
	t := &token{account: s.account(a.Bot), app: true, permissions: a.Permissions}
	for _, name := range a.Repositories {
		t.repos = append(t.repos, s.repo(name).id)
	}
	return s.addToken(t)
}

// ActionsToken makes a token such as GITHUB_TOKEN: github-actions[bot], one
// repository, and permissions such as "contents:write".
func (s *Server) ActionsToken(repository string, permissions ...string) string {
	granted := map[string]string{}
	for _, p := range permissions {
		name, level, ok := strings.Cut(p, ":")
		if !ok {
			misuse("permission %s has no level", p)
		}
		granted[name] = level
	}
	return s.AppToken(AppToken{Bot: "github-actions[bot]", Repositories: []string{repository}, Permissions: granted})
}

func (s *Server) addToken(t *token) string {
	name := fmt.Sprintf("token-%d-of-%s", s.nextID(), strings.TrimSuffix(t.account.login, "[bot]"))
	s.tokens[name] = t
	return name
}

// Revoke makes a token worthless.
func (s *Server) Revoke(token string) {
	defer s.lock()()
	delete(s.tokens, token)
}

// anonymous is who sends no token.
var anonymous = &token{}

// authenticate returns whose request this is, nil if its token is worth
// nothing.
func (s *Server) authenticate(r *http.Request) *token {
	header := r.Header.Get("Authorization")
	if header == "" {
		return anonymous
	}
	secret := header[strings.IndexByte(header, ' ')+1:]
	if _, password, ok := r.BasicAuth(); ok {
		secret = password
	}
	t := s.tokens[secret]
	if t == nil || t.account.deleted {
		return nil
	}
	return t
}

// has reports whether the token of an installation was given a permission.
func (t *token) has(permission, level string) bool {
	got := t.permissions[permission]
	return got == level || got == "write"
}

// sees reports whether a repository exists for the token.
func (s *Server) sees(t *token, r *repository) bool {
	switch {
	case !r.private:
		return true
	case t.account == nil:
		return false
	case t.app:
		return slices.Contains(t.repos, r.id)
	}
	return atLeast(s.permission(r, t.account), "read")
}

// may reports whether the token has a right in a repository that it sees.
// Reading in public is everybody's.
func (s *Server) may(t *token, r *repository, permission, level string) bool {
	switch {
	case level == "read" && !r.private:
		return true
	case t.account == nil:
		return false
	case t.app:
		return slices.Contains(t.repos, r.id) && (t.has(permission, level) || permission == "metadata")
	case permission == "checks" && level == "write":
		return false // apps only
	}
	return atLeast(s.permission(r, t.account), level)
}
