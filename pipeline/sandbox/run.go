package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Run runs c in dir, which is given over to it: run by root, the files of dir are
// given to user 65533, and without namespaces every directory above must let other
// users pass. A command that fails is a Result, not an error. When ctx
// ends, so does the command, and the Result so far comes with ctx's error.
//
// The errors are ErrReadOnly, *UnavailableError, and plain ones for a command or
// directory that cannot be used: empty or with NUL bytes, dir missing, holding
// the system's directories, or with a file that has a hard link outside.
func (s Sandbox) Run(ctx context.Context, dir string, c Command) (Result, error) {
	if _, err := ParseMode(string(s.Mode)); err != nil {
		return Result{}, err
	}
	if s.Mode == ReadOnly {
		return Result{}, ErrReadOnly
	}
	j, err := s.job(dir, c)
	if err != nil {
		return Result{}, fmt.Errorf("preparing the command: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	plans, err := j.plans()
	if err != nil {
		return Result{}, err
	}
	var r Result
	for _, p := range plans { // until one is available
		r, err = j.attempt(ctx, p)
		if unavailable := (*UnavailableError)(nil); !errors.As(err, &unavailable) {
			break
		}
	}
	return r, err
}

// Attend runs c in dir at the terminal of a person who attends: with these three files as its
// streams, under our own user id, and without Limits and Timeout. Ctrl-C reaches whoever calls
// this as well as the command. The errors are those of Run; the Result has neither output nor duration.
func (s Sandbox) Attend(ctx context.Context, dir string, c Command, stdio [3]*os.File) (Result, error) {
	if s.Mode != WorkspaceWrite {
		return Result{}, errors.New("a command is attended in workspace-write alone")
	}
	j, err := s.job(dir, c)
	if err != nil {
		return Result{}, fmt.Errorf("preparing the command: %w", err)
	}
	j.stdio = &stdio
	plans, err := j.plans()
	if err != nil {
		return Result{}, err
	}
	return j.attempt(ctx, plans[0])
}

var errTimeLimit = errors.New("time limit")

// attempt runs the command as planned, in a temporary directory of its own.
func (j *job) attempt(ctx context.Context, p plan) (r Result, err error) {
	if j.scratch, err = makeScratch(j.sandbox.Scratch); err != nil {
		return Result{}, fmt.Errorf("making a temporary directory: %w", err)
	}
	defer func() {
		if e := RemoveAll(j.scratch); e != nil && err == nil {
			err = fmt.Errorf("removing the temporary directory: %w", e)
		}
	}()
	temp := j.scratch
	if p.namespaces {
		temp = "/tmp"
	}
	j.env, err = environment(j.sandbox.Path, filepath.Join(temp, "home"), temp, j.command.Env, j.sandbox.LookupEnv)
	if err != nil {
		return Result{}, err
	}
	if allText(j.env) != nil {
		return Result{}, errors.New("a variable of the environment is not UTF-8")
	}
	if err := j.handOver(p); err != nil {
		return Result{}, fmt.Errorf("giving the directory to the command: %w", err)
	}
	return j.record(ctx, p)
}

// makeScratch makes a temporary directory with a home in it.
func makeScratch(parent string) (string, error) {
	dir, err := os.MkdirTemp(parent, "sandbox-")
	if err != nil {
		return "", err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return dir, os.Mkdir(filepath.Join(dir, "home"), 0o700)
}

// record runs the command under its time limit and collects its output, unless a person attends.
func (j *job) record(parent context.Context, p plan) (Result, error) {
	if j.stdio != nil {
		end, err := j.supervise(parent, p, j.stdio[1], j.stdio[2])
		return Result{ExitCode: end.exit, Signal: end.signal, Protection: p.protection}, errors.Join(err, parent.Err())
	}
	stdout, outWriter, err := newOutput(j.sandbox.Limits.Output)
	if err != nil {
		return Result{}, err
	}
	stderr, errWriter, err := newOutput(j.sandbox.Limits.Output)
	if err != nil {
		closeAll(stdout.r, outWriter)
		return Result{}, err
	}
	ctx, cancel := context.WithTimeoutCause(parent, j.command.Timeout, errTimeLimit)
	defer cancel()
	go stdout.drain()
	go stderr.drain()
	begun := time.Now()
	end, err := j.supervise(ctx, p, outWriter, errWriter)
	stdout.finish()
	stderr.finish()
	r := Result{
		ExitCode: end.exit, Signal: end.signal, Duration: time.Since(begun), Protection: p.protection,
		Stdout: stdout.kept, StdoutTotal: stdout.total, StdoutTruncated: stdout.total > int64(len(stdout.kept)),
		Stderr: stderr.kept, StderrTotal: stderr.total, StderrTruncated: stderr.total > int64(len(stderr.kept)),
	}
	r.TimedOut = end.signal != "" && errors.Is(context.Cause(ctx), errTimeLimit)
	if err == nil {
		err = parent.Err()
	}
	return r, err
}

// ownNames are set by the sandbox and cannot be passed from outside.
var ownNames = []string{"PATH", "HOME", "TMPDIR"}

// environment is the whole environment of a command: nothing comes from ours
// but the variables allowed by name that are set.
func environment(path, home, temp string, allowed []string, lookup func(string) (string, bool)) ([]string, error) {
	env := []string{"PATH=" + path, "HOME=" + home, "TMPDIR=" + temp}
	if !slices.Contains(allowed, "LANG") {
		env = append(env, "LANG=C.UTF-8")
	}
	for _, name := range allowed {
		if name == "" || strings.ContainsAny(name, "=\x00") || slices.Contains(ownNames, name) {
			return nil, fmt.Errorf("the variable %q cannot be passed to a command", name)
		}
		if lookup == nil {
			continue
		}
		if value, ok := lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env, nil
}
