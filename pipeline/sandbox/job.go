package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	stdio   *[3]*os.File // of a command that a person attends, else nil
}

// A plan is one way to run a job.
type plan struct {
	protection Protection
	namespaces bool
	user       int // the user and group id to run as, or -1 for ours
}

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
	for _, b := range s.Binds {
		below := within(b.Target, "/tmp") || b.Write && b.Target != Lent && within(b.Target, Lent)
		if !filepath.IsAbs(b.Source) || !below || filepath.Clean(b.Target) != b.Target || allText([]string{b.Source, b.Target}) != nil {
			return nil, fmt.Errorf("bind of %q at %q: want absolute paths, and a target below /tmp or, to be written, %s", b.Source, b.Target, Lent)
		}
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
			return nil, fmt.Errorf("directory to read %q: not allowed", dir)
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

// systemPath is PATH where the caller gives none.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
