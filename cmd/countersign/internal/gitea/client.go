// Package gitea speaks to Gitea, and to Forgejo, by their REST API of version 1.
//
// Reading fails closed, as in package rest: a count that does not agree is an error,
// never a shorter list. What the API does not tell, such as the texts that a comment
// had before, is taken for the strictest that it may be; docs/forges.md says for each
// threat what that comes to.
package gitea

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

// Options are what a Client needs.
type Options struct {
	Server     string // that people and Git go to, such as https://git.example.org
	Repository string // "owner/name"
	Token      string
	UserAgent  string
	// Wait lets time pass before a request is tried again; nil: a timer.
	Wait func(context.Context, time.Duration) error
	// Timeout is for one attempt at one request; 0: 30 seconds.
	Timeout time.Duration
	// Clock hears the time of the server; nil for none.
	Clock *rest.Clock
	// PageSize is how many entries of a list are asked for at once; 0: 50, the most that a
	// server gives where nothing else is set.
	PageSize int
}

// A Client acts on one repository with one token. It may be used by several
// goroutines.
type Client struct {
	api      *http.Client
	base     *url.URL // of the API
	wait     func(context.Context, time.Duration) error
	known    *memory
	pageSize int
	rest.Repository
}

var _ forge.Forge = (*Client)(nil)

// New returns a client. It sends nothing.
func New(o Options) (*Client, error) {
	owner, name, ok := rest.SplitRepository(o.Repository)
	if !ok {
		return nil, fmt.Errorf("%+q is not a repository such as owner/name", o.Repository)
	}
	server, err := rest.Address(strings.TrimSuffix(o.Server, "/"))
	if err != nil {
		return nil, err
	}
	if o.Wait == nil {
		o.Wait = rest.Sleep
	}
	c := &Client{base: server.JoinPath("api", "v1"), known: &memory{}, wait: o.Wait, pageSize: cmp.Or(o.PageSize, 50)}
	var storage *http.Client
	c.api, storage = rest.Transport{Token: o.Token, Agent: o.UserAgent, Hosts: []string{rest.Origin(server)}, Wait: o.Wait, Timeout: o.Timeout, Clock: o.Clock}.Clients()
	c.Repository = rest.Repository{
		Forge: forgeName, Server: server.String(), Owner: owner, Name: name, Send: c.send,
		ReadPull: c.pullRequest, Protected: c.protected, Create: c.create, Doubles: true, SendMerge: c.merge,
		// Of two that edit a comment at once the server refuses one (500). The text is the whole
		// one, so that sending it again does nothing twice.
		EditComment: rest.Call{Read: true},
		Pulls:       rest.Pulls{Forge: forgeName, List: c.pulls, ListMerged: c.merged},
		People:      &rest.People{Forge: forgeName, AskAccess: c.access, AskMember: c.member, AskAccount: c.account},
		Artifacts:   rest.Artifacts{Forge: forgeName, Base: c.base.JoinPath("repos", owner, name), API: c.api, Storage: storage, List: c.artifacts},
	}
	return c, nil
}

// Version is a server's, such as "Gitea 1.25.5". It is "" of a server that is neither
// Gitea nor Forgejo, and is asked without a token.
func Version(ctx context.Context, o Options) (string, error) {
	o.Token, o.Repository = "", "a/b"
	c, err := New(o)
	if err != nil {
		return "", err
	}
	version, err := c.version(ctx)
	if rest.IsKind(err, rest.KindNotFound, rest.KindNetwork, rest.KindPermission, rest.KindAuth, rest.KindAnswer) && ctx.Err() == nil {
		return "", nil
	}
	return version, err
}

// version tells Forgejo by the version of Gitea's API that it adds to its own.
func (c *Client) version(ctx context.Context) (string, error) {
	var got struct {
		Version string `json:"version"`
	}
	if _, err := c.Get(ctx, &got, nil, "version"); err != nil {
		return "", failed("reading the server's version", err)
	}
	number, of, forked := strings.Cut(got.Version, "+")
	if number == "" || strings.Trim(number[:1], "0123456789") != "" {
		return "", failed("reading the server's version", rest.Unusable("it tells none"))
	}
	if forked && strings.HasPrefix(of, "gitea-") {
		return "Forgejo " + number, nil
	}
	return "Gitea " + number, nil
}

