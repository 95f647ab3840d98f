// Package git asks the git program what only Git decides, such as where a repository is and
// whether it may be opened (safe.directory). What a repository's own configuration names must
// not be run (T95): git gets the few variables below, so that no GIT_DIR leads elsewhere and
// no pager or trace of the caller's is started, and fsmonitor and hooks are turned off. No
// shell is run. Filters are not turned off: nothing that reads a working tree is asked here.
package git

import (
	"cmp"
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// ErrNotInstalled says that there is no git program in PATH.
var ErrNotInstalled error = &Known{"git is not installed, and nothing is read of a repository without it", "install Git, version 2.39 or later, and see that it is in PATH"}

// A Known error is one of which it is known what to do about it.
type Known struct{ Message, Try string }

func (e *Known) Error() string { return e.Message }
func (e *Known) Hint() string  { return e.Try }

// An Error is what git said when it failed, in English.
type Error struct {
	Said string
	Err  error
}

func (e *Error) Error() string {
	return "git: " + cmp.Or(strings.Join(strings.Fields(e.Said), " "), e.Err.Error())
}

func (e *Error) Unwrap() error { return e.Err }

// passed are the variables that git gets, beside its own that say which configuration counts.
// SUDO_UID and GIT_TEST_ASSUME_DIFFERENT_OWNER are of safe.directory.
var passed = []string{
	"PATH", "HOME", "XDG_CONFIG_HOME", "SUDO_UID", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_TEST_ASSUME_DIFFERENT_OWNER",
	"USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "PROGRAMDATA", "SYSTEMROOT", "TEMP", "TMP",
}

// Run runs git in a directory and returns what it wrote, also beside an Error.
func Run(ctx context.Context, dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // an include may be a pipe that nobody writes to
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}, args...)...)
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(cmd.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(v), "=")
		return !slices.Contains(passed, name) && !strings.HasPrefix(name, "GIT_CONFIG_")
	})
	cmd.Env = append(cmd.Env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1")
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", ErrNotInstalled
	}
	if err != nil {
		failed := &Error{Err: err}
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			failed.Said = strings.TrimPrefix(strings.TrimSpace(string(exit.Stderr)), "fatal: ")
		}
		err = failed
	}
	return string(out), err
}
