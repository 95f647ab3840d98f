package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/gitea"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/pull"
)

// forgeToken is what pull requests on a server are read and written with: the
// Action's input, else what the environment has.
func (a *App) forgeToken(settings gitstore.Settings, server string) string {
	return cmp.Or(a.Getenv("INPUT_TOKEN"), a.ownToken(settings, server), a.hubToken(server))
}

// ownToken is COUNTERSIGN_TOKEN, unless it is for another host than the server's: the one that
// COUNTERSIGN_TOKEN_HOST names, else the workflow's, else that of the remote "origin".
func (a *App) ownToken(settings gitstore.Settings, server string) string {
	home := cmp.Or(a.Getenv("COUNTERSIGN_TOKEN_HOST"), github.HostOf(a.Getenv("GITHUB_SERVER_URL")), github.HostOf(wire.WebOf(settings.RemoteURL(defaultRemote))))
	if home != "" && home != github.HostOf(wire.WebOf(server)) {
		return ""
	}
	return a.Getenv("COUNTERSIGN_TOKEN")
}

// hubToken is the token that GitHub's own programs take, for GitHub, and for a server that the environment or --forge says to be
// one of its. A server of which a clone has nothing but the address gets none.
func (a *App) hubToken(server string) string {
	host := github.HostOf(wire.WebOf(server))
	named := a.Getenv("GITHUB_API_URL") != "" || a.flags.forge == forgeGitHub || host == github.HostOf(a.Getenv("GITHUB_SERVER_URL"))
	if !named && !isHub(server) {
		return ""
	}
	return cmp.Or(a.Getenv("GITHUB_TOKEN"), a.Getenv("GH_TOKEN"))
}

// A forgeClient is a forge with what the commands ask beside settling pull requests.
type forgeClient interface {
	forge.Forge
	forge.Auditor
	// MergeBase is where the histories of two commits parted.
	MergeBase(ctx context.Context, one, other string) (string, error)
	// IsPublic reports whether everybody may read the repository.
	IsPublic(ctx context.Context) (bool, error)
	// PublishCheck is PublishCheckOver the check runs of that name that are there.
	PublishCheck(ctx context.Context, head string, check forge.Check) (forge.CheckRun, error)
}

// forge returns a client for the repository that the remote, or the workflow,
// names; nil without a token.
func (a *App) forge(settings gitstore.Settings) (forgeClient, error) {
	isGitea, err := a.onGitea(settings)
	if err != nil {
		return nil, err
	}
	if isGitea {
		return a.gitea(settings)
	}
	client, err := a.onGitHub(settings)
	if err != nil || client == nil {
		return nil, err
	}
	return client, nil
}

// gitHub is forge for what only GitHub is asked.
func (a *App) gitHub(settings gitstore.Settings) (*github.Client, error) {
	client, err := a.forge(settings)
	if err != nil || client == nil {
		return nil, err
	}
	if client, is := client.(*github.Client); is {
		return client, nil
	}
	return nil, &cli.UsageError{Message: "this asks GitHub, and the repository is on Gitea or Forgejo", Hint: "docs/forges.md says what there is for these"}
}

// The forges that --forge names.
const (
	forgeGitHub  = "github"
	forgeGitea   = "gitea"
	forgeForgejo = "forgejo"
)

// hosts are the forges that need not be asked what they are.
var hosts = map[string]string{"github.com": forgeGitHub, "codeberg.org": forgeForgejo, "gitea.com": forgeGitea}

