package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"syscall"
	"time"
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

// grace is how long a pipe is read after the command has been killed: some
// process outside our reach may hold it open for ever.
const grace = 2 * time.Second

// An output reads one stream of a command: it keeps the first bytes and goes on
// reading, so that a full pipe never stops the command.
type output struct {
	r     *os.File
	limit int64
	kept  []byte
	total int64
	done  chan struct{}
}

func newOutput(limit int64) (*output, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return &output{r: r, limit: limit, done: make(chan struct{})}, w, nil
}

// drain reads until every writer is gone or the deadline of finish has passed.
func (o *output) drain() {
	defer close(o.done)
	buf := make([]byte, 64<<10)
	for {
		n, err := o.r.Read(buf)
		o.kept = append(o.kept, buf[:min(int64(n), o.limit-int64(len(o.kept)))]...)
		o.total += int64(n)
		if err != nil {
			return
		}
	}
}

// finish waits for the end of the stream, but not for long.
func (o *output) finish() {
	_ = o.r.SetReadDeadline(time.Now().Add(grace))
	<-o.done
	_ = o.r.Close()
}

func closeAll(files ...io.Closer) {
	for _, f := range files {
		_ = f.Close()
	}
}

// RemoveAll removes a directory that a hostile program had for itself: with
// directories that may not be entered, and deeper than handles or paths reach. It
// follows no links.
func RemoveAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	err := os.Chmod(dir, 0o700)
	if err == nil {
		err = flatten(dir)
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return fmt.Errorf("removing what a command left: %w", err)
	}
	return nil
}

// flatten empties a directory. A directory inside another is moved to the top
// before it is looked into, so that nothing is ever reached by a long path.
func flatten(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	var queue []string
	for _, e := range entries {
		queue = append(queue, e.Name())
	}
	for i := 0; err == nil && i < len(queue); i++ {
		var moved []string
		moved, err = takeApart(root, queue[i])
		queue = append(queue, moved...)
	}
	return err
}

// takeApart removes what lies at the top; it moves the directories inside to
// the top and returns their new names. To be moved or emptied, a directory must
// be open to us.
func takeApart(root *os.Root, name string) (moved []string, err error) {
	if info, err := root.Lstat(name); err != nil || !info.IsDir() {
		return nil, errors.Join(err, root.Remove(name))
	}
	if err := root.Chmod(name, 0o700); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(root.FS(), name)
	for _, e := range entries {
		inside := path.Join(name, e.Name())
		if !e.IsDir() {
			err = errors.Join(err, root.Remove(inside))
			continue
		}
		moved = append(moved, rand.Text())
		err = errors.Join(err, root.Chmod(inside, 0o700), root.Rename(inside, moved[len(moved)-1]))
	}
	return moved, errors.Join(err, root.Remove(name))
}

// endingOfStatus is the end of a process as a shell would tell it.
func endingOfStatus(status syscall.WaitStatus) ending {
	if status.Signaled() {
		return ending{exit: 128 + int(status.Signal()), signal: status.Signal().String()}
	}
	return ending{exit: status.ExitStatus()}
}

// An ending is how the command came to its end.
type ending struct {
	exit   int
	signal string
}
