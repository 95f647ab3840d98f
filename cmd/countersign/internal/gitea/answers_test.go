package gitea_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/gitea"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// answering is a client of a server whose answers are written here: what a server of
// another version, or a proxy before one, may leave out. Each path below /api/v1 has its
// pages; all of one has the count of it all.
func answering(t *testing.T, total int, pages map[string][]string) *gitea.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := "[]"
		page := max(1, must(strconv.Atoi("0"+r.URL.Query().Get("page"))))
		switch have := pages[strings.TrimPrefix(r.URL.Path, "/api/v1/repos/acme/site/")]; {
		case have == nil && strings.HasPrefix(r.URL.Path, "/api/v1/users/"):
			w.WriteHeader(http.StatusNotFound)
		case have == nil:
			w.Header().Set("X-Total-Count", "0")
		default:
			w.Header().Set("X-Total-Count", strconv.Itoa(total))
			if page <= len(have) {
				answer = have[page-1]
			}
		}
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	return must(gitea.New(gitea.Options{Server: server.URL, Repository: "acme/site", Token: "t"}))
}

// without is an object without one member of it, or of an object in it; "" leaves it whole.
func without(t *testing.T, object, path string) string {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(object), &doc); err != nil {
		t.Fatal(err)
	}
	in, name := doc, path
	if outer, inner, ok := strings.Cut(path, "."); ok {
		in, name = doc[outer].(map[string]any), inner
	}
	if _, has := in[name]; path != "" && !has {
		t.Fatalf("there is no %s", path)
	}
	delete(in, name)
	return string(must(json.Marshal(doc)))
}

const greenReview = `{"id": 5, "user": {"id": 2, "login": "bob", "restricted": false}, "body": "", "state": "APPROVED",
	"commit_id": "1111111111111111111111111111111111111111", "dismissed": false, "comments_count": 0, "submitted_at": "2026-01-02T03:04:05Z"}`

// What is left out of an answer is no reason to count an approval, nor to pass over what
// somebody said.
func TestT82MissingMembers(t *testing.T) {
	counts := func(review string) (bool, error) {
		all, err := answering(t, 1, map[string][]string{"pulls/1/reviews": {"[" + review + "]"}}).Statements(t.Context(), 1)
		return len(all) == 1 && all[0].State == approval.ReviewApproved && all[0].Author.Kind == "user" && all[0].CreatedAt != "", err
	}
	if is, err := counts(without(t, greenReview, "")); !is || err != nil {
		t.Fatalf("a whole one: %v, %v", is, err)
	}
	for _, path := range []string{"id", "user", "user.id", "user.login", "user.restricted", "state", "dismissed", "comments_count", "submitted_at"} {
		if is, err := counts(without(t, greenReview, path)); is && err == nil {
			t.Errorf("without %s it is an approval", path)
		}
	}
}

