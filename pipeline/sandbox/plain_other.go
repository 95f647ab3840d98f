//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Child must be the first call of main, and of TestMain. On this system no
// process of ours is started again, and it always returns at once.
func Child() {}

var systemDirs []string

// plans has none but full access: this system has no walls that we know to build.
func (j *job) plans() ([]plan, error) {
	if j.sandbox.Mode != DangerFullAccess {
		return nil, &UnavailableError{
			Missing: []string{"Linux"},
			Try:     "run the command on Linux, in a container or a virtual machine, or on GitHub Actions",
		}
	}
	return []plan{{protection: Protection{Mode: string(DangerFullAccess), Namespaces: []string{}}}}, nil
}

func (j *job) handOver(plan) error { return nil }

// supervise runs the command without walls and kills its group at the end. It
// closes both writers.
func (j *job) supervise(ctx context.Context, _ plan, stdout, stderr *os.File) (ending, error) {
	defer closeAll(stdout, stderr)
	path, err := lookPath(j.argv[0], j.sandbox.Path, j.dir)
	if err != nil {
		return notStarted(stderr, j.argv[0], err), nil
	}
	cmd := &exec.Cmd{Path: path, Args: j.argv, Dir: j.dir, Env: j.env, Stdout: stdout, Stderr: stderr, SysProcAttr: ownGroup()}
	if err := cmd.Start(); err != nil {
		return notStarted(stderr, j.argv[0], err), nil
	}
	stop := context.AfterFunc(ctx, func() { killGroup(cmd.Process) })
	defer stop()
	err = cmd.Wait()
	killGroup(cmd.Process)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return ending{}, err
	}
	return endingOfStatus(cmd.ProcessState.Sys().(syscall.WaitStatus)), nil
}
