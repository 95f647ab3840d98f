package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// limit is how long a verifier may take for one question (V-10).
const limit = 60 * time.Second

// longest is how long an answer may be.
const longest = 64 << 20

// A Command is a verifier that is another program, which is started when it is first
// asked, and again after it failed. Say, which may be nil, gets the lines that it writes on
// standard error.
type Command struct {
	Argv  []string
	Say   func(line string)
	Limit time.Duration // for one question; 0 is a minute

	running *running
}

type running struct {
	*exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	pipe io.Closer // of out
}

// stop ends the verifier, and with the pipes what it started and left behind.
func (r *running) stop() {
	_ = r.Process.Kill()
	_, _ = r.in.Close(), r.pipe.Close()
}

// Ask asks one question.
func (c *Command) Ask(q Question) (Answer, error) {
	a, err := c.ask(q)
	if err != nil && c.running != nil {
		c.running.stop()
		_ = c.running.Wait()
		c.running = nil
	}
	return a, err
}

func (c *Command) ask(q Question) (a Answer, err error) {
	line, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	if c.running == nil {
		if err := c.start(); err != nil {
			return a, err
		}
	}
	r, late := c.running, make(chan bool, 1)
	within := c.Limit
	if within == 0 {
		within = limit
	}
	timer := time.AfterFunc(within, func() {
		late <- true
		r.stop()
	})
	defer timer.Stop()
	_, err = r.in.Write(append(line, '\n'))
	if err == nil {
		line, err = r.line()
	}
	select {
	case <-late:
		return a, fmt.Errorf("no answer within %s", within)
	default:
	}
	if err != nil {
		return a, fmt.Errorf("the verifier ended: %w", err)
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, fmt.Errorf("no answer in JSON: %w", err)
	}
	return a, nil
}

func (r *running) line() (line []byte, err error) {
	for {
		part, err := r.out.ReadSlice('\n')
		if line = append(line, part...); !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > longest {
			return nil, errors.New("the answer is too long")
		}
	}
}

func (c *Command) start() error {
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.WaitDelay = time.Second // for standard error, which what it started may keep open
	if c.Say != nil {
		cmd.Stderr = &lines{say: c.Say}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.running = &running{cmd, in, bufio.NewReaderSize(out, 64<<10), out}
	return nil
}

// lines says each whole line that is written, and what is longer than any line should be in parts.
type lines struct {
	say  func(string)
	rest []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok && len(l.rest) < 4096 {
			return len(p), nil
		}
		l.say(string(line))
		l.rest = rest
	}
}

// Close ends the verifier's input. It is an error if it does not end with code 0 then (V-6).
func (c *Command) Close() error {
	if c.running == nil {
		return nil
	}
	r := c.running
	c.running = nil
	timer := time.AfterFunc(limit, r.stop)
	defer timer.Stop()
	if err := errors.Join(r.in.Close(), r.Wait()); err != nil {
		return fmt.Errorf("the verifier: %w", err)
	}
	return nil
}

// Serve answers questions, a line each, until there are no more (V-6 to V-8).
func Serve(from io.Reader, of Verifier, to func(text string) error) error {
	in := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		var q Question
		if err := json.Unmarshal(line, &q); err != nil {
			return fmt.Errorf("a question: %w", err)
		}
		a, err := of.Ask(q)
		if err != nil {
			a = Answer{ID: q.ID, Verdict: Unsupported}
		}
		out, err := json.Marshal(a)
		if err != nil {
			return err
		}
		if err := to(string(out) + "\n"); err != nil {
			return err
		}
	}
}
