package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A job is one command, checked and with every default filled in.
type job struct {
	sandbox Sandbox
	command Command
	dir     string // absolute, without links
	argv    []string
	env     []string // for the paths of the plan
	scratch string
}

// A plan is one way to run a job.
type plan struct {
	protection Protection
	namespaces bool
	user       int // the user and group id to run as, or -1 for ours
}

// An ending is how the command came to its end.
type ending struct {
	exit   int
	signal string
}

var errTimeLimit = errors.New("time limit")

func (s Sandbox) job(dir string, c Command) (*job, error) {
	s.Limits = Limits{
		Output:    positive(s.Limits.Output, DefaultLimits.Output),
		Memory:    max(positive(s.Limits.Memory, DefaultLimits.Memory), MinMemory),
		Processes: positive(s.Limits.Processes, DefaultLimits.Processes),
		FileSize:  positive(s.Limits.FileSize, DefaultLimits.FileSize),
	}
	c.Timeout = positive(c.Timeout, DefaultTimeout)
	s.Path = cmp.Or(s.Path, systemPath)
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return nil, errors.New("no program is named")
	}
	if slices.ContainsFunc(c.Argv, func(a string) bool { return strings.Contains(a, "\x00") }) {
		return nil, errors.New("an argument has a NUL byte")
	}
	var err error
	if s.Read, err = readable(s.Read); err != nil {
		return nil, err
	}
	if dir, err = workingDirectory(dir); err == nil {
		err = allText(slices.Concat([]string{dir, s.Scratch, s.Path}, s.Read, c.Argv, c.Env))
	}
	argv := c.Argv
	if c.Shell {
		argv = append([]string{"/bin/sh", "-c", c.Argv[0], "sh"}, c.Argv[1:]...)
	}
	return &job{sandbox: s, command: c, dir: dir, argv: argv}, err
}

// workingDirectory is dir without links. It may not hold the system's own
// directories: they would become writable.
func workingDirectory(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory", dir)
	}
	for _, system := range append([]string{"/etc", "/proc", "/dev", "/sys", "/tmp"}, systemDirs...) {
		if within(system, dir) {
			return "", fmt.Errorf("%s holds the system's directories", dir)
		}
	}
	return dir, nil
}

// readable are directories without links. One that the system's own lead to by a
// link, as /lib does, is there under its real name.
func readable(dirs []string) ([]string, error) {
	var out []string
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
			return nil, fmt.Errorf("directory to read %q: want a clean absolute path", dir)
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		if slices.Contains([]string{"/", "/tmp"}, dir) || within(dir, "/proc") || within(dir, "/dev") {
			return nil, fmt.Errorf("directory to read %q: not this one", dir)
		}
		out = append(out, dir)
	}
	return out, nil
}

// allText refuses what is not UTF-8: the settings go to the child as JSON, where
// other bytes would become another name.
func allText(words []string) error {
	for _, w := range words {
		if !utf8.ValidString(w) {
			return fmt.Errorf("%+q is not UTF-8", w)
		}
	}
	return nil
}

// within reports whether path is dir or below it. Both are clean and absolute.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

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
		Stdout: stdout.kept, StdoutTotal: stdout.total, StdoutTruncated: stdout.total > int64(len(stdout.kept)),
		Stderr: stderr.kept, StderrTotal: stderr.total, StderrTruncated: stderr.total > int64(len(stderr.kept)),
	}
	r.TimedOut = end.signal != "" && errors.Is(context.Cause(ctx), errTimeLimit)
	if err == nil {
		err = parent.Err()
	}
	return r, err
}

// systemPath is PATH where the caller gives none.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

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
