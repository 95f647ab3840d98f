package github

// The GraphQL queries. A connection that was read to its end is left out of the
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
      mergeCommit { oid }
      commits(first: 100, after: $afterCommit) @include(if: $commits) {
        totalCount pageInfo { hasNextPage endCursor }
        nodes { commit { author { user { databaseId login } } committer { user { databaseId login } } } }
      }
      files(first: 100, after: $afterFile) @include(if: $files) {
        totalCount pageInfo { hasNextPage endCursor }
        nodes { path }
      }
    }
  }
}
fragment place on Repository { databaseId nameWithOwner owner { __typename } }` + fragmentWho

const fragmentSaid = `
fragment said on Comment {
  id body createdAt lastEditedAt includesCreatedEdit createdViaEmail
  author { ...who }
  editor { login }
  ... on Minimizable { isMinimized }
}
fragment thread on PullRequestReviewCommentConnection {
  totalCount pageInfo { hasNextPage endCursor }
  nodes { ...said fullDatabaseId url originalCommit { oid } pullRequestReview { state } }
}` + fragmentWho

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
}` + fragmentSaid

const queryThread = `
query($id: ID!, $after: String) {
  node(id: $id) {
    ... on PullRequestReviewThread { comments(first: 100, after: $after) { ...thread } }
  }
}` + fragmentSaid

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

const queryOpen = `
query($owner: String!, $name: String!, $branch: String, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequests(states: OPEN, headRefName: $branch, first: 100, after: $after) {
      totalCount pageInfo { hasNextPage endCursor }
      nodes { number baseRefName headRefName headRefOid headRepositoryOwner { login } headRepository { databaseId } }
    }
  }
}`

const queryViewer = `query { viewer { __typename login databaseId } }`

const mutationResolve = `
mutation($thread: ID!) {
  resolveReviewThread(input: {threadId: $thread}) { thread { isResolved } }
}`
