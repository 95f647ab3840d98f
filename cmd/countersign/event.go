package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/report"
)

// An event is what this program reads of the event that started a workflow
// (GitHub's documentation, "Webhook events and payloads"). Its words are whoever
// caused it: only numbers, ids and the default branch's name are acted on, and
// the texts of comments are read as what they are.
type event struct {
	name string

	Action     string `json:"action"`
	Repository struct {
		ID            int64  `json:"id"`
		FullName      string `json:"full_name"`
		DefaultBranch string `json:"default_branch"`
	} `json:"repository"`
	PullRequest *struct {
		Number int `json:"number"`
	} `json:"pull_request"`
	Issue *struct {
		Number      int              `json:"number"`
		PullRequest *json.RawMessage `json:"pull_request"`
	} `json:"issue"`
	Comment *eventComment `json:"comment"`
	Changes struct {
		Body *struct {
			From string `json:"from"`
		} `json:"body"`
	} `json:"changes"`
	WorkflowRun *eventRun `json:"workflow_run"`
	MergeGroup  *struct {
		HeadSHA string `json:"head_sha"`
		HeadRef string `json:"head_ref"`
		BaseSHA string `json:"base_sha"`
	} `json:"merge_group"`
	Inputs map[string]any `json:"inputs"`
}

type eventComment struct {
	ID        int64  `json:"id"`
	HTMLURL   string `json:"html_url"`
	Body      string `json:"body"`
	CreatedAt string `json:"created_at"`
	User      *struct {
		ID    int64  `json:"id"`
		Login string `json:"login"`
		Type  string `json:"type"`
	} `json:"user"`
}

type eventRun struct {
	ID             int64  `json:"id"`
	Path           string `json:"path"`
	Conclusion     string `json:"conclusion"`
	HeadBranch     string `json:"head_branch"`
	HeadSHA        string `json:"head_sha"`
	HeadRepository *struct {
		ID    int64 `json:"id"`
		Owner struct {
			Login string `json:"login"`
		} `json:"owner"`
	} `json:"head_repository"`
	PullRequests []struct {
		Number int `json:"number"`
		Head   struct {
			SHA string `json:"sha"`
		} `json:"head"`
		Base struct {
			Repo struct {
				ID int64 `json:"id"`
			} `json:"repo"`
		} `json:"base"`
	} `json:"pull_requests"`
}

// maxEvent bounds the event file, in bytes; GitHub caps payloads at 25 MB.
const maxEvent = 32 << 20

// readEvent reads the event of the workflow that this runs in.
func readEvent(getenv func(string) string) (event, error) {
	e := event{name: getenv("GITHUB_EVENT_NAME")}
	f, err := os.Open(getenv("GITHUB_EVENT_PATH"))
	if err != nil {
		return e, fmt.Errorf("reading the workflow's event: %w", plain(err))
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, maxEvent)).Decode(&e); err != nil {
		return e, fmt.Errorf("reading the workflow's event: %w", err)
	}
	return e, nil
}

// trusted refuses the events whose workflow file a pull request, or a branch of
// anybody's, can bring along: what such a workflow says about approvals is its
// author's word (T18; GitHub's documentation, "Events that trigger workflows").
func (e event) trusted(ref string) error {
	switch e.name {
	case "issue_comment", "workflow_run", "pull_request_target", "merge_group", "schedule", "repository_dispatch":
		return nil // the default branch's file, or one that has passed the check
	case "workflow_dispatch":
		if ref == "refs/heads/"+e.Repository.DefaultBranch {
			return nil
		}
		return &usageError{"this workflow was started on " + report.Clean(ref) + ", whose file anybody who can push may have changed", "start it on the default branch"}
	}
	return &usageError{
		fmt.Sprintf("the event %+q runs a workflow file that the pull request can change", ledger.OneLine(e.name, 60)),
		`settle on the events that "countersign init" writes: issue_comment, workflow_run, pull_request_target`,
	}
}

// isOf refuses an event of another repository than the one that is worked on,
// whose name may be another's by now: a number is nobody else's. The event of a
// schedule may name none.
func (e event) isOf(here ledger.Repository) error {
	id := strconv.FormatInt(e.Repository.ID, 10)
	switch {
	case e.name == "" || id == here.ID: // by hand there is no event
		return nil
	case e.name == "schedule" && e.Repository.ID == 0:
		return nil
	}
	return &usageError{fmt.Sprintf("the workflow's event is of the repository with the number %s, and %s has the number %s", id, report.Clean(here.Name), report.Clean(here.ID)), ""}
}

