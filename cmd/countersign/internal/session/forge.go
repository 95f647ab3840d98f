package session

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/gitea"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

// ForgeToken is what pull requests on a server are read and written with: the
// Action's input, else what the environment has.
func ForgeToken(c *console.Console, settings gitstore.Settings, server string) string {
	return cmp.Or(c.Getenv("INPUT_TOKEN"), ownToken(c, settings, server), hubToken(c, server))
}

// ownToken is COUNTERSIGN_TOKEN, unless it is for another host than the server's: the one that
// COUNTERSIGN_TOKEN_HOST names, else the workflow's, else that of the remote "origin".
func ownToken(c *console.Console, settings gitstore.Settings, server string) string {
	home := cmp.Or(c.Getenv("COUNTERSIGN_TOKEN_HOST"), github.HostOf(c.Getenv("GITHUB_SERVER_URL")), github.HostOf(wire.WebOf(settings.RemoteURL(console.DefaultRemote))))
	if home != "" && home != github.HostOf(wire.WebOf(server)) {
		return ""
	}
	return c.Getenv("COUNTERSIGN_TOKEN")
}

// hubToken is the token that GitHub's own programs take, for GitHub, and for a server that the environment or --forge says to be
// one of its. A server of which a clone has nothing but the address gets none.
func hubToken(c *console.Console, server string) string {
	host := github.HostOf(wire.WebOf(server))
	named := c.Getenv("GITHUB_API_URL") != "" || c.Flags.Forge == console.ForgeGitHub || host == github.HostOf(c.Getenv("GITHUB_SERVER_URL"))
	if !named && !IsHub(server) {
		return ""
	}
	return cmp.Or(c.Getenv("GITHUB_TOKEN"), c.Getenv("GH_TOKEN"))
}

// A ForgeClient is a forge with what the commands ask beside settling pull requests.
type ForgeClient interface {
	forge.Forge
	forge.Auditor
	// MergeBase is where the histories of two commits parted.
	MergeBase(ctx context.Context, one, other string) (string, error)
	// IsPublic reports whether everybody may read the repository.
	IsPublic(ctx context.Context) (bool, error)
}

// Forge returns a client for the repository that the remote, or the workflow,
// names; nil without a token.
func Forge(c *console.Console, settings gitstore.Settings) (ForgeClient, error) {
	return forgeBy(c, settings, nil)
}

// forgeBy is forge with the clock that hears the forge's, if there is one.
func forgeBy(c *console.Console, settings gitstore.Settings, clock *rest.Clock) (ForgeClient, error) {
	if OnGitea(c, settings) {
		return giteaClient(c, settings, clock)
	}
	client, err := gitHubClient(c, settings, clock)
	if err != nil || client == nil {
		return nil, err
	}
	return client, nil
}

// GitHub is forge for what only GitHub is asked.
func GitHub(c *console.Console, settings gitstore.Settings) (*github.Client, error) {
	client, err := Forge(c, settings)
	if err != nil || client == nil {
		return nil, err
	}
	if client, is := client.(*github.Client); is {
		return client, nil
	}
	return nil, &console.UsageError{Message: "this asks GitHub, and the repository is on Gitea or Forgejo", Hint: "docs/forges.md says what there is for these"}
}

// Installed are the repositories of the installation of the app whose token this is, with the client that lists them.
func Installed(ctx context.Context, c *console.Console) (*github.Client, []github.Installed, error) {
	client, err := GitHub(c, gitstore.Settings{})
	if err == nil && client == nil {
		err = &console.UsageError{Message: "there is no token to list an app's repositories with, or no GITHUB_REPOSITORY and GITHUB_API_URL", Hint: "countersign init --organization"}
	}
	if err != nil {
		return nil, nil, err
	}
	all, err := client.Installed(ctx)
	return client, all, err
}

// hosts are the forges that need not be asked what they are.
var hosts = map[string]string{"github.com": console.ForgeGitHub, "codeberg.org": console.ForgeForgejo, "gitea.com": console.ForgeGitea}

// OnGitea reports whether the repository is on Gitea or Forgejo: where --forge, or
// countersign.forge of Git's configuration, or the runner of a workflow says so, or the remote's server by its version. That one is asked
// once, and without a token; one that does not answer is taken for GitHub's, as is one
// without TLS, which then gets no token.
func OnGitea(c *console.Console, settings gitstore.Settings) bool {
	server := wire.WebOf(settings.RemoteURL(c.Flags.Remote))
	if told := ToldForge(c, server); told != "" {
		return told != console.ForgeGitHub
	}
	host := github.HostOf(server)
	kind := hosts[host]
	switch {
	case !strings.HasPrefix(server, "https://"), host == "", ForgeToken(c, settings, server) == "":
		return false
	case kind != "":
		return kind != console.ForgeGitHub
	}
	once := func(context.Context, time.Duration) error { return errors.New("asked once") }
	found, err := gitea.Version(context.Background(), gitea.Options{
		Server: "https://" + host, UserAgent: "countersign/" + console.Version(), Wait: once, Timeout: 5 * time.Second,
	})
	return err == nil && found != ""
}

// ToldForge is the forge of a server as --forge, Git's configuration, a workflow or GitHub's own program tell it, "" where
// none does.
func ToldForge(c *console.Console, server string) string {
	switch {
	case c.Flags.Forge != "":
		return c.Flags.Forge
	case console.OnGiteaRunner(c.Getenv):
		return console.ForgeGitea
	case c.Getenv("GITHUB_ACTIONS") == "true", c.Getenv("GITHUB_API_URL") != "", c.GH != nil, strings.HasSuffix(github.HostOf(server), ".ghe.com"):
		return console.ForgeGitHub
	}
	return ""
}

