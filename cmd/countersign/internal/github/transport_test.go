package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// splitFields reads "Name: value; Name: value".
func splitFields(s string) [][2]string {
	var out [][2]string
	for field := range strings.SplitSeq(s, "; ") {
		if name, value, ok := strings.Cut(field, ": "); ok {
			out = append(out, [2]string{name, value})
		}
	}
	return out
}

var (
	page502   = step{status: 502, body: "<html><body>Bad gateway " + theToken + "</body></html>"}
	secondary = step{status: 403, header: "Retry-After: 7", body: `{"message":"You have exceeded a secondary rate limit."}`}
	unnamed   = step{status: 403, body: `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes."}`}
	exhausted = step{status: 403, header: fmt.Sprintf("X-RateLimit-Remaining: 0; X-RateLimit-Reset: %d", date.Add(20*time.Second).Unix()), body: `{"message":"API rate limit exceeded"}`}
	forLong   = step{status: 429, header: fmt.Sprintf("X-RateLimit-Remaining: 0; X-RateLimit-Reset: %d", date.Add(time.Hour).Unix())}
	forbidden = step{status: 403, body: `{"message":"Resource not accessible by integration"}`}
	branch    = step{status: 200, body: `{"name":"main","protected":true}`}
	lastOne   = step{status: 200, header: fmt.Sprintf("X-RateLimit-Remaining: 0; X-RateLimit-Reset: %d", time.Now().Add(time.Hour).Unix()), body: branch.body}
	viewer    = step{status: 200, body: `{"data":{"viewer":{"__typename":"User","login":"ada","databaseId":1}}}`}
	comment   = step{status: 201, body: `{"id":9,"html_url":"https://forge.test/9","body":"text"}`}
)

func graphqlError(kind, message string) step {
	return step{status: 200, body: fmt.Sprintf(`{"data":{"viewer":{"__typename":"User","login":"ada","databaseId":1}},"errors":[{"type":%q,"message":%q}]}`, kind, message)}
}

// reads are the two ways to read, and write the one to write.
func readREST(c *Client) error {
	protected, err := c.protected(context.Background(), "main")
	if err == nil && !protected {
		return errors.New("the answer was not read")
	}
	return failed("asking", err)
}

func readGraphQL(c *Client) error {
	who, err := c.Viewer(context.Background())
	if err == nil && who.Login != "ada" {
		return errors.New("the answer was not read")
	}
	return err
}

func write(c *Client) error {
	p, err := c.UpsertComment(context.Background(), 7, "", "text")
	if err == nil && p.ID != "9" {
		return errors.New("the answer was not read")
	}
	return err
}

