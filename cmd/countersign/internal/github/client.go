// Package github speaks to GitHub. It is the only door to go-github.
//
// Reading fails closed: a page that is missing, an answer that was cut, a count
// that does not agree is an error, never a shorter list. Reads are tried again
// when the network or GitHub fails, writes only when GitHub surely did nothing.
// The token goes to the API's hosts and nowhere else.
package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/countersign-dev/countersign/internal/lazyregexp"
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
}

// A Client acts on one repository with one token. It may be used by several
// goroutines.
type Client struct {
	api         *github.Client
	storage     *http.Client // for what lies outside of the API; without the token
	graphql     string
	server      string
	owner, name string
	known       *memory
}

var _ forge.Forge = (*Client)(nil)

// New returns a client. It sends nothing.
func New(o Options) (*Client, error) {
	owner, name, ok := splitRepository(o.Repository)
	if !ok {
		return nil, fmt.Errorf("%+q is not a repository: owner/name is", o.Repository)
	}
	base, err := address(o.APIURL)
	if err != nil {
		return nil, err
	}
	graphql, err := address(firstOf(o.GraphQLURL, graphQLOf(base)))
	if err != nil {
		return nil, err
	}
	server, err := address(firstOf(o.ServerURL, serverOf(base)))
	if err != nil {
		return nil, err
	}
	t := &transport{
		base: http.DefaultTransport, token: o.Token, agent: firstOf(o.UserAgent, "countersign"),
		hosts: []string{origin(base), origin(graphql)}, wait: o.Wait, timeout: o.Timeout,
	}
	if t.wait == nil {
		t.wait = sleep
	}
	if t.timeout == 0 {
		t.timeout = 30 * time.Second
	}
	api := github.NewClient(&http.Client{Transport: t, CheckRedirect: sameOrigin})
	api.BaseURL = base.JoinPath("/")
	outside := *t
	outside.token = ""
	return &Client{
		api: api, storage: &http.Client{Transport: &outside}, graphql: graphql.String(),
		server: strings.TrimSuffix(server.String(), "/"), owner: owner, name: name, known: &memory{},
	}, nil
}

// Fresh is the client without what it remembers of accounts.
func (c *Client) Fresh() *Client {
	fresh := *c
	fresh.known = &memory{}
	return &fresh
}

var nameRule = lazyregexp.New(`^[A-Za-z0-9._-]+$`)

// splitRepository splits "owner/name". What passes is safe in an address.
func splitRepository(s string) (owner, name string, ok bool) {
	owner, name, _ = strings.Cut(s, "/")
	for _, part := range []string{owner, name} {
		if !nameRule().MatchString(part) || part == "." || part == ".." {
			return "", "", false
		}
	}
	return owner, name, true
}

func address(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "https" && u.Scheme != "http") {
		return nil, fmt.Errorf("%+q is not the address of an API", s)
	}
	return u, nil
}

// graphQLOf is where the GraphQL API is beside the REST API: github.com has
// both under one host, Enterprise Server under /api/v3 and /api/graphql.
func graphQLOf(api *url.URL) string {
	if root, ok := strings.CutSuffix(strings.TrimSuffix(api.Path, "/"), "/api/v3"); ok {
		return origin(api) + root + "/api/graphql"
	}
	return api.JoinPath("graphql").String()
}

// serverOf is where people and Git go: the API's host without "api.".
func serverOf(api *url.URL) string {
	root := strings.TrimSuffix(strings.TrimSuffix(api.Path, "/"), "/api/v3")
	return api.Scheme + "://" + strings.TrimPrefix(api.Host, "api.") + root
}

func origin(u *url.URL) string {
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
