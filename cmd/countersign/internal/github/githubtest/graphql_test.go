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

func TestConversation(t *testing.T) {
	s, c := site(t)
	s.Bot("helper[bot]")
	first := s.Comment(NewComment{Repository: "acme/site", Number: 1, By: "ada", Body: "hello"})
	s.Edit(first.ID, "bob", "/approve")
	s.Comment(NewComment{Repository: "acme/site", Number: 1, By: "helper[bot]", Body: "mail", Email: true})
	asked := s.ReviewComment(NewComment{Repository: "acme/site", Number: 1, By: "helper[bot]", Body: "ask", Path: "a.txt"})
	s.ReviewComment(NewComment{Repository: "acme/site", Number: 1, By: "ada", Body: "/approve", ReplyTo: asked.ID})
	review := s.Review(NewComment{Repository: "acme/site", Number: 1, By: "bob", State: "APPROVED", Body: "fine"})
	s.Dismiss(review.ID)
	s.Review(NewComment{Repository: "acme/site", Number: 1, By: "bob", State: "PENDING", Body: "not yet"})

	data, errors := c.graphql(conversation, variables())
	if errors != nil {
		t.Fatal(errors)
	}
	pull := at(data, "repository", "pullRequest")
	for _, test := range []struct {
		path []any
		want any
	}{
		{[]any{"author", "login"}, "ada"},
		{[]any{"headRefOid"}, s.Pull("acme/site", 1).Head},
		{[]any{"comments", "totalCount"}, 2.0},
		{[]any{"comments", "nodes", 0, "fullDatabaseId"}, fmt.Sprint(first.ID)},
		{[]any{"comments", "nodes", 0, "body"}, "/approve"},
		{[]any{"comments", "nodes", 0, "includesCreatedEdit"}, true},
		{[]any{"comments", "nodes", 0, "userContentEdits", "totalCount"}, 2.0},
		{[]any{"comments", "nodes", 0, "userContentEdits", "nodes", 0, "editor", "login"}, "bob"},
		{[]any{"comments", "nodes", 0, "userContentEdits", "nodes", 1, "diff"}, "hello"},
		{[]any{"comments", "nodes", 1, "lastEditedAt"}, nil},
		{[]any{"comments", "nodes", 1, "createdViaEmail"}, true},
		{[]any{"comments", "nodes", 1, "author", "__typename"}, "Bot"},
		{[]any{"comments", "nodes", 1, "author", "login"}, "helper"},
		{[]any{"threads", "nodes", 0, "comments", "nodes", 1, "replyTo", "fullDatabaseId"}, fmt.Sprint(asked.ID)},
		{[]any{"reviews", "totalCount"}, 3.0}, // one for each review comment, and bob's; what is pending is his alone
		{[]any{"reviews", "nodes", 2, "state"}, "DISMISSED"},
		{[]any{"commits", "nodes", 0, "commit", "author", "user", "login"}, "ada"},
		{[]any{"files", "nodes", 1, "path"}, "b.txt"},
	} {
		if got := at(pull, test.path...); got != test.want {
			t.Errorf("%v = %v, want %v", test.path, got, test.want)
		}
	}
	if got := at(data, "viewer", "databaseId"); got != float64(actionsID) {
		t.Errorf("viewer %v", got)
	}

	s.EraseHistory(first.ID)
	data, _ = c.graphql(conversation, variables())
	if got := at(data, "repository", "pullRequest", "comments", "nodes", 0, "userContentEdits", "nodes", 1, "diff"); got != nil {
		t.Errorf("erased text is %v", got)
	}
}

