// Package github speaks to GitHub. It is the only door to go-github.
//
// Reading fails closed: a page that is missing, an answer that was cut, a count
// that does not agree is an error, never a shorter list. Reads are tried again
// when the network or GitHub fails, writes only when GitHub surely did nothing.
// The token goes to the API's hosts and nowhere else.
package github

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

// Options are what a Client needs. In a workflow the addresses are
// GITHUB_API_URL, GITHUB_GRAPHQL_URL and GITHUB_SERVER_URL; the latter two are
// worked out from the first where they are empty.
type Options struct {
	APIURL     string
	GraphQLURL string
	ServerURL  string
	Repository string // "owner/name"
	Token      string
	UserAgent  string
	// Wait lets time pass before a request is tried again; nil: a timer.
	Wait func(context.Context, time.Duration) error
	// Timeout is for one attempt at one request; 0: 30 seconds.
	Timeout time.Duration
	// Clock hears the time of the server; nil for none.
	Clock *rest.Clock
}

// A Client acts on one repository with one token. It may be used by several
// goroutines.
type Client struct {
	api     *github.Client
	graphql string
	rest.Repository
}

var _ forge.Forge = (*Client)(nil)

// New returns a client. It sends nothing.
func New(o Options) (*Client, error) {
	owner, name, ok := rest.SplitRepository(o.Repository)
	if !ok {
		return nil, fmt.Errorf("%+q is not a repository such as owner/name", o.Repository)
	}
	base, err := rest.Address(o.APIURL)
	if err != nil {
		return nil, err
	}
	// Enterprise Server has its APIs under /api/v3 and /api/graphql of the host that
	// people and Git go to; github.com has both under a host of their own.
	root, enterprise := strings.CutSuffix(strings.TrimSuffix(base.Path, "/"), "/api/v3")
	beside := base.JoinPath("graphql").String()
	if enterprise {
		beside = rest.Origin(base) + root + "/api/graphql"
	}
	graphql, err := rest.Address(cmp.Or(o.GraphQLURL, beside))
	if err != nil {
		return nil, err
	}
	server, err := rest.Address(cmp.Or(o.ServerURL, base.Scheme+"://"+strings.TrimPrefix(base.Host, "api.")+root))
	if err != nil {
		return nil, err
	}
	client, storage := rest.Transport{
		Token: o.Token, Agent: o.UserAgent, Hosts: []string{rest.Origin(base), rest.Origin(graphql)}, Wait: o.Wait, Timeout: o.Timeout, Clock: o.Clock,
	}.Clients()
	c := &Client{api: github.NewClient(client), graphql: graphql.String()}
	c.api.BaseURL = base.JoinPath("/")
	c.Repository = rest.Repository{
		Forge: forgeName, Server: strings.TrimSuffix(server.String(), "/"), Owner: owner, Name: name, Send: c.request,
		ReadPull: c.pullRequest, Protected: c.protected, Create: c.create, SendMerge: c.merge,
		UntoldMethod: "merge", // GitHub tells the methods to those who may push, and decides
		Pulls:        rest.Pulls{Forge: forgeName, List: c.pulls, ListMerged: c.merged},
		People:       &rest.People{Forge: forgeName, AskAccess: c.access, AskMember: c.member, AskAccount: c.account},
		Artifacts:    rest.Artifacts{Forge: forgeName, Base: base.JoinPath("repos", owner, name), API: client, Storage: storage, List: c.artifacts},
	}
	return c, nil
}

// Version is that of an Enterprise Server, "" for github.com, which is not asked.
func (c *Client) Version(ctx context.Context) (string, error) {
	if c.api.BaseURL.Host == "api.github.com" {
		return "", nil
	}
	header, err := c.GetBelow(ctx, nil, nil)
	if err != nil {
		return "", failed("reading the server's version", err)
	}
	return header.Get("X-GitHub-Enterprise-Version"), nil
}

// RunsBaseWorkflows is forge.Forge's: GitHub Enterprise Server took the file of a
// pull_request_target workflow from the pull request's base before 3.20.
func (c *Client) RunsBaseWorkflows(ctx context.Context) (string, error) {
	version, err := c.Version(ctx)
	if err != nil || !RunsBaseWorkflows(version) {
		return "", err
	}
	return "GitHub Enterprise Server " + version, nil
}

