package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
)

// newFileClient serves a repository on this machine with git, so that its hooks
// run.
func newFileClient(path string) *childClient {
	return &childClient{
		command: func(ctx context.Context, service string) (*exec.Cmd, error) {
			info, err := os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
				return nil, ErrNotFound
			}
			if err != nil {
				return nil, err
			}
			return exec.CommandContext(ctx, "git", service, path), nil
		},
		why: func(status int, said string) error {
			if status <= 0 || said == "" {
				return nil
			}
			return fmt.Errorf("git ended with status %d: %s", status, oneLine(said))
		},
	}
}
