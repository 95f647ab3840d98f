package github

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// ask sends a GraphQL query. Any error in the answer is an error, also beside
// data.
func ask[T any](ctx context.Context, c *Client, op, query string, variables map[string]any) (T, error) {
	return sendGraphQL[T](withCall(ctx, call{read: true, graphql: true}), c, op, query, variables)
}

// mutate sends a GraphQL mutation.
func mutate[T any](ctx context.Context, c *Client, op, query string, variables map[string]any) (T, error) {
	return sendGraphQL[T](withCall(ctx, call{graphql: true}), c, op, query, variables)
}

func sendGraphQL[T any](ctx context.Context, c *Client, op, query string, variables map[string]any) (T, error) {
	var got struct {
		Data *T `json:"data"`
	}
	var none T
	req, err := c.api.NewRequest(http.MethodPost, c.graphql, map[string]any{"query": query, "variables": variables})
	if err == nil {
		_, err = c.api.Do(ctx, req, &got)
	}
	if err == nil && got.Data == nil {
		err = unusable("the answer has no data")
	}
	if err != nil {
		return none, failed(op, err)
	}
	return *got.Data, nil
}

// judgeGraphQL finds the errors that come with status 200.
func judgeGraphQL(resp *http.Response, body []byte) *trouble {
	var got struct {
		Errors []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return &trouble{err: Error{Kind: KindAnswer, Message: "the answer is not GraphQL's", Err: err}}
	}
	if len(got.Errors) == 0 {
		return nil
	}
	first := got.Errors[0]
	t := &trouble{err: Error{Kind: KindRefused, Message: firstOf(ledger.OneLine(first.Message, 300), "an error without a message")}}
	switch first.Type {
	case "RATE_LIMITED", "RATE_LIMIT":
		t.limit(resp.Header)
	case "NOT_FOUND":
		t.err.Kind = KindNotFound
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		t.err.Kind = KindPermission
	case "SERVICE_UNAVAILABLE", "INTERNAL":
		t.err.Kind, t.transient = KindNetwork, true
	case "":
		// GitHub's words where a query took too long
		if strings.HasPrefix(first.Message, "Something went wrong") {
			t.err.Kind, t.transient = KindNetwork, true
		}
	}
	return t
}

// A page is one page of a GraphQL connection.
type page[T any] struct {
	TotalCount int `json:"totalCount"`
	PageInfo   struct {
		HasNextPage *bool  `json:"hasNextPage"`
		EndCursor   string `json:"endCursor"`
	} `json:"pageInfo"`
	Nodes []*T `json:"nodes"`
}

// A list is a connection as far as it was read.
type list[T any] struct {
	nodes  []T
	total  int
	cursor any // nil before the first page
	done   bool
}

// add takes the next page; nil once the list is done.
func (l *list[T]) add(p *page[T]) error {
	if l.done {
		return nil
	}
	if p == nil || p.Nodes == nil {
		return unusable("a page is missing")
	}
	if p.PageInfo.HasNextPage == nil {
		return unusable("a page does not say whether it is the last")
	}
	for _, n := range p.Nodes {
		if n == nil {
			return unusable("an entry of a page cannot be read")
		}
		l.nodes = append(l.nodes, *n)
	}
	l.total, l.cursor, l.done = p.TotalCount, p.PageInfo.EndCursor, !*p.PageInfo.HasNextPage
	if !l.done && (len(p.Nodes) == 0 || p.PageInfo.EndCursor == "") {
		return unusable("a page has no end")
	}
	return nil
}

// whole reports whether there are as many nodes as the forge counts.
func (l *list[T]) whole() bool { return l.done && len(l.nodes) == l.total }
