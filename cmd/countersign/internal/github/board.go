package github

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/google/go-github/v60/github"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// maxAnnotations is how many GitHub takes in one request; more are added by
// further ones.
const maxAnnotations = 50

// CheckRuns lists the check runs of a commit that have a name, for "" all of
// them, newest first. A newer one hides none: it may be another's.
func (c *Client) CheckRuns(ctx context.Context, head, name string) ([]forge.CheckRun, error) {
	op := "reading the check runs " + ledger.OneLine(name, 60)
	if err := rest.CheckCommit(head); err != nil {
		return nil, failed(op, err)
	}
	out := []forge.CheckRun{}
	total := 0
	query := url.Values{"filter": {"all"}}
	if name != "" {
		query.Set("check_name", name)
	}
	err := pages(ctx, c, query, func(got github.ListCheckRunsResults) (bool, error) {
		if got.Total == nil {
			return false, rest.Unusable("the answer does not tell how many check runs there are")
		}
		total = got.GetTotal()
		for _, run := range got.CheckRuns {
			out = append(out, checkRun(run))
		}
		return true, nil
	}, c.Below("commits", head, "check-runs")...)
	if err == nil && len(out) != total {
		err = rest.Unusable("%d check runs are counted, and %d are there", total, len(out))
	}
	if err != nil {
		return nil, failed(op, err)
	}
	out = slices.DeleteFunc(out, func(run forge.CheckRun) bool { return name != "" && run.Name != name })
	slices.SortFunc(out, func(a, b forge.CheckRun) int { return cmp.Compare(b.ID, a.ID) })
	return out, nil
}

func checkRun(run *github.CheckRun) forge.CheckRun {
	return forge.CheckRun{
		ID: run.GetID(), Name: run.GetName(), Head: run.GetHeadSHA(), Status: run.GetStatus(), Conclusion: run.GetConclusion(),
		URL: run.GetHTMLURL(), ExternalID: run.GetExternalID(), App: run.GetApp().GetSlug(), AppID: run.GetApp().GetID(),
		Annotations: run.GetOutput().GetAnnotationsCount(),
		Title:       run.GetOutput().GetTitle(), Summary: run.GetOutput().GetSummary(), Text: run.GetOutput().GetText(),
		StartedAt: run.GetStartedAt().Time, CompletedAt: run.GetCompletedAt().Time,
	}
}

// PublishCheckOver updates the newest of the check runs of that name that are known, or creates
// one: also where another app made that one and the token may not touch it.
// Annotations are only sent to a run that has none, as GitHub takes none back.
func (c *Client) PublishCheckOver(ctx context.Context, head string, run forge.Check, runs []forge.CheckRun) (forge.CheckRun, error) {
	op := "publishing the check run " + ledger.OneLine(run.Name, 60)
	batches := slices.Collect(slices.Chunk(run.Annotations, maxAnnotations))
	if len(runs) > 0 && runs[0].Annotations > 0 {
		batches = nil
	}
	if len(batches) == 0 {
		batches = [][]forge.Annotation{nil}
	}
	var out forge.CheckRun
	for i, notes := range batches {
		known := runs
		if i > 0 {
			known = []forge.CheckRun{out}
		}
		got, err := c.writeCheck(ctx, head, run, known, notes, i == 0)
		if err == nil && got.GetID() <= 0 {
			err = rest.Unusable("the check run has no number")
		}
		if err != nil {
			return forge.CheckRun{}, failed(op, err)
		}
		out = checkRun(got)
	}
	return out, nil
}

