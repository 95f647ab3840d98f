package github

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// T01, T02: that a text was edited is told, whoever did it, and what it was.
func TestT01T02Edits(t *testing.T) {
	w := newWorld(t)
	own := w.comment("ada", "/deny it")
	w.Edit(own.ID, "ada", "/approve")
	w.Edit(own.ID, "ada", "never mind")
	others := w.comment("bob", "looks odd")
	w.Edit(others.ID, "mallory", "/approve")
	review := w.Review(githubtest.NewComment{Repository: site, Number: 1, By: "bob", Body: "one", State: "COMMENTED"})
	w.Edit(review.ID, "bob", "two")
	inline := w.ReviewComment(githubtest.NewComment{Repository: site, Number: 1, By: "ada", Body: "three", Path: "greet.go"})
	w.Edit(inline.ID, "mallory", "four")
	erased := w.comment("ada", "/deny")
	w.Edit(erased.ID, "ada", "oops")
	w.EraseHistory(erased.ID)
	app := w.comment("helper[bot]", "five")
	w.Edit(app.ID, "mallory", "six")
	untouched := w.comment("ada", "seven")

	for _, row := range []struct {
		id      int64
		body    string
		earlier string
		edited  bool
	}{
		{own.ID, "never mind", "/deny it|/approve", true},
		{others.ID, "/approve", "looks odd", true},
		{review.ID, "two", "one", true},
		{inline.ID, "four", "three", true},
		{erased.ID, "oops", "", true},
		{app.ID, "six", "", true},
		{untouched.ID, "seven", "", false},
	} {
		got := w.statement(row.id)
		if got.Body != row.body || strings.Join(got.Earlier, "|") != row.earlier || got.Edited != row.edited {
			t.Errorf("%q, before it %q, edited %v; want %q, %q, %v", got.Body, got.Earlier, got.Edited, row.body, row.earlier, row.edited)
		}
	}
}

// A history of many pages is read to its end, and one of too many is an error.
func TestLongHistory(t *testing.T) {
	w := newWorld(t)
	c := w.comment("ada", "/deny at first")
	for i := range 250 {
		w.Edit(c.ID, "ada", fmt.Sprint("text ", i))
	}
	got := w.statement(c.ID)
	if len(got.Earlier) != 250 || got.Earlier[0] != "/deny at first" || got.Earlier[249] != "text 248" {
		t.Errorf("%d earlier texts, from %q", len(got.Earlier), got.Earlier[0])
	}
	for i := range 800 {
		w.Edit(c.ID, "ada", fmt.Sprint("more ", i))
	}
	_, err := w.client.Statements(context.Background(), 1)
	checkKind(t, err, rest.KindAnswer)
}

// T65: what an app posted for somebody, and what came by e-mail, is marked.
func TestT65AppsAndMail(t *testing.T) {
	w := newWorld(t)
	plain := w.comment("ada", "/approve")
	app := w.Comment(githubtest.NewComment{Repository: site, Number: 1, By: "ada", Body: "/approve", App: "helper[bot]"})
	mail := w.Comment(githubtest.NewComment{Repository: site, Number: 1, By: "ada", Body: "/approve", Email: true})
	inline := w.ReviewComment(githubtest.NewComment{Repository: site, Number: 1, By: "ada", Body: "x", Path: "greet.go", Email: true})
	if s := w.statement(plain.ID); s.App != "" || s.Email {
		t.Errorf("a plain comment: %+v", s)
	}
	if s := w.statement(app.ID); s.App != "helper" || s.Author != w.people["ada"] {
		t.Errorf("through an app: %+v", s)
	}
	if !w.statement(mail.ID).Email || !w.statement(inline.ID).Email {
		t.Error("what came by e-mail is not marked")
	}
}