// IsHub reports whether an address is on a server of GitHub's own.
func IsHub(address string) bool {
	host := github.HostOf(wire.WebOf(address))
	return hosts[host] == console.ForgeGitHub || strings.HasSuffix(host, ".ghe.com")
}

// Guessed is an error of a server that was taken for GitHub Enterprise Server, as it does not say what it is.
func Guessed(err error) error {
	return &fault.Error{Message: err.Error(), Try: "say what the server is, if it is another: --forge gitea, forgejo or github", Cause: err}
}

// Links are where people see the repository.
func (s *Session) Links() forge.Links { return s.LinksOf(s.Repo.Config.RemoteURL(s.Flags.Remote)) }

// LinksOf are where people see a repository on the forge. Nothing is asked for them.
func LinksOf(c *console.Console, address string) forge.Links {
	to := github.LinksOf(wire.WebOf(address), github.RepositoryOf(address))
	told := ToldForge(c, to.Web)
	to.GitHub = told == console.ForgeGitHub
	to.Gitea = told != "" && !to.GitHub
	return to
}

// LinksOf are the console's, on the forge that answers.
func (s *Session) LinksOf(address string) forge.Links {
	to := LinksOf(s.Console, address)
	switch s.Client.(type) {
	case *gitea.Client:
		to.Gitea, to.GitHub = true, false
	case *github.Client:
		to.Gitea, to.GitHub = false, true
	}
	return to
}

// giteaClient is a client for Gitea or Forgejo. Tokens of GitHub's are not for it, but in a
// workflow GITHUB_TOKEN, which its runner sets.
func giteaClient(c *console.Console, settings gitstore.Settings, clock *rest.Clock) (ForgeClient, error) {
	remote := settings.RemoteURL(c.Flags.Remote)
	repository, server := cmp.Or(c.Getenv("GITHUB_REPOSITORY"), github.RepositoryOf(remote)), c.Getenv("GITHUB_SERVER_URL")
	if server == "" {
		scheme, _, _ := strings.Cut(wire.WebOf(remote), "://")
		server = scheme + "://" + github.HostOf(wire.WebOf(remote))
	}
	token := cmp.Or(c.Getenv("INPUT_TOKEN"), ownToken(c, settings, server))
	if c.Getenv("GITHUB_ACTIONS") == "true" {
		token = cmp.Or(token, c.Getenv("GITHUB_TOKEN"))
	}
	if c.Cloned != "" {
		if repository = github.RepositoryOf(remote); github.HostOf(remote) != TokenHost(c, settings) {
			return nil, nil
		}
	}
	if token == "" || repository == "" || github.HostOf(server) == "" {
		return nil, nil
	}
	client, err := gitea.New(gitea.Options{Server: server, Repository: repository, Token: token, UserAgent: "countersign/" + console.Version(), Wait: c.Wait, Clock: clock})
	if err != nil {
		return nil, &console.UsageError{Message: err.Error(), Hint: ""}
	}
	return client, nil
}

// gitHubClient is a client for GitHub.
func gitHubClient(c *console.Console, settings gitstore.Settings, clock *rest.Clock) (*github.Client, error) {
	remote := settings.RemoteURL(c.Flags.Remote)
	repository := cmp.Or(c.Getenv("GITHUB_REPOSITORY"), github.RepositoryOf(remote))
	server := cmp.Or(c.Getenv("GITHUB_SERVER_URL"), remote)
	token := ForgeToken(c, settings, server)
	if c.GH != nil { // its users are asked which protocol they want, and many say ssh
		server = wire.WebOf(server)
	}
	api := cmp.Or(c.Getenv("GITHUB_API_URL"), github.APIOf(server))
	if c.Cloned != "" {
		if repository = github.RepositoryOf(remote); github.HostOf(remote) != TokenHost(c, settings) {
			return nil, nil
		}
	}
	if token == "" && repository != "" && api != "" {
		token = askGH(c, github.HostOf(server))
	}
	if token == "" || repository == "" || api == "" {
		return nil, nil
	}
	client, err := github.New(github.Options{
		APIURL: api, GraphQLURL: c.Getenv("GITHUB_GRAPHQL_URL"), ServerURL: c.Getenv("GITHUB_SERVER_URL"),
		Repository: repository, Token: token, UserAgent: "countersign/" + console.Version(), Wait: c.Wait, Clock: clock,
	})
	if err != nil {
		return nil, &console.UsageError{Message: err.Error(), Hint: ""}
	}
	return client, nil
}

// askGH is the token that gh keeps for a host, where gh runs this program; else "".
func askGH(c *console.Console, host string) string {
	token := c.GH.Token(host, c.From(c.Flags.Dir))
	if token != "" {
		c.Known.Hear(token)
	}
	return token
}

// ForgeOfWorkflow is the client of a job that may have no clone.
func ForgeOfWorkflow(c *console.Console) (ForgeClient, error) { return Forge(c, gitstore.Settings{}) }

// Issues is where an issue of the program is kept, and where people comment on it.
func Issues(c *console.Console, client ForgeClient) (forge.Reviews, error) {
	if client == nil {
		return nil, c.NoClient("there is no token to write an issue with")
	}
	on, has := client.(forge.Reviews)
	if !has {
		return nil, &console.UsageError{Message: "issues are kept on GitHub alone, and the repository is on Gitea or Forgejo", Hint: "docs/forges.md says what there is for these"}
	}
	return on, nil
}

// trustedForge is where approvals are read: nowhere, in a workflow whose file a
// pull request can bring along.
func trustedForge(c *console.Console, client ForgeClient) forge.Reader {
	if !console.InWorkflow(c.Getenv) {
		return client
	}
	_, err := TrustedEvent(c)
	if err != nil {
		return forge.Distrusted(err)
	}
	return client
}
