package rest_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

var (
	commitA = strings.Repeat("a", 40)
	commitB = strings.Repeat("b", 40)
)

// answering is a repository whose forge answers a method with JSON, and what was asked of it.
func answering(answers map[string]string) (r *rest.Repository, asked *[]string) {
	asked = new([]string)
	return &rest.Repository{
		Forge: "Forge", Server: "https://forge.test", Owner: "o", Name: "n",
		Send: func(_ context.Context, method string, into, _ any, _ url.Values, parts ...string) (http.Header, error) {
			request := method + " " + strings.Join(parts, "/")
			*asked = append(*asked, request)
			if answers[request] == "" {
				return nil, &rest.Error{Kind: rest.KindNotFound}
			}
			if into == nil {
				return nil, nil
			}
			return nil, json.Unmarshal([]byte(answers[request]), into)
		},
	}, asked
}

// What an answer does not tell is an error of both forges.
func TestAnswersLack(t *testing.T) {
	const at = "repos/o/n"
	for name, c := range map[string]struct {
		answers map[string]string
		ask     func(*rest.Repository) error
	}{
		"a comment without its text": {map[string]string{"POST " + at + "/issues/1/comments": `{"id": 1, "html_url": "x"}`}, func(r *rest.Repository) error {
			_, err := r.UpsertComment(t.Context(), 1, "", "text")
			return err
		}},
		"a comment without a number": {map[string]string{"PATCH " + at + "/issues/comments/7": `{"body": "text"}`}, func(r *rest.Repository) error {
			_, err := r.UpsertComment(t.Context(), 1, "7", "text")
			return err
		}},
		"a repository without a number": {map[string]string{"GET " + at: `{"full_name": "o/n", "default_branch": "main"}`}, func(r *rest.Repository) error {
			_, err := r.DefaultBranch(t.Context())
			return err
		}},
		"a repository without a branch": {map[string]string{"GET " + at: `{"id": 1, "full_name": "o/n"}`}, func(r *rest.Repository) error {
			_, err := r.DefaultBranch(t.Context())
			return err
		}},
		"a branch that may be protected": {map[string]string{"GET " + at + "/branches/main": `{}`}, func(r *rest.Repository) error {
			_, err := r.IsProtected(t.Context(), "main")
			return err
		}},
		"a pull request without a number": {map[string]string{"POST " + at + "/pulls": `{}`}, func(r *rest.Repository) error {
			_, err := r.SendNew(t.Context(), forge.NewPull{})
			return err
		}},
		"another account": {nil, func(r *rest.Repository) error {
			r.People = &rest.People{AskAccount: func(context.Context, string) (ledger.Actor, error) { return ledger.Actor{ID: "8", Login: "eve"}, nil }}
			_, err := r.Account(t.Context(), "7")
			return err
		}},
		"a merged pull request without a number": {nil, func(r *rest.Repository) error {
			r.ListMerged = func(context.Context) ([]forge.Merged, error) { return []forge.Merged{{At: time.Unix(1, 0)}}, nil }
			_, err := r.Merged(t.Context(), time.Time{})
			return err
		}},
		"a merged pull request without a time": {nil, func(r *rest.Repository) error {
			r.ListMerged = func(context.Context) ([]forge.Merged, error) { return []forge.Merged{{Number: 1}}, nil }
			_, err := r.Merged(t.Context(), time.Unix(1, 0))
			return err
		}},
	} {
		r, _ := answering(c.answers)
		if err := c.ask(r); !rest.IsKind(err, rest.KindAnswer) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A pull request is merged at its head, and is never said to be on a guess.
func TestMerge(t *testing.T) {
	const about = `{"id": 1, "allow_merge_commit": false, "allow_rebase": true}`
	open := forge.PullRequest{State: forge.PullRequestOpen, Head: forge.Side{Commit: commitA}}
	merged := forge.PullRequest{State: forge.PullRequestMerged, MergeCommit: commitB, Head: forge.Side{Commit: commitA}}
	moved := forge.PullRequest{State: forge.PullRequestMerged, MergeCommit: commitB, Head: forge.Side{Commit: commitB}}
	lost, unread := &rest.Error{Kind: rest.KindNetwork}, &rest.Error{Kind: rest.KindPermission}
	for name, c := range map[string]struct {
		about, told string
		err         error // of the request
		then        forge.PullRequest
		unread      error
		want        rest.Kind // "" for merged
	}{
		"told":                        {about: about, told: commitB},
		"not told, and merged":        {about: about, then: merged},
		"an answer lost, and merged":  {about: about, err: lost, then: merged},
		"not told, and open":          {about: about, then: open, want: rest.KindAnswer},
		"not told, and not read":      {about: about, unread: unread, want: rest.KindPermission},
		"an answer lost, and open":    {about: about, err: lost, then: open, want: rest.KindNetwork},
		"lost, and not read":          {about: about, err: lost, unread: unread, want: rest.KindNetwork},
		"at another head":             {about: about, err: lost, then: moved, want: rest.KindMoved},
		"no way is allowed":           {about: `{"id": 1, "allow_squash_merge": false}`, want: rest.KindRefused},
		"no way is told":              {about: `{"id": 1}`, want: rest.KindRefused},
		"the repository is not there": {want: rest.KindNotFound},
	} {
		r, _ := answering(map[string]string{"GET repos/o/n": c.about})
		r.SendMerge = func(_ context.Context, _ int, _ string, methods []string) (string, error) {
			if !slices.Equal(methods, []string{"rebase"}) {
				t.Errorf("%s: by %v", name, methods)
			}
			return c.told, c.err
		}
		r.ReadPull = func(context.Context, int) (forge.PullRequest, error) { return c.then, c.unread }
		commit, err := r.Merge(t.Context(), 1, commitA)
		if c.want == "" && (commit != commitB || err != nil) || c.want != "" && (commit != "" || !rest.IsKind(err, c.want)) {
			t.Errorf("%s: %q, %v", name, commit, err)
		}
	}
}

// Where the forge opens a pull request for each of two that ask at once, the later is closed.
func TestOpensOne(t *testing.T) {
	between := func(number int, repository string) forge.Open {
		return forge.Open{Number: number, Base: "main", Head: forge.Head{Repository: repository, Branch: "topic"}}
	}
	for name, c := range map[string]struct {
		doubles    bool
		created    error
		then       []forge.Open // that are open afterwards
		want       int
		closed     bool
		wantFailed bool
	}{
		"alone":                     {doubles: true, then: []forge.Open{between(5, "1")}, want: 5},
		"beside an older one":       {doubles: true, then: []forge.Open{between(5, "1"), between(3, "1")}, want: 3, closed: true},
		"beside a fork's":           {doubles: true, then: []forge.Open{between(5, "1"), between(3, "2")}, want: 5},
		"refused, and there is one": {created: &rest.Error{Kind: rest.KindRefused}, then: []forge.Open{between(3, "1")}, want: 3},
		"refused":                   {created: &rest.Error{Kind: rest.KindRefused}, then: []forge.Open{between(3, "2")}, wantFailed: true},
		"forbidden":                 {created: &rest.Error{Kind: rest.KindPermission}, then: []forge.Open{between(3, "1")}, wantFailed: true},
	} {
		r, asked := answering(map[string]string{"GET repos/o/n": `{"id": 1}`, "PATCH repos/o/n/pulls/5": `{}`})
		var open []forge.Open
		r.Doubles = c.doubles
		r.Pulls.List = func(context.Context, string, bool) ([]forge.Open, error) { return open, nil }
		r.Create = func(context.Context, forge.NewPull) (int, error) { open = c.then; return 5, c.created }
		number, err := r.OpenPullRequest(t.Context(), forge.NewPull{Branch: "topic", Base: "main"})
		if number != c.want || (err != nil) != c.wantFailed || slices.Contains(*asked, "PATCH repos/o/n/pulls/5") != c.closed {
			t.Errorf("%s: %d, %v, asked %q", name, number, err, *asked)
		}
	}
}

// A team that the token cannot see is an error, and nobody is in one by an error.
func TestInTeam(t *testing.T) {
	missing, forbidden, lost := &rest.Error{Kind: rest.KindNotFound}, &rest.Error{Kind: rest.KindPermission}, &rest.Error{Kind: rest.KindNetwork}
	for i, c := range []struct {
		is        bool
		err, seen error
		want      rest.Kind
	}{
		{true, nil, nil, ""}, {false, nil, nil, ""}, {true, missing, nil, ""}, {true, missing, missing, rest.KindPermission},
		{true, forbidden, nil, rest.KindPermission}, {true, lost, nil, rest.KindNetwork}, {true, missing, lost, rest.KindNetwork},
	} {
		is, err := rest.InTeam(c.is, c.err, "a token", func() error { return c.seen })
		if is != (c.is && c.err == nil) || (err == nil) != (c.want == "") || err != nil && !rest.IsKind(err, c.want) {
			t.Errorf("%d: %t, %v", i, is, err)
		}
	}
}

// An artifact is read at an https address or one of the API's own kind, where a page for people is none.
func TestDownload(t *testing.T) {
	content, kind := bundle(t), "application/zip"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token was sent")
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(content)
	}))
	defer server.Close()
	_, storage := rest.Transport{Token: "t", Hosts: []string{server.URL}}.Clients()
	download := func(scheme string, status int) (string, error) {
		a := rest.Artifacts{
			Base: &url.URL{Scheme: scheme, Host: "forge.test"}, Storage: storage,
			API: &http.Client{Transport: answers(func(r *http.Request) *http.Response {
				if r.URL.Path != "/actions/artifacts/7/zip" {
					t.Errorf("asked for %s", r.URL)
				}
				return &http.Response{StatusCode: status, Header: http.Header{"Location": {server.URL}}, Body: http.NoBody}
			})},
			List: func(context.Context, int64, string) ([]rest.Artifact, error) {
				return []rest.Artifact{{ID: 7, Name: "it"}}, nil
			},
		}
		got, err := a.Artifact(t.Context(), 1, "it", 100)
		return string(got), err
	}
	if got, err := download("http", 302); got != "{}" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	var told *rest.Error
	if got, err := download("https", 302); got != "" || !errors.As(err, &told) {
		t.Errorf("over http: %q, %v", got, err)
	}
	if got, err := download("http", 200); got != "" || !errors.As(err, &told) {
		t.Errorf("no redirect: %q, %v", got, err)
	}
	kind = "text/html; charset=utf-8"
	if got, err := download("http", 302); got != "" || !errors.As(err, &told) {
		t.Errorf("a page: %q, %v", got, err)
	}
	kind, content = "application/zip", append(content, make([]byte, rest.ZipOverhead+100)...)
	if got, err := download("http", 302); got != "" || !errors.As(err, &told) || !strings.Contains(err.Error(), "too large") {
		t.Errorf("too large: %q, %v", got, err)
	}
}

// bundle is an archive of an empty one.
func bundle(t *testing.T) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	f, err := z.Create("bundle.json")
	if err == nil {
		_, err = f.Write([]byte("{}"))
	}
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type answers func(*http.Request) *http.Response

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }
