package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
)

// A childClient is the transport to a service of git's that is reached through
// the input and output of a child process: git itself for a repository on this
// machine, and the user's ssh for one on a server. Each session is one child.
type childClient struct {
	// command returns the child, which is not started yet and is to end with ctx.
	command func(ctx context.Context, service string) (*exec.Cmd, error)

	// why returns what it means that the child ended with this status, after it
	// wrote this to its stderr, and without a whole answer.
	why func(status int, said string) error

	notes *notes
}

func (c *childClient) begin(n *notes) { c.notes = n }

func (c *childClient) Close() error { return nil }

func (c *childClient) open(service string) session {
	return &childSession{client: c, service: strings.TrimPrefix(service, "git-")}
}

// A childSession is one run of a service.
type childSession struct {
	client  *childClient
	service string

	cmd    *exec.Cmd // nil before the start
	in     *os.File
	out    *os.File
	answer *bufio.Reader      // of out
	over   chan struct{}      // closed when the child has ended
	end    context.CancelFunc // ends the child, and reading and writing, at once
	adv    *refList
	failed bool
}

// lastWords is how long a child that has nothing more to answer may take to say
// why, and to end.
const lastWords = 2 * time.Second

func (s *childSession) start(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	cmd, err := s.client.command(ctx, s.service)
	if err != nil {
		end()
		return err
	}
	cmd.Stderr = s.client.notes
	cmd.WaitDelay = lastWords // a hook in the background may hold stderr for as long as it likes
	cmd.Cancel = func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err == nil { // so that git removes its locks
			return nil
		}
		return cmd.Process.Kill()
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		end()
		return err
	}
	out, theirOut, err := os.Pipe() // Wait would close a StdoutPipe before all of it is read
	if err != nil {
		end()
		_, _ = theirIn.Close(), in.Close()
		return err
	}
	cmd.Stdin, cmd.Stdout = theirIn, theirOut
	err = cmd.Start()
	_, _ = theirIn.Close(), theirOut.Close()
	if err != nil {
		end()
		_, _ = in.Close(), out.Close()
		return err
	}
	context.AfterFunc(ctx, func() { // whatever the child started may hold the other ends
		_, _ = in.Close(), out.Close()
	})
	s.cmd, s.in, s.out, s.end, s.over = cmd, in, out, end, make(chan struct{})
	s.answer = bufio.NewReaderSize(out, 32<<10)
	go func() {
		_ = cmd.Wait()
		close(s.over)
	}()
	return nil
}

// await waits for the child to end, but not for long. There is nothing more to
// say to it or to hear.
func (s *childSession) await() (ended bool) {
	_, _ = s.in.Close(), s.out.Close()
	select {
	case <-s.over:
		return true
	case <-time.After(lastWords):
		return false
	}
}

// fail notes why the call fails: where the child's answer stopped too early,
// the reason is what the child says of it.
func (s *childSession) fail(err error) error {
	s.failed = true
	cut := errors.Is(err, errCut) || isNetwork(err) || errors.Is(err, syscall.EPIPE)
	if cut && s.cmd != nil && s.await() {
		if why := s.client.why(s.cmd.ProcessState.ExitCode(), s.client.notes.message()); why != nil {
			err = why
		}
	}
	return s.client.notes.failed(err)
}

func (s *childSession) list(ctx context.Context) (*refList, error) {
	if s.adv != nil {
		return s.adv, nil
	}
	if err := s.start(ctx); err != nil {
		return nil, s.fail(err)
	}
	limited := &io.LimitedReader{R: s.answer, N: maxAdvertisement}
	adv, err := readAdvertisement(limited, "")
	switch {
	case err != nil && limited.N <= 0:
		return nil, s.fail(ErrTooLarge)
	case err != nil:
		return nil, s.fail(err)
	}
	s.adv = adv
	return adv, nil
}

func (s *childSession) fetch(ctx context.Context, request []byte) (io.Reader, error) {
	return &childBody{s}, s.say(ctx, request)
}

// say sends all that there is to say, after the list of refs.
func (s *childSession) say(ctx context.Context, parts ...[]byte) error {
	if _, err := s.list(ctx); err != nil {
		return err
	}
	for _, part := range parts {
		if _, err := s.in.Write(part); err != nil {
			return s.fail(fmt.Errorf("asking: %w", err))
		}
	}
	if err := s.in.Close(); err != nil {
		return s.fail(fmt.Errorf("asking: %w", err))
	}
	return nil
}

// A childBody remembers how reading failed.
type childBody struct{ s *childSession }

func (b *childBody) Read(p []byte) (int, error) {
	n, err := b.s.answer.Read(p)
	if err != nil && err != io.EOF {
		return n, b.s.fail(err)
	}
	if long := b.s.client.notes.count(n); long != nil {
		return 0, b.s.fail(long)
	}
	return n, err
}

func (s *childSession) push(ctx context.Context, command, pack []byte, sideband bool) (*report, error) {
	if err := s.say(ctx, command, pack); err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: s.answer, N: maxReport}
	report, err := readReport(limited, sideband, s.client.notes)
	switch {
	case err != nil && limited.N <= 0:
		return nil, s.fail(ErrTooLarge)
	case err != nil:
		return nil, s.fail(err)
	}
	return report, nil
}

// close lets a child that has done what it was asked for end in peace, and ends
// any other.
func (s *childSession) close() {
	if s.cmd == nil {
		return
	}
	if !s.failed {
		_, _ = s.in.Write(pktline.FlushPkt) // for one that was asked nothing; another has its input closed
		s.await()
	}
	s.end()
}

// newFileClient serves a repository on this machine with git, so that its hooks
// run.
func newFileClient(path string) *childClient {
	return &childClient{
		command: func(ctx context.Context, service string) (*exec.Cmd, error) {
			info, err := os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
				return nil, ErrNotFound
			}
			if err != nil {
				return nil, err
			}
			return exec.CommandContext(ctx, "git", service, path), nil
		},
		why: func(status int, said string) error {
			if status <= 0 || said == "" {
				return nil
			}
			return fmt.Errorf("git ended with status %d: %s", status, oneLine(said))
		},
	}
}

// Clone makes a clone of the newest commit at an address, without its files, in an empty
// directory. git does that, in an environment; the authorization, unless that is "", goes
// to this address alone.
func Clone(ctx context.Context, address, dir, authorization string, environ []string) error {
	cmd := exec.CommandContext(ctx, "git", "-c", "core.hooksPath=/dev/null", "clone", "--quiet", "--depth", "1", "--no-checkout", "--", address, dir)
	cmd.Env = append(environ, "GIT_TERMINAL_PROMPT=0")
	if authorization != "" {
		n := 0
		for _, v := range environ {
			if count, ok := strings.CutPrefix(v, "GIT_CONFIG_COUNT="); ok {
				n, _ = strconv.Atoi(count)
			}
		}
		cmd.Env = append(cmd.Env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", n+1), fmt.Sprintf("GIT_CONFIG_KEY_%d=http.%s.extraHeader", n, address),
			fmt.Sprintf("GIT_CONFIG_VALUE_%d=Authorization: %s", n, authorization))
	}
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cloning %s: %w: %s", address, err, strings.TrimSpace(string(said[:min(len(said), 300)])))
	}
	return nil
}
