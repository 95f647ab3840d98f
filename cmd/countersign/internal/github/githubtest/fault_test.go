package githubtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const commentsPath = "/api/v3/repos/acme/site/issues/1/comments"

func TestFaults(t *testing.T) {
	for _, test := range []struct {
		fault  Fault
		status int    // 0: no answer, -1: half of one
		has    string // in the body or header
		made   int    // comments after a POST
	}{
		{Fault{Status: 503}, 503, "fault", 0},
		{Fault{Status: 404}, 404, "fault", 0},
		{Fault{Status: 502, After: true}, 502, "", 1},
		{Fault{Kind: SecondaryLimit, Seconds: 1}, 403, "Retry-After:[1]", 0},
		{Fault{Kind: SecondaryLimit, Status: 429}, 429, "secondary rate limit", 0},
		{Fault{Kind: PrimaryLimit, Seconds: 2}, 403, "X-Ratelimit-Remaining:[0]", 0},
		{Fault{Kind: LimitSpent}, 201, "X-Ratelimit-Remaining:[0]", 1},
		{Fault{Kind: Cut}, 0, "", 0},
		{Fault{Kind: Cut, After: true}, 0, "", 1},
		{Fault{Kind: Truncate}, -1, `{"author_association"`, 1},
		{Fault{Kind: Half}, 201, `{"author_association"`, 1},
		{Fault{Kind: Body, Text: "<html>"}, 200, "<html>", 0},
	} {
		s, c := site(t)
		test.fault.Method, test.fault.Path = "POST", commentsPath
		s.Fail(test.fault)
		status, body, header := c.send("POST", s.URL+commentsPath, map[string]any{"body": "x"})
		if got := fmt.Sprint(string(body), header); status != test.status || !strings.Contains(got, test.has) {
			t.Errorf("%+v: %d %s, want %d %s", test.fault, status, got, test.status, test.has)
		}
		if got := len(s.Comments("acme/site", 1)); got != test.made {
			t.Errorf("%+v: %d comments, want %d", test.fault, got, test.made)
		}
		c.rest(201, "POST", "/repos/acme/site/issues/1/comments", map[string]any{"body": "again"})
	}
}

// A fault strikes the requests that it is for, as often as it says.
func TestWhenFaultsStrike(t *testing.T) {
	s, c := site(t)
	s.Fail(Fault{Method: "GET", Path: commentsPath, Skip: 1, Times: 2, Status: 500})
	s.Fail(Fault{Contains: "viewer", Path: "/api/graphql", Times: -1, Kind: GraphQLError, Text: "timeout"})
	got := ""
	for range 4 {
		status, _, _ := c.send("GET", s.URL+commentsPath, nil)
		got += fmt.Sprint(status, " ")
	}
	if got != "200 500 500 200 " {
		t.Error(got)
	}
	for range 3 {
		if _, errors := c.graphql(`{ viewer { login } }`, nil); at(errors, 0, "message") != "timeout" {
			t.Error(errors)
		}
	}
	if _, errors := c.graphql(`{ repository(owner: "acme", name: "site") { name } }`, nil); errors != nil {
		t.Error(errors)
	}
	s.Heal()
	if _, errors := c.graphql(`{ viewer { login } }`, nil); errors != nil {
		t.Error(errors)
	}
	if got := s.Requests()[1]; got.Status != 500 || got.Login != "github-actions[bot]" || got.Path != commentsPath {
		t.Errorf("%+v", got)
	}
}

func TestPagesThatLie(t *testing.T) {
	s, c := site(t)
	for range 3 {
		s.Comment(NewComment{Repository: "acme/site", Number: 1, By: "bob", Body: "x"})
	}
	page := func(kind FaultKind) (any, http.Header) {
		s.Fail(Fault{Kind: kind, Text: "repository.pullRequest.comments"})
		_, _, header := c.send("GET", s.URL+commentsPath+"?per_page=2", nil)
		s.Fail(Fault{Kind: kind, Text: "repository.pullRequest.comments"})
		data, errors := c.graphql(conversation, variables("size", 2))
		if (errors != nil) != (kind == GraphQLPartial) {
			t.Errorf("%s: %v", kind, errors)
		}
		return at(data, "repository", "pullRequest", "comments"), header
	}
	if list, header := page(LastPage); at(list, "pageInfo", "hasNextPage") != false || at(list, "totalCount") != 3.0 || header.Get("Link") != "" {
		t.Errorf("%v %v", list, header)
	}
	if list, _ := page(EmptyPage); at(list, "nodes", 0) != nil || at(list, "totalCount") != 3.0 {
		t.Errorf("%v", list)
	}
	if list, _ := page(GraphQLPartial); list != nil {
		t.Errorf("%v", list)
	}
}
