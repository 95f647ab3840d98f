// Package sandbox runs a command in a real sandbox or not at all.
//
// # What holds on Linux
//
// Our own executable is started again in new user, mount, process, IPC, host
// name and (unless the command may use the network) network namespaces. That
// child builds the walls, lays down its privileges, starts the command, waits
// for it, and ends; with it the kernel ends every process the command left.
//
//   - Files: a root of its own holds only the system's programs and libraries,
//     the directories of Sandbox.Read (all read-only), the working directory and
//     a temporary /tmp. Landlock enforces the same a second time, and of /etc
//     lets through only what programs need to start.
//   - Processes: a fresh /proc shows only the command's own.
//   - Network: none, not even loopback; with Loopback a loopback of its own.
//     With Network the host's, with all that listens on the host's loopback.
//   - System calls: a seccomp filter refuses tracing, mounting, further
//     namespaces, kernel keys, BPF, io_uring and their like.
//   - Privileges: none. No capabilities, no_new_privs, no descriptors but the
//     three standard ones (input is empty), an environment of PATH, HOME, TMPDIR,
//     LANG and the variables allowed by name. Run by root, the command has user
//     id 65533.
//   - Limits: time, kept output, address space and file size of one process,
//     number of processes and threads. The kernel takes the command first when
//     memory runs out.
//
// What is missing is an [UnavailableError], never a weaker sandbox, but for one
// case: where the kernel denies user namespaces and AcceptSeccomp is set, the
// command runs under Landlock and a filter that denies it sockets. Then it can
// still see that files exist, and change the mode, times and extended attributes
// of files outside that its user owns; it runs without /proc and without
// sessions and process groups of its own.
//
// # A command that a person attends
//
// Attend runs a command at the person's terminal, as an agent that they talk with: it has
// their three streams, stays in their session and process group, and runs under their own
// user id, without limits of time and resources. All other walls are the same, and never
// weaker ones. Landlock has to keep its signals in (ABI 6), since whoever attends is in its
// process group. It has /dev/tty and pseudo-terminals of its own, and cannot type into a terminal.
//
// # What it does not do
//
// Memory and disk are limited for each process and file, not in sum. A kernel
// bug that is reached by permitted system calls is not contained.
//
// Nothing of a repository's configuration is read here: the command is the
// caller's, the directory is only where it runs.
package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Mode says what a command may do.
type Mode string

// The modes.
const (
	ReadOnly         Mode = "read-only"          // nothing is run
	WorkspaceWrite   Mode = "workspace-write"    // in the sandbox
	DangerFullAccess Mode = "danger-full-access" // without walls; limits and the clean environment stay
)

// ParseMode is the Mode named s. An unknown name is an error.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case ReadOnly, WorkspaceWrite, DangerFullAccess:
		return m, nil
	}
	return "", fmt.Errorf("unknown sandbox mode %q: want %s, %s or %s", s, ReadOnly, WorkspaceWrite, DangerFullAccess)
}

// A Sandbox runs commands. Only Mode must be set.
type Sandbox struct {
	Mode   Mode
	Limits Limits

	// Path is PATH for the command; empty means the system's usual directories.
	Path string

	// Read are further directories, absolute, that the command may read and
	// execute from, such as the roots of toolchains.
	Read []string

	// LookupEnv has the values of the variables that commands are allowed by
	// name. Nil has none.
	LookupEnv func(name string) (string, bool)

	// AcceptSeccomp accepts the weaker sandbox where the kernel denies user namespaces.
	AcceptSeccomp bool

	// Scratch is where the command's temporary directory is made; empty means
	// the system's.
	Scratch string

	// Self is our executable; empty means the running one. It must call Child.
	Self string

	// Binds are what Attend shows the command below /tmp, its home /tmp/home included, or below Lent.
	Binds []Bind

	denyNamespaces bool // a test takes them away
}

// Lent is where a command may write files and directories, and nothing else: a link that it left in a directory of
// somebody else's would have them write to another file.
const Lent = "/lent"

// A Bind is a file or directory, absolute and without links, that an attended command sees
// at Target, below /tmp, or below Lent, where it is a directory to be written. What is not there is left out.
type Bind struct {
	Source, Target string
	Write          bool
}

// A Command is what to run.
type Command struct {
	// Argv is the program and its arguments. A name without a slash is looked
	// for in PATH, a relative one with a slash in the working directory.
	Argv []string

	// Shell makes Argv[0] a script for /bin/sh -c, and the rest its $1, $2 and so on.
	Shell bool

	Timeout  time.Duration // not above zero means DefaultTimeout
	Network  bool          // the host's network, its loopback included
	Loopback bool          // a loopback of the command's own
	Env      []string      // names of variables to pass
}

// A Result is what became of a command.
type Result struct {
	ExitCode int    // 128+n after signal n; 127 when the program is missing, 126 when it cannot be executed
	Signal   string // the signal that ended it, such as "killed"
	TimedOut bool

	Stdout, Stderr                   []byte // the first Limits.Output bytes
	StdoutTotal, StderrTotal         int64  // bytes written in all
	StdoutTruncated, StderrTruncated bool

	Duration   time.Duration
	Protection Protection
}

// Protection is what was in force around a command.
type Protection struct {
	Mode          string   `json:"mode"`
	Landlock      int      `json:"landlock"`       // ABI version; 0 means none
	Namespaces    []string `json:"namespaces"`     // names as of /proc/PID/ns
	Seccomp       bool     `json:"seccomp"`        // the filter of dangerous system calls
	NetworkFilter bool     `json:"network_filter"` // no network because the filter denies sockets
}

// Limits bound what a command may use. A field that is not above zero takes its default.
type Limits struct {
	Output    int64 // bytes kept of each of the two streams; the rest is counted and thrown away
	Memory    int64 // bytes of address space of one process; less than MinMemory is raised to it
	Processes int   // processes and threads at one time
	FileSize  int64 // bytes of one file
}

// MinMemory is the smallest address space a command gets: a Go or Java runtime
// reserves more than 1 GiB before it does anything.
const MinMemory = 2 << 30

// DefaultTimeout is how long a command without a Timeout may run.
const DefaultTimeout = 10 * time.Minute

// DefaultLimits are the limits where nothing else is said.
var DefaultLimits = Limits{Output: 1 << 20, Memory: 4 << 30, Processes: 1024, FileSize: 1 << 30}

func positive[N ~int | ~int64](n, otherwise N) N {
	if n > 0 {
		return n
	}
	return otherwise
}

// ErrReadOnly is what Run gives in read-only mode.
var ErrReadOnly = errors.New("commands are refused in read-only mode")

// An UnavailableError says that a protection is missing and the command was not run.
type UnavailableError struct {
	Missing []string // the protections, such as "user namespaces"
	Try     string   // what to enable
	Err     error    // what the system said, or nil
}

func (e *UnavailableError) Error() string {
	s := "the sandbox is not available: missing " + strings.Join(e.Missing, ", ")
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *UnavailableError) Hint() string  { return e.Try }
func (e *UnavailableError) Unwrap() error { return e.Err }
