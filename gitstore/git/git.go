// Package git is the one door to the git program. What a repository's own configuration names
// must not be run (T95): git gets the few variables below, so that no GIT_DIR leads elsewhere
// and no pager or trace of the caller's is started; fsmonitor, hooks and every transport are
// turned off. No shell is run. Filters, and the hooks that a configuration names, are off where
// WithoutPrograms says so: a command that may come to any is not run without it. It ends with
// its context, its output is bounded, and repositories of other users are refused as git
// refuses them (safe.directory).
//
// What the files of a commit look like when Git checks them out, and what Git makes of a file when it compares or adds it, is
// told by [Attributes]: line endings, $Id$ and encodings, as gitattributes(5) and the configuration have them. Which attributes
// a file has is git's word. What they do is done here, since git would run filters in the working tree (T84), would take any
// text for an $Id$, and converts no content that is not an object yet. The program of a filter is run outside the repository.
// The order is Git's. Checking out: $Id$, line endings, encoding, filter. Adding: the same backwards.
package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/countersign-dev/countersign/pipeline/fault"
)

// ErrNotInstalled says that there is no git program in PATH.
var ErrNotInstalled error = &fault.Error{Message: "git is not installed, and nothing is read of a repository without it", Try: "install Git, version 2.39 or later, and see that it is in PATH"}

// An Error is what git said when it failed, in English.
type Error struct {
	Said string
	Err  error
}

func (e *Error) Error() string {
	return "git: " + cmp.Or(strings.Join(strings.Fields(e.Said), " "), e.Err.Error())
}

func (e *Error) Unwrap() error { return e.Err }

// IsNo reports whether an error is no more than git's answer "no": it ended with 1 and said nothing.
func IsNo(err error) bool {
	var failed *Error
	var exit *exec.ExitError
	return errors.As(err, &failed) && failed.Said == "" && errors.As(failed.Err, &exit) && exit.ExitCode() == 1
}

// passed are the variables that git gets, beside its own that say which configuration counts.
// SUDO_UID and GIT_TEST_ASSUME_DIFFERENT_OWNER are of safe.directory.
var passed = []string{
	"PATH", "HOME", "XDG_CONFIG_HOME", "SUDO_UID", "GIT_CEILING_DIRECTORIES", "GIT_ATTR_NOSYSTEM", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_TEST_ASSUME_DIFFERENT_OWNER",
	"USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "PROGRAMDATA", "SYSTEMROOT", "TEMP", "TMP",
}

// fixed are the variables that git gets from here. Commits have the parents that they name: no
// file says otherwise. GIT_ALLOW_PROTOCOL lets no transport be used, not even where a promised
// object is missing (GIT_NO_LAZY_FETCH is unknown to older ones).
var fixed = []string{"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE=/dev/null/none"}

// maxTime is how long Run, Soon and Config wait, and Objects for git's next word: a file may be a pipe that nobody writes to.
var maxTime = time.Minute // tests with such a pipe do not wait

// MaxOutput is how many bytes git may write to Run and Output.
const MaxOutput = 1 << 30

// A Command is one call of git in a directory. No argument that comes from elsewhere may stand
// where git takes an option: put "--end-of-options" or "--" before it.
type Command struct {
	Dir   string
	Args  []string
	Stdin io.Reader // nil: nothing
	Env   []string  // more variables, which win

	Getenv func(string) string // the caller's environment; nil: the process's
}

// command is git with its environment; it is not started.
func (c Command) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}, c.Args...)...)
	cmd.Dir, cmd.Stdin, cmd.WaitDelay = c.Dir, c.Stdin, 10*time.Second // a busy machine takes its time
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err == nil { // so that git removes its locks
			return nil
		}
		return cmd.Process.Kill()
	}
	getenv := c.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	for _, name := range append(configured(getenv), passed...) {
		if value := getenv(name); value != "" || strings.HasPrefix(name, "GIT_CONFIG_VALUE_") {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Env = append(append(cmd.Env, fixed...), c.Env...)
	return cmd
}

// configured are the variables that say which configuration counts (git-config(1)).
func configured(getenv func(string) string) []string {
	names := []string{"GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"}
	count, _ := strconv.Atoi(getenv("GIT_CONFIG_COUNT")) // what is none, git refuses
	for i := range min(count, maxConfigured) {
		names = append(names, fmt.Sprintf("GIT_CONFIG_KEY_%d", i), fmt.Sprintf("GIT_CONFIG_VALUE_%d", i))
	}
	return names
}

// maxConfigured is how many settings the environment may have: of more, git misses one.
const maxConfigured = 1000

// Stream runs git and has read take what it writes, as it comes. What read leaves is not waited
// for: git is ended. The error is read's if it has one, else an *Error or ErrNotInstalled.
func (c Command) Stream(ctx context.Context, read func(io.Reader) error) error {
	_, err := c.stream(ctx, read)
	return err
}

// stream is Stream, and returns what git said beside its answer.
func (c Command) stream(ctx context.Context, read func(io.Reader) error) (warned string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := c.command(ctx)
	said := &limited{left: 1 << 16}
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", failed(err, "")
	}
	readErr := read(out)
	if readErr != nil {
		cancel()
	} else if n, _ := out.Read(make([]byte, 1)); n > 0 {
		readErr = errors.New("git wrote more than was expected")
		cancel()
	}
	if err := cmd.Wait(); err != nil && readErr == nil {
		return said.String(), failed(err, said.String())
	}
	return said.String(), readErr
}

// Output runs git and returns what it wrote, also beside an *Error.
func (c Command) Output(ctx context.Context) (string, error) {
	out, _, err := c.Warned(ctx)
	return out, err
}

// Warned is Output, with what git said beside its answer.
func (c Command) Warned(ctx context.Context) (out, warned string, err error) {
	var raw []byte
	warned, err = c.stream(ctx, func(r io.Reader) (err error) {
		if raw, err = io.ReadAll(io.LimitReader(r, MaxOutput+1)); len(raw) > MaxOutput {
			err = fmt.Errorf("git writes more than %d bytes", MaxOutput)
		}
		return err
	})
	return string(raw), warned, err
}

// Soon is Warned for at most a minute.
func (c Command) Soon(ctx context.Context) (out, warned string, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	out, warned, err = c.Warned(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("git has not answered within %s: is a file of the repository a pipe, or its disk gone?", maxTime)
	}
	return out, warned, err
}

// Run runs git in a directory for at most a minute, and returns what it wrote, also beside an *Error.
func Run(ctx context.Context, dir string, args ...string) (string, error) {
	out, _, err := Command{Dir: dir, Args: args}.Soon(ctx)
	return out, err
}

// failed is what it means that git could not be run or failed.
func failed(err error, said string) error {
	if errors.Is(err, exec.ErrNotFound) {
		return ErrNotInstalled
	}
	return &Error{Said: strings.TrimPrefix(strings.TrimSpace(said), "fatal: "), Err: err}
}

// limited keeps the first bytes that are written to it.
type limited struct {
	strings.Builder
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	l.Builder.Write(p[:n])
	return len(p), nil
}