// TestT10CoAuthors: whom a commit names as its co-authors wrote it as well, by their address,
// its beginning or the name. Who is no account is a stranger, and a commit without a message
// tells nothing.
func TestT10CoAuthors(t *testing.T) {
	const side = `{"label": "%[1]s", "ref": "%[1]s", "sha": "1111111111111111111111111111111111111111", "repo": {"id": 3, "full_name": "acme/site"}}`
	pull := `{"number": 1, "state": "open", "merged": false, "title": "x", "user": {"id": 9, "login": "eve", "restricted": false}, "head": ` + fmt.Sprintf(side, "topic") + `, "base": ` + fmt.Sprintf(side, "main") + `}`
	user := func(id int, login string) string {
		return fmt.Sprintf(`{"id": %d, "login": %q, "email": "%[2]s@hidden.example", "restricted": false}`, id, login)
	}
	committers := func(commit string) (string, bool, error) {
		p, err := answering(t, 1, map[string][]string{
			"pulls/1": {pull}, "branches/topic": {`{"protected": false}`}, "pulls/1/commits": {"[" + commit + "]"},
			"/api/v1/users/ada": {user(1, "ada")}, "/api/v1/users/bob": {user(2, "bob")}, "/api/v1/users/grace": {user(4, "Grace")},
			"/api/v1/users/search": {`{"ok": true, "data": [{"id": 5, "login": "mina", "email": "m.okafor@corp.example", "restricted": false}, ` + user(6, "another") + `]}`},
		}).PullRequest(t.Context(), 1)
		var names []string
		for _, who := range p.Committers {
			names = append(names, who.ID)
		}
		return strings.Join(names, " "), p.Strangers, err
	}
	for message, want := range map[string]string{
		"x": "2 false", "x\n\nCo-authored-by: ada <a@b.example>": "1 2 false", "x\n\nco-authored-by:A <7+ada@noreply.example>": "1 2 false",
		"x\n\nCo-authored-by: Ada Lovelace <ada@corp.example>\nCo-Authored-By: grace <x@y.example>": "1 4 2 false",
		"x\n\nCo-authored-by: Mina Okafor <M.Okafor@corp.example>":                                  "5 2 false",
		"x\n\nCo-authored-by: Nobody Known <nobody@corp.example>":                                   "2 true", "x\n\nCo-authored-by:": "2 true",
	} {
		line := must(json.Marshal(message))
		got, strangers, err := committers(`{"sha": "1111111111111111111111111111111111111111", "author": ` + user(2, "bob") + `, "committer": ` + user(2, "bob") + `, "commit": {"message": ` + string(line) + `}}`)
		if err != nil || fmt.Sprint(got, " ", strangers) != want {
			t.Errorf("%q: %s %v %v, want %s", message, got, strangers, err, want)
		}
	}
	// The address of the program's own commits is no account's on the server.
	for address, want := range map[string]string{
		"1+ada@users.noreply.127.0.0.1": "1 2 false", "1+ada[bot]@users.noreply.127.0.0.1": "1 2 false",
		"4+ada@users.noreply.127.0.0.1": "2 true", "1+ada@users.noreply.elsewhere.example": "2 true", "1+nobody@users.noreply.127.0.0.1": "2 true", "ada@b.example": "2 true", "": "2 true",
	} {
		got, strangers, err := committers(`{"sha": "1111111111111111111111111111111111111111", "author": null, "committer": ` + user(2, "bob") + `, "commit": {"message": "x", "author": {"email": "` + address + `"}}}`)
		if err != nil || fmt.Sprint(got, " ", strangers) != want {
			t.Errorf("by %q: %s %v %v, want %s", address, got, strangers, err, want)
		}
	}
	for _, commit := range []string{`{}`, `{"message": null}`, `null`, `{"message": "` + strings.Repeat(`Co-authored-by: a <a@b>\n`, 51) + `"}`} {
		if _, _, err := committers(`{"sha": "1111111111111111111111111111111111111111", "author": ` + user(2, "bob") + `, "committer": ` + user(2, "bob") + `, "commit": ` + commit + `}`); err == nil {
			t.Errorf("%.80s is taken", commit)
		}
	}
}

