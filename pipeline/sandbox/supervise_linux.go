package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// supervise runs the command in a child of ours and returns when nothing of it is
// left; with full access, what made a session of its own is. It closes both writers.
func (j *job) supervise(ctx context.Context, p plan, stdout, stderr *os.File) (ending, error) {
	// The kernel kills the child when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	wires, err := newWires()
	if err != nil {
		closeAll(stdout, stderr)
		return ending{}, err
	}
	defer closeAll(wires.settings, wires.reports)
	cmd := j.child(p)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.ExtraFiles = []*os.File{wires.childSettings, wires.childReports}
	err = j.start(cmd, p)
	closeAll(stdout, stderr, wires.childSettings, wires.childReports)
	if err != nil {
		return ending{}, startError(p, err)
	}
	return j.watch(ctx, cmd, p, wires)
}

// start starts cmd, or fails as the kernel would where a test denies namespaces.
func (j *job) start(cmd *exec.Cmd, p plan) error {
	if j.sandbox.denyNamespaces && p.namespaces {
		return syscall.EPERM
	}
	return cmd.Start()
}

// watch hands the settings over, reads the reports, and waits for the end.
func (j *job) watch(ctx context.Context, cmd *exec.Cmd, p plan, w *wires) (ending, error) {
	pid := cmd.Process.Pid
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		killGroup(pid)
	})
	writeErr := json.NewEncoder(w.settings).Encode(j.settings(p))
	reports, readErr := readReports(w.reports)
	if !stop() {
		<-killed
	}
	killGroup(pid) // before the wait: until then the id is not given to another process
	waitErr := cmd.Wait()
	awaitGroup(pid)
	if len(reports) == 0 && ctx.Err() == nil {
		return ending{}, fmt.Errorf("the sandbox ended before the command: %w", errors.Join(writeErr, readErr, waitErr))
	}
	return outcome(p, reports)
}

// killGroup kills the child and, with its process namespace or its group, all
// that it started.
func killGroup(pid int) {
	_ = syscall.Kill(pid, syscall.SIGKILL)
	_ = syscall.Kill(-pid, syscall.SIGKILL)
}

// dying is how long processes that were killed may take to end. It is short, since
// one that is dead looks alive until its new parent has heard of it.
const dying = 100 * time.Millisecond

// awaitGroup waits for the end of those that were killed with the child: a process
// namespace does so by itself, a group does not.
func awaitGroup(pid int) {
	for deadline := time.Now().Add(dying); syscall.Kill(-pid, 0) == nil && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// readReports reads until the child is gone.
func readReports(r io.Reader) ([]report, error) {
	var all []report
	for d := json.NewDecoder(r); ; {
		var one report
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, one)
	}
}

// outcome is what the last report says. A child that started the command and
// said nothing more was killed, by us or by the command.
func outcome(p plan, reports []report) (ending, error) {
	killed := ending{exit: 128 + int(syscall.SIGKILL), signal: syscall.SIGKILL.String()}
	if len(reports) == 0 {
		return killed, nil
	}
	switch last := reports[len(reports)-1]; {
	case last.Missing != "":
		return ending{}, last.failure(p)
	case last.Ended:
		return ending{exit: last.Exit, signal: last.Signal}, nil
	}
	return killed, nil
}
