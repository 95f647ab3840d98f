package github

import (
	"context"
	"fmt"
	"net/url"

	"github.com/google/go-github/v60/github"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

var _ forge.Deployments = (*Client)(nil)

// Deployments is forge.Deployments' (REST API, "List deployments", "List deployment statuses").
func (c *Client) Deployments(ctx context.Context, commit string) ([]forge.Deployment, error) {
	const op = "reading the deployments"
	if err := rest.CheckCommit(commit); err != nil {
		return nil, failed(op, err)
	}
	out, ids := []forge.Deployment{}, []int64{}
	err := pages(ctx, c, url.Values{"sha": {commit}}, func(got []github.Deployment) (bool, error) {
		for _, d := range got {
			if d.GetID() <= 0 || d.GetSHA() != commit || d.GetEnvironment() == "" {
				return false, rest.Unusable("a deployment has no number or environment, or is of another commit")
			}
			out, ids = append(out, forge.Deployment{Environment: d.GetEnvironment(), At: d.GetCreatedAt().Time}), append(ids, d.GetID())
		}
		return true, nil
	}, c.Below("deployments")...)
	for i, id := range ids {
		if err == nil {
			err = c.deploymentState(ctx, id, &out[i])
		}
	}
	return out, failed(op, err)
}

// deploymentState is what became of a deployment: its first success, since later ones make it inactive, else its newest status.
func (c *Client) deploymentState(ctx context.Context, id int64, to *forge.Deployment) error {
	return pages(ctx, c, nil, func(got []github.DeploymentStatus) (bool, error) { // the newest comes first
		for _, s := range got {
			if s.GetState() == "" {
				return false, rest.Unusable("a status of deployment %d has no state", id)
			}
			if to.State == "" || s.GetState() == success {
				to.State, to.At = s.GetState(), s.GetCreatedAt().Time
			}
		}
		return true, nil
	}, c.Below("deployments", fmt.Sprint(id), "statuses")...)
}

const success = "success"
