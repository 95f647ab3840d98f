package gitea_test

import (
	"errors"
	"net/http"
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

// TestPullRequest: what the suite of all forges has not: a rule for several branches, and a
// push to refs/for, which is of nobody's branch and by anybody who may read.
func TestPullRequest(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.site.Commit(w.bob, "team/topic", "work", map[string]string{"b.txt": "b\n"})
	number := int(w.site.PullRequest(w.bob, "team/topic", "main", "Work"))
	if pr := must(w.client.PullRequest(ctx, number)); pr.Head.Branch != "team/topic" || pr.Head.Protected {
		t.Errorf("%+v", pr)
	}
	w.site.Protect("team/*", nil)
	must(w.client.Statements(ctx, number)) // until then it is remembered
	if pr := must(w.client.PullRequest(ctx, number)); !pr.Head.Protected {
		t.Error("the head is protected, and not told so")
	}
	commit := w.site.Commit(w.ada, "elsewhere", "more", map[string]string{"e.txt": "e\n"})
	if out, err := w.site.TryPush(w.eve, commit+":refs/for/main/theirs"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := false
	for _, open := range must(w.client.Open(ctx)) {
		if open.Head.Branch != "" {
			continue
		}
		found = true
		if pr := must(w.client.PullRequest(ctx, open.Number)); !pr.Fork() || pr.Head.Repository != nil {
			t.Errorf("agit: %+v", pr.Head)
		}
	}
	if !found {
		t.Error("no pull request without a branch")
	}
}

// TestPeople: the server's own account, a team's name in other letters, and who may not ask.
func TestPeople(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	if a, err := w.client.Access(ctx, ledger.Actor{Kind: "bot", ID: "-2", Login: "gitea-actions"}); err != nil || a.Permission != "none" {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := w.as(w.bob).Access(ctx, actor(w.eve)); !errors.Is(err, forge.ErrPermission) {
		t.Errorf("asked with a writer's token: %v", err)
	}
	if is, err := w.client.Member(ctx, "acme/Writers", actor(w.bob)); err != nil || !is {
		t.Errorf("in acme/Writers: %v %v", is, err)
	}
	zoe := w.User("zoe")
	w.site.Collaborator(zoe, "admin")
	if _, err := w.as(zoe).Member(ctx, "acme/writers", actor(w.bob)); !errors.Is(err, forge.ErrPermission) {
		t.Errorf("asked by somebody outside of the organization: %v", err)
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

// TestStatements: on a line the second comment answers the first, and what is not submitted is not said.
func TestStatements(t *testing.T) {
	w := newWorld(t)
	head := w.site.Commit(w.bob, "topic", "work", map[string]string{"b.txt": "b\n"})
	n := w.site.PullRequest(w.bob, "topic", "main", "Work")
	review := func(by forgetest.User, event string, bodies ...string) {
		var comments []any
		for _, body := range bodies {
			comments = append(comments, map[string]any{"path": "b.txt", "body": body, "new_position": 1})
		}
		w.Must(by, http.MethodPost, w.site.Path("pulls", n, "reviews"), map[string]any{"event": event, "body": "see below", "commit_id": head, "comments": comments}, nil)
	}
	review(w.bob, "PENDING", "/deny pending")
	review(w.eve, "COMMENT", "/deny on a line", "below")
	all := said(must(w.client.Statements(t.Context(), int(n))))
	first, below := all["review_comment /deny on a line"], all["review_comment below"]
	if first.Author != actor(w.eve) || first.ReplyTo != "" || below.ReplyTo != first.ID || first.ID == "" {
		t.Errorf("%+v\n%+v", first, below)
	}
	if _, there := all["review_comment /deny pending"]; there {
		t.Error("a review that was not submitted is there")
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

// TestStatus: nothing but a success is shown as one, and one that says the same is not written again.
func TestStatus(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	head := w.site.Commit(w.bob, "topic", "work", map[string]string{"b.txt": "b\n"})
	check := forge.Check{Name: "countersign", Summary: "long"}
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
	w.Reset()
	must(w.client.PublishCheckOver(ctx, head, check, known))
	for _, r := range w.Requests() {
		if r.Method == http.MethodPost {
			t.Error("a status that says the same was written again")
		}
	}
	// T60, T67: somebody else's of the same name is newer, and ours is written beside it.
	must(w.as(w.bob).PublishCheckOver(ctx, head, check, nil))
	known = must(w.client.CheckRuns(ctx, head, "countersign"))
	if run := must(w.client.PublishCheckOver(ctx, head, check, known)); run.App != "ada" || len(known) != 2 || run.ID <= known[0].ID {
		t.Errorf("%+v over %+v", run, known)
	}
}

func TestIsPublic(t *testing.T) {
	w := newWorld(t)
	for _, private := range []bool{false, true} {
		w.site.Edit(map[string]any{"private": private})
		if public := must(w.client.IsPublic(t.Context())); public == private {
			t.Errorf("private %v, public %v", private, public)
		}
	}
	for _, server := range []string{must(w.client.RunsBaseWorkflows(t.Context())), must(gitea.Version(t.Context(), gitea.Options{Server: w.URL}))} {
		if server != w.Name() {
			t.Errorf("%q", server)
		}
	}
}
