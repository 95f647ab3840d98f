package git

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// Objects reads a directory of Git objects, and those that it borrows from, through one
// "git cat-file" that starts with the first question and lives until Close. That process is in
// an empty repository of its own: of what stands beside the objects no configuration counts,
// no promised object is fetched, and no replacement is followed (T95). Every object is held to
// its name: what git says of a damaged or lying pack is an error, never content. Several
// goroutines may use it: what they ask at one time waits in the pipe, and git goes from one
// question to the next without waiting for them.
type Objects struct {
	Dir  string // the objects directory
	More string // another one, which may be missing when git starts

	Format packfile.Format // of all of them

	mu     sync.Mutex
	run    *catFile        // nil: none is running
	unused runtime.Cleanup // closes run when nobody has the Objects any more
	closed bool
	recent packfile.Recent[packfile.ID, packfile.Object] // small ones: who judges commits asks for the same trees again and again
	ended  []chan struct{}                               // of each process that was started: closed once it is no more
}

// maxObject is the size of the largest object that is read, maxSaid that of what git may say
// before an answer, and trusted how much room is made for an object because git says so.
const (
	maxObject = 1 << 31
	maxSaid   = 64 << 10
	trusted   = 1 << 20
)

// maxRecent is how many bytes of objects are kept, and as many again of those before; one of more than maxSmall is not.
const (
	maxRecent = 4 << 20
	maxSmall  = 32 << 10
	overhead  = 100 // of each, about
)

// errClosed is what is asked after Close, or was not answered before it.
var errClosed = errors.New("the repository was closed")

// Close ends the process, and there is no other. It returns once none is left.
func (o *Objects) Close() error {
	for _, ended := range o.close() {
		<-ended
	}
	return nil
}

func (o *Objects) close() []chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.recent.Close()
	if o.closed = true; o.run != nil {
		o.run.end()
		o.unused.Stop()
	}
	o.run = nil
	return o.ended
}

// Restart has the next question start another process, which sees More if it is there now.
func (o *Objects) Restart() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.retire()
}

// retire lets the process answer what it was asked, and nothing more.
func (o *Objects) retire() {
	if o.run != nil {
		o.run.close()
		o.unused.Stop()
	}
	o.run = nil
}

// View returns an object. The error is packfile.ErrMissing if it is nowhere, and
// packfile.ErrDamaged if its content is not what its name says.
func (o *Objects) View(id packfile.ID) (packfile.Object, error) {
	if found, is := o.recent.Get(id); is {
		return found, nil
	}
	q, err := o.ask("contents", id)
	found := packfile.Object{Type: q.kind, Data: q.data}
	if err == nil {
		var got packfile.ID
		if got, err = found.ID(o.Format); err == nil && got != id {
			err = fmt.Errorf("object %s: %w: its content hashes to %s", id, packfile.ErrDamaged, got)
		}
	}
	if err != nil {
		return packfile.Object{}, err
	}
	if len(found.Data) <= maxSmall {
		o.recent.Put(id, found, len(found.Data)+overhead, maxRecent)
	}
	return found, nil
}

// Size returns an object's type and number of bytes, as the repository records them: only
// View checks the content.
func (o *Objects) Size(id packfile.ID) (kind plumbing.ObjectType, size int64, err error) {
	if found, is := o.recent.Get(id); is {
		return found.Type, int64(len(found.Data)), nil
	}
	q, err := o.ask("info", id)
	return q.kind, q.size, err
}

// contents reads the bytes of an object and the line feed that follows.
func contents(from *bufio.Reader, size int64) ([]byte, error) {
	if size > maxObject {
		return nil, fmt.Errorf("%w: %d bytes are too large", packfile.ErrDamaged, size)
	}
	data := make([]byte, min(size, trusted))
	_, err := io.ReadFull(from, data)
	if err == nil && size > trusted {
		rest := bytes.NewBuffer(data)
		_, err = io.CopyN(rest, from, size-trusted)
		data = rest.Bytes()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: it is cut short: %v", packfile.ErrDamaged, err)
	}
	if end, err := from.ReadByte(); err != nil || end != '\n' {
		return nil, fmt.Errorf("%w: it is longer than its size", packfile.ErrDamaged)
	}
	return data, nil
}

// A question is "<command> <id>", and its answer.
type question struct {
	command string
	id      packfile.ID

	kind plumbing.ObjectType
	size int64
	data []byte
	err  error
	done chan struct{} // closed when it is answered
}

// errUnasked is a question that a process did not come to, errMoving one whose packs never stood still.
var (
	errUnasked = errors.New("git cat-file ended")
	errMoving  = errors.New("what holds the objects changes all the time")
)

// timesMoved is how often the packs may change beneath one question.
const timesMoved = 1000