// Each fault is an error or is got over, and nothing in between. The waits are
// in seconds.
func TestT61Faults(t *testing.T) {
	for _, row := range []struct {
		name  string
		do    func(*Client) error
		steps []step
		kind  rest.Kind // "" for success
		tries int
		waits string
	}{
		{"read", readREST, []step{branch}, "", 1, "[]"},
		{"GraphQL", readGraphQL, []step{viewer}, "", 1, "[]"},
		{"write", write, []step{comment}, "", 1, "[]"},
		{"a 502 once", readREST, []step{page502, branch}, "", 2, "[1]"},
		{"a 502 thrice", readGraphQL, []step{page502, page502, page502, viewer}, "", 4, "[1 2 4]"},
		{"a 502 for ever", readREST, []step{page502}, rest.KindNetwork, 5, "[1 2 4 8]"},
		{"a cut answer", readREST, []step{{cut: true, body: branch.body}, branch}, "", 2, "[1]"},
		{"a cut document", readREST, []step{{body: branch.body[:20]}, branch}, "", 2, "[1]"},
		{"a cut GraphQL document", readGraphQL, []step{{body: viewer.body[:20]}}, rest.KindNetwork, 5, "[1 2 4 8]"},
		{"an empty answer", readREST, []step{{status: 200}}, rest.KindNetwork, 5, "[1 2 4 8]"},
		{"null", readREST, []step{{status: 200, body: " null "}}, rest.KindNetwork, 5, "[1 2 4 8]"},
		{"no content", readREST, []step{{status: 204}}, rest.KindAnswer, 1, "[]"},
		{"accepted", readREST, []step{{status: 202, body: "{}"}}, rest.KindAnswer, 1, "[]"},
		{"an answer to something else", readREST, []step{{body: `{"message":"hello"}`}}, rest.KindAnswer, 1, "[]"},
		{"an answer of another type", readREST, []step{{body: `{"protected":"yes"}`}}, rest.KindAnswer, 1, "[]"},
		{"data null", readGraphQL, []step{{body: `{"data":null}`}}, rest.KindAnswer, 1, "[]"},
		{"nobody", readGraphQL, []step{{body: `{"data":{"viewer":null}}`}}, rest.KindAnswer, 1, "[]"},
		{"an HTML page", readGraphQL, []step{{body: "<html></html>"}}, rest.KindNetwork, 5, "[1 2 4 8]"},

		{"not valid", readREST, []step{{status: 401, body: `{"message":"Bad credentials"}`}}, rest.KindAuth, 1, "[]"},
		{"forbidden", readREST, []step{forbidden}, rest.KindPermission, 1, "[]"},
		{"validation", write, []step{{status: 422, body: `{"message":"Validation Failed"}`}}, rest.KindRefused, 1, "[]"},
		{"a redirect", readREST, []step{{status: 301, header: "Location: https://elsewhere.test/"}}, rest.KindRefused, 1, "[]"},
		{"a redirect within the API", readREST, []step{{status: 301, header: "Location: /repositories/1/branches/main"}, branch}, "", 2, "[]"},
		{"GraphQL: not found", readGraphQL, []step{graphqlError("NOT_FOUND", "Could not resolve")}, rest.KindNotFound, 1, "[]"},
		{"GraphQL: forbidden", readGraphQL, []step{graphqlError("FORBIDDEN", "Resource not accessible by integration")}, rest.KindPermission, 1, "[]"},
		{"GraphQL: no such field", readGraphQL, []step{graphqlError("", "Field 'x' doesn't exist")}, rest.KindRefused, 1, "[]"},
		{"GraphQL: took too long", readGraphQL, []step{graphqlError("", "Something went wrong while executing your query."), viewer}, "", 2, "[1]"},
		{"GraphQL: takes too long", readGraphQL, []step{graphqlError("", "Something went wrong while executing your query.")}, rest.KindNetwork, 5, "[1 2 4 8]"},
		{"GraphQL: limit", readGraphQL, []step{graphqlError("RATE_LIMITED", "API rate limit exceeded"), viewer}, "", 2, "[60]"},

		{"secondary limit", readREST, []step{secondary, branch}, "", 2, "[7]"},
		{"secondary limit without a time", readREST, []step{unnamed, branch}, "", 2, "[60]"},
		{"secondary limit for ever", readREST, []step{unnamed}, rest.KindRateLimited, 2, "[60]"},
		{"limit for 20 seconds", readGraphQL, []step{exhausted, viewer}, "", 2, "[20]"},
		{"limit for an hour", readREST, []step{forLong}, rest.KindRateLimited, 1, "[]"},
		{"429", readREST, []step{{status: 429, header: "Retry-After: 3"}, branch}, "", 2, "[3]"},
		{"429 for a year", readREST, []step{{status: 429, header: "Retry-After: 999999999999"}}, rest.KindRateLimited, 2, "[60]"},
		{"the last request of the hour", func(c *Client) error { return errors.Join(readREST(c), readREST(c)) }, []step{lastOne, branch}, "", 2, "[]"},

		{"write: secondary limit", write, []step{secondary, comment}, "", 2, "[7]"},
		{"write: 502", write, []step{page502, comment}, rest.KindNetwork, 1, "[]"},
		{"write: cut", write, []step{{status: 201, cut: true, body: comment.body}, comment}, rest.KindNetwork, 1, "[]"},
		{"write: cut document", write, []step{{status: 201, body: comment.body[:10]}, comment}, rest.KindNetwork, 1, "[]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			server := newScript(t, row.steps...)
			waits := pauses{}
			err := row.do(newClient(t, server.URL, &waits))
			checkKind(t, err, row.kind)
			if got := server.requests(); got != row.tries {
				t.Errorf("%d requests, want %d", got, row.tries)
			}
			seconds := []int{}
			for _, d := range waits {
				seconds = append(seconds, int(d/time.Second))
			}
			if got := fmt.Sprint(seconds); got != row.waits {
				t.Errorf("waits %s, want %s", got, row.waits)
			}
		})
	}
}

// checkKind also sees to it that errors are one line and give nothing away.
func checkKind(t *testing.T, err error, want rest.Kind) {
	t.Helper()
	var e *rest.Error
	switch {
	case want == "" && err == nil:
		return
	case want == "" || !errors.As(err, &e):
		t.Fatalf("error %v, want %q", err, want)
	case e.Kind != want:
		t.Errorf("%v is %q, want %q", err, e.Kind, want)
	}
	for _, never := range []string{theToken, "html", "\n", "elsewhere.test", "http:"} {
		if strings.Contains(err.Error(), never) {
			t.Errorf("%q is in the error: %v", never, err)
		}
	}
}

