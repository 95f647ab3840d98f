package github

import (
	"context"
	"net/http"
	"net/url"

	"github.com/google/go-github/v60/github"

	"github.com/countersign-dev/countersign/internal/lazyregexp"
)

// maxPages bounds a list of the REST API: 10,000 entries.
const maxPages = 100

// path joins parts of an address, each one segment of it. The parts are
// foreign: none may leave its place.
func path(parts ...string) (string, error) {
	joined := ""
	for _, part := range parts {
		if part == "" || part == "." || part == ".." {
			return "", unusable("%+q cannot be part of an address", part)
		}
		joined += "/" + url.PathEscape(part)
	}
	return joined[1:], nil
}

// get reads what is at a path, which is given in parts.
func (c *Client) get(ctx context.Context, into any, query url.Values, parts ...string) (*github.Response, error) {
	where, err := path(parts...)
	if err != nil {
		return nil, err
	}
	if len(query) > 0 {
		where += "?" + query.Encode()
	}
	req, err := c.api.NewRequest(http.MethodGet, where, nil)
	if err != nil {
		return nil, err
	}
	return c.api.Do(ctx, req, into)
}

// inRepository is get below the repository's own address.
func (c *Client) inRepository(ctx context.Context, into any, query url.Values, parts ...string) (*github.Response, error) {
	return c.get(ctx, into, query, append([]string{"repos", c.owner, c.name}, parts...)...)
}

// allPages calls read with 1 and each further page until there is none.
func allPages(read func(page int) (*github.Response, error)) error {
	for page := 1; page != 0; {
		if page > maxPages {
			return unusable("there are more than %d pages", maxPages)
		}
		resp, err := read(page)
		if err != nil {
			return err
		}
		if resp.NextPage != 0 && resp.NextPage <= page {
			return unusable("the pages are not in order")
		}
		page = resp.NextPage
	}
	return nil
}

var commitRule = lazyregexp.New(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// checkCommit takes whole commit ids only: where a commit is asked for, GitHub
// also takes a branch's name.
func checkCommit(id string) error {
	if !commitRule().MatchString(id) {
		return unusable("%+q is not a commit id", id)
	}
	return nil
}