// ask asks for an object. That git finds none counts where the packs before the question were those after it: beside
// a `git gc`, which makes a pack and removes others, a listing may have none of them (T80). A process that died, or
// that complains and then finds nothing, is replaced once. What still complains then is an error and not absence.
func (o *Objects) ask(command string, id packfile.ID) (*question, error) {
	q := &question{command: command, id: id}
	if id.Size() != o.Format.Size() { // to git it is the name of a ref, or the beginning of an ID
		return q, fmt.Errorf("object %s: %w", id, packfile.ErrMissing)
	}
	var before []string
	for tries, missed := 0, 0; tries < 2; {
		run, err := o.running()
		if err != nil {
			q.err = err
			break
		}
		q.err, q.done = nil, make(chan struct{})
		if run.put(q) {
			<-q.done
		} else {
			q.err = errUnasked
		}
		if q.err == nil {
			return q, nil
		}
		if errors.Is(q.err, packfile.ErrMissing) {
			packs, hidden := o.readable(id)
			if missed++; hidden == nil && (missed == 1 || !slices.Equal(packs, before)) && missed < timesMoved {
				before = packs
				continue
			}
			if hidden == nil && missed < timesMoved {
				break
			}
			q.err = cmp.Or(hidden, errMoving)
		}
		if errors.Is(q.err, os.ErrDeadlineExceeded) {
			break
		}
		if q.err != errUnasked { // that another question was its end says nothing of this one
			tries++
		}
		o.replace(run)
	}
	return q, fmt.Errorf("object %s: %w", id, q.err)
}

// running returns the process, which it starts if there is none.
func (o *Objects) running() (_ *catFile, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, errClosed
	}
	if o.run == nil {
		if o.run, err = o.start(); err == nil {
			o.unused = runtime.AddCleanup(o, (*catFile).close, o.run)
			o.ended = append(o.ended, o.run.ended)
		}
	}
	return o.run, err
}

// replace is Restart where this process has not been replaced yet.
func (o *Objects) replace(run *catFile) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.run == run {
		o.retire()
	}
}

