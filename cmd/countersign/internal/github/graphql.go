package github

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// ask sends a GraphQL query or mutation. Any error in the answer is an error, also
// beside data.
func ask[T any](ctx context.Context, c *Client, query string, variables map[string]any) (T, error) {
	ctx = rest.WithCall(ctx, rest.Call{Read: strings.HasPrefix(strings.TrimSpace(query), "query"), Judge: judgeGraphQL})
	var got struct {
		Data *T `json:"data"`
	}
	var none T
	req, err := c.api.NewRequest(http.MethodPost, c.graphql, map[string]any{"query": query, "variables": variables})
	if err == nil {
		_, err = c.api.Do(ctx, req, &got)
	}
	if err == nil && got.Data == nil {
		err = rest.Unusable("the answer has no data")
	}
	if err != nil {
		return none, err
	}
	return *got.Data, nil
}

// judgeGraphQL finds the errors that come with status 200.
func judgeGraphQL(resp *http.Response, body []byte) *rest.Trouble {
	var got struct {
		Errors []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return &rest.Trouble{Err: rest.Error{Kind: rest.KindAnswer, Message: "the answer is not GraphQL's", Err: err}}
	}
	if len(got.Errors) == 0 {
		return nil
	}
	first := got.Errors[0]
	t := &rest.Trouble{Err: rest.Error{Kind: rest.KindRefused, Message: cmp.Or(ledger.OneLine(first.Message, 300), "an error without a message")}}
	switch first.Type {
	case "RATE_LIMITED", "RATE_LIMIT":
		t.Limit(resp.Header)
	case "NOT_FOUND":
		t.Err.Kind = rest.KindNotFound
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		t.Err.Kind = rest.KindPermission
	case "SERVICE_UNAVAILABLE", "INTERNAL":
		t.Err.Kind, t.Transient = rest.KindNetwork, true
	case "":
		// GitHub's words where a query took too long
		if strings.HasPrefix(first.Message, "Something went wrong") {
			t.Err.Kind, t.Transient = rest.KindNetwork, true
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
		return rest.Unusable("a page is missing")
	}
	if p.PageInfo.HasNextPage == nil {
		return rest.Unusable("a page does not say whether it is the last")
	}
	for _, n := range p.Nodes {
		if n == nil {
			return rest.Unusable("an entry of a page cannot be read")
		}
		l.nodes = append(l.nodes, *n)
	}
	l.total, l.cursor, l.done = p.TotalCount, p.PageInfo.EndCursor, !*p.PageInfo.HasNextPage
	if !l.done && (len(p.Nodes) == 0 || p.PageInfo.EndCursor == "") {
		return rest.Unusable("a page has no end")
	}
	return nil
}

// whole reports whether there are as many nodes as the forge counts.
func (l *list[T]) whole() bool { return l.done && len(l.nodes) == l.total }

// readAll reads a connection of what to its end: next asks for the page after a cursor,
// nil for the first.
func readAll[T any](what string, next func(after any) (*page[T], error)) ([]T, error) {
	var all list[T]
	for !all.done {
		p, err := next(all.cursor)
		if err != nil {
			return nil, err
		}
		if err := all.add(p); err != nil {
			return nil, err
		}
	}
	if !all.whole() {
		return nil, rest.Changed(what)
	}
	return all.nodes, nil
}

// The queries. A connection that was read to its end is left out of the
// next request by its @include. Each costs one point of the hourly limit or two:
// edit histories inside of them would cost a hundred.

const fragmentWho = `
fragment who on Actor {
  __typename login
  ... on User { databaseId }
  ... on Bot { databaseId }
  ... on Mannequin { databaseId }
  ... on Organization { databaseId }
}`

const queryPullRequest = `
query($owner: String!, $name: String!, $number: Int!, $commits: Boolean!, $files: Boolean!, $afterCommit: String, $afterFile: String) {
  repository(owner: $owner, name: $name) {
    ...place
    pullRequest(number: $number) {
      number state isDraft title maintainerCanModify
      author { ...who }
      headRepository { ...place }
      headRefName headRefOid baseRefName baseRefOid
      mergeCommit { oid } mergedAt
      commits(first: 100, after: $afterCommit) @include(if: $commits) {
        totalCount pageInfo { hasNextPage endCursor }
        nodes { commit { ...authors } }
      }
      files(first: 100, after: $afterFile) @include(if: $files) {
        totalCount pageInfo { hasNextPage endCursor }
        nodes { path }
      }
    }
  }
}
fragment place on Repository { databaseId nameWithOwner owner { __typename } }` + fragmentAuthors + fragmentWho

const fragmentAuthors = `
fragment authors on Commit {
  author { user { databaseId login } } committer { user { databaseId login } }
  authors(first: 100) { totalCount nodes { user { databaseId login } } }
}`

const queryCommit = `
query($owner: String!, $name: String!, $commit: GitObjectID!) {
  repository(owner: $owner, name: $name) { object(oid: $commit) { ... on Commit { oid ...authors } } }
}` + fragmentAuthors

const fragmentSaid = `
fragment said on Comment {
  id body createdAt lastEditedAt includesCreatedEdit createdViaEmail
  author { ...who }
  editor { login }
  ... on Minimizable { isMinimized }
}` + fragmentWho

const fragmentThread = `
fragment thread on PullRequestReviewCommentConnection {
  totalCount pageInfo { hasNextPage endCursor }
  nodes { ...said fullDatabaseId url originalCommit { oid } pullRequestReview { state } }
}` + fragmentSaid

const queryStatements = `
query($owner: String!, $name: String!, $number: Int!, $reviews: Boolean!, $threads: Boolean!, $comments: Boolean!,
      $afterReview: String, $afterThread: String, $afterComment: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviews(first: 100, after: $afterReview) @include(if: $reviews) {
        totalCount pageInfo { hasNextPage endCursor }
        nodes { ...said fullDatabaseId url state submittedAt commit { oid } }
      }
      reviewThreads(first: 100, after: $afterThread) @include(if: $threads) {
        totalCount pageInfo { hasNextPage endCursor }
        nodes { id comments(first: 100) { ...thread } }
      }
      comments(first: 100, after: $afterComment) @include(if: $comments) {
        totalCount pageInfo { hasNextPage endCursor }
        nodes { ...said fullDatabaseId url }
      }
    }
  }
}` + fragmentThread

const queryComments = `
query($ids: [ID!]!) { nodes(ids: $ids) { ... on IssueComment { ...said fullDatabaseId url } } }` + fragmentSaid

const queryThread = `
query($id: ID!, $after: String) {
  node(id: $id) {
    ... on PullRequestReviewThread { comments(first: 100, after: $after) { ...thread } }
  }
}` + fragmentThread

const queryHistories = `
query($ids: [ID!]!, $after: String) {
  nodes(ids: $ids) {
    ... on Comment {
      id
      userContentEdits(first: 100, after: $after) {
        totalCount pageInfo { hasNextPage endCursor }
        nodes { diff }
      }
    }
  }
}`

const queryThreads = `
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviewThreads(first: 100, after: $after) {
        totalCount pageInfo { hasNextPage endCursor }
        nodes { id isResolved comments(first: 1) { nodes { fullDatabaseId } } }
      }
    }
  }
}`

const queryPulls = `
query($owner: String!, $name: String!, $states: [PullRequestState!], $branch: String, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequests(states: $states, headRefName: $branch, first: 100, after: $after) {
      totalCount pageInfo { hasNextPage endCursor }
      nodes { number baseRefName headRefName headRefOid headRepositoryOwner { login } headRepository { databaseId } }
    }
  }
}`

const queryMerged = `
query($owner: String!, $name: String!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequests(states: MERGED, first: 100, after: $after) {
      totalCount pageInfo { hasNextPage endCursor }
      nodes { number mergedAt }
    }
  }
}`

const queryViewer = `query { viewer { __typename login databaseId } }`

const mutationResolve = `
mutation($thread: ID!) {
  resolveReviewThread(input: {threadId: $thread}) { thread { isResolved } }
}`
