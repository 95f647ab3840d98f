package gitea_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/forgetest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/gitea"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A world is a real server with one repository of an organization: ada owns the
// organization and has the token, bob may write, eve may read.
type world struct {
	*forgetest.Server
	t             *testing.T
	ada, bob, eve forgetest.User
	site          *forgetest.Repository
	client        *gitea.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Server: forgetest.Start(t), t: t}
	w.ada, w.bob, w.eve = w.User("ada"), w.User("bob"), w.User("eve")
	w.Org("acme", w.ada)
	w.Team("acme", "writers", "write", w.bob)
	w.site = w.Repository(w.ada, "acme", "site", map[string]string{"a.txt": "a\n"})
	w.client = w.as(w.ada)
	return w
}

func (w *world) as(u forgetest.User) *gitea.Client {
	w.t.Helper()
	c, err := gitea.New(gitea.Options{Server: w.URL, Repository: w.site.FullName(), Token: u.Token})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func actor(u forgetest.User) ledger.Actor {
	return ledger.Actor{Kind: "user", ID: strconv.FormatInt(u.ID, 10), Login: u.Name}
}

// must is what a call returned that may not fail.
func must[T any](got T, err error) T {
	if err != nil {
		panic(err)
	}
	return got
}

func TestPullRequest(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	base := w.site.Ref("refs/heads/main")
	head := w.site.Commit(w.bob, "team/topic", "work", map[string]string{"b.txt": "b\n"})
	number := int(w.site.PullRequest(w.bob, "team/topic", "main", "Work"))
	pr := must(w.client.PullRequest(ctx, number))
	if pr.State != forge.PullRequestOpen || pr.Number != number || pr.Author != actor(w.bob) || pr.Head.Commit != head || pr.Head.Branch != "team/topic" ||
		pr.Base.Branch != "main" || pr.Base.Commit != base || pr.Fork() || pr.Head.Protected || pr.Repository.Name != "acme/site" ||
		pr.Base.CloneURL != w.URL+"/acme/site.git" || len(pr.Paths) != 0 {
		t.Errorf("%+v", pr)
	}
	w.site.Protect("team/*", nil)
	must(w.client.Statements(ctx, number)) // until then it is remembered
	if pr := must(w.client.PullRequest(ctx, number)); !pr.Head.Protected {
		t.Error("the head is protected, and not told so")
	}

	fork := w.site.Fork(w.eve)
	fork.Commit(w.eve, "topic", "theirs", map[string]string{"c.txt": "c\n"})
	number = int(w.site.PullRequest(w.eve, "eve:topic", "main", "Theirs"))
	if pr := must(w.client.PullRequest(ctx, number)); !pr.Fork() || pr.Head.Repository.Name != "eve/site" || pr.Author != actor(w.eve) {
		t.Errorf("%+v", pr)
	}
	// Pushed to refs/for: of nobody's branch, by anybody who may read.
	number = w.agit()
	if pr := must(w.client.PullRequest(ctx, number)); !pr.Fork() || pr.Head.Repository != nil {
		t.Errorf("agit: %+v", pr.Head)
	}
	if _, err := w.client.PullRequest(ctx, 999); !errors.Is(err, forge.ErrNotFound) {
		t.Error(err)
	}

	// Of one that is closed the head is the one that it had.
	w.site.Close(w.ada, 1)
	w.site.Commit(w.ada, "other", "else", map[string]string{"d.txt": "d\n"})
	w.site.Git("update-ref", "refs/heads/team/topic", w.site.Ref("refs/heads/other"))
	if pr := must(w.client.PullRequest(ctx, 1)); pr.State != forge.PullRequestClosed || pr.Head.Commit != head {
		t.Errorf("closed: %+v", pr)
	}
}

// agit opens a pull request as eve, without a branch.
func (w *world) agit() int {
	w.t.Helper()
	commit := w.site.Commit(w.ada, "elsewhere", "more", map[string]string{"e.txt": "e\n"})
	if out, err := w.site.TryPush(w.eve, commit+":refs/for/main/theirs"); err != nil {
		w.t.Fatalf("%v\n%s", err, out)
	}
	for _, pr := range must(w.client.Open(w.t.Context())) {
		if pr.Head.Branch == "" {
			return pr.Number
		}
	}
	w.t.Fatal("no pull request without a branch")
	return 0
}

func TestPeople(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	if who := must(w.client.Viewer(ctx)); who != actor(w.ada) {
		t.Errorf("%+v", who)
	}
	zoe := w.User("zoe")
	w.site.Collaborator(zoe, "admin")
	for _, row := range []struct {
		who  ledger.Actor
		want string
	}{
		{actor(w.ada), "admin"}, {actor(w.bob), "write"}, {actor(w.eve), "read"}, {actor(zoe), "admin"},
		{ledger.Actor{Kind: "bot", ID: "-2", Login: "gitea-actions"}, "none"},
		{ledger.Actor{Kind: "user", ID: "999", Login: "nobody"}, "none"},
	} {
		if a, err := w.client.Access(ctx, row.who); err != nil || a.Permission != row.want {
			t.Errorf("%s: %+v %v", row.who.Login, a, err)
		}
	}
	// T11: the login of an account that somebody else has now.
	if a, err := w.client.Access(ctx, ledger.Actor{Kind: "user", ID: actor(w.ada).ID, Login: "bob"}); err == nil {
		t.Errorf("another's login: %+v", a)
	}
	if _, err := w.as(w.bob).Access(ctx, actor(w.eve)); !errors.Is(err, forge.ErrPermission) {
		t.Errorf("asked with a writer's token: %v", err)
	}
	// An account that the administrator restricted is not taken for a person's.
	w.Must(w.Admin, http.MethodPatch, "/admin/users/bob", map[string]any{"restricted": true, "login_name": "bob", "source_id": 0}, nil)
	if a, err := w.as(w.ada).Access(ctx, actor(w.bob)); err != nil || a.Permission != "none" {
		t.Errorf("restricted: %+v %v", a, err)
	}
	w.Must(w.Admin, http.MethodPatch, "/admin/users/bob", map[string]any{"restricted": false, "login_name": "bob", "source_id": 0}, nil)

	for _, row := range []struct {
		team string
		who  ledger.Actor
		is   bool
	}{{"acme/writers", actor(w.bob), true}, {"acme/Writers", actor(w.bob), true}, {"acme/writers", actor(w.eve), false}, {"acme/writers", actor(w.ada), false}} {
		if is, err := w.as(w.ada).Member(ctx, row.team, row.who); err != nil || is != row.is {
			t.Errorf("%s in %s: %v %v", row.who.Login, row.team, is, err)
		}
	}
	for _, team := range []string{"acme/write", "acme/none", "other/writers", "acme"} {
		if is, err := w.client.Member(ctx, team, actor(w.bob)); err == nil || is {
			t.Errorf("%s: %v %v", team, is, err)
		}
	}
	w.site.Collaborator(zoe, "admin")
	if _, err := w.as(zoe).Member(ctx, "acme/writers", actor(w.bob)); !errors.Is(err, forge.ErrPermission) {
		t.Errorf("asked by somebody outside of the organization: %v", err)
	}
	if keys, err := w.client.SigningKeys(ctx, actor(w.bob)); !errors.Is(err, forge.ErrRefused) || keys != nil {
		t.Errorf("%v %v", keys, err)
	}
}

// said is what there is of a statement that matters to an approval.
func said(all []approval.Statement) map[string]approval.Statement {
	out := map[string]approval.Statement{}
	for _, s := range all {
		out[s.Kind+" "+s.Body] = s
	}
	return out
}

func TestStatements(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	head := w.site.Commit(w.bob, "topic", "work", map[string]string{"b.txt": "b\n"})
	n := w.site.PullRequest(w.bob, "topic", "main", "Work")
	if all, err := w.client.Statements(ctx, int(n)); err != nil || len(all) != 0 {
		t.Fatalf("%+v %v", all, err)
	}
	w.site.Comment(w.eve, n, "/approve plain")
	quick := w.site.Comment(w.eve, n, "hello")
	late := w.site.Comment(w.eve, n, "good")
	w.site.Review(w.ada, n, "APPROVED", "", "")
	w.site.Review(w.eve, n, "REQUEST_CHANGES", "/deny first", head)
	if all := said(must(w.client.Statements(ctx, int(n)))); all["issue_comment /approve plain"].Edited || all["issue_comment /approve plain"].Untold || all["review "].Edited {
		t.Errorf("%+v", all)
	}
	w.site.EditComment(w.bob, late, "/approve later") // a writer, of somebody else's
	all := said(must(w.client.Statements(ctx, int(n))))
	for key, want := range map[string]approval.Statement{
		"issue_comment /approve plain": {Author: actor(w.eve)},
		"issue_comment hello":          {Author: actor(w.eve)},
		"issue_comment /approve later": {Author: actor(w.eve), Edited: true, Earlier: []string{"good"}}, // T01, T02
		"review ":                      {Author: actor(w.ada), State: "APPROVED", Commit: head},
		"review /deny first":           {Author: actor(w.eve), State: "CHANGES_REQUESTED", Commit: head},
	} {
		got := all[key]
		if got.Author != want.Author || got.Edited != want.Edited || !slices.Equal(got.Earlier, want.Earlier) || got.State != want.State || got.Commit != want.Commit || got.ID == "" {
			t.Errorf("%s: %+v", key, got)
		}
		if at, err := time.Parse(time.RFC3339, got.CreatedAt); err != nil || time.Since(at).Abs() > time.Hour {
			t.Errorf("%s was said at %q", key, got.CreatedAt)
		}
	}
	w.site.DeleteComment(w.bob, quick)

	// A review's text as people see it can be edited, and the review tells the first.
	var timeline []struct {
		ID   int64
		Type string
		Body string
	}
	w.Must(w.ada, http.MethodGet, w.site.Path("issues", n, "timeline"), nil, &timeline)
	for _, e := range timeline {
		if e.Type == "review" && e.Body == "/deny first" {
			w.site.EditComment(w.ada, e.ID, "/approve now")
		}
	}
	all = said(must(w.client.Statements(ctx, int(n))))
	if got := all["review /approve now"]; !got.Edited || !slices.Equal(got.Earlier, []string{"/deny first"}) {
		t.Errorf("an edited review: %+v", all)
	}
	if _, there := all["issue_comment hello"]; there {
		t.Error("a deleted comment is there")
	}
	// A review that is dismissed is not one that approves.
	approved := all["review "]
	w.Must(w.ada, http.MethodPost, w.site.Path("pulls", n, "reviews", approved.ID, "dismissals"), map[string]any{"message": "no"}, nil)
	for _, s := range must(w.client.Statements(ctx, int(n))) {
		if s.ID == approved.ID && s.Kind == approval.KindReview && s.State != approval.ReviewDismissed {
			t.Errorf("%+v", s)
		}
	}
	// What is not submitted is not said.
	w.Must(w.bob, http.MethodPost, w.site.Path("pulls", n, "reviews"), map[string]any{
		"event": "PENDING", "body": "later", "commit_id": head, "comments": []any{map[string]any{"path": "b.txt", "body": "/deny pending", "new_position": 1}},
	}, nil)
	// What is said on a line is.
	w.Must(w.eve, http.MethodPost, w.site.Path("pulls", n, "reviews"), map[string]any{
		"event": "COMMENT", "body": "", "commit_id": head, "comments": []any{
			map[string]any{"path": "b.txt", "body": "/deny on a line", "new_position": 1}, map[string]any{"path": "b.txt", "body": "below", "new_position": 1},
		},
	}, nil)
	all = said(must(w.client.Statements(ctx, int(n))))
	first, below := all["review_comment /deny on a line"], all["review_comment below"]
	if first.Author != actor(w.eve) || first.ReplyTo != "" || below.ReplyTo != first.ID || first.ID == "" {
		t.Errorf("%+v\n%+v", first, below)
	}
	if _, there := all["review_comment /deny pending"]; there {
		t.Error("a review that was not submitted is there")
	}
	if texts := must(w.client.CommentsBy(ctx, int(n), actor(w.eve))); !slices.Equal(texts, []string{"/approve plain", "/approve later"}) {
		t.Errorf("%q", texts)
	}
}

// T01: an edit without a trace: in the second of the post, by everybody who may write, and at a
// time that an administrator of a Forgejo says it is of.
func TestT01EditWithoutTrace(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.site.Commit(w.bob, "topic", "work", map[string]string{"b.txt": "b\n"})
	n := w.site.PullRequest(w.bob, "topic", "main", "Work")
	type times struct {
		ID      int64
		Created time.Time `json:"created_at"`
		Updated time.Time `json:"updated_at"`
	}
	var made, edited times
	for tries := 0; ; tries++ { // until post and edit are of one second
		w.Must(w.eve, http.MethodPost, w.site.Path("issues", n, "comments"), map[string]any{"body": "interesting"}, &made)
		w.Must(w.bob, http.MethodPatch, w.site.Path("issues", "comments", made.ID), map[string]any{"body": "/approve quick"}, &edited)
		if edited.Updated.Equal(made.Created) {
			break
		}
		if tries == 50 {
			t.Fatal("no edit is of the second of the post")
		}
		w.site.DeleteComment(w.bob, made.ID)
	}
	for who, want := range map[forgetest.User]bool{w.bob: false, w.ada: w.Version == forgetest.Forgejo} {
		w.Must(w.eve, http.MethodPost, w.site.Path("issues", n, "comments"), map[string]any{"body": "good"}, &made)
		time.Sleep(time.Until(made.Created.Add(time.Second)))
		status := w.Do(who, http.MethodPatch, w.site.Path("issues", "comments", made.ID), map[string]any{"body": "/approve named", "updated_at": made.Created}, &edited)
		if without := status == http.StatusOK && edited.Updated.Equal(made.Created); without != want {
			t.Errorf("%s edited without a trace: %v, %d", who.Name, without, status)
		}
	}
	found := map[string]int{}
	for _, s := range must(w.client.Statements(ctx, int(n))) {
		if strings.HasPrefix(s.Body, "/approve") {
			if found[s.Body]++; s.Author != actor(w.eve) || !s.Edited || len(s.Earlier) != 1 {
				t.Errorf("an edit is not found: %+v", s)
			}
		}
	}
	if found["/approve quick"] != 1 || found["/approve named"] == 0 {
		t.Errorf("%v", found)
	}
	// Of who keeps their activities to themselves nothing is told: their comments do not count, their reviews do.
	w.Must(w.eve, http.MethodPatch, "/user/settings", map[string]any{"hide_activity": true}, nil)
	w.site.Comment(w.eve, n, "/approve hidden")
	w.site.Review(w.eve, n, "COMMENT", "/approve reviewed", "")
	all := said(must(w.client.Statements(ctx, int(n))))
	if s := all["issue_comment /approve hidden"]; !s.Untold || s.Edited {
		t.Errorf("%+v", s)
	}
	if s := all["review /approve reviewed"]; s.ID == "" || s.Edited || s.Untold {
		t.Errorf("%+v", s)
	}
}

// T62: a denial on the second page.
func TestT62Pages(t *testing.T) {
	w := newWorld(t)
	w.site.Commit(w.bob, "topic", "work", map[string]string{"b.txt": "b\n"})
	n := w.site.PullRequest(w.bob, "topic", "main", "Work")
	w.client.WithPages(5)
	for i := range 10 {
		w.site.Review(w.eve, n, "COMMENT", fmt.Sprintf("note %d", i), "")
		w.site.Comment(w.eve, n, fmt.Sprintf("text %d", i))
	}
	w.site.Review(w.eve, n, "COMMENT", "/deny last", "")
	w.Reset()
	all := must(w.client.Statements(t.Context(), int(n)))
	if s := said(all); len(all) != 21 || s["review /deny last"].ID == "" || s["review note 0"].ID == "" || s["issue_comment text 9"].ID == "" {
		t.Errorf("%d statements", len(all))
	}
	t.Logf("%d requests", len(w.Requests()))
}

func TestBoard(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	head := w.site.Commit(w.bob, "topic", "work", map[string]string{"b.txt": "b\n"})
	n := int(w.site.PullRequest(w.bob, "topic", "main", "Work"))
	check := forge.Check{Name: "countersign", Title: "awaiting, 1 file", Summary: "long", Status: "completed", Conclusion: "action_required"}
	if runs := must(w.client.CheckRuns(ctx, head, "")); len(runs) != 0 {
		t.Errorf("%+v", runs)
	}
	// Nothing but a success is shown as one.
	for _, row := range []struct{ status, conclusion, state string }{
		{"completed", "action_required", "pending"}, {"completed", "neutral", "pending"}, {"in_progress", "", "pending"}, {"completed", "odd", "pending"},
		{"in_progress", "success", "pending"}, {"completed", "failure", "failure"}, {"completed", "success", "success"},
	} {
		check.Status, check.Conclusion = row.status, row.conclusion
		check.Title = row.conclusion + " " + row.status
		must(w.client.PublishCheckOver(ctx, head, check, nil))
		var all []struct{ Status string }
		w.Must(w.ada, http.MethodGet, w.site.Path("commits", head, "statuses")+"?sort=leastindex", nil, &all)
		if all[0].Status != row.state {
			t.Errorf("%+v: %s", row, all[0].Status)
		}
	}
	known := must(w.client.CheckRuns(ctx, head, "countersign"))
	if len(known) != 1 || known[0].App != "ada" || known[0].Conclusion != "success" || known[0].Status != "completed" || known[0].Title != check.Title {
		t.Errorf("%+v", known)
	}
	w.Reset()
	must(w.client.PublishCheckOver(ctx, head, check, known))
	for _, r := range w.Requests() {
		if r.Method == http.MethodPost {
			t.Error("a status that says the same was written again")
		}
	}
	// T60, T67: somebody else's of the same name is not ours, and hides none.
	must(w.as(w.bob).PublishCheckOver(ctx, head, check, nil))
	known = must(w.client.CheckRuns(ctx, head, "countersign"))
	if len(known) != 2 || known[0].App != "bob" || known[1].App != "ada" {
		t.Errorf("%+v", known)
	}
	if run := must(w.client.PublishCheckOver(ctx, head, check, known)); run.App != "ada" || run.ID <= known[0].ID {
		t.Errorf("%+v", run)
	}
	if _, err := w.as(w.eve).PublishCheckOver(ctx, head, check, nil); !errors.Is(err, forge.ErrPermission) {
		t.Error(err)
	}
	if _, err := w.client.CheckRuns(ctx, "main", ""); err == nil {
		t.Error("a branch was taken for a commit")
	}

	first := must(w.client.UpsertComment(ctx, n, "", "one"))
	again := must(w.client.UpsertComment(ctx, n, first.ID, "two"))
	if again.ID != first.ID || again.BodySHA256 == first.BodySHA256 || again.Kind != approval.KindIssueComment {
		t.Errorf("%+v %+v", first, again)
	}
	id := must(strconv.ParseInt(first.ID, 10, 64))
	w.site.DeleteComment(w.bob, id)
	if third := must(w.client.UpsertComment(ctx, n, first.ID, "three")); third.ID == first.ID {
		t.Errorf("%+v", third)
	}
	if _, err := w.client.CreateReviewComment(ctx, n, head, "b.txt", "?"); !errors.Is(err, forge.ErrRefused) {
		t.Error(err)
	}
}

func TestFindAndMerge(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.client.WithPages(2)
	head := w.site.Commit(w.bob, "topic", "work", map[string]string{"b.txt": "b\n"})
	n := must(w.client.OpenPullRequest(ctx, forge.NewPull{Branch: "topic", Base: "main", Title: "Work", Body: "text"}))
	if again := must(w.client.OpenPullRequest(ctx, forge.NewPull{Branch: "topic", Base: "main", Title: "Work", Body: "text"})); again != n || n == 0 {
		t.Errorf("opened %d and %d", n, again)
	}
	fork := w.site.Fork(w.eve)
	fork.Commit(w.eve, "topic", "theirs", map[string]string{"c.txt": "c\n"})
	theirs := int(w.site.PullRequest(w.eve, "eve:topic", "main", "Theirs"))
	w.site.Push(w.bob, head+":refs/heads/twin")
	twin := int(w.site.PullRequest(w.bob, "twin", "main", "Twin"))
	if open := must(w.client.Open(ctx)); len(open) != 3 {
		t.Errorf("%+v", open)
	}
	if at := must(w.client.PullRequestsAt(ctx, head)); len(at) != 2 || at[0].Number != n || at[1].Number != twin {
		t.Errorf("%+v", at)
	}
	if of := must(w.client.PullRequestOf(ctx, forge.Head{Owner: "acme", Branch: "topic", Commit: head})); of != n {
		t.Errorf("%d", of)
	}
	if of := must(w.client.PullRequestOf(ctx, forge.Head{Owner: "acme", Branch: "topic", Commit: fork.Ref("refs/heads/topic")})); of != 0 {
		t.Errorf("%d, of a fork's", of)
	}
	if of := must(w.client.PullRequestOf(ctx, forge.Head{Owner: "eve", Branch: "topic", Commit: fork.Ref("refs/heads/topic")})); of != theirs {
		t.Errorf("%d", of)
	}
	w.site.Close(w.ada, int64(twin))
	if of := must(w.client.ClosedOf(ctx, forge.Head{Owner: "acme", Branch: "twin", Commit: head})); of != twin {
		t.Errorf("%d", of)
	}

	if _, err := w.client.Merge(ctx, n, w.site.Ref("refs/heads/main")); !errors.Is(err, forge.ErrMoved) {
		t.Errorf("another head: %v", err)
	}
	w.site.Protect("main", map[string]any{"enable_status_check": true, "status_check_contexts": []string{"countersign"}})
	if _, err := w.client.Merge(ctx, n, head); !errors.Is(err, forge.ErrRefused) {
		t.Errorf("before the required status: %v", err)
	}
	must(forge.Publish(ctx, w.client, head, forge.Check{Name: "countersign", Title: "approved", Status: "completed", Conclusion: "success"}))
	commit := must(w.client.Merge(ctx, n, head))
	if commit == "" || commit != w.site.Ref("refs/heads/main") {
		t.Errorf("merged as %s", commit)
	}
	if again := must(w.client.Merge(ctx, n, head)); again != commit {
		t.Errorf("merged again as %s", again)
	}
	if pr := must(w.client.PullRequest(ctx, n)); pr.State != forge.PullRequestMerged || pr.MergeCommit != commit || pr.Head.Commit != head {
		t.Errorf("%+v", pr)
	}
	if side := must(w.client.DefaultBranch(ctx)); side.Branch != "main" || side.CloneURL != w.URL+"/acme/site.git" {
		t.Errorf("%+v", side)
	}
	if public := must(w.client.IsPublic(ctx)); !public {
		t.Error("it is public")
	}
	w.site.Edit(map[string]any{"private": true})
	if public := must(w.client.IsPublic(ctx)); public {
		t.Error("it is private")
	}
	if server := must(w.client.RunsBaseWorkflows(ctx)); w.Name() != server {
		t.Errorf("%q", server)
	}
	if server := must(gitea.Version(ctx, gitea.Options{Server: w.URL})); w.Name() != server {
		t.Errorf("%q", server)
	}
}
