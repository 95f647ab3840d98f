package githubtest

import (
	"fmt"
	"strings"
	"testing"
)

// conversation asks for all that the design needs of a pull request.
const conversation = `
query($owner: String!, $name: String!, $number: Int!, $size: Int = 50, $after: String) {
  repository(owner: $owner, name: $name) {
    databaseId nameWithOwner
    pullRequest(number: $number) {
      number state isDraft title url author { ...who }
      headRefName headRefOid baseRefName baseRefOid maintainerCanModify merged mergeCommit { oid }
      headRepository { databaseId nameWithOwner owner { __typename login } url }
      reviews(first: $size) { totalCount pageInfo { hasNextPage endCursor } nodes { ...text state url commit { oid } submittedAt } }
      comments(first: $size, after: $after) { totalCount pageInfo { hasNextPage endCursor } nodes { url ...text } }
      threads: reviewThreads(first: 20) { pageInfo { hasNextPage endCursor } nodes { id isResolved comments(first: 50) {
        totalCount pageInfo { hasNextPage endCursor } nodes { url replyTo { fullDatabaseId } originalCommit { oid } ...text } } } }
      commits(first: 100) { pageInfo { hasNextPage endCursor } nodes { commit { oid author { user { login databaseId } } committer { user { login databaseId } } } } }
      files(first: 100) { pageInfo { hasNextPage endCursor } nodes { path } }
    }
  }
  viewer { __typename login databaseId }
}
fragment who on Actor { __typename login ... on User { databaseId } ... on Bot { databaseId } }
fragment text on Comment {
  id author { ...who } body createdAt lastEditedAt includesCreatedEdit createdViaEmail
  ... on IssueComment { fullDatabaseId userContentEdits(first: 5) { ...history } }
  ... on PullRequestReview { fullDatabaseId userContentEdits(first: 5) { ...history } }
  ... on PullRequestReviewComment { fullDatabaseId userContentEdits(first: 5) { ...history } }
}
fragment history on UserContentEditConnection { totalCount nodes { diff editedAt editor { login } } }
`

func variables(more ...any) map[string]any {
	v := map[string]any{"owner": "acme", "name": "site", "number": 1}
	for i := 0; i+1 < len(more); i += 2 {
		v[more[i].(string)] = more[i+1]
	}
	return v
}

func TestQueriesThatGitHubRefuses(t *testing.T) {
	s, c := site(t)
	for _, test := range []struct{ query, message string }{
		{`{ viewer { nickname } }`, "Cannot query field"},
		{`{ viewer { login(x: 1) } }`, "Unknown argument"},
		{`{ viewer }`, "must have a selection of subfields"},
		{`{ viewer { login { x } } }`, "must not have a selection"},
		{`{ repository(owner: "acme") { name } }`, `argument "name" of type "String!" is required`},
		{`{ repository(owner: 1, name: "x") { name } }`, "String cannot represent a non string value"},
		{`{ viewer { ...x } }`, "Unknown fragment"},
		{`{ viewer { ... on Bot { id } } }`, "can never be of type"},
		{`query($a: String!) { repository(owner: $a, name: "x") { name } }`, "must be defined"},
		{`query($a: String) { viewer { login } }`, "is never used"},
		{`{ repository(owner: $a, name: "x") { name } }`, "is not defined"},
		{`query($a: Int) { repository(owner: $a, name: "x") { name } }`, "used in position expecting type"},
		{`{ repository(owner: "acme", name: "site") { pullRequest(number: 1) { comments { totalCount } } } }`, "provide a `first`"},
		{`{ repository(owner: "acme", name: "site") { pullRequest(number: 1) { comments(first: 101) { totalCount } } } }`, "exceeds the `first` limit"},
		{`{ repository(owner: "acme", name: "site") { pullRequest(number: 1) { reviewThreads(first: 100) { nodes { comments(first: 100) { nodes {
			userContentEdits(first: 100) { totalCount } } } } } } } }`, "maximum limit of 500000"},
		{`{ viewer { login }`, "parse error"},
		{`{ viewer { "login" } }`, "parse error"},
	} {
		_, errors := c.graphql(test.query, nil)
		if got := fmt.Sprint(errors); !strings.Contains(got, test.message) {
			t.Errorf("%s\n%s, want %q", test.query, got, test.message)
		}
		if s.TakeViolations() == nil {
			t.Errorf("%s: no violation", test.query)
		}
	}
}

func TestQueriesWithoutAnAnswer(t *testing.T) {
	s, c := site(t)
	s.Repository(NewRepository{Name: "acme/secret", Private: true})
	for query, kind := range map[string]string{
		`{ repository(owner: "acme", name: "none") { name } }`:                                                                     "NOT_FOUND",
		`{ repository(owner: "acme", name: "secret") { name } }`:                                                                   "NOT_FOUND",
		`{ repository(owner: "acme", name: "site") { pullRequest(number: 9) { id } } }`:                                            "NOT_FOUND",
		`mutation { resolveReviewThread(input: {threadId: "x"}) { thread { isResolved } } }`:                                       "NOT_FOUND",
		`{ repository(owner: "acme", name: "site") { pullRequest(number: 1) { comments(first: 1, after: "x") { totalCount } } } }`: "INVALID_CURSOR_ARGUMENTS",
		`{ nodes(ids: [` + strings.Repeat(`"x",`, 101) + `]) { id } }`:                                                             "ARGUMENT_LIMIT",
	} {
		_, errors := c.graphql(query, nil)
		if got := at(errors, 0, "type"); got != kind {
			t.Errorf("%s: %v, want %s", query, errors, kind)
		}
	}
	if status, _, _ := c.as("").send("POST", s.GraphQL(), map[string]any{"query": "{ viewer { login } }"}); status != 401 {
		t.Errorf("without a token: %d", status)
	}
}
