package forgetest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/gitea"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

const smallPages = 3

// TestGitea: a real Gitea or Forgejo in the suite of all forges. Much of it waits
// for the next second (see Edit), so that many cases run side by side.
func TestGitea(t *testing.T) {
	town := &town{Server: Start(t), people: map[string]User{}, places: map[string]*giteaPlace{}}
	town.SetFault(town.fault)
	town.keeper = town.User("keeper")
	town.model = town.Repository(town.keeper, "keeper", "model", mainFiles())
	town.model.Commit(User{Name: town.resident(town.Server, "bob").Name, Token: town.keeper.Token}, "topic", "change", topicFiles())
	runAll(t, 8, town.place)
}

// A town is one server for all cases: each has an organization of keeper's with a
// repository.
type town struct {
	*Server
	keeper User
	model  *Repository // that each case has a fork of, which is made sooner than pushed

	mu     sync.Mutex
	people map[string]User        // those that cases leave as they are, by name
	places map[string]*giteaPlace // by organization
}

type giteaPlace struct {
	*testing.T
	*Repository
	town *town
	mark string // of its own accounts
	org  string

	mu     sync.Mutex
	users  map[string]User            // by id
	opened map[int]*opened            // by number
	lose   func(r *http.Request) bool // whose answer is lost; once
	good   int                        // how many requests go well, -1 for all
}

// opened is a pull request that was.
type opened struct {
	branch       string
	fork, closed bool
}

func (w *town) place(t *testing.T) Place {
	w.mu.Lock()
	mark := fmt.Sprint(len(w.places) + 1)
	p := &giteaPlace{T: t, town: w, mark: mark, org: "acme-" + mark, users: map[string]User{}, opened: map[int]*opened{}, good: -1}
	w.places[p.org] = p
	w.mu.Unlock()
	s := w.For(t)
	s.Org(p.org, w.keeper)
	p.Repository = &Repository{Server: s, Owner: p.org, Name: "site-" + mark}
	var made struct{ ID int64 }
	s.Must(w.keeper, http.MethodPost, w.model.Path("forks"), map[string]any{"organization": p.org, "name": p.Repository.Name}, &made)
	p.Repository.ID = made.ID
	return p
}