func TestLimitSaysUntilWhen(t *testing.T) {
	server := newScript(t, forLong)
	err := readREST(newClient(t, server.URL, &pauses{}))
	if want := "asking: GitHub: status 429: too many requests; not before 2026-01-05T13:00:00Z"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A server that does not answer is asked again, and told again only where there was no connection yet.
func TestT61Silence(t *testing.T) {
	ask := func(timeout time.Duration, do func(*Client) error) (requests, pauses int) {
		server := newScript(t, step{silence: true})
		c, err := New(Options{APIURL: server.URL, Repository: "o/n", Token: theToken, Timeout: timeout, Wait: func(ctx context.Context, _ time.Duration) error {
			pauses++
			return ctx.Err()
		}})
		teststand.Fatal(t, err)
		checkKind(t, do(c), rest.KindNetwork)
		server.Close() // once all have been counted
		return server.requests(), pauses
	}
	if _, pauses := ask(time.Millisecond, readREST); pauses != 4 {
		t.Errorf("%d waits of a read, want 4", pauses)
	}
	sent := 0
	for timeout := time.Millisecond; sent == 0 && timeout < time.Minute; timeout *= 2 { // in which there is a connection
		sent, _ = ask(timeout, write)
	}
	if sent != 1 {
		t.Errorf("a write was sent %d times", sent)
	}
}

// A write is sent again where there was no connection.
func TestNobodyListens(t *testing.T) {
	server := newScript(t, comment)
	server.Close()
	waits := pauses{}
	checkKind(t, write(newClient(t, server.URL, &waits)), rest.KindNetwork)
	if len(waits) != 4 {
		t.Errorf("%d waits, want 4", len(waits))
	}
}

func TestStopped(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	server := newScript(t, step{silence: true, stop: stop})
	_, err := newClient(t, server.URL, &pauses{}).Viewer(ctx)
	if !errors.Is(err, context.Canceled) || server.requests() != 1 {
		t.Errorf("%v after %d requests", err, server.requests())
	}
}

// The token is for the API's hosts alone.
func TestTokenStaysWithTheAPI(t *testing.T) {
	var told []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told = append(told, r.Header.Get("Authorization"))
		_, _ = w.Write([]byte(branch.body))
	}))
	defer other.Close()
	server := newScript(t, step{status: 302, header: "Location: " + other.URL + "/blob?sig=secret"})
	c := newClient(t, server.URL, &pauses{})
	checkKind(t, readREST(c), rest.KindRefused)
	if len(told) != 0 {
		t.Error("a redirect to another host was followed")
	}
	_, err := c.Artifact(context.Background(), 1, "bundle", 100)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
	req, err := http.NewRequest(http.MethodGet, other.URL, nil)
	teststand.Fatal(t, err)
	if _, err := c.api.Do(context.Background(), req, nil); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || told[0] != "" {
		t.Errorf("another host was told %q", told)
	}
	if got := server.seen[0].Header.Get("Authorization"); got != "Bearer "+theToken {
		t.Errorf("the API was told %q", got)
	}
}

// Where an artifact lies is a secret, also when the wait for it is ended.
func TestStoppedAtTheStorage(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	server := newScript(t,
		step{body: `{"total_count":1,"artifacts":[{"id":3,"name":"bundle"}]}`}, step{status: 302, header: "Location: /blob?sig=secret"},
		step{silence: true, stop: stop},
	)
	_, err := newClient(t, server.URL, &pauses{}).Artifact(ctx, 1, "bundle", 100)
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "secret") || server.requests() != 3 {
		t.Errorf("%v after %d requests", err, server.requests())
	}
}

func TestTooLarge(t *testing.T) {
	server := newScript(t, step{body: `{"protected":true}` + strings.Repeat(" ", 100)})
	c := newClient(t, server.URL, &pauses{})
	for limit, kind := range map[int64]rest.Kind{200: "", 118: "", 117: rest.KindAnswer} {
		var got struct{}
		_, err := c.Get(rest.WithCall(context.Background(), rest.Call{Read: true, Limit: limit}), &got, nil, "x")
		checkKind(t, failed("asking", err), kind)
	}
}

// What GitHub told us once is part of an address, and one part stays one.
func TestPath(t *testing.T) {
	for _, row := range []struct {
		parts []string
		want  string // "" for an error
	}{
		{[]string{"repos", "o", "n"}, "repos/o/n"},
		{[]string{"branches", "feature/x y?z#%"}, "branches/feature%2Fx%20y%3Fz%23%25"},
		{[]string{"collaborators", "../../../user"}, "collaborators/..%2F..%2F..%2Fuser"},
		{[]string{"branches", ".."}, ""}, {[]string{"branches", "."}, ""}, {[]string{"branches", ""}, ""},
	} {
		if got, err := rest.Path(row.parts...); got != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%q: %s, %v", row.parts, got, err)
		}
	}
}
