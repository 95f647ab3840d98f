package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// Objects reads a directory of Git objects, and those that it borrows from, through one
// "git cat-file" that starts with the first question and lives until Close. That process is in
// an empty repository of its own: of what stands beside the objects no configuration counts,
// no promised object is fetched, and no replacement is followed (T95). Every object is held to
// its name: what git says of a damaged or lying pack is an error, never content. Several
// goroutines may use it.
type Objects struct {
	Dir  string // the objects directory
	More string // another one, which may be missing when git starts

	mu  sync.Mutex
	run *catFile // nil: none is running
}

// maxObject is the size of the largest object that is read, maxSaid that of what git may say
// before an answer, and trusted how much room is made for an object because git says so.
const (
	maxObject = 1 << 31
	maxSaid   = 64 << 10
	trusted   = 1 << 20
)

// Close ends the process. A later question starts another.
func (o *Objects) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end()
	return nil
}

func (o *Objects) end() {
	if o.run != nil {
		o.run.end()
		o.run = nil
	}
}

// View returns an object. The error is packfile.ErrMissing if it is nowhere, and
// packfile.ErrDamaged if its content is not what its name says.
func (o *Objects) View(id plumbing.Hash) (packfile.Object, error) {
	var object packfile.Object
	err := o.ask("contents", id, func(kind plumbing.ObjectType, size int64, from *bufio.Reader) error {
		data, err := contents(from, size)
		if err != nil {
			return err
		}
		object = packfile.Object{Type: kind, Data: data}
		if got, err := object.ID(); err != nil || got != id {
			return errors.Join(fmt.Errorf("%w: its content hashes to %s", packfile.ErrDamaged, got), err)
		}
		return nil
	})
	return object, err
}

// Size returns an object's type and number of bytes, as the repository records them: only
// View checks the content.
func (o *Objects) Size(id plumbing.Hash) (kind plumbing.ObjectType, size int64, err error) {
	err = o.ask("info", id, func(k plumbing.ObjectType, n int64, _ *bufio.Reader) error {
		kind, size = k, n
		return nil
	})
	return kind, size, err
}

// contents reads the bytes of an object and the line feed that follows.
func contents(from *bufio.Reader, size int64) ([]byte, error) {
	if size > maxObject {
		return nil, fmt.Errorf("%w: %d bytes are too large", packfile.ErrDamaged, size)
	}
	var data bytes.Buffer
	data.Grow(int(min(size, trusted)) + bytes.MinRead)
	if _, err := io.CopyN(&data, from, size); err != nil {
		return nil, fmt.Errorf("%w: it is cut short: %v", packfile.ErrDamaged, err)
	}
	if end, err := from.ReadByte(); err != nil || end != '\n' {
		return nil, fmt.Errorf("%w: it is longer than its size", packfile.ErrDamaged)
	}
	return data.Bytes(), nil
}

// ask asks for an object and has read take the answer. A process that died, or that
// complains and then finds nothing, is replaced once: `git gc` may have moved the packs that it
// knew. What still complains then is an error and not absence.
func (o *Objects) ask(command string, id plumbing.Hash, read func(plumbing.ObjectType, int64, *bufio.Reader) error) (err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for range 2 {
		if o.run == nil {
			if o.run, err = o.start(); err != nil {
				break
			}
		}
		if err = o.run.ask(command, id, read); err == nil || errors.Is(err, packfile.ErrMissing) {
			break
		}
		o.end()
	}
	if err != nil {
		err = fmt.Errorf("object %s: %w", id, err)
	}
	return err
}

// Index adds the pack that is read, which may be larger than memory, to the directory.
func (o *Objects) Index(ctx context.Context, pack io.Reader) (packfile.Held, error) {
	dir, err := os.MkdirTemp(o.Dir, packfile.TempPrefix)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := o.call(ctx, pack, "index-pack", "--stdin", filepath.Join(dir, "new.pack")); err != nil {
		return "", err
	}
	return packfile.Take(o.Dir, filepath.Join(dir, "new"))
}

// Repack makes few packs of many, whatever leads to the objects in them.
func (o *Objects) Repack(ctx context.Context) error {
	return o.call(ctx, nil, "repack", "--quiet", "-d", "-l", "--geometric=2")
}

