package forgetest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// TestGitHub: GitHub, by its stand-in, in the suite of all forges. COUNTERSIGN_LONG
// runs it.
func TestGitHub(t *testing.T) {
	if os.Getenv("COUNTERSIGN_LONG") == "" {
		t.Skip("NOT RUN: COUNTERSIGN_LONG=1 runs it")
	}
	runAll(t, 4, newGitHubPlace)
}

// A gitHubPlace is a stand-in with the repository acme/site.
type gitHubPlace struct {
	*testing.T
	s      *githubtest.Server
	logins map[string]string // by id
	bob    ledger.Actor
}

const placeName = "acme/site"

func newGitHubPlace(t *testing.T) Place {
	t.Helper()
	p := &gitHubPlace{T: t, s: githubtest.New(t), logins: map[string]string{}}
	p.s.Organization("acme")
	p.s.Repository(githubtest.NewRepository{Name: placeName, Files: mainFiles()})
	p.s.Set(placeName, githubtest.Settings{ActionsOpenPulls: true})
	p.bob = p.account("user", p.s.User("bob"))
	p.Commit(p.bob, "topic", topicFiles())
	return p
}

func (p *gitHubPlace) Lacks() []Lack { return []Lack{} }

func (p *gitHubPlace) PageSize() int { return 100 }

func (p *gitHubPlace) Forge() forge.Forge {
	return p.with(p.s.ActionsToken(placeName, "contents:write", "pull_requests:write", "issues:write", "checks:write", "actions:read", "members:read"))
}

func (p *gitHubPlace) ForgeOf(who ledger.Actor) forge.Forge { return p.with(p.s.Token(p.login(who))) }

func (p *gitHubPlace) with(token string) forge.Forge {
	p.Helper()
	c, err := github.New(github.Options{
		APIURL: p.s.API(), GraphQLURL: p.s.GraphQL(), ServerURL: p.s.URL, Repository: placeName, Token: token,
		Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }, Timeout: 30 * time.Second,
	})
	if err != nil {
		p.Fatal(err)
	}
	return c
}

func (p *gitHubPlace) Ref(branch string) string { return p.s.Ref(placeName, "refs/heads/"+branch) }

func (p *gitHubPlace) login(who ledger.Actor) string {
	p.Helper()
	login, ok := p.logins[who.ID]
	if !ok {
		p.Fatalf("nobody is %+v", who)
	}
	return login
}

func (p *gitHubPlace) account(kind string, a githubtest.Account) ledger.Actor {
	id := strconv.FormatInt(a.ID, 10)
	p.logins[id] = a.Login
	return ledger.Actor{Kind: kind, ID: id, Login: strings.TrimSuffix(a.Login, "[bot]")}
}

func (p *gitHubPlace) Person(name, role string) ledger.Actor {
	who := p.bob
	if name != who.Login {
		who = p.account("user", p.s.User(name))
	}
	p.Role(who, role)
	return who
}

func (p *gitHubPlace) Bot(name string) ledger.Actor {
	who := p.account("bot", p.s.Bot(name+"[bot]"))
	p.Role(who, "write")
	return who
}

func (p *gitHubPlace) Role(who ledger.Actor, role string) { p.s.Role(placeName, p.login(who), role) }

func (p *gitHubPlace) Rename(who ledger.Actor, name string) ledger.Actor {
	p.s.Rename(p.login(who), name)
	p.logins[who.ID], who.Login = name, name
	return who
}

func (p *gitHubPlace) Reuse(before ledger.Actor, role string) (ledger.Actor, error) {
	return p.Person(before.Login, role), nil
}

func (p *gitHubPlace) DeleteAccount(who ledger.Actor) { p.s.DeleteAccount(p.login(who)) }

func (p *gitHubPlace) Team(name string, members ...ledger.Actor) string {
	var logins []string
	for _, who := range members {
		logins = append(logins, p.login(who))
	}
	p.s.Team("acme", name, logins...)
	return "acme/" + name
}

func (p *gitHubPlace) Commit(by ledger.Actor, branch string, files map[string]string, with ...ledger.Actor) string {
	message := "change\n"
	for _, who := range with {
		message += fmt.Sprintf("\nCo-authored-by: Somebody <%s+%s@users.noreply.127.0.0.1>", who.ID, p.login(who))
	}
	return p.s.Push(githubtest.NewCommit{Repository: placeName, Branch: branch, By: p.login(by), Message: message, Files: files})
}

