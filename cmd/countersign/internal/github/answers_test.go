package github

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
)

// oneComment is what a connection of statements may hold.
const oneComment = `{"id":"IC_1","fullDatabaseId":"1","url":"u","body":"b","createdAt":"2026-01-05T12:00:00Z","includesCreatedEdit":false,"createdViaEmail":false,"isMinimized":false,"author":null}`

func connection(total int, more string, nodes string) string {
	return fmt.Sprintf(`{"totalCount":%d,"pageInfo":{"hasNextPage":%v,"endCursor":"%s"},"nodes":%s}`, total, more != "", more, nodes)
}

// statementsOf is an answer with these reviews, threads and comments.
func statementsOf(reviews, threads, comments string) string {
	return fmt.Sprintf(`{"data":{"repository":{"pullRequest":{"reviews":%s,"reviewThreads":%s,"comments":%s}}}}`, reviews, threads, comments)
}

// pullPage is an answer with a pull request 7.
func pullPage(head, commits string) step {
	return step{body: fmt.Sprintf(`{"data":{"repository":{"databaseId":5,"nameWithOwner":"o/n","owner":{"__typename":"User"},"pullRequest":{
		"number":7,"state":"OPEN","headRefName":"fix","headRefOid":"%s","baseRefName":"main","baseRefOid":"%s",
		"commits":%s,"files":%s}}}}`, head, theCommit, commits, connection(0, "", "[]"))}
}

// T61: what an answer lacks is an error, though GitHub says that all is well.
func TestT61IncompleteAnswers(t *testing.T) {
	none := connection(0, "", "[]")
	thread := func(comments string) string { return connection(1, "", `[{"id":"T_1","comments":`+comments+`}]`) }
	for _, row := range []struct {
		name, answer string
		kind         rest.Kind
	}{
		{"nothing said", statementsOf(none, none, none), ""},
		{"one of each", statementsOf(connection(1, "", "["+strings.ReplaceAll(oneComment, "IC", "R")+"]"), thread(connection(1, "", "["+strings.ReplaceAll(oneComment, "IC", "C")+"]")), connection(1, "", "["+oneComment+"]")), ""},
		{"no pull request", `{"data":{"repository":{"pullRequest":null}}}`, rest.KindNotFound},
		{"no repository", `{"data":{"repository":null}}`, rest.KindNotFound},
		{"a connection is missing", statementsOf(none, none, "null"), rest.KindAnswer},
		{"its nodes are missing", statementsOf(none, `{"totalCount":0,"pageInfo":{"hasNextPage":false}}`, none), rest.KindAnswer},
		{"its nodes are null", statementsOf(connection(0, "", "null"), none, none), rest.KindAnswer},
		{"a node is null", statementsOf(connection(1, "", "[null]"), none, none), rest.KindAnswer},
		{"more are counted", statementsOf(none, none, connection(2, "", "["+oneComment+"]")), rest.KindChanged},
		{"fewer are counted", statementsOf(none, none, connection(0, "", "["+oneComment+"]")), rest.KindChanged},
		{"threads are missing", statementsOf(none, connection(1, "", "[]"), none), rest.KindChanged},
		{"a thread without comments", statementsOf(none, thread("null"), none), rest.KindAnswer},
		{"a thread's comment is missing", statementsOf(none, thread(connection(2, "", "["+oneComment+"]")), none), rest.KindChanged},
		{"twice the same", statementsOf(connection(1, "", "["+oneComment+"]"), none, connection(1, "", "["+oneComment+"]")), rest.KindChanged},
		{"a page without end", statementsOf(none, none, connection(1, "x", "[]")), rest.KindAnswer},
		{"no number", statementsOf(none, none, connection(1, "", "["+strings.Replace(oneComment, `"1"`, "null", 1)+"]")), rest.KindAnswer},
		{"no number at all", statementsOf(none, none, connection(1, "", "["+strings.Replace(oneComment, "fullDatabaseId", "x", 1)+"]")), rest.KindAnswer},
		{"a number that is none", statementsOf(none, none, connection(1, "", "["+strings.Replace(oneComment, `"1"`, `"-1"`, 1)+"]")), rest.KindAnswer},
		{"a comment that may be hidden", statementsOf(none, none, connection(1, "", "["+strings.Replace(oneComment, `"isMinimized":false`, `"isMinimized":null`, 1)+"]")), rest.KindAnswer},
		{"a comment of a thread that may be hidden", statementsOf(none, thread(connection(1, "", "["+strings.Replace(oneComment, "isMinimized", "x", 1)+"]")), none), rest.KindAnswer},
		{"T82 a comment that may be edited", statementsOf(none, none, connection(1, "", "["+strings.Replace(oneComment, "includesCreatedEdit", "x", 1)+"]")), rest.KindAnswer},
		{"T82 a review that may be edited", statementsOf(connection(1, "", "["+strings.Replace(oneComment, `"includesCreatedEdit":false`, `"includesCreatedEdit":null`, 1)+"]"), none, none), rest.KindAnswer},
		{"T82 a comment that may have come by e-mail", statementsOf(none, none, connection(1, "", "["+strings.Replace(oneComment, "createdViaEmail", "x", 1)+"]")), rest.KindAnswer},
		{"T82 a page that may not be the last", statementsOf(none, none, strings.Replace(connection(1, "", "["+oneComment+"]"), "hasNextPage", "x", 1)), rest.KindAnswer},
		{"no date", statementsOf(none, none, connection(1, "", "["+strings.Replace(oneComment, "createdAt", "x", 1)+"]")), rest.KindAnswer},
	} {
		t.Run(row.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					_, _ = w.Write([]byte("[]"))
					return
				}
				_, _ = w.Write([]byte(row.answer))
			}))
			defer server.Close()
			all, err := newClient(t, server.URL, &pauses{}).Statements(context.Background(), 7)
			checkKind(t, err, row.kind)
			if err != nil && all != nil {
				t.Error("statements beside an error")
			}
		})
	}
}

