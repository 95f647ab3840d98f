package githubtest

import (
	"fmt"
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
}

type organization struct {
	teams map[string]map[int64]string // by slug, then account: "active" or "pending"
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
	return s.addAccount(login, kind).public()
}

func (s *Server) addAccount(login, kind string) *account {
	a := &account{id: s.nextID(), login: login, kind: kind, created: s.time()}
	if login == "github-actions[bot]" {
		a.id = actionsID
	}
	a.email = fmt.Sprintf("%d+%s@users.noreply.127.0.0.1", a.id, login)
	if kind == "Organization" {
		s.orgs[a.id] = &organization{teams: map[string]map[int64]string{}}
	}
	s.accounts = append(s.accounts, a)
	return a
}

func (a *account) public() Account { return Account{a.id, a.login, a.kind} }

// find returns the account of that login, in any case, or nil.
func (s *Server) find(login string) *account {
	i := slices.IndexFunc(s.accounts, func(a *account) bool {
		return !a.deleted && strings.EqualFold(a.login, login)
	})
	if i < 0 {
		return nil
	}
	return s.accounts[i]
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

// Email sets the address by which commits are an account's.
func (s *Server) Email(login, address string) {
	defer s.lock()()
	s.account(login).email = address
}

// byEmail returns the account that commits of that address are of, or nil.
func (s *Server) byEmail(address string) *account {
	for _, a := range s.accounts {
		if !a.deleted && strings.EqualFold(a.email, address) {
			return a
		}
	}
	return nil
}

// Team makes the accounts active members of an organization's team, which is
// made if need be.
func (s *Server) Team(org, slug string, logins ...string) { s.team(org, slug, "active", logins) }

// TeamPending invites accounts to a team; they have not answered yet.
func (s *Server) TeamPending(org, slug string, logins ...string) {
	s.team(org, slug, "pending", logins)
}

// TeamLeave takes accounts out of a team.
func (s *Server) TeamLeave(org, slug string, logins ...string) { s.team(org, slug, "", logins) }

func (s *Server) team(org, slug, state string, logins []string) {
	defer s.lock()()
	o := s.orgs[s.account(org).id]
	if o == nil {
		misuse("%s is no organization", org)
	}
	if o.teams[slug] == nil {
		o.teams[slug] = map[int64]string{}
	}
	for _, login := range logins {
		id := s.account(login).id
		o.teams[slug][id] = state
		if state == "" {
			delete(o.teams[slug], id)
		}
	}
}
