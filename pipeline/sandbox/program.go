package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Exit codes of a command that could not be started, as shells have them.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// notStarted says why on the command's standard error, without paths of ours.
func notStarted(stderr io.Writer, name string, err error) ending {
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(stderr, "%s: not found\n", name)
		return ending{exit: exitNotFound}
	}
	var errno syscall.Errno
	errors.As(err, &errno)
	fmt.Fprintf(stderr, "%s: cannot be executed: %v\n", name, errno)
	return ending{exit: exitNotExecutable}
}

// lookPath finds the program: a name with a slash from dir, another in the
// absolute directories of path.
func lookPath(name, path, dir string) (string, error) {
	if filepath.Base(name) != name {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, nil
	}
	for _, d := range filepath.SplitList(path) {
		if !filepath.IsAbs(d) {
			continue
		}
		if file, err := exec.LookPath(filepath.Join(d, name)); err == nil {
			return file, nil
		}
	}
	return "", os.ErrNotExist
}