// findPull returns the number of the pull request that an event is about, 0 for
// none. It is the event's word, and for a run GitHub's, never a bundle's (T68).
func (e event) findPull(ctx context.Context, client *github.Client) (int, error) {
	switch {
	case e.PullRequest != nil:
		return e.PullRequest.Number, nil
	case e.Issue != nil:
		if e.Issue.PullRequest == nil {
			return 0, nil // a comment on an issue
		}
		return e.Issue.Number, nil
	case e.WorkflowRun != nil:
		return e.WorkflowRun.findPull(ctx, e.Repository.ID, client)
	case e.MergeGroup != nil:
		return mergeGroupPull(e.MergeGroup.HeadRef)
	}
	return inputPull(e.Inputs["pr"])
}

// is reports whether a run is of a workflow file; GitHub may add the ref to it.
func (r eventRun) is(file string) bool {
	path, _, _ := strings.Cut(r.Path, "@")
	return path == file
}

// findPull goes by the run's head, as GitHub names no pull request for a run of
// a fork.
func (r eventRun) findPull(ctx context.Context, repository int64, client *github.Client) (int, error) {
	if len(r.PullRequests) == 1 && r.PullRequests[0].Base.Repo.ID == repository {
		return r.PullRequests[0].Number, nil
	}
	if r.HeadRepository == nil {
		return 0, nil
	}
	if client == nil {
		return 0, errors.New("no token to look for the pull request with")
	}
	return client.PullRequestOf(ctx, forge.Head{
		Owner: r.HeadRepository.Owner.Login, Repository: strconv.FormatInt(r.HeadRepository.ID, 10), Branch: r.HeadBranch, Commit: r.HeadSHA,
	})
}

// mergeGroupPull reads the number out of gh-readonly-queue/<base>/pr-<n>-<sha>.
func mergeGroupPull(ref string) (int, error) {
	last := ref[strings.LastIndexByte(ref, '/')+1:]
	number, _, _ := strings.Cut(strings.TrimPrefix(last, "pr-"), "-")
	n, err := strconv.Atoi(number)
	if err != nil || n <= 0 || !strings.HasPrefix(last, "pr-") {
		return 0, fmt.Errorf("%+q is not the ref of a merge group", ledger.OneLine(ref, 100))
	}
	return n, nil
}

// inputPull reads the number that somebody typed: a string in an event, whatever
// the workflow says of its type.
func inputPull(v any) (int, error) {
	text := ""
	switch v := v.(type) {
	case string:
		text = v
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return 0, &usageError{fmt.Sprintf("%+q is not the number of a pull request", ledger.OneLine(text, 40)), ""}
	}
	return n, nil
}

// witnessed is what only the event still tells: the text that a comment had
// before it was edited, or deleted. It counts for denials alone (T03).
func (e event) witnessed() []approval.Statement {
	if e.Comment == nil || e.Issue == nil || e.Comment.User == nil || e.name != "issue_comment" {
		return nil
	}
	c := e.Comment
	s := approval.Statement{
		Kind: approval.KindIssueComment, ID: strconv.FormatInt(c.ID, 10), URL: c.HTMLURL, Body: c.Body, CreatedAt: c.CreatedAt, Edited: true,
		Author: ledger.Actor{Kind: "bot", ID: strconv.FormatInt(c.User.ID, 10), Login: c.User.Login},
	}
	if c.User.Type == "User" {
		s.Author.Kind = "user"
	}
	switch {
	case e.Action == "edited" && e.Changes.Body != nil:
		s.Earlier = []string{e.Changes.Body.From}
	case e.Action != "deleted":
		return nil
	}
	return []approval.Statement{s}
}

// acts reports whether there is anything to do for a pull request: an ordinary
// comment costs no more than this look.
func (e event) acts() bool {
	if e.Comment == nil || e.name != "issue_comment" {
		return true
	}
	before := ""
	if e.Changes.Body != nil {
		before = e.Changes.Body.From
	}
	return strings.HasPrefix(e.Comment.Body, "/") || strings.HasPrefix(before, "/")
}