// T10: who is not surely a person is a bot; who is gone has no number.
func TestT10Authors(t *testing.T) {
	w := newWorld(t)
	bot := w.comment("helper[bot]", "/approve")
	gone := w.comment("mallory", "/approve")
	renamed := w.comment("bob", "/approve")
	w.DeleteAccount("mallory")
	w.Rename("bob", "robert")
	if who := w.statement(bot.ID).Author; who.Kind != "bot" || who.ID == "" || who.Login != "helper" {
		t.Errorf("a bot is %+v", who)
	}
	if who := w.statement(gone.ID).Author; who != (ledger.Actor{Kind: "bot", Login: "ghost"}) {
		t.Errorf("who is gone is %+v", who)
	}
	if who := w.statement(renamed.ID).Author; who != (ledger.Actor{Kind: "user", ID: w.people["bob"].ID, Login: "robert"}) {
		t.Errorf("who has a new name is %+v", who)
	}
	for _, kind := range []string{"Organization", "Mannequin", "EnterpriseUserAccount", "Bot", ""} {
		a := account{Type: kind, Login: "ada", DatabaseID: 1}
		if a.actor().Kind != "bot" {
			t.Errorf("%s is a person", kind)
		}
	}
	for _, a := range []account{{typeUser, "ada[bot]", 1}, {typeUser, "ada", 0}, {typeUser, "", 1}} {
		if a.actor().Kind != "bot" {
			t.Errorf("%+v is a person", a)
		}
	}
}

// T62: whichever place a denial is in, it is read.
func TestT62AllPages(t *testing.T) {
	w := newWorld(t)
	thread := w.ReviewComment(githubtest.NewComment{Repository: site, Number: 1, By: "eve", Body: "thread", Path: "greet.go"})
	for i := range 206 {
		text := fmt.Sprint("chatter ", i)
		if slices.Contains([]int{100, 205}, i) {
			text = fmt.Sprintf("/deny number %d", i)
		}
		w.comment("ada", text)
		w.Review(githubtest.NewComment{Repository: site, Number: 1, By: "ada", Body: text, State: "COMMENTED"})
		w.ReviewComment(githubtest.NewComment{Repository: site, Number: 1, By: "ada", Body: text, ReplyTo: thread.ID})
	}
	found := map[string]int{}
	all := w.statements()
	for _, s := range all {
		if strings.HasPrefix(s.Body, "/deny") {
			found[s.Kind]++
		}
	}
	if fmt.Sprint(found) != "map[issue_comment:2 review:2 review_comment:2]" {
		t.Errorf("denials %v", found)
	}
	if len(all) < 619 {
		t.Errorf("%d statements", len(all))
	}
}

// T61: a reading with a fault anywhere is the whole reading, or an error.
func TestT61Reading(t *testing.T) {
	w := newWorld(t)
	thread := w.ReviewComment(githubtest.NewComment{Repository: site, Number: 1, By: "ada", Body: "first", Path: "greet.go"})
	w.Review(githubtest.NewComment{Repository: site, Number: 1, By: "ada", Body: "/deny", State: "COMMENTED"})
	w.ReviewComment(githubtest.NewComment{Repository: site, Number: 1, By: "ada", Body: "/deny", ReplyTo: thread.ID})
	for i := range 102 {
		c := w.comment("ada", fmt.Sprint("/deny ", i))
		if i%2 == 0 {
			w.Edit(c.ID, "ada", "now harmless")
		}
	}
	want := fmt.Sprintf("%+v", w.statements())
	requests := w.Count().API
	if requests != 5 {
		t.Fatalf("%d requests, want two pages twice and the histories", requests)
	}
	faults := []githubtest.Fault{
		{Status: 500}, {Status: 401}, {Status: 403}, {Status: 404}, {Status: 422}, {Status: 429},
		{Kind: githubtest.SecondaryLimit, Seconds: 90}, {Kind: githubtest.PrimaryLimit, Seconds: 3600}, {Kind: githubtest.LimitSpent, Seconds: 3600},
		{Kind: githubtest.Cut}, {Kind: githubtest.Truncate}, {Kind: githubtest.Half}, {Kind: githubtest.LastPage}, {Kind: githubtest.EmptyPage},
		{Kind: githubtest.Body, Text: "{}"}, {Kind: githubtest.Body, Text: "[]"}, {Kind: githubtest.Body, Text: `{"data":{}}`}, {Kind: githubtest.Body},
		{Kind: githubtest.GraphQLError, Text: "no"}, {Kind: githubtest.GraphQLPartial, Text: "repository.pullRequest.comments"},
		{Kind: githubtest.GraphQLPartial, Text: "repository.pullRequest"}, {Kind: githubtest.GraphQLPartial, Text: "nodes"},
	}
	for i, f := range faults {
		for skip := range requests {
			if skip != i%requests && os.Getenv("COUNTERSIGN_LONG") == "" {
				continue
			}
			f.Skip, f.Times, f.Path = skip, -1, "/api/"
			w.Fail(f)
			all, err := w.client.Statements(context.Background(), 1)
			w.Heal()
			if err == nil && fmt.Sprintf("%+v", all) != want {
				t.Errorf("%+v: %d statements without an error", f, len(all))
			}
			if err != nil && all != nil {
				t.Errorf("%+v: statements beside an error", f)
			}
		}
	}
}