// A closed pull request of which it is not told whether or when it was merged is passed over
// by nobody.
func TestMergedMissingMembers(t *testing.T) {
	const closed = `{"number": 7, "state": "closed", "merged": true, "merged_at": "2026-01-02T03:04:05Z"}`
	since := func(object string, at time.Time) ([]forge.Merged, error) {
		return answering(t, 2, map[string][]string{"pulls": {`[` + object + `, {"number": 8, "state": "closed", "merged": false}]`}}).Merged(t.Context(), at)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if got, err := since(closed, at); err != nil || len(got) != 1 || got[0].Number != 7 || !got[0].At.Equal(at) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := since(closed, at.Add(1)); err != nil || len(got) != 0 {
		t.Errorf("since later: %+v, %v", got, err)
	}
	for _, path := range []string{"number", "merged", "merged_at"} {
		if got, err := since(without(t, closed, path), at); err == nil {
			t.Errorf("without %s: %+v", path, got)
		}
	}
}

// Of a merged pull request the commit may be told later, and all else has to be told.
func TestMergedPullRequest(t *testing.T) {
	const merged = `{"number": 7, "state": "closed", "merged": true, "merged_at": "2026-01-02T04:04:05+01:00", "merge_commit_sha": "1111111111111111111111111111111111111111",
		"base": {"label": "main", "sha": "2222222222222222222222222222222222222222", "repo": {"id": 1, "full_name": "acme/site"}},
		"head": {"label": "", "ref": "refs/pull/7/head", "sha": "3333333333333333333333333333333333333333"}}`
	for name, c := range map[string]struct {
		answer, commit string
		fails          bool
	}{
		"whole":      {merged, strings.Repeat("1", 40), false},
		"no commit":  {without(t, merged, "merge_commit_sha"), "", false},
		"a name":     {strings.Replace(merged, strings.Repeat("1", 40), "main", 1), "", true},
		"no time":    {without(t, merged, "merged_at"), "", true},
		"not merged": {strings.Replace(merged, `"merged": true`, `"merged": false`, 1), "", false},
	} {
		pr, err := answering(t, 0, map[string][]string{"pulls/7": {c.answer}}).PullRequest(t.Context(), 7)
		at := map[string]string{forge.PullRequestMerged: "2026-01-02T03:04:05Z"}[pr.State]
		if (err != nil) != c.fails || err == nil && (pr.MergeCommit != c.commit || pr.MergedAt != at) {
			t.Errorf("%s: %+v, %v", name, pr, err)
		}
	}
}

// What is sent is ASCII, and says the same.
func TestSendsASCII(t *testing.T) {
	const text = "a\u00e9\u20ac\U0001f600\ufffd\x00\x7f\"\\<\u2028"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw := must(io.ReadAll(r.Body))
		var got struct{ Body string }
		if err := json.Unmarshal(raw, &got); err != nil || got.Body != text || strings.IndexFunc(string(raw), func(r rune) bool { return r > 0x7f }) >= 0 {
			t.Errorf("%q, %v", raw, err)
		}
		fmt.Fprint(w, `{"id": 1, "body": ""}`)
	}))
	defer server.Close()
	must(must(gitea.New(gitea.Options{Server: server.URL, Repository: "acme/site", Token: "t"})).UpsertComment(t.Context(), 1, "", text))
}

// T52: of two that edit the one comment at once the server refuses one, as if it had
// failed. Editing is repeated; posting, which might be done twice, is not.
func TestT52CommentEditedAtOnce(t *testing.T) {
	for id, want := range map[string]int{"7": 2, "": 1} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked == 1 {
				w.WriteHeader(http.StatusInternalServerError)
			}
			fmt.Fprint(w, `{"id": 7, "body": "text"}`)
		}))
		defer server.Close()
		client := must(gitea.New(gitea.Options{
			Server: server.URL, Repository: "acme/site", Token: "t", Wait: func(context.Context, time.Duration) error { return nil },
		}))
		if posted, err := client.UpsertComment(t.Context(), 1, id, "text"); asked != want || (err == nil) != (id == "7") || posted.ID != id {
			t.Errorf("of comment %q: asked %d times, %+v, %v", id, asked, posted, err)
		}
	}
}

