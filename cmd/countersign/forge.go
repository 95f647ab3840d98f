package main

import (
	"cmp"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/cli"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/pull"
)

// forgeToken is what pull requests are read and written with: the Action's
// input, else what the environment has.
func (a *App) forgeToken() string {
	return cmp.Or(a.Getenv("INPUT_TOKEN"), a.Getenv("COUNTERSIGN_TOKEN"), a.Getenv("GITHUB_TOKEN"), a.Getenv("GH_TOKEN"))
}

// forge returns a client for the repository that the remote, or the workflow,
// names; nil without a token.
func (a *App) forge(settings gitstore.Settings) (*github.Client, error) {
	token, remote := a.forgeToken(), settings.RemoteURL(a.flags.remote)
	repository := cmp.Or(a.Getenv("GITHUB_REPOSITORY"), github.RepositoryOf(remote))
	server := cmp.Or(a.Getenv("GITHUB_SERVER_URL"), remote)
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
		Repository: repository, Token: token, UserAgent: "countersign/" + version(), Wait: a.Wait,
	})
	if err != nil {
		return nil, &cli.UsageError{Message: err.Error(), Hint: ""}
	}
	return client, nil
}

// askGH is the token that gh keeps for a host, where gh runs this program; else "".
func (a *App) askGH(host string) string {
	token := a.GH.Token(host, a.flags.dir)
	if token != "" {
		a.ghTokens = append(a.ghTokens, token)
		a.secrets = a.finder().Knowing(token)
	}
	return token
}

// forgeOfWorkflow is the client of a job that may have no clone.
func (a *App) forgeOfWorkflow() (*github.Client, error) { return a.forge(gitstore.Settings{}) }

// trustedForge is where approvals are read: nowhere, in a workflow whose file a
// pull request can bring along.
func (a *App) trustedForge(client *github.Client) forge.Reader {
	if a.Getenv("GITHUB_ACTIONS") != "true" {
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