// RunsBaseWorkflows is forge.Forge's: all versions that are known take the file of a
// pull_request_target workflow from the pull request's base.
func (c *Client) RunsBaseWorkflows(ctx context.Context) (string, error) { return c.version(ctx) }

// IsPublic reports whether everybody may read the repository.
func (c *Client) IsPublic(ctx context.Context) (bool, error) {
	about, err := c.About(ctx)
	public := about.Private != nil && !*about.Private && about.Internal != nil && !*about.Internal
	return err == nil && public, failed("reading the repository", err)
}

// MergeBase is not to be had: the API compares commits and does not tell where they
// parted.
func (c *Client) MergeBase(context.Context, string, string) (string, error) {
	return "", failed("asking for a merge base", &rest.Error{
		Kind: rest.KindRefused, Message: "the API does not tell merge bases: fetch the whole history (fetch-depth: 0)",
	})
}

// forgeName is how errors name it.
const forgeName = "Gitea"

func failed(op string, err error) error { return rest.Failed(forgeName, op, err) }

// send sends a request, with a body unless that is nil, and reads the answer into a
// value unless that is nil.
func (c *Client) send(ctx context.Context, method string, into, body any, query url.Values, parts ...string) (http.Header, error) {
	where, err := rest.Path(parts...)
	if err != nil {
		return nil, err
	}
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(asciiJSON(raw))
	}
	address := c.base.String() + "/" + where
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.api.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if into == nil || resp.StatusCode == http.StatusNoContent {
		return resp.Header, nil
	}
	return resp.Header, json.NewDecoder(resp.Body).Decode(into)
}

// asciiJSON is JSON with all other characters escaped. Gitea 1.25 and before replace some
// of them in a request of some kilobytes by U+FFFD, where its reader's buffer ends.
func asciiJSON(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for _, r := range string(raw) {
		switch high, low := utf16.EncodeRune(r); {
		case r < utf8.RuneSelf:
			out = append(out, byte(r))
		case high != utf8.RuneError:
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// A part is one page of a list, with how many entries there are in all.
type part[T any] struct {
	entries []T
	total   int
}

// pageOf asks for a page. Of a list of plain entries the header tells how many there are.
func pageOf[T any](ctx context.Context, c *Client, query url.Values, parts ...string) (part[T], error) {
	var got []T
	header, err := c.Get(ctx, &got, query, parts...)
	if err != nil {
		return part[T]{}, err
	}
	total, err := strconv.Atoi(header.Get("X-Total-Count"))
	if err != nil || total < 0 {
		return part[T]{}, rest.Unusable("the answer does not tell how many entries there are")
	}
	return part[T]{got, total}, nil
}

// list reads all pages of a list at a path. Pages are counted from the newest or the
// oldest entry, so that one which comes or goes moves the others: a list of several
// pages is read until two readings are alike. mayLack takes a list for whole of which
// the server keeps some entries back, out of any of its pages: all pages that there can
// be are read.
func list[T any](ctx context.Context, c *Client, mayLack bool, query url.Values, parts ...string) ([]T, error) {
	return rest.Twice(func() ([]T, error) {
		all, several, err := readPages[T](ctx, c, mayLack, query, parts...)
		if err != nil || !several {
			return all, err
		}
		again, _, err := readPages[T](ctx, c, mayLack, query, parts...)
		if err != nil {
			return nil, err
		}
		one, err1 := json.Marshal(all)
		other, err2 := json.Marshal(again)
		if err := cmp.Or(err1, err2); err != nil || !bytes.Equal(one, other) {
			return nil, cmp.Or(err, rest.Changed("the list"))
		}
		return all, nil
	})
}

func readPages[T any](ctx context.Context, c *Client, mayLack bool, query url.Values, parts ...string) (all []T, several bool, err error) {
	total, largest := -1, 1
	err = rest.Pages(query, "limit", c.pageSize, func(page int, asked url.Values) (more bool, err error) {
		got, err := pageOf[T](ctx, c, asked, parts...)
		if err != nil {
			return false, err
		}
		if total >= 0 && got.total != total || len(all)+len(got.entries) > got.total || !mayLack && len(got.entries) == 0 && len(all) < got.total {
			return false, rest.Changed("the list")
		}
		total, all = got.total, slices.Concat(all, got.entries)
		largest = max(largest, len(got.entries)) // a page has room for no fewer
		whole := len(all) == total
		several = page > 1 || !whole
		return !whole && !(mayLack && page*largest >= total), nil
	})
	return all, several, err
}