func (o *Objects) call(ctx context.Context, stdin io.Reader, args ...string) error {
	c, done, err := o.command(args...)
	if err != nil {
		return err
	}
	defer done()
	c.Stdin = stdin
	_, err = c.Output(ctx)
	return err
}

// command is a call of git on the directory, in an empty repository that is removed with done.
func (o *Objects) command(args ...string) (c Command, done func(), err error) {
	empty, err := os.MkdirTemp("", "countersign-git-")
	if err != nil {
		return c, nil, err
	}
	done = func() { _ = os.RemoveAll(empty) }
	if err = os.Mkdir(filepath.Join(empty, "refs"), 0o700); err == nil {
		err = os.WriteFile(filepath.Join(empty, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600)
	}
	if err != nil {
		done()
		return c, nil, err
	}
	c = Command{Dir: o.Dir, Args: args, Env: []string{"GIT_DIR=" + empty, "GIT_OBJECT_DIRECTORY=" + o.Dir}}
	if _, err := os.Stat(o.More); err == nil {
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(o.More) + `"`
		c.Env = append(c.Env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+quoted)
	}
	return c, done, nil
}

var errComplained = errors.New("something is wrong")

// catFile is a process that answers.
type catFile struct {
	in, out *os.File
	answers *bufio.Reader
	kill    context.CancelFunc
	started func() // removes what git needs no more once it has answered
}

// start starts git. It ends when its input does: with end, with this process, or when nobody
// has the Objects any more.
func (o *Objects) start() (*catFile, error) {
	c, done, err := o.command("cat-file", "--batch-command")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd, run := c.command(ctx), &catFile{kill: cancel, started: sync.OnceFunc(done)}
	in, to, err := os.Pipe()
	if err == nil {
		run.in, cmd.Stdin = to, in
		if run.out, to, err = os.Pipe(); err == nil {
			cmd.Stdout, cmd.Stderr = to, to // what is wrong stands before the answer
			err = cmd.Start()
			_ = to.Close()
		}
		_ = in.Close()
	}
	if err != nil {
		run.end()
		return nil, failed(err, "")
	}
	run.answers = bufio.NewReaderSize(run.out, maxSaid)
	go func() { _ = cmd.Wait() }()
	return run, nil
}

func (r *catFile) end() {
	r.kill()
	_ = errors.Join(r.in.Close(), r.out.Close())
	r.started()
}

// ask puts one question: "<command> <id>". The answer is "<id> missing" or "<id> <type> <size>",
// with the content after it if that was asked for; other lines before it are what is wrong.
func (r *catFile) ask(command string, id plumbing.Hash, read func(plumbing.ObjectType, int64, *bufio.Reader) error) error {
	name := id.String()
	if _, err := io.WriteString(r.in, command+" "+name+"\n"); err != nil {
		return fmt.Errorf("git cat-file: %w", err)
	}
	var said strings.Builder
	for {
		line, err := r.answers.ReadSlice('\n')
		text := strings.TrimSuffix(string(line), "\n")
		if err != nil || said.Len() > maxSaid {
			return fmt.Errorf("git cat-file: %w", errors.Join(&Error{Said: said.String() + text, Err: errors.New("no answer")}, err))
		}
		answer, ok := strings.CutPrefix(text, name+" ")
		switch {
		case ok && answer == "missing" && said.Len() == 0:
			r.started()
			return packfile.ErrMissing
		case ok && answer == "missing":
			return fmt.Errorf("%w: %w", packfile.ErrDamaged, &Error{Said: said.String(), Err: errComplained})
		case ok:
			r.started()
			word, digits, _ := strings.Cut(answer, " ")
			kind, err1 := plumbing.ParseObjectType(word)
			size, err2 := strconv.ParseInt(digits, 10, 64)
			if err := errors.Join(err1, err2); err != nil || size < 0 {
				return fmt.Errorf("git cat-file answers %+q", text)
			}
			return read(kind, size, r.answers)
		case !strings.HasPrefix(text, "warning: "):
			said.WriteString(text + "\n")
		}
	}
}
