package session

import (
	"context"
	"fmt"
	"sync"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/github"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/wire"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// pullCode brings the commits of pull requests from the remote, and applied ones
// back. The push token goes to pushes alone.
type pullCode struct {
	s      *Session
	mu     sync.Mutex
	opened map[string]*wire.Server
	bases  map[string]string // by branch, its tip
}

var _ pipeline.Code = (*pullCode)(nil)

// origin is the repository that pull requests are made to.
func (c *pullCode) origin() (*wire.Server, error) {
	address, err := c.s.RemoteURL()
	if err != nil {
		return nil, err
	}
	return c.open(address, "")
}

// fetch brings what a ref of that repository has; to a shallow clone without its
// history, unless that is asked for.
func (c *pullCode) fetch(ctx context.Context, ref string, history bool) (string, error) {
	origin, err := c.origin()
	if err != nil {
		return "", err
	}
	return c.s.Repo.Fetch(ctx, origin, ref, history)
}

func (c *pullCode) open(address, token string) (*wire.Server, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := address + " " + token
	if s, ok := c.opened[key]; ok {
		return s, nil
	}
	s, err := c.s.Server(address, token)
	if err == nil {
		c.opened[key] = s
	}
	return s, err
}

// Head fetches refs/pull/<number>/head, which GitHub keeps for every pull
// request (documentation, "Checking out pull requests locally").
func (c *pullCode) Head(ctx context.Context, number int) (string, error) {
	return c.fetch(ctx, fmt.Sprintf("refs/pull/%d/head", number), c.s.Client == nil)
}

// MergeBase is found in the history that is here. Where that is cut off, as in the
// shallow clone of a job, GitHub is asked, whose word on the pull request is taken
// as well: the commits alone of a long history are many megabytes.
func (c *pullCode) MergeBase(ctx context.Context, branch, commit string) (string, error) {
	origin, err := c.origin()
	if err != nil {
		return "", err
	}
	tip, err := c.fetch(ctx, "refs/heads/"+branch, c.s.Client == nil)
	if err != nil {
		return "", err
	}
	base, err := c.s.Repo.FetchMergeBase(ctx, origin, tip, commit)
	if !console.As[*gitstore.CutOffError](err) || c.s.Client == nil {
		return base, err
	}
	if base, err = c.s.Client.MergeBase(ctx, tip, commit); err != nil {
		return "", err
	}
	if err := c.files(ctx, commit, base, commit); err != nil {
		return "", err
	}
	return base, c.s.Repo.CheckMergeBase(ctx, base, tip, commit)
}

// base is the tip of a branch that pull requests are made to, as it was when
// this command first asked.
func (c *pullCode) base(ctx context.Context, branch string) (string, error) {
	if tip, ok := c.bases[branch]; ok {
		return tip, nil
	}
	tip, err := c.fetch(ctx, "refs/heads/"+branch, false)
	if err == nil {
		c.bases[branch] = tip
	}
	return tip, err
}

func (c *pullCode) Fetch(ctx context.Context, ref string, commits ...string) error {
	tip, err := c.fetch(ctx, ref, true)
	if err == nil {
		err = c.files(ctx, tip, commits...)
	}
	for _, commit := range commits {
		if err == nil {
			_, err = c.s.Repo.Tree(ctx, commit)
		}
	}
	return err
}

// files brings those of commits to a shallow or partial clone.
func (c *pullCode) files(ctx context.Context, tip string, commits ...string) error {
	origin, err := c.origin()
	for _, commit := range commits {
		if err == nil {
			err = c.s.Repo.FetchFiles(ctx, origin, commit, tip)
		}
	}
	return err
}

func (c *pullCode) Parents(ctx context.Context, commit string) ([]string, error) {
	return c.s.Repo.Parents(ctx, commit)
}

// Diff brings the files that a shallow or partial clone does not have.
func (c *pullCode) Diff(ctx context.Context, from, to string) (patch.Patchset, error) {
	set, err := c.s.Repo.Diff(ctx, from, to)
	if err != nil && !console.As[*patch.Error](err) {
		if err = c.files(ctx, to, from, to); err == nil {
			set, err = c.s.Repo.Diff(ctx, from, to)
		}
	}
	return set, err
}

// Drift fetches the history of a shallow clone too: the commits before the head,
// and the files of both.
func (c *pullCode) Drift(ctx context.Context, number int, a, head string) (int, []string, error) {
	commits, files, err := c.s.Repo.Drift(ctx, a, head)
	if err == nil {
		return commits, files, nil
	}
	if _, err = c.fetch(ctx, fmt.Sprintf("refs/pull/%d/head", number), true); err == nil {
		err = c.files(ctx, head, a)
	}
	if err != nil {
		return 0, nil, err
	}
	return c.s.Repo.Drift(ctx, a, head)
}

// Refs are those of a side's repository, to push to.
func (c *pullCode) Refs(_ context.Context, s forge.Side) (code.Refs, error) {
	address := s.CloneURL
	if origin := c.s.Repo.Config.RemoteURL(c.s.Flags.Remote); address == "" || github.SameRepository(origin, address) {
		address = origin // as the user reaches it
	}
	server, err := c.open(address, c.s.Getenv("INPUT_PUSH-TOKEN"))
	if err != nil {
		return nil, err
	}
	return &gitstore.RemoteRefs{Repo: c.s.Repo, Server: server, Pause: Pause}, nil
}
