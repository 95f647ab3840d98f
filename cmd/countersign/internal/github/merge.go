package github

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

// actionsPulls are GitHub's words where a repository's setting keeps workflows
// from opening pull requests, and actionsSetting is where that setting is.
const (
	actionsPulls   = "GitHub Actions is not permitted to create or approve pull requests"
	actionsSetting = "the setting is under Settings > Actions > General > Workflow permissions"
)

// create says where the setting is that keeps a workflow from it.
func (c *Client) create(ctx context.Context, n forge.NewPull) (int, error) {
	number, err := c.SendNew(ctx, n)
	var told *rest.Error
	if errors.As(err, &told) && told.Kind == rest.KindPermission && strings.Contains(told.Message, actionsPulls) {
		told.Message = actionsPulls + "; " + actionsSetting
	}
	return number, err
}

// merge asks for the first of the methods, and for the next only where GitHub
// refused the method: the rules of a branch can forbid one that the repository
// allows.
func (c *Client) merge(ctx context.Context, number int, head string, methods []string) (string, error) {
	var got struct {
		SHA    string `json:"sha"`
		Merged bool   `json:"merged"`
	}
	body := map[string]string{"sha": head, "merge_method": methods[0]}
	_, err := c.Send(ctx, http.MethodPut, &got, body, nil, c.Below("pulls", strconv.Itoa(number), "merge")...)
	var told *rest.Error
	switch refused := errors.As(err, &told); {
	case refused && told.Status == http.StatusConflict:
		told.Kind = rest.KindMoved
	case refused && told.Status == http.StatusMethodNotAllowed && len(methods) > 1 && refusesMethod(told.Message):
		return c.merge(ctx, number, head, methods[1:])
	case err == nil && (!got.Merged || rest.CheckCommit(got.SHA) != nil):
		err = rest.Unusable("it does not tell which commit was merged")
	}
	return got.SHA, err
}

// refusesMethod reports whether GitHub's reason is about the method alone, as in
// "Merge commits are not allowed on this repository" or, of a branch with a linear
// history, "This branch must not contain merge commits".
func refusesMethod(reason string) bool {
	reason = strings.ToLower(reason)
	return strings.Contains(reason, "merges are not allowed") || strings.Contains(reason, "merge commits") || strings.Contains(reason, "merge method")
}
