// Package githubtest is a GitHub for tests: one server on 127.0.0.1 that
// keeps state and speaks the parts of the REST API, the GraphQL API and Git's
// smart HTTP that this program uses.
//
// What it promises: every REST request and answer is held against GitHub's own
// description of its API, and every GraphQL query against GitHub's schema
// (testdata, cut down by the program in the folder trim from the npm packages
// @octokit/openapi and @octokit/graphql-schema). A request that GitHub would
// not know, or an answer that GitHub would not give, is a violation and fails
// the test. Permissions, paging, limits and what a missing right is answered
// with are the server's own work, after GitHub's documentation.
//
// Tests arrange what is on the server with methods, or over HTTP at /_test/;
// Fail lets requests go wrong. Misuse of the methods panics. It needs git.
package githubtest