// readable lists the packs that may hold an object, with the time each directory of them was changed. The error is
// what cannot be read of it all: git calls that missing without a word.
func (o *Objects) readable(id packfile.ID) (packs []string, err error) {
	dirs, err := o.Dirs(context.Background())
	errs := []error{err}
	for _, dir := range dirs {
		loose := filepath.Join(dir, id.String()[:2], id.String()[2:])
		if _, err := os.Lstat(loose); err == nil {
			errs = append(errs, fmt.Errorf("%w: git does not read %s", packfile.ErrDamaged, loose))
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		in := filepath.Join(dir, "pack")
		if info, err := os.Stat(in); err == nil {
			packs = append(packs, info.ModTime().String())
		}
		indexes, err := packfile.Files(in, "", ".idx")
		errs, packs = append(errs, err, canRead(alternates(dir))), append(packs, indexes...)
		for _, idx := range indexes {
			errs = append(errs, canRead(idx), canRead(strings.TrimSuffix(idx, ".idx")+".pack"))
		}
	}
	return packs, errors.Join(errs...)
}

// canRead says why a file that is there cannot be read.
func canRead(name string) error {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() { // to open it may take for ever
		return fmt.Errorf("%w: %s is no file", packfile.ErrDamaged, name)
	}
	var f *os.File
	if err == nil {
		f, err = os.Open(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, f.Close())
}

// alternates is the file that names what a directory of objects borrows from.
func alternates(dir string) string { return filepath.Join(dir, "info", "alternates") }

// Dirs are the directories of objects that are read: this one, and those that it borrows from.
func (o *Objects) Dirs(ctx context.Context) ([]string, error) {
	own := []string{o.Dir}
	if o.More != "" {
		own = append(own, o.More)
	}
	if !slices.ContainsFunc(own, func(dir string) bool { _, err := os.Lstat(alternates(dir)); return !errors.Is(err, fs.ErrNotExist) }) {
		return own, nil
	}
	c, done, err := o.command("count-objects", "-v")
	if err != nil {
		return nil, err
	}
	defer done()
	said, _, err := c.Soon(ctx)
	return append(own, borrowed(said)...), err
}

// Index adds the pack that is read, which may be larger than memory, to the directory.
func (o *Objects) Index(ctx context.Context, pack io.Reader) (packfile.Held, error) {
	return o.made(ctx, pack, nil, indexPack)
}

// IndexWhole is Index of a pack in which, or here, all is that a commit leads to and commits that are here do not: else it is
// packfile.ErrMissing, and nothing is added.
func (o *Objects) IndexWhole(ctx context.Context, pack io.Reader, commit packfile.ID, here []packfile.ID) (packfile.Held, error) {
	return o.made(ctx, pack, func(dir string) error {
		args := []string{"-c", "core.commitGraph=false", "rev-list", "--objects", "--quiet", commit.String() + "^{commit}", "--not"}
		for _, id := range here {
			args = append(args, id.String())
		}
		c, done, err := o.command(args...)
		if err != nil {
			return err
		}
		defer done()
		c.Env = append(c.Env, "GIT_OBJECT_DIRECTORY="+dir, Alternates(o.Dir, o.More))
		_, err = c.Output(ctx)
		if said := (*Error)(nil); errors.As(err, &said) {
			err = fmt.Errorf("what commit %s leads to: %w: %w", commit, packfile.ErrMissing, said)
		}
		return err
	}, indexPack)
}

func indexPack(base string) []string { return []string{"index-pack", "--stdin", base + "-.pack"} }

// Alternates is the variable that has git borrow from directories of objects.
func Alternates(dirs ...string) string {
	var quoted []string
	for _, dir := range slices.DeleteFunc(dirs, func(dir string) bool { return dir == "" }) {
		quoted = append(quoted, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(filepath.ToSlash(dir))+`"`)
	}
	return "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + strings.Join(quoted, string(filepath.ListSeparator))
}

// Merge has git make one pack of the small ones if there are more than most packs, and removes those. All that is in
// them is in it, whatever leads to it and whoever else has it: a `git repack -ad` at work may be about to remove the
// pack of somebody else (T80).
func (o *Objects) Merge(ctx context.Context, most int) error {
	small, err := packfile.Small(o.Dir, most)
	if len(small) == 0 || err != nil {
		return err
	}
	var names strings.Builder
	for _, path := range small {
		names.WriteString(filepath.Base(path) + ".pack\n")
	}
	held, err := o.made(ctx, strings.NewReader(names.String()), nil, func(base string) []string {
		return []string{"pack-objects", "--quiet", "--stdin-packs", base}
	})
	if err != nil {
		return err
	}
	held.Release()
	packfile.Remove(small)
	return nil
}

// Pack has git write a pack of all that a commit leads to, and another one, if it is not zero, does not. It takes over how these are
// packed here: to ask for each, and to pack it anew, takes ten times as long. What of them is missing is an error, unless lenient leaves
// out missing files, and so is what is damaged as far as git notices. Nothing is left out on the word of what stands beside the packs:
// bitmaps, or the graph of commits.
func (o *Objects) Pack(ctx context.Context, w io.Writer, commit, without packfile.ID, lenient bool) error {
	missing := "--missing=error"
	if lenient {
		missing = "--missing=allow-any"
	}
	c, done, err := o.command("-c", "core.commitGraph=false", "pack-objects", "--revs", "--stdout", "--delta-base-offset", "--no-use-bitmap-index", "--quiet", missing)
	if err != nil {
		return err
	}
	defer done()
	revs := commit.String() + "\n"
	if !without.IsZero() {
		revs += "^" + without.String() + "\n"
	}
	c.Stdin = strings.NewReader(revs)
	return c.Stream(ctx, func(pack io.Reader) error {
		_, err := io.Copy(w, pack)
		return err
	})
}

// made adds the pack that git makes where it is told to, and says the name of.
func (o *Objects) made(ctx context.Context, stdin io.Reader, check func(dir string) error, args func(base string) []string) (packfile.Held, error) {
	dir, err := os.MkdirTemp(o.Dir, packfile.TempPrefix)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	base := filepath.Join(dir, "pack", "new")
	if err := os.Mkdir(filepath.Dir(base), 0o777); err != nil {
		return "", err
	}
	c, done, err := o.command(args(base)...)
	if err != nil {
		return "", err
	}
	defer done()
	c.Stdin = stdin
	c.Env = append(c.Env, fmt.Sprintf("GIT_ALLOC_LIMIT=%d", maxObject)) // a few bytes can claim to be any size
	if _, err := c.Output(ctx); err != nil {
		return "", err
	}
	if check != nil {
		if err := check(dir); err != nil {
			return "", err
		}
	}
	packs, err := packfile.Files(filepath.Dir(base), "new-", ".pack")
	if err == nil && len(packs) != 1 {
		err = fmt.Errorf("git made %d packs of one", len(packs))
	}
	if err != nil {
		return "", err
	}
	return packfile.Take(o.Dir, strings.TrimSuffix(packs[0], ".pack"))
}

// command is a call of git on the directory, in an empty repository that is removed with done. Where none can be
// made it is the one whose objects these are, whose configuration names nothing that these calls run.
func (o *Objects) command(args ...string) (c Command, done func(), err error) {
	empty, err := os.MkdirTemp("", "countersign-git-")
	done = func() { _ = os.RemoveAll(empty) }
	if err == nil {
		if err = os.Mkdir(filepath.Join(empty, "refs"), 0o700); err == nil && o.Format == packfile.SHA256 {
			err = os.WriteFile(filepath.Join(empty, "config"), []byte("[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha256\n"), 0o600)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(empty, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600)
		}
	} else if _, absent := os.Stat(filepath.Join(filepath.Dir(o.Dir), "HEAD")); absent == nil {
		empty, done, err = filepath.Dir(o.Dir), func() {}, nil
	}
	if err != nil {
		done()
		return c, nil, err
	}
	c = Command{Dir: o.Dir, Args: args, Env: []string{"GIT_DIR=" + empty, "GIT_OBJECT_DIRECTORY=" + o.Dir}}
	if _, err := os.Stat(o.More); err == nil {
		c.Env = append(c.Env, Alternates(o.More))
	}
	return c, done, nil
}

var errComplained = errors.New("something is wrong")

// inFlight is how many questions wait in the pipe: they fit in it, whatever else is full.
const inFlight = 32

// catFile is a process that answers.
type catFile struct {
	in, out *os.File
	answers *bufio.Reader
	kill    context.CancelFunc
	started func() // removes what git needs no more once it has answered
	tokens  chan struct{}
	ended   chan struct{} // closed once the process is no more

	mu      sync.Mutex
	closed  bool
	waiting chan *question // in the order in which they were asked

	complained string // what is wrong, and git says once: what is missing then may be there
}

// start starts git. It ends when its input does: with close, with this process, or when nobody
// has the Objects any more.
func (o *Objects) start() (*catFile, error) {
	c, done, err := o.command("cat-file", "--batch-command")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd, run := c.command(ctx), &catFile{kill: cancel, started: sync.OnceFunc(done), tokens: make(chan struct{}, inFlight), ended: make(chan struct{}), waiting: make(chan *question, inFlight)}
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
	run.answers = bufio.NewReaderSize(patient{run.out}, maxSaid)
	go run.serve(cmd.Wait)
	return run, nil
}

// patient waits for git's next word for a while, and not for ever: what git reads may be a pipe.
type patient struct{ *os.File }

func (p patient) Read(b []byte) (int, error) {
	_ = p.SetReadDeadline(time.Now().Add(maxTime)) // else there is none, as on Windows
	return p.File.Read(b)
}

// put asks a question, unless the process has been closed.
func (r *catFile) put(q *question) bool {
	r.tokens <- struct{}{}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		<-r.tokens
		return false
	}
	r.waiting <- q
	_, _ = io.WriteString(r.in, q.command+" "+q.id.String()+"\n") // else there is no answer
	return true
}

// serve reads the answers until the process is closed. After one that cannot be read there is
// no other.
func (r *catFile) serve(wait func() error) {
	var failed error
	for q := range r.waiting {
		if q.err = errUnasked; failed == nil {
			if q.err = r.answer(q); q.err != nil && !errors.Is(q.err, packfile.ErrMissing) && !errors.Is(q.err, errComplained) {
				failed = q.err
				r.end()
			}
		}
		close(q.done)
		<-r.tokens
	}
	r.end()
	_ = wait()
	close(r.ended)
}

// close lets the process answer what it was asked, and nothing more.
func (r *catFile) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		close(r.waiting)
	}
}

