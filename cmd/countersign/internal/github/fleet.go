package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/google/go-github/v60/github"
)

// An Installed repository is one that an app's installation, whose token the
// client has, may act in.
type Installed struct {
	Name   string // "owner/name"
	Branch string // the default one
	Closed bool   // archived, or disabled: nothing runs there
}

// Installed lists the repositories of the token's installation.
func (c *Client) Installed(ctx context.Context) ([]Installed, error) {
	const op = "listing the repositories of the app's installation"
	out := []Installed{}
	total := 0
	err := allPages(func(page int) (*github.Response, error) {
		var got github.ListRepositories
		resp, err := c.get(ctx, &got, url.Values{"per_page": {"100"}, "page": {strconv.Itoa(page)}}, "installation", "repositories")
		if err != nil {
			return nil, err
		}
		total = got.GetTotalCount()
		for _, r := range got.Repositories {
			out = append(out, Installed{r.GetFullName(), r.GetDefaultBranch(), r.GetArchived() || r.GetDisabled()})
		}
		return resp, nil
	})
	if err == nil && len(out) != total {
		err = unusable("%d repositories are counted, and %d are there", total, len(out))
	}
	if err != nil {
		return nil, failed(op, err)
	}
	return out, nil
}

// StartWorkflow starts a workflow, named by its file, on a branch of any
// repository that the token reaches. Where there is no such workflow the error
// is of KindNotFound.
func (c *Client) StartWorkflow(ctx context.Context, repository, file, branch string) error {
	op := fmt.Sprintf("starting %s in %+q", file, repository)
	owner, name, ok := splitRepository(repository)
	if !ok {
		return failed(op, unusable("it is not a repository"))
	}
	where, err := path("repos", owner, name, "actions", "workflows", file, "dispatches")
	if err != nil {
		return failed(op, err)
	}
	req, err := c.api.NewRequest(http.MethodPost, where, map[string]string{"ref": branch})
	if err == nil {
		_, err = c.api.Do(ctx, req, nil)
	}
	return failed(op, err)
}
