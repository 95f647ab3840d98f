package github

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

func (w *world) pull(number int) forge.PullRequest {
	w.t.Helper()
	pr, err := w.client.PullRequest(context.Background(), number)
	teststand.Fatal(w.t, err)
	return pr
}

func TestPullRequest(t *testing.T) {
	w := newWorld(t)
	w.Push(githubtest.NewCommit{Repository: site, Branch: "fix", By: "ada", Message: "more", Files: map[string]string{"new.go": "package greet\n"}})
	got := w.pull(1)
	side := func(branch string) forge.Side {
		return forge.Side{
			Repository: &got.Repository, Owner: "Organization", Branch: branch, Commit: w.Ref(site, "refs/heads/"+branch), CloneURL: w.URL + "/acme/site.git",
		}
	}
	want := forge.PullRequest{
		Repository: ledger.Repository{ID: got.Repository.ID, Name: site}, Number: 1, State: forge.PullRequestOpen, Title: "A fix",
		Author: w.people["eve"], Head: side("fix"), Base: side("main"), MaintainerCanModify: got.MaintainerCanModify,
		Committers: []ledger.Actor{w.people["eve"], w.people["ada"]}, Paths: []string{"greet.go", "new.go"},
	}
	if show(got) != show(want) {
		t.Errorf("\n%s, want\n%s", show(got), show(want))
	}
	if got.Fork() || got.Repository.ID == "" {
		t.Errorf("fork %v, repository %q", got.Fork(), got.Repository.ID)
	}
}

