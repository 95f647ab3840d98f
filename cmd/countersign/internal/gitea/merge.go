package gitea

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/rest"
	"github.com/countersign-dev/countersign/pipeline/forge"
)

// openTries is how often a pull request is asked for, a second apart, of a branch that the
// server does not know yet.
const openTries = 5

// create asks again while the server does not know the branch.
func (c *Client) create(ctx context.Context, n forge.NewPull) (int, error) {
	for try := 1; ; try++ {
		number, err := c.SendNew(ctx, n)
		if try == openTries || !rest.IsKind(err, rest.KindNotFound) {
			return number, err
		}
		if err := c.wait(ctx, time.Second); err != nil {
			return 0, err
		}
	}
}

// tryLater is the server's reason while it still finds out whether a pull request can be
// merged, as it does after every push; mergeTries is how often it is asked, a second apart.
const (
	tryLater   = "try again later"
	mergeTries = 5
)

// merge is rest.Repository's. The server's answer does not name the commit.
func (c *Client) merge(ctx context.Context, number int, head string, methods []string) (string, error) {
	body := map[string]any{"Do": methods[0], "head_commit_id": head}
	for try := 1; ; try++ {
		_, err := c.send(rest.WithCall(ctx, rest.Call{Raw: true}), http.MethodPost, nil, body, nil, c.Below("pulls", strconv.Itoa(number), "merge")...)
		if err == nil || try == mergeTries || !rest.IsKind(err, rest.KindRefused) || !strings.Contains(err.Error(), tryLater) {
			return "", err
		}
		if err := c.wait(ctx, time.Second); err != nil {
			return "", err
		}
	}
}