func TestChangedMeanwhile(t *testing.T) {
	posted := func(id int64, body string) map[string]postedComment {
		return map[string]postedComment{strconv.FormatInt(id, 10): {ID: id, Body: body}}
	}
	comment := func(body string, earlier ...string) []approval.Statement {
		return []approval.Statement{{Kind: approval.KindIssueComment, ID: "1", Body: body, Earlier: earlier}}
	}
	for _, row := range []struct {
		name    string
		all     []approval.Statement
		posted  map[string]postedComment
		changed bool
	}{
		{"agree", comment("/approve"), posted(1, "/approve"), false},
		{"new chatter", comment("hello"), nil, false},
		{"new command", comment("/approve"), nil, true},
		{"new, and once a command", comment("hello", " /deny"), nil, true},
		{"gone chatter", nil, posted(1, "hello"), false},
		{"gone command", nil, posted(1, "\n/deny"), true},
		{"another", comment("/approve"), posted(2, "hello"), true},
		{"no conversation comment", []approval.Statement{{Kind: approval.KindReview, ID: "1", Body: "/approve"}}, nil, false},
	} {
		if err := addApps(row.all, row.posted); rest.IsKind(err, rest.KindChanged) != row.changed {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// TestReviewComment: where a comment is on the diff, whose it is, and that it was edited.
func TestReviewComment(t *testing.T) {
	w := newWorld(t)
	head := w.Pull(site, 1).Head
	read := func(n githubtest.NewComment) forge.ReviewComment {
		t.Helper()
		n.Repository, n.Number, n.Path, n.Body = site, 1, "greet.go", "say"
		said := w.ReviewComment(n)
		got, err := w.client.ReviewComment(context.Background(), said.ID)
		if err != nil || got.ID != said.ID || got.URL != said.URL || got.PullRequest != 1 || got.Path != "greet.go" || got.Commit != head || got.Body != "say" || got.Author != w.people[n.By] {
			t.Fatalf("%+v, %v", got, err)
		}
		return got
	}
	for _, c := range []struct {
		given githubtest.NewComment
		want  forge.ReviewComment
	}{
		{githubtest.NewComment{By: "ada", Line: 1}, forge.ReviewComment{Line: 1, Side: "RIGHT"}},
		{githubtest.NewComment{By: "eve", Start: 1, Line: 3}, forge.ReviewComment{Start: 1, Line: 3, StartSide: "RIGHT", Side: "RIGHT"}},
		{githubtest.NewComment{By: "ada", Start: 1, Line: 3, Left: true}, forge.ReviewComment{Start: 1, Line: 3, StartSide: "LEFT", Side: "LEFT"}},
		{githubtest.NewComment{By: "ada"}, forge.ReviewComment{Side: "RIGHT", OnFile: true}},
	} {
		got := read(c.given)
		if at := (forge.ReviewComment{Start: got.Start, Line: got.Line, StartSide: got.StartSide, Side: got.Side, OnFile: got.OnFile}); at != c.want || got.Edited {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
	said := read(githubtest.NewComment{By: "ada", Start: 1, Line: 2})
	w.SetNow(func() time.Time { return time.Now().Add(time.Minute) })
	w.Edit(said.ID, "bob", "say more")
	w.Outdate(said.ID)
	got, err := w.client.ReviewComment(context.Background(), said.ID)
	if err != nil || !got.Edited || got.Line != 0 || got.Start != 0 || got.Body != "say more" || got.Author != w.people["ada"] {
		t.Errorf("%+v, %v", got, err)
	}
	for _, id := range []int64{w.comment("ada", "no review").ID, 9999} {
		if _, err := w.client.ReviewComment(context.Background(), id); !errors.Is(err, forge.ErrNotFound) {
			t.Errorf("%d: %v", id, err)
		}
	}
}
