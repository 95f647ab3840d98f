package sandbox

import (
	"cmp"
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

	"golang.org/x/sys/unix"
)

// supervise runs the command in a child of ours and returns when nothing of it is
// left; with full access, what made a session of its own is. It closes both writers, but for
// those of a person who attends.
func (j *job) supervise(ctx context.Context, p plan, stdout, stderr *os.File) (ending, error) {
	// The kernel kills the child when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	ours := []io.Closer{stdout, stderr}
	if j.stdio != nil {
		ours = nil
	}
	settingsR, settingsW, err := os.Pipe()
	if err != nil {
		closeAll(ours...)
		return ending{}, err
	}
	defer settingsW.Close()
	reportsR, reportsW, err := os.Pipe()
	if err != nil {
		closeAll(append(ours, settingsR)...)
		return ending{}, err
	}
	defer reportsR.Close()
	if os.Args[0] == marker { // else each child starts the next, without end
		panic("sandbox: this program was started as the child, and has not called Child first")
	}
	cmd := j.child(p)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if j.stdio != nil {
		cmd.Stdin = j.stdio[0]
	}
	cmd.ExtraFiles = []*os.File{settingsR, reportsW}
	if j.sandbox.denyNamespaces && p.namespaces {
		err = syscall.EPERM // as from a kernel that denies them
	} else {
		err = cmd.Start()
	}
	closeAll(append(ours, settingsR, reportsW)...)
	if err != nil {
		for _, denied := range []error{syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EUSERS, syscall.EINVAL, syscall.ENOSYS} {
			if p.namespaces && errors.Is(err, denied) {
				return ending{}, unavailable(userNamespaces, err)
			}
		}
		return ending{}, err
	}
	return j.watch(ctx, cmd, p, settingsW, reportsR)
}

// watch hands the settings over, reads the reports, and waits for the end.
func (j *job) watch(ctx context.Context, cmd *exec.Cmd, p plan, settings io.Writer, reports io.Reader) (ending, error) {
	pid := cmd.Process.Pid
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(killed)
		killGroup(pid)
	})
	writeErr := json.NewEncoder(settings).Encode(j.settings(p))
	said, readErr := readReports(reports)
	if !stop() {
		<-killed
	}
	killGroup(pid) // before the wait: until then the id is not given to another process
	waitErr := cmd.Wait()
	// A process namespace waits by itself for the end of those that were killed with
	// the child, a group does not.
	for deadline := time.Now().Add(dying); syscall.Kill(-pid, 0) == nil && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if len(said) == 0 && ctx.Err() == nil {
		return ending{}, fmt.Errorf("the sandbox failed before the command began: %w", errors.Join(writeErr, readErr, waitErr))
	}
	return outcome(said)
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
func outcome(reports []report) (ending, error) {
	killed := ending{exit: 128 + int(syscall.SIGKILL), signal: syscall.SIGKILL.String()}
	if len(reports) == 0 {
		return killed, nil
	}
	switch last := reports[len(reports)-1]; {
	case last.Missing != "":
		err := errors.New(last.Error)
		if last.Errno != 0 {
			err = &os.SyscallError{Syscall: last.Error, Err: last.Errno}
		}
		return ending{}, unavailable(last.Missing, err)
	case last.Ended:
		return ending{exit: last.Exit, signal: last.Signal}, nil
	}
	return killed, nil
}

// marker is the name our child is started under. With its two pipes it is what
// makes a process the child: no flag and no variable can.
const marker = "countersign-sandbox-child"

// The child's descriptors.
const (
	settingsFD = 3 // settings, one JSON value; the end of the pipe is the end of the parent
	reportsFD  = 4 // reports, JSON values
)

// A report is what the child says: that a protection is missing, that the
// command has started, or how it ended.
type report struct {
	Missing string        `json:",omitempty"`
	Error   string        `json:",omitempty"`
	Errno   syscall.Errno `json:",omitempty"`
	Ended   bool          `json:",omitempty"`
	Exit    int           `json:",omitempty"`
	Signal  string        `json:",omitempty"`
}

func (j *job) settings(p plan) settings {
	limits := j.sandbox.Limits
	if !p.namespaces {
		limits.Processes += tasksOf(p.user)
	}
	return settings{
		Argv: j.argv, Env: j.env, Path: j.sandbox.Path, Dir: j.dir, Scratch: j.scratch, Read: j.sandbox.Read,
		Walls: j.sandbox.Mode != DangerFullAccess, Namespaces: p.namespaces, Network: j.command.Network,
		Loopback: j.command.Loopback, Landlock: p.protection.Landlock, User: p.user, Limits: limits,
		Attended: j.stdio != nil, Binds: j.sandbox.Binds,
	}
}

// child is our executable, to be started with the plan's namespaces.
func (j *job) child(p plan) *exec.Cmd {
	attr := &syscall.SysProcAttr{Setsid: j.stdio == nil, Pdeathsig: syscall.SIGKILL}
	if p.namespaces { // in which the child may mount and configure
		attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
		if !j.command.Network {
			attr.Cloneflags |= unix.CLONE_NEWNET
		}
		if p.user >= 0 {
			attr.UidMappings, attr.GidMappings = wholeMap("/proc/self/uid_map"), wholeMap("/proc/self/gid_map")
			attr.GidMappingsEnableSetgroups = true
		} else {
			attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
			attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
			attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
		}
	}
	return &exec.Cmd{Path: cmp.Or(j.sandbox.Self, "/proc/self/exe"), Args: []string{marker}, Env: []string{}, Dir: "/", SysProcAttr: attr}
}