func TestPagesOfGraphQL(t *testing.T) {
	s, c := site(t)
	for i := range 5 {
		s.Comment(NewComment{Repository: "acme/site", Number: 1, By: "ada", Body: fmt.Sprint(i)})
	}
	var got []string
	after := any(nil)
	for range 4 {
		data, _ := c.graphql(conversation, variables("size", 2, "after", after))
		page := at(data, "repository", "pullRequest", "comments")
		for i := range 2 {
			if body, ok := at(page, "nodes", i, "body").(string); ok {
				got = append(got, body)
			}
		}
		if at(page, "pageInfo", "hasNextPage") == false {
			break
		}
		after = at(page, "pageInfo", "endCursor")
	}
	if strings.Join(got, "") != "01234" {
		t.Errorf("pages have %v", got)
	}
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

func TestNodes(t *testing.T) {
	s, c := site(t)
	said := s.Comment(NewComment{Repository: "acme/site", Number: 1, By: "ada", Body: "hello"})
	s.Edit(said.ID, "bob", "bye")
	s.ReviewComment(NewComment{Repository: "acme/site", Number: 1, By: "bob", Body: "ask", Path: "a.txt"})
	data, _ := c.graphql(conversation, variables())
	pull := at(data, "repository", "pullRequest")
	thread := at(pull, "threads", "nodes", 0, "id")
	data, errors := c.graphql(`query($id: ID!) { node(id: $id) { __typename ... on PullRequestReviewThread { comments(first: 1) { nodes { body } } } } }`, map[string]any{"id": thread})
	if at(data, "node", "comments", "nodes", 0, "body") != "ask" || errors != nil {
		t.Errorf("%v %v", data, errors)
	}
	const histories = `query($ids: [ID!]!) { nodes(ids: $ids) { ... on Comment { id userContentEdits(first: 100) { nodes { diff } } } } }`
	ids := []any{at(pull, "reviews", "nodes", 0, "id"), "nothing", at(pull, "comments", "nodes", 0, "id")}
	data, errors = c.graphql(histories, map[string]any{"ids": ids})
	if at(data, "nodes", 0, "id") != ids[0] || at(data, "nodes", 1) != nil || at(data, "nodes", 2, "userContentEdits", "nodes", 1, "diff") != "hello" || len(errors) != 1 {
		t.Errorf("%v %v", data, errors)
	}
	if _, errors := c.graphql(histories, map[string]any{"ids": make([]string, 101)}); at(errors, 0, "type") != "ARGUMENT_LIMIT" {
		t.Errorf("101 ids: %v", errors)
	}
}

func TestPullRequestsOfGraphQL(t *testing.T) {
	s, c := site(t)
	s.Push(NewCommit{Repository: "acme/site", Branch: "other", By: "ada", Files: map[string]string{"c": "c"}})
	s.PullRequest(NewPullRequest{Repository: "acme/site", By: "ada", Head: "other"})
	s.PullRequest(NewPullRequest{Repository: "acme/site", By: "ada", Head: "other", Base: "fix"})
	s.ClosePull("acme/site", 3)
	for where, want := range map[string]string{
		"first: 9": "[1 2 3]", "first: 9, states: OPEN": "[1 2]", "first: 9, states: [CLOSED, MERGED]": "[3]", `first: 9, headRefName: "other"`: "[2 3]",
		`first: 9, baseRefName: "fix"`: "[3]", "first: 1": "[1]",
	} {
		data, errors := c.graphql(`{ repository(owner: "acme", name: "site") { pullRequests(`+where+`) { nodes { number } } } }`, nil)
		got := []any{}
		for i := range 3 {
			if n := at(data, "repository", "pullRequests", "nodes", i, "number"); n != nil {
				got = append(got, n)
			}
		}
		if fmt.Sprint(got) != want || errors != nil {
			t.Errorf("%s: %v %v, want %s", where, got, errors, want)
		}
	}
}

func TestResolve(t *testing.T) {
	s, c := site(t)
	asked := s.ReviewComment(NewComment{Repository: "acme/site", Number: 1, By: "bob", Body: "ask", Path: "a.txt"})
	data, _ := c.graphql(conversation, variables())
	id := at(data, "repository", "pullRequest", "threads", "nodes", 0, "id")
	resolve := `mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }`
	few := c.as(s.ActionsToken("acme/site", "pull_requests:write"))
	if _, errors := few.graphql(resolve, map[string]any{"id": id}); at(errors, 0, "type") != "FORBIDDEN" {
		t.Errorf("without contents: write: %v", errors)
	}
	if data, errors := c.graphql(resolve, map[string]any{"id": id}); at(data, "resolveReviewThread", "thread", "isResolved") != true {
		t.Errorf("%v %v", data, errors)
	}
	if all := s.ReviewComments("acme/site", 1); !all[0].Resolved || all[0].ID != asked.ID {
		t.Errorf("%+v", all)
	}
	if n := s.Count(); n.API != 3 || n.Writes != 2 {
		t.Errorf("%+v", n)
	}
}
