// Package github speaks to GitHub. It is the only door to go-github.
package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/countersign-dev/countersign/report"
)

// A Client acts on one repository with one token.
type Client struct {
	api         *github.Client
	owner, name string
}

// New returns a client for a repository "owner/name" at an API address, which
// is GITHUB_API_URL in a workflow.
func New(apiURL, repository, token string) (*Client, error) {
	owner, name, ok := strings.Cut(repository, "/")
	if !ok || owner == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("%+q is not a repository: owner/name is", repository)
	}
	base, err := url.Parse(strings.TrimSuffix(apiURL, "/") + "/")
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("%+q is not the address of an API", apiURL)
	}
	api := github.NewClient(&http.Client{Timeout: 30 * time.Second}).WithAuthToken(token)
	api.BaseURL = base
	return &Client{api, owner, name}, nil
}

// PublishCheck creates the check run on a commit, or updates the one of that
// name, and returns its address (REST API, checks/runs; needs checks: write).
func (c *Client) PublishCheck(ctx context.Context, head string, run report.CheckRun) (string, error) {
	id, err := c.findCheck(ctx, head, run.Name)
	if err != nil {
		return "", err
	}
	output := &github.CheckRunOutput{Title: &run.Title, Summary: &run.Summary}
	if run.Text != "" {
		output.Text = &run.Text
	}
	var got *github.CheckRun
	if id == 0 {
		got, _, err = c.api.Checks.CreateCheckRun(ctx, c.owner, c.name, github.CreateCheckRunOptions{
			Name: run.Name, HeadSHA: head, Status: github.String("completed"), Conclusion: &run.Conclusion, Output: output,
		})
	} else {
		got, _, err = c.api.Checks.UpdateCheckRun(ctx, c.owner, c.name, id, github.UpdateCheckRunOptions{
			Name: run.Name, Status: github.String("completed"), Conclusion: &run.Conclusion, Output: output,
		})
	}
	if err != nil {
		return "", fmt.Errorf("publishing the check run %s: %w", run.Name, err)
	}
	return got.GetHTMLURL(), nil
}

// findCheck returns the id of the check run of this name, 0 if there is none.
func (c *Client) findCheck(ctx context.Context, head, name string) (int64, error) {
	runs, _, err := c.api.Checks.ListCheckRunsForRef(ctx, c.owner, c.name, head, &github.ListCheckRunsOptions{
		CheckName: &name, ListOptions: github.ListOptions{PerPage: 100},
	})
	if err != nil {
		return 0, fmt.Errorf("looking for the check run %s: %w", name, err)
	}
	for _, run := range runs.CheckRuns {
		if run.GetName() == name {
			return run.GetID(), nil
		}
	}
	return 0, nil
}