// writeCheck updates the newest of the known check runs, or creates one where
// there is none or, if it may, where the token may not touch that.
func (c *Client) writeCheck(
	ctx context.Context, head string, run forge.Check, known []forge.CheckRun, notes []forge.Annotation, mayCreate bool,
) (*github.CheckRun, error) {
	if len(known) > 0 {
		got, _, err := c.api.Checks.UpdateCheckRun(ctx, c.Owner, c.Name, known[0].ID, github.UpdateCheckRunOptions{
			Name: run.Name, DetailsURL: optional(run.DetailsURL), ExternalID: optional(run.ExternalID),
			Status: optional(run.Status), Conclusion: optional(run.Conclusion), Output: output(run, notes),
		})
		if !mayCreate || !rest.IsKind(err, rest.KindPermission, rest.KindNotFound) {
			return got, err
		}
	}
	got, _, err := c.api.Checks.CreateCheckRun(ctx, c.Owner, c.Name, github.CreateCheckRunOptions{
		Name: run.Name, HeadSHA: head, DetailsURL: optional(run.DetailsURL), ExternalID: optional(run.ExternalID),
		Status: optional(run.Status), Conclusion: optional(run.Conclusion), Output: output(run, notes),
	})
	return got, err
}

func output(run forge.Check, notes []forge.Annotation) *github.CheckRunOutput {
	out := &github.CheckRunOutput{Title: &run.Title, Summary: &run.Summary, Text: optional(run.Text)}
	for _, n := range notes {
		out.Annotations = append(out.Annotations, &github.CheckRunAnnotation{
			Path: &n.Path, StartLine: &n.StartLine, EndLine: &n.EndLine, AnnotationLevel: &n.Level,
			Title: optional(n.Title), Message: &n.Message,
		})
	}
	return out
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// CreateReviewComment comments on a file of a pull request's diff as a whole,
// which opens a thread. The path must be in the diff, the commit its head.
func (c *Client) CreateReviewComment(ctx context.Context, number int, commit, path, body string) (forge.Posted, error) {
	op := fmt.Sprintf("asking on pull request %d", number)
	if err := rest.CheckCommit(commit); err != nil {
		return forge.Posted{}, failed(op, err)
	}
	got, _, err := c.api.PullRequests.CreateComment(ctx, c.Owner, c.Name, number, &github.PullRequestComment{
		Body: &body, CommitID: &commit, Path: &path, SubjectType: github.String("file"),
	})
	if err != nil {
		return forge.Posted{}, failed(op, err)
	}
	p, err := rest.Posted(approval.KindReviewComment, got.GetID(), got.GetHTMLURL(), got.Body)
	return p, failed(op, err)
}

type openThread struct {
	ID         string `json:"id"`
	IsResolved bool   `json:"isResolved"`
	Comments   struct {
		Nodes []struct {
			FullDatabaseID number `json:"fullDatabaseId"`
		} `json:"nodes"`
	} `json:"comments"`
}

// ResolveThread resolves the thread that a review comment opened. It is false
// where the token may not, or the comment is gone; a thread that is resolved
// stays so.
func (c *Client) ResolveThread(ctx context.Context, number int, comment string) (bool, error) {
	op := fmt.Sprintf("resolving a thread of pull request %d", number)
	found, err := c.findThread(ctx, number, comment)
	if err != nil || found == nil || found.IsResolved {
		return found != nil && found.IsResolved, failed(op, err)
	}
	_, err = ask[struct{}](ctx, c, mutationResolve, map[string]any{"thread": found.ID})
	if rest.IsKind(err, rest.KindPermission, rest.KindNotFound) {
		return false, nil
	}
	return err == nil, failed(op, err)
}

// findThread returns nil if there is none that begins with the comment.
func (c *Client) findThread(ctx context.Context, pull int, comment string) (*openThread, error) {
	type answer struct {
		Repository *struct {
			PullRequest *struct {
				Threads *page[openThread] `json:"reviewThreads"`
			} `json:"pullRequest"`
		} `json:"repository"`
	}
	var threads list[openThread]
	for !threads.done {
		got, err := ask[answer](ctx, c, queryThreads, map[string]any{"owner": c.Owner, "name": c.Name, "number": pull, "after": threads.cursor})
		if err != nil || got.Repository == nil || got.Repository.PullRequest == nil {
			return nil, err
		}
		if err := threads.add(got.Repository.PullRequest.Threads); err != nil {
			return nil, err
		}
		for i, t := range threads.nodes {
			if len(t.Comments.Nodes) > 0 && string(t.Comments.Nodes[0].FullDatabaseID) == comment {
				return &threads.nodes[i], nil
			}
		}
	}
	return nil, nil
}