// fault is what goes wrong with a request to a repository.
func (w *town) fault(_ int, r *http.Request) teststand.Fault {
	below, api := strings.CutPrefix(r.URL.Path, "/api/v1/repos/")
	org, _, _ := strings.Cut(below, "/")
	w.mu.Lock()
	p := w.places[org]
	w.mu.Unlock()
	if !api || p == nil {
		return teststand.Fault{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.good == 0:
		return teststand.Fault{Kind: teststand.StatusBefore, Status: http.StatusInternalServerError}
	case p.lose != nil && p.lose(r):
		p.lose = nil
		return teststand.Fault{Kind: teststand.CutAfter}
	case p.good > 0:
		p.good--
	}
	return teststand.Fault{}
}

func (p *giteaPlace) Lacks() []Lack {
	lacks := []Lack{
		EditHistory, CheckRuns, FileThreads, SigningKeys, Paths, OwnFiles, ClosedHeads,
		OldReviews,
	}
	if !p.ListsRuns() {
		lacks = append(lacks, WorkflowRuns)
	}
	return lacks
}

func (p *giteaPlace) PageSize() int { return smallPages }

func (p *giteaPlace) Forge() forge.Forge { return p.with(p.town.keeper) }

func (p *giteaPlace) ForgeOf(who ledger.Actor) forge.Forge { return p.with(p.user(who)) }

func (p *giteaPlace) with(u User) forge.Forge {
	p.T.Helper()
	wait := func(ctx context.Context, d time.Duration) error {
		p.mu.Lock()
		broken := p.good == 0
		p.mu.Unlock()
		if !broken {
			time.Sleep(d)
		}
		return ctx.Err()
	}
	c, err := gitea.New(gitea.Options{Server: p.URL, Repository: p.FullName(), Token: u.Token, Wait: wait, PageSize: smallPages})
	if err != nil {
		p.Fatal(err)
	}
	return c
}

func (p *giteaPlace) Ref(branch string) string { return p.Repository.Ref("refs/heads/" + branch) }

func (p *giteaPlace) user(who ledger.Actor) User {
	p.T.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	u, known := p.users[who.ID]
	if !known {
		p.Fatalf("nobody is %+v", who)
	}
	return u
}

func (p *giteaPlace) knows(u User) ledger.Actor {
	p.mu.Lock()
	defer p.mu.Unlock()
	who := ledger.Actor{Kind: "user", ID: strconv.FormatInt(u.ID, 10), Login: u.Name}
	p.users[who.ID] = u
	return who
}

// Person: eve, who forks, is another one in each case. The server takes "eve:topic" for a branch of any fork that she
// has of a fork of the model.
func (p *giteaPlace) Person(name, role string) ledger.Actor {
	p.T.Helper()
	var u User
	switch name {
	case "ada", "bob", "mallory":
		u = p.town.resident(p.Server, name)
	default:
		u = p.User(name + "-" + p.mark)
	}
	who := p.knows(u)
	p.Role(who, role)
	return who
}

// resident is one of the people that all cases share.
func (w *town) resident(s *Server, name string) User {
	w.mu.Lock()
	defer w.mu.Unlock()
	u, known := w.people[name]
	if !known {
		u = s.User(name)
		w.people[name] = u
	}
	return u
}

// Bot is an account that the administrator restricted.
func (p *giteaPlace) Bot(name string) ledger.Actor {
	p.T.Helper()
	who := p.Person(name, "write")
	p.Must(p.Admin, http.MethodPatch, "/admin/users/"+who.Login, map[string]any{"restricted": true, "login_name": who.Login, "source_id": 0}, nil)
	who.Kind = "bot"
	return who
}

func (p *giteaPlace) Role(who ledger.Actor, role string) {
	p.T.Helper()
	if role == "none" {
		p.RemoveCollaborator(p.user(who))
		return
	}
	p.Collaborator(p.user(who), role)
}

func (p *giteaPlace) Rename(who ledger.Actor, name string) ledger.Actor {
	p.T.Helper()
	return p.knows(p.Server.Rename(p.user(who), name+"-"+p.mark))
}

func (p *giteaPlace) Reuse(before ledger.Actor, role string) (ledger.Actor, error) {
	p.T.Helper()
	var u User
	status := p.Do(p.Admin, http.MethodPost, "/admin/users", map[string]any{
		"username": before.Login, "email": "again-" + before.Login + "@example.com", "password": "a password 1", "must_change_password": false,
	}, &u)
	if status >= 300 {
		return ledger.Actor{}, fmt.Errorf("an account %s: %d", before.Login, status)
	}
	u.Name = before.Login
	who := p.knows(u)
	p.Role(who, role)
	return who, nil
}

func (p *giteaPlace) DeleteAccount(who ledger.Actor) {
	p.T.Helper()
	p.Must(p.Admin, http.MethodDelete, "/admin/users/"+p.user(who).Name, nil, nil)
}

func (p *giteaPlace) Team(name string, members ...ledger.Actor) string {
	p.T.Helper()
	var users []User
	for _, who := range members {
		users = append(users, p.user(who))
	}
	p.Server.Team(p.org, name, "read", users...)
	return p.org + "/" + name
}

func (p *giteaPlace) Commit(by ledger.Actor, branch string, files map[string]string, with ...ledger.Actor) string {
	p.T.Helper()
	message := "change\n"
	for _, who := range with {
		message += "\nCo-authored-by: Somebody <" + p.user(who).Name + "@example.com>"
	}
	return p.pushed(branch, p.Repository.Commit(p.user(by), branch, message, files))
}

func (p *giteaPlace) Force(by ledger.Actor, branch string, files map[string]string) string {
	p.T.Helper()
	return p.pushed(branch, p.Repository.Force(p.user(by), branch, "change", files))
}

func (p *giteaPlace) Stranger(branch string, n int) (commit string) {
	p.T.Helper()
	nobody := User{Name: "stranger", Token: p.town.keeper.Token}
	for range n {
		commit = p.Repository.Commit(nobody, branch, "strange", nil)
	}
	return p.pushed(branch, commit)
}

// pushed waits until the server has taken a push over into the open pull requests.
func (p *giteaPlace) pushed(branch, commit string) string {
	p.T.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for number, pull := range p.opened {
		if !pull.fork && !pull.closed && pull.branch == branch {
			p.Arrives(int64(number), commit)
		}
	}
	return commit
}

func (p *giteaPlace) Branch(name, commit string) {
	p.T.Helper()
	p.Push(p.town.keeper, commit+":refs/heads/"+name)
	if commit != "" {
		p.pushed(name, commit)
	}
}

func (p *giteaPlace) Protect(branch string) {
	p.T.Helper()
	p.Repository.Protect(branch, map[string]any{"enable_push": false})
}

func (p *giteaPlace) Require(branch, check string) {
	p.T.Helper()
	p.Repository.Protect(branch, map[string]any{"enable_status_check": true, "status_check_contexts": []string{check}})
}

func (p *giteaPlace) Fork(by ledger.Actor, branch string, files map[string]string) string {
	p.T.Helper()
	u := p.user(by)
	return p.Repository.Fork(u).Commit(u, branch, "theirs", files)
}

func (p *giteaPlace) DeleteFork(by ledger.Actor) {
	p.T.Helper()
	u := p.user(by)
	p.Must(u, http.MethodDelete, "/repos/"+u.Name+"/"+p.Repository.Name, nil, nil)
}

func (p *giteaPlace) Open(by ledger.Actor, n Pull) int {
	p.T.Helper()
	u, head, title := p.user(by), n.Branch, n.Title
	if n.Fork {
		head = u.Name + ":" + n.Branch
	}
	if n.Draft {
		title = "WIP: " + title
	}
	var made struct{ Number int }
	body := map[string]any{"head": head, "base": "main", "title": title}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // the server knows a branch some time after the push has ended that made it
		status := p.Do(u, http.MethodPost, p.Path("pulls"), body, &made)
		if status < 300 {
			break
		}
		if status != http.StatusNotFound || time.Now().After(deadline) {
			p.Fatalf("opening a pull request from %s: %d", head, status)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened[made.Number] = &opened{branch: n.Branch, fork: n.Fork}
	return made.Number
}

func (p *giteaPlace) Close(by ledger.Actor, number int) {
	p.T.Helper()
	p.Repository.Close(p.user(by), int64(number))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened[number].closed = true
}

func (p *giteaPlace) Reopen(by ledger.Actor, number int) {
	p.T.Helper()
	p.Must(p.user(by), http.MethodPatch, p.Path("issues", number), map[string]any{"state": "open"}, nil)
	p.mu.Lock()
	branch := p.opened[number].branch
	p.opened[number].closed = false
	p.mu.Unlock()
	p.pushed(branch, p.Ref(branch))
}

func (p *giteaPlace) Comment(by ledger.Actor, number int, body string) string {
	p.T.Helper()
	return fmt.Sprint(p.Repository.Comment(p.user(by), int64(number), body))
}

// Edit takes a comment's id, or what Review returned: the text of a review that people
// see is another comment. It is later than the second of the post, so that what is edited
// and edited back is known to be (docs/forges.md).
func (p *giteaPlace) Edit(by ledger.Actor, id, body string) {
	p.T.Helper()
	comment, _ := strconv.ParseInt(id, 10, 64)
	if review, ok := strings.CutPrefix(id, "review "); ok {
		var number, found int64
		if _, err := fmt.Sscan(review, &number, &found); err != nil {
			p.Fatal(err)
		}
		var timeline []struct {
			ID       int64
			Type     string
			ReviewID int64 `json:"review_id"`
		}
		p.Must(p.town.keeper, http.MethodGet, p.Path("issues", number, "timeline"), nil, &timeline)
		for _, e := range timeline {
			if e.Type == "review" && e.ReviewID == found {
				comment = e.ID
			}
		}
	}
	p.Repository.EditComment(p.user(by), comment, body)
}

func (p *giteaPlace) Delete(by ledger.Actor, id string) {
	p.T.Helper()
	p.Must(p.user(by), http.MethodDelete, p.Path("issues", "comments", id), nil, nil)
}

// Review returns "review", the pull request and the review.
func (p *giteaPlace) Review(by ledger.Actor, number int, state, body string) string {
	p.T.Helper()
	state = cmp.Or(map[string]string{"CHANGES_REQUESTED": "REQUEST_CHANGES", "COMMENTED": "COMMENT"}[state], state)
	return fmt.Sprintf("review %d %d", number, p.Repository.Review(p.user(by), int64(number), state, body, ""))
}

func (p *giteaPlace) Dismiss(by ledger.Actor, number int, id string) {
	p.T.Helper()
	fields := strings.Fields(id)
	p.Must(p.user(by), http.MethodPost, p.Path("pulls", number, "reviews", fields[len(fields)-1], "dismissals"), map[string]any{"message": "no"}, nil)
}

func (p *giteaPlace) LineComment(by ledger.Actor, number int, path, body string) string {
	p.T.Helper()
	var made, comments = struct{ ID int64 }{}, []struct{ ID int64 }{}
	p.Must(p.user(by), http.MethodPost, p.Path("pulls", number, "reviews"), map[string]any{
		"event": "COMMENT", "body": "", "comments": []any{map[string]any{"path": path, "body": body, "new_position": 1}},
	}, &made)
	p.Must(p.user(by), http.MethodGet, p.Path("pulls", number, "reviews", made.ID, "comments"), nil, &comments)
	return fmt.Sprint(comments[0].ID)
}

func (p *giteaPlace) Lose(done Done) {
	end := map[Done]string{Commented: "/comments", Merged: "/merge", Opened: "/pulls"}[done]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = func(r *http.Request) bool { return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, end) }
}

func (p *giteaPlace) Break(n int) (heal func()) {
	set := func(good int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.good = good
	}
	set(n)
	return func() { set(-1) }
}
