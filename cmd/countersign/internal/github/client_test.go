package github

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
)

func TestNew(t *testing.T) {
	for _, row := range []struct{ api, graphql, server, repository, wantGraphQL, wantServer string }{
		{"https://api.github.com", "", "", "o/n", "https://api.github.com/graphql", "https://github.com"},
		{"https://api.github.com/", "", "", "o/n", "https://api.github.com/graphql", "https://github.com"},
		{"https://ghe.test/api/v3", "", "", "o/n", "https://ghe.test/api/graphql", "https://ghe.test"},
		{"https://ghe.test/api/v3/", "", "", "o/n", "https://ghe.test/api/graphql", "https://ghe.test"},
		{"https://api.acme.ghe.test", "", "", "o/n", "https://api.acme.ghe.test/graphql", "https://acme.ghe.test"},
		{"http://127.0.0.1:80/x/api/v3", "", "", "o/n.x_y-z", "http://127.0.0.1:80/x/api/graphql", "http://127.0.0.1:80/x"},
		{"https://api.test", "https://g.test/q", "https://s.test/", "o/n", "https://g.test/q", "https://s.test"},
	} {
		c, err := New(Options{APIURL: row.api, GraphQLURL: row.graphql, ServerURL: row.server, Repository: row.repository})
		if err != nil || c.graphql != row.wantGraphQL || c.Server != row.wantServer {
			t.Errorf("%+v: %+v, %v", row, c, err)
		}
	}
	for _, o := range []Options{
		{APIURL: "https://api.test", Repository: "o"}, {APIURL: "https://api.test", Repository: "o/n/m"}, {APIURL: "https://api.test"},
		{APIURL: "https://api.test", Repository: "o/.."}, {APIURL: "https://api.test", Repository: "../n"}, {APIURL: "https://api.test", Repository: "o/n?x"},
		{Repository: "o/n"}, {APIURL: "api.test", Repository: "o/n"}, {APIURL: "ftp://api.test", Repository: "o/n"},
		{APIURL: "https://u:p@api.test", Repository: "o/n"}, {APIURL: "https://api.test", GraphQLURL: "x", Repository: "o/n"},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("New(%+v) is no error", o)
		}
	}
}

// A page's address has nothing of what somebody wrote, and no password.
func TestLinksOf(t *testing.T) {
	commit := strings.Repeat("a", 40)
	asked := forge.Posted{Kind: approval.KindReviewComment, ID: "7"}
	for _, row := range []struct {
		server, repository string
		pull               int
		comment            forge.Posted
		commit, want       string
	}{
		{"https://github.com/o/n.git", "o/n", 3, forge.Posted{}, commit, "https://github.com/o/n/pull/3"},
		{"https://github.com", "o/n", 3, asked, "", "https://github.com/o/n/pull/3#discussion_r7"},
		{"https://ssh.github.com", "o/n", 3, forge.Posted{Kind: approval.KindIssueComment, ID: "8"}, "", "https://github.com/o/n/pull/3#issuecomment-8"},
		{"http://127.0.0.1:80/o/n", "o/n", 0, asked, commit, "http://127.0.0.1:80/o/n/commit/" + commit},
		{"https://github.com", "o/n", 3, forge.Posted{Kind: "javascript:", ID: "7"}, "", "https://github.com/o/n/pull/3"},
		{"https://github.com", "o/n", 3, forge.Posted{Kind: approval.KindIssueComment, ID: "7 --help", URL: "https://evil.test"}, "", "https://github.com/o/n/pull/3"},
		{"https://github.com", "o/n", 0, asked, "main", ""},
		{"https://github.com", "o/../x", 3, asked, commit, ""},
		{"https://user:secret@github.com", "o/n", 3, forge.Posted{}, "", "https://github.com/o/n/pull/3"},
		{"ssh://github.com", "o/n", 3, asked, commit, ""},
		{"file:///etc", "o/n", 3, asked, commit, ""},
		{"", "", 3, asked, commit, ""},
	} {
		if got := LinksOf(row.server, row.repository).Page(row.pull, row.comment, row.commit); got != row.want {
			t.Errorf("%+v: %q", row, got)
		}
	}
}
