package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// run tries the plans in turn until one is available.
func (j *job) run(ctx context.Context) (r Result, err error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	plans, err := j.plans()
	if err != nil {
		return Result{}, err
	}
	for _, p := range plans {
		r, err = j.attempt(ctx, p)
		if unavailable := (*UnavailableError)(nil); !errors.As(err, &unavailable) {
			break
		}
	}
	return r, err
}

// attempt runs the command as planned, in a temporary directory of its own.
func (j *job) attempt(ctx context.Context, p plan) (r Result, err error) {
	j.scratch, err = makeScratch(j.sandbox.Scratch)
	if err != nil {
		return Result{}, fmt.Errorf("making a temporary directory: %w", err)
	}
	defer func() {
		if e := RemoveAll(j.scratch); e != nil && err == nil {
			err = fmt.Errorf("removing the temporary directory: %w", e)
		}
	}()
	if err := j.environ(p); err != nil {
		return Result{}, err
	}
	if err := j.handOver(p); err != nil {
		return Result{}, fmt.Errorf("giving the directory to the command: %w", err)
	}
	return j.record(ctx, p)
}

// environ fills in the environment: within namespaces the temporary directory is /tmp.
func (j *job) environ(p plan) (err error) {
	temp := j.scratch
	if p.namespaces {
		temp = "/tmp"
	}
	j.env, err = environment(j.sandbox.Path, filepath.Join(temp, "home"), temp, j.command.Env, j.sandbox.LookupEnv)
	if err == nil && allText(j.env) != nil {
		err = errors.New("a variable of the environment is not UTF-8")
	}
	return err
}

// record runs the command under its time limit and collects its output.
func (j *job) record(parent context.Context, p plan) (Result, error) {
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
		Stdout: stdout.kept, StdoutTotal: stdout.total, StdoutTruncated: stdout.truncated(),
		Stderr: stderr.kept, StderrTotal: stderr.total, StderrTruncated: stderr.truncated(),
	}
	r.TimedOut = end.signal != "" && errors.Is(context.Cause(ctx), errTimeLimit)
	if err == nil {
		err = parent.Err()
	}
	return r, err
}