// onGitea reports whether the repository is on Gitea or Forgejo: where --forge, or
// countersign.forge of Git's configuration, or the runner of a workflow says so, or the remote's server by its version. That one is asked
// once, and without a token; one that does not answer is taken for GitHub's, as is one
// without TLS, which then gets no token.
func (a *App) onGitea(settings gitstore.Settings) (bool, error) {
	server := wire.WebOf(settings.RemoteURL(a.flags.remote))
	if told := a.toldForge(server); told != "" {
		return told != forgeGitHub, nil
	}
	host := github.HostOf(server)
	kind := hosts[host]
	switch {
	case !strings.HasPrefix(server, "https://"), host == "", a.forgeToken(settings, server) == "":
		return false, nil
	case kind != "":
		return kind != forgeGitHub, nil
	}
	once := func(context.Context, time.Duration) error { return errors.New("asked once") }
	found, err := gitea.Version(context.Background(), gitea.Options{
		Server: "https://" + host, UserAgent: "countersign/" + version(), Wait: once, Timeout: 5 * time.Second,
	})
	return err == nil && found != "", nil
}

// toldForge is the forge of a server as --forge, Git's configuration, a workflow or GitHub's own program tell it, "" where
// none does.
func (a *App) toldForge(server string) string {
	switch {
	case a.flags.forge != "":
		return a.flags.forge
	case onGiteaRunner(a.Getenv):
		return forgeGitea
	case a.Getenv("GITHUB_ACTIONS") == "true", a.Getenv("GITHUB_API_URL") != "", a.GH != nil, strings.HasSuffix(github.HostOf(server), ".ghe.com"):
		return forgeGitHub
	}
	return ""
}

// isHub reports whether an address is on a server of GitHub's own.
func isHub(address string) bool {
	host := github.HostOf(wire.WebOf(address))
	return hosts[host] == forgeGitHub || strings.HasSuffix(host, ".ghe.com")
}

// A guessError is one of a server that was taken for GitHub Enterprise Server, as it does not say what it is.
type guessError struct{ err error }

func (e *guessError) Error() string { return e.err.Error() }
func (*guessError) Hint() string {
	return "say what the server is, if it is another: --forge gitea, forgejo or github"
}
func (e *guessError) Unwrap() error { return e.err }

// noClient is the error of a command for which there is no token for the server.
func (a *App) noClient(message string) error {
	hint := "set COUNTERSIGN_TOKEN, or give the Action its input token"
	if a.Getenv("COUNTERSIGN_TOKEN") != "" {
		hint = "name the token's host in COUNTERSIGN_TOKEN_HOST, and with --forge what the server is"
	}
	return &cli.UsageError{Message: message, Hint: hint}
}

// links are where people see the repository.
func (a *App) links() forge.Links { return a.linksOf(a.repo.Config.RemoteURL(a.flags.remote)) }

// linksOf are where people see a repository on the forge. Nothing is asked for them.
func (a *App) linksOf(address string) forge.Links {
	to := github.LinksOf(wire.WebOf(address), github.RepositoryOf(address))
	switch told := a.toldForge(to.Web); a.client.(type) {
	case *gitea.Client:
		to.Gitea = true
	case *github.Client:
		to.GitHub = true
	default:
		to.GitHub = told == forgeGitHub
		to.Gitea = told != "" && !to.GitHub
	}
	return to
}

// gitea is a client for Gitea or Forgejo. Tokens of GitHub's are not for it, but in a
// workflow GITHUB_TOKEN, which its runner sets.
func (a *App) gitea(settings gitstore.Settings) (forgeClient, error) {
	remote := settings.RemoteURL(a.flags.remote)
	repository, server := cmp.Or(a.Getenv("GITHUB_REPOSITORY"), github.RepositoryOf(remote)), a.Getenv("GITHUB_SERVER_URL")
	if server == "" {
		scheme, _, _ := strings.Cut(wire.WebOf(remote), "://")
		server = scheme + "://" + github.HostOf(wire.WebOf(remote))
	}
	token := cmp.Or(a.Getenv("INPUT_TOKEN"), a.ownToken(settings, server))
	if a.Getenv("GITHUB_ACTIONS") == "true" {
		token = cmp.Or(token, a.Getenv("GITHUB_TOKEN"))
	}
	if a.cloned != "" {
		if repository = github.RepositoryOf(remote); github.HostOf(remote) != a.tokenHost(settings) {
			return nil, nil
		}
	}
	if token == "" || repository == "" || github.HostOf(server) == "" {
		return nil, nil
	}
	client, err := gitea.New(gitea.Options{Server: server, Repository: repository, Token: token, UserAgent: "countersign/" + version(), Wait: a.Wait, Clock: a.clock})
	if err != nil {
		return nil, &cli.UsageError{Message: err.Error(), Hint: ""}
	}
	return client, nil
}