// end ends the process now.
func (r *catFile) end() {
	r.close()
	r.kill()
	_ = errors.Join(r.in.Close(), r.out.Close())
	r.started()
}

// answer reads an answer: "<id> missing", or "<id> <type> <size>" with the content after it if
// that was asked for. Other lines before it are what is wrong.
func (r *catFile) answer(q *question) error {
	var said strings.Builder
	name := q.id.String() + " "
	for {
		line, err := r.answers.ReadSlice('\n')
		text := strings.TrimSuffix(string(line), "\n")
		if err != nil || said.Len() > maxSaid {
			return fmt.Errorf("git cat-file: %w", errors.Join(&Error{Said: said.String() + text, Err: errors.New("no answer")}, err))
		}
		answer, ok := strings.CutPrefix(text, name)
		switch {
		case ok && answer == "missing" && r.complained+said.String() == "":
			r.started()
			return packfile.ErrMissing
		case ok && answer == "missing":
			return fmt.Errorf("%w: %w", packfile.ErrDamaged, &Error{Said: r.complained + said.String(), Err: errComplained})
		case ok:
			r.started()
			r.complained = cmp.Or(r.complained, said.String())
			word, digits, _ := strings.Cut(answer, " ")
			q.kind, err = plumbing.ParseObjectType(word)
			if err == nil {
				q.size, err = strconv.ParseInt(digits, 10, 64)
			}
			if err != nil || q.size < 0 {
				return fmt.Errorf("git cat-file answers %+q", text)
			}
			if q.command == "contents" {
				q.data, err = contents(r.answers, q.size)
			}
			return err
		case !strings.HasPrefix(text, "warning: "):
			said.WriteString(text + "\n")
		}
	}
}
