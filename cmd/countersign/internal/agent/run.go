package agent

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/countersign-dev/countersign/pipeline/sandbox"
)

// seenHome is the home as the program sees it, in the sandbox's temporary directory.
const seenHome = "/tmp/home"

// A Setting is how a program is run.
type Setting struct {
	Profile   Profile
	Getenv    func(string) string
	Env       []string // more variables, by name
	Read      []string // more directories that the program may read
	NoNetwork bool
	Stdio     [3]*os.File
}

// noSystem has git leave the system's configuration alone, which the sandbox does not show it: git would fail.
const noSystem = "GIT_CONFIG_NOSYSTEM"

// InScratch is a variable that every program in a scratch tree has: the channel's socket. The settings of init --agents deny
// nothing where it is set.
const InScratch = "COUNTERSIGN_SCRATCH"

// passed are the variables that every program gets: of the terminal, the language, the time, and the way to the network.
var passed = []string{
	"TERM", "COLORTERM", "TERM_PROGRAM", "NO_COLOR", "FORCE_COLOR", "USER", "LOGNAME", "EDITOR", "VISUAL", "TZ",
	"LANG", "LANGUAGE", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// Withheld reports whether no program gets a variable, whoever asks for it: it is ours, or leads to the person's keys.
func Withheld(name string) bool {
	return strings.HasPrefix(name, "COUNTERSIGN_") ||
		slices.Contains([]string{"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS"}, name)
}

// begin notes that the program starts now.
func (t *Tree) begin() error { return os.WriteFile(filepath.Join(t.dir, beganFile), nil, 0o600) }

// Run runs the command in the sandbox, and returns its exit code. Its home and temporary files are left, for Tidy. The error is a *sandbox.UnavailableError where this
// system cannot hold it.
func (t *Tree) Run(ctx context.Context, s Setting) (exit int, err error) {
	if err := errors.Join(t.Tidy(), os.Mkdir(t.home(), 0o700), os.Mkdir(t.temp(), 0o700), t.begin()); err != nil { // one who was killed left them
		return 0, err
	}
	binds, err := s.Profile.lend(s.Getenv("HOME"), t.home(), t.Dir())
	if err != nil {
		return 0, err
	}
	objects, err := t.repo.ObjectDirs(ctx)
	if err != nil {
		return 0, err
	}
	names := slices.Compact(slices.Sorted(slices.Values(slices.Concat(passed, s.Profile.Env, s.Env))))
	ours := s.Profile.ours()
	ours[noSystem] = "1"
	binds = append(binds, sandbox.Bind{Source: t.channel(), Target: filepath.Dir(seenChannel)})
	names = append(slices.DeleteFunc(names, Withheld), slices.Sorted(maps.Keys(ours))...)
	path, read := t.readable(s)
	box := sandbox.Sandbox{
		Mode: sandbox.WorkspaceWrite, Scratch: t.temp(), Path: strings.Join(path, string(filepath.ListSeparator)), Read: slices.Concat(read, objects, s.Read), Binds: binds,
		LookupEnv: func(name string) (string, bool) {
			if v, is := ours[name]; is {
				return v, true
			}
			v := s.Getenv(name)
			return v, v != ""
		},
	}
	r, err := box.Attend(ctx, t.Dir(), sandbox.Command{Argv: t.Command, Network: !s.NoNetwork, Loopback: s.NoNetwork, Env: names}, s.Stdio)
	return r.ExitCode, err
}

// readable are the directories of PATH, and those that programs there need: where the command itself lies behind links, the
// installation that it is in, and the modules of Node beside a directory of programs. What holds the person's home, the
// repository or the scratch trees is not among them.
func (t *Tree) readable(s Setting) (path, read []string) {
	var barred []string
	for _, dir := range []string{s.Getenv("HOME"), t.repo.Worktree(), t.repo.Dir(), t.dir} {
		if real, err := filepath.EvalSymlinks(dir); err == nil && dir != "" {
			barred = append(barred, real)
		}
	}
	add := func(dir string) (real string) {
		real, err := filepath.EvalSymlinks(dir)
		holds := func(barred string) bool { return within(barred, real) }
		if err != nil || slices.ContainsFunc(barred, holds) || t.repo.Worktree() != "" && within(real, t.repo.Worktree()) {
			return ""
		}
		if within(real, "/proc") || within(real, "/dev") || real == "/tmp" {
			return ""
		}
		if info, err := os.Stat(real); err != nil || !info.IsDir() {
			return ""
		}
		read = append(read, real)
		return real
	}
	modules := func(programs string) { add(filepath.Join(filepath.Dir(programs), "lib", "node_modules")) }
	for _, dir := range filepath.SplitList(s.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if real := add(dir); real != "" {
			path = append(path, real)
			modules(real)
		}
	}
	for _, dir := range path {
		program, err := filepath.EvalSymlinks(filepath.Join(dir, t.Command[0]))
		if filepath.Base(t.Command[0]) != t.Command[0] {
			program, err = filepath.EvalSymlinks(t.Command[0])
		}
		if err != nil || !filepath.IsAbs(program) {
			continue
		}
		lies := filepath.Dir(program)
		add(lies)
		if _, err := os.Stat(filepath.Join(lies, "..", "pyvenv.cfg")); err == nil {
			add(filepath.Dir(lies))
		}
		if before, _, is := strings.Cut(program, "/node_modules/"); is {
			add(before + "/node_modules")
		}
		break
	}
	return path, slices.Compact(slices.Sorted(slices.Values(read)))
}

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// RunUnheld runs the command there without any wall. It has the person's environment, but for what would lead Git, or
// this program, elsewhere.
func (t *Tree) RunUnheld(ctx context.Context, s Setting) (exit int, err error) {
	if err := t.begin(); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, t.Command[0], t.Command[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = t.Dir(), s.Stdio[0], s.Stdio[1], s.Stdio[2]
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "COUNTERSIGN_")
	})
	ours := s.Profile.ours()
	ours[InScratch] = filepath.Join(t.channel(), filepath.Base(seenChannel))
	for name, v := range ours {
		cmd.Env = append(cmd.Env, name+"="+v)
	}
	var failed *exec.ExitError
	if err = cmd.Run(); errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		_, err = s.Stdio[2].WriteString(t.Command[0] + ": not found\n")
		return 127, err
	}
	if !errors.As(err, &failed) {
		return 0, err
	}
	if status, is := failed.Sys().(syscall.WaitStatus); is && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return failed.ExitCode(), nil
}
