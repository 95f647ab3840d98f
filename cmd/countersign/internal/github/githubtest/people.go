package githubtest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// actionsID is the number of github-actions[bot] on github.com.
const actionsID = 41898282

// An Account is one that may act. Type is "User", "Bot" or "Organization"; the
// login of a Bot ends in "[bot]".
type Account struct {
	ID    int64
	Login string
	Type  string
}

type account struct {
	id      int64
	login   string
	kind    string
	email   string // of its commits
	deleted bool
	created time.Time
	teams   map[string]map[int64]bool // of an organization: the members by slug
	keys    []signingKey
}

// User makes a human's account.
func (s *Server) User(login string) Account { return s.make(login, "User") }

// Bot makes an app's account; the login ends in "[bot]".
func (s *Server) Bot(login string) Account {
	if !strings.HasSuffix(login, "[bot]") {
		misuse("the login of a bot ends in [bot], %s does not", login)
	}
	return s.make(login, "Bot")
}

// Organization makes an account that owns repositories and teams.
func (s *Server) Organization(login string) Account { return s.make(login, "Organization") }

func (s *Server) make(login, kind string) Account {
	defer s.lock()()
	if s.find(login) != nil {
		misuse("there is an account %s", login)
	}
	a := s.addAccount(login, kind)
	return Account{a.id, a.login, a.kind}
}

func (s *Server) addAccount(login, kind string) *account {
	a := &account{id: s.nextID(), login: login, kind: kind, created: s.time()}
	if login == "github-actions[bot]" {
		a.id = actionsID
	}
	a.email = fmt.Sprintf("%d+%s@users.noreply.127.0.0.1", a.id, login)
	if kind == "Organization" {
		a.teams = map[string]map[int64]bool{}
	}
	s.accounts = append(s.accounts, a)
	return a
}

// find returns the account of that login, in any case, or nil.
func (s *Server) find(login string) *account {
	return first(s.accounts, func(a *account) bool { return !a.deleted && strings.EqualFold(a.login, login) })
}

// byEmail returns the account that commits of that address are of, or nil.
func (s *Server) byEmail(address string) *account {
	return first(s.accounts, func(a *account) bool { return !a.deleted && strings.EqualFold(a.email, address) })
}

func (s *Server) account(login string) *account {
	a := s.find(login)
	if a == nil {
		misuse("no account %s", login)
	}
	return a
}

// Rename gives an account another login. Its id stays, and the old login is
// free for another account.
func (s *Server) Rename(from, to string) {
	defer s.lock()()
	if s.find(to) != nil {
		misuse("there is an account %s", to)
	}
	s.account(from).login = to
}

// DeleteAccount removes an account; what it wrote stays, as the ghost's.
func (s *Server) DeleteAccount(login string) {
	defer s.lock()()
	s.account(login).deleted = true
}

// A signingKey is one as authorized_keys has it, without a comment.
type signingKey struct {
	id      int64
	key     string
	created time.Time
}

// SigningKey registers an SSH key that an account signs with, now.
func (s *Server) SigningKey(login, key string) {
	defer s.lock()()
	a := s.account(login)
	fields := strings.Fields(key)
	a.keys = append(a.keys, signingKey{s.nextID(), strings.Join(fields[:2], " "), s.time()})
}

// listSigningKeys is open to anybody.
func (s *Server) listSigningKeys(c *call) answer {
	a := s.find(c.PathValue("username"))
	if a == nil {
		return notFound
	}
	return list(c, "", a.keys, func(k signingKey) object {
		return object{"id": k.id, "key": k.key, "title": "a key", "created_at": stamp(k.created)}
	})
}

// getAccount tells of an account by its number. One that was deleted is not found.
func (s *Server) getAccount(c *call) answer {
	a := first(s.accounts, func(a *account) bool { return a.id == c.id("account_id") && !a.deleted })
	if a == nil {
		return notFound
	}
	of := s.user(a)
	of["user_view_type"] = "public"
	return ok(of)
}

// Team makes the accounts active members of an organization's team, which is
// made if need be.
func (s *Server) Team(org, slug string, logins ...string) {
	defer s.lock()()
	o := s.account(org)
	if o.teams == nil {
		misuse("%s is no organization", org)
	}
	if o.teams[slug] == nil {
		o.teams[slug] = map[int64]bool{}
	}
	for _, login := range logins {
		o.teams[slug][s.account(login).id] = true
	}
}