// T01: a comment counts only as what the repository's activities say that its author posted.
func TestT01Activities(t *testing.T) {
	fingerprint := "patchset:" + strings.Repeat("a", 64)
	line, long := "/approve "+fingerprint, "/approve --break-glass secret:"+fingerprint+" "+strings.Repeat("because ", 20)
	sign := approval.SignedLine(teststand.Ed25519(1).Signs(approval.SignedDecision{
		Schema: approval.DecisionSchema, TransactionID: "t", BaseCommit: strings.Repeat("1", 40), Decision: ledger.Approve, Fingerprints: []string{fingerprint},
		DecidedAt: "2026-01-02T03:04:05Z", Shown: canon.Sum(nil), Proposers: []ledger.Actor{{Kind: "bot", ID: "1"}}, RequestedBy: []ledger.Requester{},
		Policy: ledger.PolicyRef{Commit: strings.Repeat("2", 40), SHA256: canon.Sum(nil)},
	}))
	const (
		plain  = `{"op_type": "comment_pull", "act_user_id": 2, "comment_id": 7, "content": "CONTENT"}`
		others = `{"op_type": "comment_pull", "act_user_id": 2, "comment_id": 8, "content": "1|x"}`
	)
	for name, c := range map[string]struct {
		body, entry, first string
		counts             bool
	}{
		"as it was posted":                   {line, plain, "1|" + line, true},
		"and more below it":                  {line + "\nFine.", plain, "1|" + line, true},
		"of which the beginning is kept":     {long + "of that", plain, "1|" + long + "…", true},
		"another text":                       {line, plain, "1|interesting", false},
		"less than was posted":               {line, plain, "1|" + line + " is what I do not say", false},
		"less, and the first ends with dots": {line, plain, "1|" + line + "…", false},
		"more than was posted":               {line + " x", plain, "1|" + line, false},
		"long, and begins otherwise":         {long, plain, "1|" + strings.ToUpper(long) + "…", false},
		"of another pull request":            {line, plain, "11|" + line, false},
		"nothing is told":                    {line, others, "", false},
		"nothing is told of what is signed":  {sign, others, "", true},
		"without what it is":                 {line, without(t, plain, "op_type"), "1|" + line, false},
		"without who did it":                 {line, without(t, plain, "act_user_id"), "1|" + line, false},
		"without the comment":                {line, without(t, plain, "comment_id"), "1|" + line, false},
		"of something else":                  {line, strings.Replace(plain, "comment_pull", "pull_review_dismissed", 1), "1|" + line, false},
		"of somebody else":                   {line, strings.Replace(plain, "2", "3", 1), "1|" + line, false},
		"a command on the second line":       {"\n" + line, plain, "1|\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			comment := fmt.Sprintf(`[{"id": 7, "user": {"id": 2, "login": "bob", "restricted": false}, "body": %s,
				"created_at": "2026-01-02T23:59:30+02:00", "updated_at": "2026-01-02T23:59:30+02:00"}]`, must(json.Marshal(c.body)))
			entry := strings.Replace(c.entry, `"CONTENT"`, string(must(json.Marshal(c.first))), 1)
			all := must(answering(t, 1, map[string][]string{"issues/1/comments": {comment}, "activities/feeds": {"[" + entry + "]"}}).Statements(t.Context(), 1))
			if len(all) != 1 || (all[0].Edited || all[0].Untold) == c.counts {
				t.Errorf("%+v", all)
			}
		})
	}
}

// The day is the server's, and an entry may be of the next one. Pages are read until the comment
// is there, and one that comes or goes meanwhile is an error.
func TestT05ActivitiesMove(t *testing.T) {
	const entry = `[{"op_type": "comment_pull", "act_user_id": 2, "comment_id": 7, "content": "1|/deny it"}]`
	for name, c := range map[string]struct {
		totals       []string // by page
		at           int      // the page that has it
		counts, fail bool
	}{
		"on the first":           {[]string{"3"}, 1, true, false},
		"on the last":            {[]string{"3", "3", "3"}, 3, true, false},
		"on none":                {[]string{"3", "3", "3"}, 0, false, false},
		"one comes meanwhile":    {[]string{"3", "4", "4", "4"}, 4, false, true},
		"the count is not there": {[]string{""}, 1, false, true},
		"there are too many":     {slices.Repeat([]string{"1000"}, 200), 0, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := map[string]bool{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				page := max(1, must(strconv.Atoi("0"+q.Get("page"))))
				switch strings.TrimPrefix(r.URL.Path, "/api/v1/repos/acme/site/") {
				case "issues/1/comments":
					w.Header().Set("X-Total-Count", "1")
					fmt.Fprint(w, `[{"id": 7, "user": {"id": 2, "login": "bob", "restricted": false}, "body": "/deny it",
						"created_at": "2026-01-02T23:59:30+02:00", "updated_at": "2026-01-02T23:59:30+02:00"}]`)
				case "activities/feeds":
					asked[q.Get("date")] = true
					if q.Get("date") == "2026-01-02" { // as where the entry came after midnight
						w.Header().Set("X-Total-Count", "0")
						fmt.Fprint(w, "[]")
						return
					}
					w.Header().Set("X-Total-Count", c.totals[min(page, len(c.totals))-1])
					if page == c.at {
						fmt.Fprint(w, entry)
					} else {
						fmt.Fprint(w, `[{"op_type": "commit_repo", "comment_id": 0}]`)
					}
				default:
					w.Header().Set("X-Total-Count", "0")
					fmt.Fprint(w, "[]")
				}
			}))
			defer server.Close()
			client := must(gitea.New(gitea.Options{Server: server.URL, Repository: "acme/site", Token: "t"}))
			all, err := client.Statements(t.Context(), 1)
			if (err != nil) != c.fail || err == nil && (len(all) != 1 || (all[0].Edited || all[0].Untold) == c.counts) {
				t.Errorf("%+v, %v", all, err)
			}
			if !asked["2026-01-02"] || !asked["2026-01-03"] || len(asked) != 2 {
				t.Errorf("asked for %v", asked)
			}
		})
	}
}

// T62: of reviews the server keeps others' back that are not submitted, after it has
// counted and cut the pages. As many as a page has hide nothing that comes after them.
func TestT62PagesOfPendingReviews(t *testing.T) {
	denial := strings.Replace(greenReview, `"body": ""`, `"body": "/deny it"`, 1)
	for name, pages := range map[string][]string{
		"the first page is empty":    {"[]", "[" + denial + "]"},
		"the two first ones are":     {"[]", "[]", "[" + denial + "]"},
		"one in the middle is":       {"[" + greenReview + "]", "[]", "[" + denial + "]"},
		"nothing is but the denial":  {"[" + denial + "]"},
		"the last one is, of a page": {"[" + denial + "]", "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := answering(t, max(2, len(pages)), map[string][]string{"pulls/1/reviews": pages}).WithPages(1).Statements(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			if len(all) == 0 || all[len(all)-1].Body != "/deny it" {
				t.Errorf("the denial is not read: %+v", all)
			}
		})
	}
}

// T52: where two ask at once, the server opens a pull request for each. The older one is
// kept, whoever asked for it.
func TestT52OpenedTwice(t *testing.T) {
	for name, c := range map[string]struct {
		after        string // the numbers of the open ones once ours, 3, is opened
		want         int
		closes, fail bool
	}{
		"ours alone":             {"3", 3, false, false},
		"another's before ours":  {"2 3", 2, true, false},
		"another's after ours":   {"3 4", 3, false, false},
		"ours is not listed yet": {"", 3, false, false},
		"it cannot be closed":    {"2 3", 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			opened, closed := false, false
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.Method + " " + strings.TrimPrefix(r.URL.Path, "/api/v1/repos/acme/site") {
				case "GET ":
					fmt.Fprint(w, `{"id": 1, "default_branch": "main"}`)
				case "GET /pulls":
					var all []string
					for number := range strings.FieldsSeq(c.after) {
						if opened {
							all = append(all, fmt.Sprintf(`{"number": %s, "base": {"label": "main"}, "head": {"label": "topic",
								"sha": "1111111111111111111111111111111111111111", "repo": {"id": 1, "owner": {"id": 5, "login": "acme"}}}}`, number))
						}
					}
					w.Header().Set("X-Total-Count", strconv.Itoa(len(all)))
					fmt.Fprint(w, "["+strings.Join(all, ",")+"]")
				case "POST /pulls":
					opened = true
					fmt.Fprint(w, `{"number": 3}`)
				case "PATCH /pulls/3":
					if closed = true; c.fail {
						w.WriteHeader(http.StatusForbidden)
					}
					fmt.Fprint(w, "{}")
				default:
					t.Errorf("%s %s", r.Method, r.URL)
				}
			}))
			defer server.Close()
			client := must(gitea.New(gitea.Options{Server: server.URL, Repository: "acme/site", Token: "t"}))
			number, err := client.OpenPullRequest(t.Context(), forge.NewPull{Branch: "topic", Base: "main", Title: "Work"})
			if number != c.want || (err != nil) != c.fail || closed != c.closes {
				t.Errorf("%d, %v, closed %v", number, err, closed)
			}
		})
	}
}

// TestReviewCommentRefused: what line a comment is on cannot be told, so nothing is taken
// from one.
func TestReviewCommentRefused(t *testing.T) {
	if _, err := answering(t, 0, nil).ReviewComment(context.Background(), 1); !errors.Is(err, forge.ErrRefused) {
		t.Error(err)
	}
}

// A build of somebody's own may tell no number, which is no reason to look at nothing else.
func TestProbeWithoutVersion(t *testing.T) {
	c := answering(t, 0, map[string][]string{
		"/api/v1/repos/acme/site": {`{"default_branch": "trunk", "has_actions": true}`}, "/api/v1/version": {`{"version": "development"}`},
		"branches/trunk": {"{}"},
	})
	if f, err := c.Probe(t.Context(), ""); err != nil || f.Server != "" || f.DefaultBranch != "trunk" || !f.Actions {
		t.Errorf("%+v, %v", f, err)
	}
}
