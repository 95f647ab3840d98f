package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// marker is the name our child is started under. With its two pipes it is what
// makes a process the child: no flag and no variable can.
const marker = "countersign-sandbox-child"

// The child's descriptors.
const (
	settingsFD = 3 // settings, one JSON value; the end of the pipe is the end of the parent
	reportsFD  = 4 // reports, JSON values
)

// settings are all that the child is told.
type settings struct {
	Argv, Env  []string
	Path, Dir  string
	Scratch    string
	Read       []string
	Walls      bool // false with full access
	Namespaces bool
	Network    bool
	Loopback   bool
	Landlock   int
	User       int
	Limits     Limits
}

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
	}
}

// wires are both ends of the two pipes.
type wires struct {
	settings, childSettings *os.File
	reports, childReports   *os.File
}

func newWires() (*wires, error) {
	var w wires
	var err error
	if w.childSettings, w.settings, err = os.Pipe(); err != nil {
		return nil, err
	}
	if w.reports, w.childReports, err = os.Pipe(); err != nil {
		closeAll(w.childSettings, w.settings)
		return nil, err
	}
	return &w, nil
}

// child is our executable, to be started with the plan's namespaces.
func (j *job) child(p plan) *exec.Cmd {
	self := j.sandbox.Self
	if self == "" {
		self = "/proc/self/exe"
	}
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if p.namespaces {
		namespaceAttr(attr, !j.command.Network, p.user >= 0)
	}
	return &exec.Cmd{Path: self, Args: []string{marker}, Env: []string{}, Dir: "/", SysProcAttr: attr}
}

// namespaceAttr asks for namespaces in which the child may mount and configure.
func namespaceAttr(attr *syscall.SysProcAttr, ownNetwork, asRoot bool) {
	attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if ownNetwork {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	if asRoot {
		attr.UidMappings, attr.GidMappings = wholeMap("/proc/self/uid_map"), wholeMap("/proc/self/gid_map")
		attr.GidMappingsEnableSetgroups = true
		return
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
}

// startError tells a kernel that denies namespaces from other failures.
func startError(p plan, err error) error {
	denied := []error{syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EUSERS, syscall.EINVAL, syscall.ENOSYS}
	for _, e := range denied {
		if p.namespaces && errors.Is(err, e) {
			return unavailable(userNamespaces, err)
		}
	}
	return err
}

// failure is the report of a missing protection as an error.
func (r report) failure(p plan) error {
	err := errors.New(r.Error)
	if r.Errno != 0 {
		err = &os.SyscallError{Syscall: r.Error, Err: r.Errno}
	}
	return unavailable(r.Missing, err)
}