// RunsBaseWorkflows reports whether a server of that version does.
func RunsBaseWorkflows(version string) bool { return version != "" && !atLeast(version, 3, 20) }

// atLeast compares a version such as 3.19.2; one that cannot be read is not.
func atLeast(version string, major, minor int) bool {
	parts := strings.Split(version, ".")
	if len(parts) < 2 {
		return false
	}
	have, err1 := strconv.Atoi(parts[0])
	less, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (have > major || have == major && less >= minor)
}

// request is rest.Repository's.
func (c *Client) request(ctx context.Context, method string, into, body any, query url.Values, parts ...string) (http.Header, error) {
	resp, err := c.ask(ctx, method, into, body, query, parts...)
	if err != nil {
		return nil, err
	}
	return resp.Header, nil
}

// ask is request with what go-github reads out of the answer's header.
func (c *Client) ask(ctx context.Context, method string, into, body any, query url.Values, parts ...string) (*github.Response, error) {
	where, err := rest.Path(parts...)
	if err != nil {
		return nil, err
	}
	if len(query) > 0 {
		where += "?" + query.Encode()
	}
	req, err := c.api.NewRequest(method, where, body)
	if err != nil {
		return nil, err
	}
	return c.api.Do(ctx, req, into)
}

// post sends a body to a path and reads the answer into a value; nil reads none.
func (c *Client) post(ctx context.Context, into, body any, parts ...string) error {
	_, err := c.Send(ctx, http.MethodPost, into, body, nil, parts...)
	return err
}

// pages reads a list at a path and hands over each page, until take reports that
// nothing more is wanted or there is no further page.
func pages[T any](ctx context.Context, c *Client, query url.Values, take func(T) (more bool, err error), parts ...string) error {
	return rest.Pages(query, "per_page", 100, func(page int, asked url.Values) (bool, error) {
		var got T
		resp, err := c.ask(ctx, http.MethodGet, &got, nil, asked, parts...)
		if err != nil {
			return false, err
		}
		more, err := take(got)
		if err == nil && more && resp.NextPage != 0 && resp.NextPage != page+1 {
			err = rest.Unusable("the pages are not in order")
		}
		return more && resp.NextPage != 0, err
	})
}

// APIOf is the address of the REST API that belongs to a server (GitHub's
// documentation, "Getting started with the REST API"; for GitHub Enterprise
// Server, "About the REST API"). "" for an address that is no https one: a token
// is not sent on a guess.
func APIOf(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return ""
	}
	if u.Host == "github.com" {
		return "https://api.github.com"
	}
	return fmt.Sprintf("https://%s/api/v3", u.Host)
}

// RepositoryOf is the "owner/name" of a remote's address, "" where it has none.
func RepositoryOf(address string) string {
	path := address
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		path = u.Path
	} else if _, rest, ok := strings.Cut(address, ":"); ok {
		path = rest // user@host:owner/name
	}
	parts := strings.Split(strings.TrimSuffix(strings.Trim(path, "/"), ".git"), "/")
	if len(parts) != 2 {
		return ""
	}
	return parts[0] + "/" + parts[1]
}

// pagesOf is where people see a repository, nil for nowhere.
func pagesOf(server, repository string) *url.URL {
	at, err := url.Parse(server)
	owner, name, ok := rest.SplitRepository(repository)
	if err != nil || !ok || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" {
		return nil
	}
	host := at.Host
	if host == "ssh.github.com" { // for ssh through port 443
		host = "github.com"
	}
	return (&url.URL{Scheme: at.Scheme, Host: host}).JoinPath(owner, name)
}

// LinksOf are the addresses of a repository's pages, made of what its settings say alone.
func LinksOf(server, repository string) forge.Links {
	if page := pagesOf(server, repository); page != nil {
		return forge.Links{Web: page.String()}
	}
	return forge.Links{}
}

// HostOf is the host, with its port, of an http address; "" of any other.
func HostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.Host
}

// SameRepository reports whether two http addresses are of one repository.
func SameRepository(a, b string) bool {
	return HostOf(a) != "" && strings.EqualFold(RepositoryOf(a), RepositoryOf(b)) && strings.EqualFold(HostOf(a), HostOf(b))
}
