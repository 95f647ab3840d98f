package github

import "testing"

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
		if err != nil || c.graphql != row.wantGraphQL || c.server != row.wantServer {
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