func (p *gitHubPlace) Force(by ledger.Actor, branch string, files map[string]string) string {
	const scratch = "scratch"
	commit := p.s.Push(githubtest.NewCommit{Repository: placeName, Branch: scratch, By: p.login(by), Files: files})
	p.Branch(branch, commit)
	p.Branch(scratch, "")
	return commit
}

func (p *gitHubPlace) Stranger(branch string, n int) string {
	tip := p.Ref(branch)
	for range n {
		tip = p.s.Git(placeName, "-c", "user.name=stranger", "-c", "user.email=stranger@example.com", "commit-tree", "-p", tip, "-m", "strange", tip+"^{tree}")
	}
	p.Branch(branch, tip)
	return tip
}

func (p *gitHubPlace) Branch(name, commit string) {
	if commit == "" {
		p.s.Git(placeName, "update-ref", "-d", "refs/heads/"+name)
		return
	}
	p.s.Git(placeName, "update-ref", "refs/heads/"+name, commit)
}

func (p *gitHubPlace) Protect(branch string) { p.s.Protect(placeName, branch, true) }

func (p *gitHubPlace) Require(branch, check string) {
	p.s.Set(placeName, githubtest.Settings{ActionsOpenPulls: true, Checks: map[string][]string{branch: {check}}})
}

func (p *gitHubPlace) Fork(by ledger.Actor, branch string, files map[string]string) string {
	fork := p.login(by) + "/site"
	p.s.Fork(placeName, fork)
	return p.s.Push(githubtest.NewCommit{Repository: fork, Branch: branch, By: p.login(by), Files: files})
}

func (p *gitHubPlace) DeleteFork(by ledger.Actor) { p.s.DeleteRepository(p.login(by) + "/site") }

func (p *gitHubPlace) Open(by ledger.Actor, n Pull) int {
	from := placeName
	if n.Fork {
		from = p.login(by) + "/site"
	}
	return p.s.PullRequest(githubtest.NewPullRequest{
		Repository: placeName, By: p.login(by), Head: n.Branch, HeadRepository: from, Title: n.Title, Draft: n.Draft,
	}).Number
}

func (p *gitHubPlace) Close(_ ledger.Actor, number int) { p.s.ClosePull(placeName, number) }

func (p *gitHubPlace) Reopen(_ ledger.Actor, number int) { p.s.ReopenPull(placeName, number) }

func (p *gitHubPlace) Comment(by ledger.Actor, number int, body string) string {
	return fmt.Sprint(p.s.Comment(githubtest.NewComment{Repository: placeName, Number: number, By: p.login(by), Body: body}).ID)
}

func (p *gitHubPlace) Edit(by ledger.Actor, id, body string) {
	p.s.Edit(p.number(id), p.login(by), body)
}

func (p *gitHubPlace) Delete(_ ledger.Actor, id string) { p.s.Delete(p.number(id)) }

func (p *gitHubPlace) number(id string) int64 {
	p.Helper()
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		p.Fatal(err)
	}
	return n
}

func (p *gitHubPlace) Review(by ledger.Actor, number int, state, body string) string {
	return fmt.Sprint(p.s.Review(githubtest.NewComment{Repository: placeName, Number: number, By: p.login(by), State: state, Body: body}).ID)
}

func (p *gitHubPlace) Dismiss(_ ledger.Actor, _ int, id string) { p.s.Dismiss(p.number(id)) }

func (p *gitHubPlace) LineComment(by ledger.Actor, number int, path, body string) string {
	return fmt.Sprint(p.s.ReviewComment(githubtest.NewComment{Repository: placeName, Number: number, By: p.login(by), Path: path, Line: 1, Body: body}).ID)
}

func (p *gitHubPlace) Lose(done Done) {
	method, path := "POST", "/pulls"
	switch done {
	case Commented:
		path = "/issues/"
	case Merged:
		method, path = "PUT", "/pulls/"
	}
	p.s.Fail(githubtest.Fault{Method: method, Path: "/api/v3/repos/" + placeName + path, Kind: githubtest.Cut, After: true})
}

func (p *gitHubPlace) Break(n int) (heal func()) {
	p.s.Fail(githubtest.Fault{Path: "/api/", Skip: n, Times: -1, Status: 500})
	return p.s.Heal
}
