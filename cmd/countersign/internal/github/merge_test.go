package github

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github/githubtest"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

var newPull = forge.NewPull{Branch: "countersign/tx", Base: "main", Title: "A patch", Body: "why"}

// pullWorld is a world with a branch that is to become a pull request, and forks
// with a branch of that name: one of another owner and, with a pull request, one
// of the same.
func pullWorld(t *testing.T) *world {
	w := newWorld(t)
	w.Set(site, githubtest.Settings{ActionsOpenPulls: true})
	change := githubtest.NewCommit{Repository: site, Branch: newPull.Branch, By: "github-actions[bot]", Files: map[string]string{"README.md": "new\n"}}
	w.Push(change)
	w.Fork(site, "acme/twin")
	w.PullRequest(githubtest.NewPullRequest{Repository: site, By: "mallory", HeadRepository: "acme/twin", Head: newPull.Branch})
	return w
}

// Of what was lost on the way there is never a second one.
func TestOpenPullRequestOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]githubtest.Fault{
		"the answer is lost":        {Kind: githubtest.Cut, After: true},
		"the answer is an error":    {Status: 502, After: true},
		"the answer has no number":  {Kind: githubtest.Body, Text: "{}", After: true},
		"somebody else opens first": {Status: 422, After: true},
	} {
		w := pullWorld(t)
		fault.Method, fault.Path = "POST", "/api/v3/repos/acme/site/pulls"
		w.Fail(fault)
		number, err := w.client.OpenPullRequest(context.Background(), newPull)
		if err != nil || number != 3 || w.Count().Writes != 1 {
			t.Errorf("%s: %d, %v, %+v", name, number, err, w.Count())
		}
	}
	w := pullWorld(t)
	w.Fail(githubtest.Fault{Method: "POST", Path: "/api/v3/repos/acme/site/pulls", Status: 500})
	if number, err := w.client.OpenPullRequest(context.Background(), newPull); err == nil || number != 0 {
		t.Errorf("a request that was not carried out: %d, %v", number, err)
	}
}

func TestOpenPullRequestNotPermitted(t *testing.T) {
	w := pullWorld(t)
	w.Set(site, githubtest.Settings{})
	_, err := w.client.OpenPullRequest(context.Background(), newPull)
	if !errors.Is(err, forge.ErrPermission) || !strings.Contains(err.Error(), "Settings > Actions > General > Workflow permissions") {
		t.Error(err)
	}
	_, err = w.as(w.ActionsToken(site, "pull_requests:read")).OpenPullRequest(context.Background(), newPull)
	if !errors.Is(err, forge.ErrPermission) || strings.Contains(err.Error(), "Settings") {
		t.Error(err)
	}
}

// The method is the first that the repository and the branch allow, and the new
// tip of the base is what is told.
func TestMerge(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		set     githubtest.Settings
		parents int
	}{
		{githubtest.Settings{}, 2},
		{githubtest.Settings{NoMerge: true}, 1},
		{githubtest.Settings{NoMerge: true, NoSquash: true}, 1},
	} {
		w := newWorld(t)
		w.Set(site, test.set)
		before, head := w.Ref(site, "refs/heads/main"), w.Pull(site, 1).Head
		commit, err := w.client.Merge(context.Background(), 1, head)
		if err != nil || commit != w.Ref(site, "refs/heads/main") || commit == before || !w.Pull(site, 1).Merged {
			t.Errorf("%+v: %q, %v", test.set, commit, err)
		}
		if got := w.Git(site, "rev-list", "--parents", "-1", commit); len(strings.Fields(got)) != 1+test.parents || w.File(site, commit, "greet.go") != "package main\n" {
			t.Errorf("%+v: %s", test.set, got)
		}
		again, err := w.client.Merge(context.Background(), 1, head)
		if err != nil || again != commit {
			t.Errorf("once more: %q, %v", again, err)
		}
	}
}

func TestMergeRefused(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	head := w.Pull(site, 1).Head
	w.Set(site, githubtest.Settings{Checks: map[string][]string{"main": {"countersign"}}})
	w.ResetRequests()
	_, err := w.client.Merge(ctx, 1, head)
	if checkKind(t, err, rest.KindRefused); !strings.Contains(err.Error(), `Required status check "countersign" is expected`) || w.Count().Writes != 1 {
		t.Errorf("%v, %+v", err, w.Count())
	}
	w.Set(site, githubtest.Settings{NoMerge: true, NoSquash: true, NoRebase: true})
	_, err = w.client.Merge(ctx, 1, head)
	checkKind(t, err, rest.KindRefused)
	_, err = w.client.Merge(ctx, 1, "fix")
	checkKind(t, err, rest.KindAnswer)
	_, err = w.as(w.ActionsToken(site, "pull_requests:write")).Merge(ctx, 1, head)
	checkKind(t, err, rest.KindPermission)
}

// A lost answer is not a reason to merge again, nor one to think that it was.
func TestMergeLostAnswer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, fault := range map[string]githubtest.Fault{
		"cut": {Kind: githubtest.Cut}, "502": {Status: 502}, "409": {Status: 409}, "405": {Status: 405}, "nothing told": {Kind: githubtest.Body, Text: "{}"},
	} {
		for _, done := range []bool{false, true} {
			w := newWorld(t)
			fault.Method, fault.After = "PUT", done
			w.Fail(fault)
			commit, err := w.client.Merge(ctx, 1, w.Pull(site, 1).Head)
			if w.Count().Writes != 1 || w.Pull(site, 1).Merged != done || done != (err == nil) || commit != w.Pull(site, 1).MergeCommit {
				t.Errorf("%s, done %v: %q, %v, %+v", name, done, commit, err, w.Count())
			}
		}
	}
	w := newWorld(t)
	w.Fail(githubtest.Fault{Method: "PUT", Kind: githubtest.Cut, After: true})
	w.Fail(githubtest.Fault{Path: "/api/graphql", Status: 500, Times: -1})
	if commit, err := w.client.Merge(ctx, 1, w.Pull(site, 1).Head); err == nil || commit != "" {
		t.Errorf("nobody knows what became of it, and it is %q, %v", commit, err)
	}
}

// The next method is tried where GitHub refuses the method, and nothing else.
func TestRefusesMethod(t *testing.T) {
	for reason, want := range map[string]bool{
		"Merge commits are not allowed on this repository.":                                       true,
		"Squash merges are not allowed on this repository.":                                       true,
		"Repository rule violations found: This branch must not contain merge commits.":           true,
		"Repository rule violations found: Merge method \"merge\" is not allowed on this branch.": true,
		"Base branch was modified. Review and try the merge again.":                               false,
		`Required status check "countersign" is expected.`:                                        false,
		"Pull Request is not mergeable":                                                           false,
	} {
		if refusesMethod(reason) != want {
			t.Errorf("%s: %v", reason, !want)
		}
	}
}