// checkForge refuses a forge that is none, which a flag or Git's configuration names.
func (a *App) checkForge(named string) error {
	if a.flags.forge == "" || slices.Contains([]string{forgeGitHub, forgeGitea, forgeForgejo}, a.flags.forge) {
		return nil
	}
	return &cli.UsageError{Message: fmt.Sprintf("%s %+q is not known", named, a.flags.forge), Hint: "--forge github, gitea or forgejo"}
}

// onGitHub is a client for GitHub.
func (a *App) onGitHub(settings gitstore.Settings) (*github.Client, error) {
	remote := settings.RemoteURL(a.flags.remote)
	repository := cmp.Or(a.Getenv("GITHUB_REPOSITORY"), github.RepositoryOf(remote))
	server := cmp.Or(a.Getenv("GITHUB_SERVER_URL"), remote)
	token := a.forgeToken(settings, server)
	if a.GH != nil { // its users are asked which protocol they want, and many say ssh
		server = wire.WebOf(server)
	}
	api := cmp.Or(a.Getenv("GITHUB_API_URL"), github.APIOf(server))
	if a.cloned != "" {
		if repository = github.RepositoryOf(remote); github.HostOf(remote) != a.tokenHost(settings) {
			return nil, nil
		}
	}
	if token == "" && repository != "" && api != "" {
		token = a.askGH(github.HostOf(server))
	}
	if token == "" || repository == "" || api == "" {
		return nil, nil
	}
	client, err := github.New(github.Options{
		APIURL: api, GraphQLURL: a.Getenv("GITHUB_GRAPHQL_URL"), ServerURL: a.Getenv("GITHUB_SERVER_URL"),
		Repository: repository, Token: token, UserAgent: "countersign/" + version(), Wait: a.Wait, Clock: a.clock,
	})
	if err != nil {
		return nil, &cli.UsageError{Message: err.Error(), Hint: ""}
	}
	return client, nil
}

// askGH is the token that gh keeps for a host, where gh runs this program; else "".
func (a *App) askGH(host string) string {
	token := a.GH.Token(host, a.from(a.flags.dir))
	if token != "" {
		a.ghTokens = append(a.ghTokens, token)
		a.secrets = a.finder().Knowing(token)
	}
	return token
}

// forgeOfWorkflow is the client of a job that may have no clone.
func (a *App) forgeOfWorkflow() (forgeClient, error) { return a.forge(gitstore.Settings{}) }

// inWorkflow reports whether this is a job of a workflow. Each forge's runner says so in a variable of its own, and
// one alone is enough: a job is never taken for a person's machine.
func inWorkflow(getenv func(string) string) bool {
	return getenv("GITHUB_ACTIONS") == "true" || onGiteaRunner(getenv)
}

// onGiteaRunner reports whether this is a job of Gitea's or Forgejo's runner.
func onGiteaRunner(getenv func(string) string) bool {
	return getenv("GITEA_ACTIONS") == "true" || getenv("FORGEJO_ACTIONS") == "true"
}

// trustedForge is where approvals are read: nowhere, in a workflow whose file a
// pull request can bring along.
func (a *App) trustedForge(client forgeClient) forge.Reader {
	if !inWorkflow(a.Getenv) {
		return client
	}
	e, err := readEvent(a.Getenv)
	if err == nil {
		err = e.Trusted()
	}
	if err != nil {
		return pull.Distrusted(err)
	}
	return client
}