// What changes once while it is read is read again.
func TestReadAgain(t *testing.T) {
	none := connection(0, "", "[]")
	server := newScript(t,
		step{body: "[]"}, step{body: statementsOf(none, none, connection(2, "", "["+oneComment+"]"))},
		step{body: "[]"}, step{body: statementsOf(none, none, connection(1, "", "["+oneComment+"]"))},
	)
	all, err := newClient(t, server.URL, &pauses{}).Statements(context.Background(), 7)
	if err != nil || len(all) != 1 || server.requests() != 4 {
		t.Errorf("%d statements, %v, after %d requests", len(all), err, server.requests())
	}
}

// T05: a push between two pages of commits is seen.
func TestT05PushWhileReading(t *testing.T) {
	page := func(head string, more string) step {
		return pullPage(head, connection(2, more, `[{"commit":{"author":null,"committer":null,"authors":{"totalCount":0,"nodes":[]}}}]`))
	}
	moved := strings.Repeat("f", 40)
	server := newScript(t, page(theCommit, "x"), page(moved, ""), page(moved, "x"), page(moved, ""), branch)
	pr, err := newClient(t, server.URL, &pauses{}).PullRequest(context.Background(), 7)
	if err != nil || pr.Head.Commit != moved || server.requests() != 4 {
		t.Errorf("%+v, %v, after %d requests", pr, err, server.requests())
	}
	server = newScript(t, page(theCommit, "x"), page(moved, ""), page(theCommit, "x"), page(moved, ""))
	_, err = newClient(t, server.URL, &pauses{}).PullRequest(context.Background(), 7)
	checkKind(t, err, rest.KindChanged)
}

// The newest artifact of exactly the name is read, without the token where the
// server itself has it.
func TestNewestArtifact(t *testing.T) {
	server := newScript(t,
		step{body: `{"total_count":4,"artifacts":[{"id":3,"name":"bundle"},{"id":9,"name":"bundle-old"},{"id":2,"name":"bundle"}]}`},
		step{status: 302, header: "Location: /blob"}, step{body: string(archive(t, "bundle.json", "{}"))},
	)
	got, err := newClient(t, server.URL, &pauses{}).Artifact(context.Background(), 1, "bundle", 100)
	if err != nil || string(got) != "{}" {
		t.Fatalf("%q, %v", got, err)
	}
	if at := server.seen[1].URL.Path; at != "/repos/o/n/actions/artifacts/3/zip" {
		t.Errorf("read %s", at)
	}
	if told := server.seen[2].Header.Get("Authorization"); told != "" {
		t.Errorf("the storage was told %q", told)
	}
}