func show(pr forge.PullRequest) string {
	text, err := json.Marshal(pr)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestPullRequestStates(t *testing.T) {
	w := newWorld(t)
	w.Protect(site, "fix", true)
	if !w.pull(1).Head.Protected {
		t.Error("a protected head is not told")
	}
	w.Draft(site, 1, true)
	w.ClosePull(site, 1)
	if pr := w.pull(1); pr.State != forge.PullRequestClosed || !pr.Draft || pr.MergeCommit != "" {
		t.Errorf("closed: %+v", pr)
	}
	w.ReopenPull(site, 1)
	merged := w.Merge(site, 1, "ada", "merge")
	if pr := w.pull(1); pr.State != forge.PullRequestMerged || pr.MergeCommit != merged {
		t.Errorf("merged: %+v, by %s", pr, merged)
	}
	// The commit may be told later, and all else has to be told.
	for path, fails := range map[string]bool{"mergeCommit": false, "mergeCommit.oid": true, "mergedAt": true} {
		w.Fail(githubtest.Fault{Contains: "mergedAt", Kind: githubtest.GraphQLNull, Text: "repository.pullRequest." + path, Times: -1})
		pr, err := w.client.PullRequest(context.Background(), 1)
		if (err != nil) != fails || !fails && (pr.MergeCommit != "" || pr.MergedAt == "") {
			t.Errorf("without %s: %+v, %v", path, pr, err)
		}
		w.Heal()
	}
	_, err := w.client.PullRequest(context.Background(), 99)
	checkKind(t, err, rest.KindNotFound)
}

func TestPullRequestOfAFork(t *testing.T) {
	w := newWorld(t)
	w.Fork(site, "eve/site")
	w.Push(githubtest.NewCommit{Repository: "eve/site", Branch: "idea", By: "eve", Message: "idea", Files: map[string]string{"idea.go": "package greet\n"}})
	n := w.PullRequest(githubtest.NewPullRequest{Repository: site, By: "eve", HeadRepository: "eve/site", Head: "idea", NoMaintainerEdits: true}).Number
	pr := w.pull(n)
	if !pr.Fork() || pr.Head.Owner != "User" || pr.Head.Repository.Name != "eve/site" || pr.MaintainerCanModify || pr.Head.CloneURL != w.URL+"/eve/site.git" {
		t.Errorf("fork: %+v %+v", pr, pr.Head.Repository)
	}
	w.DeleteRepository("eve/site")
	if pr := w.pull(n); !pr.Fork() || pr.Head.Repository != nil || pr.Head.CloneURL != "" || pr.Head.Branch != "idea" {
		t.Errorf("deleted fork: %+v", pr)
	}
}

func TestManyCommitsAndFiles(t *testing.T) {
	w := newWorld(t)
	files := map[string]string{}
	for i := range 130 {
		files[fmt.Sprintf("f%03d.txt", i)] = "x\n"
	}
	w.Push(githubtest.NewCommit{Repository: site, Branch: "fix", By: "bob", Message: "many", Files: files})
	pr := w.pull(1)
	if len(pr.Paths) != 131 || len(pr.Committers) != 2 || pr.Strangers {
		t.Errorf("%d paths, committers %v, strangers %v", len(pr.Paths), pr.Committers, pr.Strangers)
	}
}

func TestCommitters(t *testing.T) {
	user := func(login string, id int64) *gitActor { return &gitActor{&account{Login: login, DatabaseID: id}} }
	commit := func(author, committer *gitActor) (n commitNode) {
		return coauthored(author, committer)
	}
	ada, bob, web := user("ada", 1), user("bob", 2), user("web-flow", 19864447)
	for _, row := range []struct {
		commits   []commitNode
		want      string
		strangers bool
	}{
		{nil, "[]", false},
		{[]commitNode{commit(ada, ada), commit(ada, bob)}, "[{user 1 ada} {user 2 bob}]", false},
		{[]commitNode{commit(ada, web)}, "[{user 1 ada}]", false},
		{[]commitNode{commit(web, ada)}, "[{user 19864447 web-flow} {user 1 ada}]", false},
		{[]commitNode{commit(user("agent[bot]", 9), web)}, "[{bot 9 agent}]", false},
		{[]commitNode{commit(ada, &gitActor{})}, "[{user 1 ada}]", true},
		{[]commitNode{commit(nil, ada)}, "[{user 1 ada}]", true},
		{[]commitNode{commit(user("x", 0), ada)}, "[{user 1 ada}]", true},
		{[]commitNode{coauthored(ada, web, bob)}, "[{user 1 ada} {user 2 bob}]", false},
		{[]commitNode{coauthored(ada, web, nil, bob, &gitActor{})}, "[{user 1 ada} {user 2 bob}]", true},
	} {
		got, strangers, err := committers(row.commits)
		if err != nil {
			t.Error(err)
		}
		if fmt.Sprint(got) != row.want || strangers != row.strangers {
			t.Errorf("%v, strangers %v; want %s, %v", got, strangers, row.want, row.strangers)
		}
	}
}

// coauthored is a commit with co-authors beside its author.
func coauthored(author, committer *gitActor, with ...*gitActor) (n commitNode) {
	n.Commit.Author, n.Commit.Committer = author, committer
	all := append([]*gitActor{author}, with...)
	n.Commit.Authors = &struct {
		TotalCount int         `json:"totalCount"`
		Nodes      []*gitActor `json:"nodes"`
	}{len(all), all}
	return n
}

// TestT10AllAuthors: an answer without all authors of a commit is none.
func TestT10AllAuthors(t *testing.T) {
	few := coauthored(&gitActor{}, &gitActor{})
	few.Commit.Authors.TotalCount++
	for _, n := range []commitNode{{}, few} {
		if _, _, err := committers([]commitNode{n}); err == nil {
			t.Errorf("%+v is taken", n)
		}
	}
}

// From 250 commits on GitHub may not show all.
func TestTooManyCommits(t *testing.T) {
	for n, want := range map[int]bool{249: false, 250: true} {
		one := `{"commit":{"author":{"user":{"databaseId":1,"login":"ada"}},"committer":{"user":{"databaseId":1,"login":"ada"}},"authors":{"totalCount":1,"nodes":[{"user":{"databaseId":1,"login":"ada"}}]}}}`
		server := newScript(t, pullPage(theCommit, connection(n, "", "["+strings.Repeat(one+",", n-1)+one+"]")), branch)
		pr, err := newClient(t, server.URL, &pauses{}).PullRequest(context.Background(), 7)
		if err != nil || pr.Strangers != want || len(pr.Committers) != 1 {
			t.Errorf("%d commits: strangers %v, committers %v, %v", n, pr.Strangers, pr.Committers, err)
		}
	}
}

// A list with a commit missing is asked for once more, as it may be of a push that GitHub has not counted yet, and is no answer then.
func TestMissingCommits(t *testing.T) {
	one := `{"commit":{"author":{"user":{"databaseId":1,"login":"ada"}},"committer":{"user":{"databaseId":1,"login":"ada"}},"authors":{"totalCount":1,"nodes":[{"user":{"databaseId":1,"login":"ada"}}]}}}`
	few, whole := pullPage(theCommit, connection(2, "", "["+one+"]")), pullPage(theCommit, connection(2, "", "["+one+","+one+"]"))
	server := newScript(t, few, whole, branch)
	if pr, err := newClient(t, server.URL, &pauses{}).PullRequest(context.Background(), 7); err != nil || pr.Strangers || len(pr.Committers) != 1 {
		t.Errorf("%+v %v", pr, err)
	}
	server = newScript(t, few, few)
	if pr, err := newClient(t, server.URL, &pauses{}).PullRequest(context.Background(), 7); !rest.IsKind(err, rest.KindChanged) {
		t.Errorf("%+v %v", pr, err)
	}
}

// T61: as for statements.
func TestT61PullRequest(t *testing.T) {
	w := newWorld(t)
	w.Protect(site, "fix", true)
	want := show(w.pull(1))
	for _, f := range []githubtest.Fault{
		{Status: 500}, {Status: 403}, {Status: 404}, {Kind: githubtest.Cut}, {Kind: githubtest.Half}, {Kind: githubtest.EmptyPage}, {Kind: githubtest.Body, Text: "{}"},
		{Kind: githubtest.GraphQLPartial, Text: "repository.pullRequest.commits"}, {Kind: githubtest.GraphQLPartial, Text: "repository.pullRequest.headRepository"},
	} {
		for skip := range 2 {
			f.Skip, f.Times, f.Path = skip, -1, "/api/"
			w.Fail(f)
			pr, err := w.client.PullRequest(context.Background(), 1)
			w.Heal()
			branchIsGone := f.Status == 404 && skip == 1
			if err == nil && show(pr) != want && !branchIsGone {
				t.Errorf("%+v: %+v without an error", f, pr)
			}
		}
	}
}

// TestFindPullRequests: an owner in other letters, a fork whose owner has another name now, and of two with one head none.
func TestFindPullRequests(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	head := w.Pull(site, 1).Head
	w.Fork(site, "eve/site")
	w.Push(githubtest.NewCommit{Repository: "eve/site", Branch: "fix", By: "eve", Message: "idea", Files: map[string]string{"idea.go": "package greet\n"}})
	fork := w.PullRequest(githubtest.NewPullRequest{Repository: site, By: "eve", HeadRepository: "eve/site", Head: "fix"})
	id := w.pull(fork.Number).Head.Repository.ID
	for _, row := range []struct {
		head forge.Head
		want int
	}{
		{forge.Head{Owner: "ACME", Branch: "fix", Commit: head}, 1},
		{forge.Head{Owner: "renamed", Repository: id, Branch: "fix", Commit: fork.Head}, fork.Number},
		{forge.Head{Owner: "eve", Repository: "1", Branch: "fix", Commit: fork.Head}, 0},
	} {
		if got, err := w.client.PullRequestOf(ctx, row.head); got != row.want || err != nil {
			t.Errorf("%+v: %d, %v; want %d", row.head, got, err, row.want)
		}
	}
	w.Git(site, "branch", "release", "main")
	w.PullRequest(githubtest.NewPullRequest{Repository: site, By: "ada", Head: "fix", Base: "release"})
	for _, h := range []forge.Head{
		{Branch: "fix", Commit: head}, {Owner: "acme", Commit: head}, {Owner: "acme", Branch: "fix", Commit: "main"}, {Owner: "acme", Branch: "fix", Commit: head},
	} {
		_, err := w.client.PullRequestOf(ctx, h)
		checkKind(t, err, rest.KindAnswer)
	}
	if open, err := w.client.PullRequestsAt(ctx, head); err != nil || len(open) != 2 || open[0].Base != "main" || open[1].Base != "release" { // T16
		t.Errorf("siblings %+v, %v", open, err)
	}
	w.Fail(githubtest.Fault{Kind: githubtest.EmptyPage, Times: -1})
	if _, err := w.client.PullRequestsAt(ctx, head); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("an empty page: %v", err)
	}
}