// roles are GitHub's own, the least first.
var roles = []string{"none", "read", "triage", "write", "maintain", "admin"}

// atLeast reports whether a role includes another.
func atLeast(role, least string) bool {
	return slices.Index(roles, role) >= slices.Index(roles, least)
}

// Role gives an account a role in a repository: admin, maintain, write, triage,
// read, none, or a custom role's name.
func (s *Server) Role(repository, login, role string) {
	defer s.lock()()
	r := s.repo(repository)
	if !slices.Contains(roles, role) && r.custom[role] == "" {
		misuse("no role %s in %s", role, repository)
	}
	r.roles[s.account(login).id] = role
}

// CustomRole adds a role to a repository that is based on one of GitHub's own.
func (s *Server) CustomRole(repository, name, base string) {
	defer s.lock()()
	s.repo(repository).custom[name] = base
}

// roleName is the name of an account's role in a repository.
func (r *repository) roleName(a *account) string {
	role, ok := r.roles[a.id]
	switch {
	case a == r.owner:
		return "admin"
	case ok && role != "none":
		return role
	case r.private:
		return "none"
	}
	return "read"
}

// permission is an account's role, a custom one reduced to its base.
func (r *repository) permission(a *account) string {
	name := r.roleName(a)
	if base := r.custom[name]; base != "" {
		return base
	}
	return name
}

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
	return atLeast(r.permission(t.account), "read")
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
	return atLeast(r.permission(t.account), level)
}

// seenOrganization is the organization of a path, or why the token does not see
// its teams: an app needs "members", others are members; for the rest there is
// no such team.
func (s *Server) seenOrganization(c *call) (*account, *answer) {
	org := s.find(c.PathValue("org"))
	no := notFound
	switch {
	case org == nil || org.teams == nil:
		return nil, &no
	case c.token.app && !c.token.has("members", "read"):
		no = c.forbidden()
		return nil, &no
	case c.token.app:
		return org, nil
	}
	for _, members := range org.teams {
		if c.token.account != nil && members[c.token.account.id] {
			return org, nil
		}
	}
	return nil, &no
}

func (s *Server) getMembership(c *call) answer {
	org, no := s.seenOrganization(c)
	if no != nil {
		return *no
	}
	slug := c.PathValue("team_slug")
	a := s.find(c.PathValue("username"))
	if a == nil || !org.teams[slug][a.id] {
		return notFound
	}
	return ok(object{"role": "member", "state": "active"})
}

func (s *Server) getTeam(c *call) answer {
	org, no := s.seenOrganization(c)
	if no != nil {
		return *no
	}
	slug := c.PathValue("team_slug")
	members, known := org.teams[slug]
	if !known {
		return notFound
	}
	about := s.organization(org)
	maps.Copy(about, object{"html_url": s.URL + "/" + org.login, "type": "Organization", "created_at": stamp(org.created), "updated_at": stamp(org.created)})
	return ok(object{
		"id": org.id + 1_000_000, "node_id": nodeID("T", org.id), "name": slug, "slug": slug, "privacy": "closed", "permission": "pull",
		"html_url": s.URL + "/orgs/" + org.login + "/teams/" + slug, "type": "organization", "created_at": stamp(org.created),
		"updated_at": stamp(org.created), "members_count": len(members), "organization": about,
	})
}

// getPermission answers 404 for who is no human: "x is not a user". The member
// "permission" of an answer knows neither maintain nor triage.
func (s *Server) getPermission(c *call) answer {
	if !c.token.app && (c.token.account == nil || !atLeast(c.repo.permission(c.token.account), "write")) {
		return refuse(http.StatusForbidden, "Must have push access to view collaborator permission.")
	}
	a := s.find(c.PathValue("username"))
	if a == nil || a.kind != "User" {
		return refuse(http.StatusNotFound, c.PathValue("username")+" is not a user")
	}
	role, base := c.repo.roleName(a), c.repo.permission(a)
	u := s.user(a)
	u["permissions"], u["role_name"] = permissions(base), role
	permission := base
	if told, reduced := map[string]string{"maintain": "write", "triage": "read"}[base]; reduced {
		permission = told
	}
	return ok(object{"permission": permission, "role_name": role, "user": u})
}