// TestMergeBase: GitHub's word on where two histories parted, of whole commit ids
// alone; an answer that is of other commits or lacks it is an error.
func TestMergeBase(t *testing.T) {
	w := newWorld(t)
	ctx := context.Background()
	w.Push(githubtest.NewCommit{Repository: site, Branch: "main", By: "ada", Message: "on", Files: map[string]string{"on.go": "package greet\n"}})
	main, fix := w.Ref(site, "refs/heads/main"), w.Ref(site, "refs/heads/fix")
	want := strings.TrimSpace(w.Git(site, "merge-base", main, fix))
	got, err := w.client.MergeBase(ctx, main, fix)
	if err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if got, err := w.client.MergeBase(ctx, want, fix); err != nil || got != want {
		t.Errorf("of an ancestor: %s, %v", got, err)
	}
	if _, err := w.client.MergeBase(ctx, "main", fix); err == nil {
		t.Error("a branch is taken for a commit")
	}
	_, err = w.client.MergeBase(ctx, main, strings.Repeat("0", 40))
	checkKind(t, err, rest.KindNotFound)
	for _, answer := range []string{
		"{}", `{"base_commit":{"sha":"` + theCommit + `"}}`, `{"base_commit":{"sha":"` + theCommit + `"},"merge_base_commit":{"sha":"main"}}`,
		`{"base_commit":{"sha":"` + fix + `"},"merge_base_commit":{"sha":"` + fix + `"}}`,
	} {
		_, err := newClient(t, newScript(t, step{body: answer}).URL, &pauses{}).MergeBase(ctx, theCommit, fix)
		checkKind(t, err, rest.KindAnswer)
	}
}
