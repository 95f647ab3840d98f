package console

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/term"
)

// A Borrowed terminal is not closed by whoever has it.
type Borrowed struct{ io.Writer }

// Close leaves the terminal open.
func (Borrowed) Close() error { return nil }

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(v any) bool { return TerminalOf(v) != nil }

// TerminalOf is the terminal that a reader or writer is, nil for none.
func TerminalOf(v any) *os.File {
	if f := File(v); f != nil && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// Watched reports whether a writer takes the place of a line of progress.
func Watched(w io.Writer) bool {
	_, is := w.(*over)
	return is
}

// Size is how many columns and rows a writer's terminal has, or those of the oldest
// ones, 80 and 24, where nobody knows.
func Size(w io.Writer) (columns, rows int) {
	if f := TerminalOf(w); f != nil {
		if columns, rows, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 && rows > 0 {
			return columns, rows
		}
	}
	return 80, 24
}

// mostAtOnce is how many bytes are written to a pager at once: what is longer than a pager reads
// at once, a linePipe throws away (some have 1024 bytes).
const mostAtOnce = 256

// Page shows a text on a terminal through a pager, a command line, with the variables
// that git sets for one. It returns how many of the text's lines the pager took, which is
// as many as were seen or, where it reads ahead, more.
func Page(text, pager string, person io.Writer, getenv func(string) string) (taken int, err error) {
	if b, ok := person.(Borrowed); ok {
		person = b.Writer
	}
	if o, ok := person.(*over); ok {
		defer o.p.Hold()()
	}
	on := TerminalOf(person)
	r, w, err := linePipe()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	go func() {
		defer w.Close()
		for line := range strings.Lines(text) {
			for piece := range slices.Chunk([]byte(line), mostAtOnce) {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
		}
	}()
	cmd := exec.Command("sh", "-c", pager)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, on, on
	cmd.Env = cmd.Environ()
	for name, value := range map[string]string{"LESS": "FRX", "LV": "-c"} {
		if getenv(name) == "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	paging.Add(1)
	defer paging.Add(-1)
	// Ctrl-C is the pager's to take. It ends this program again once that is gone.
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	defer signal.Stop(interrupted)
	if err := cmd.Run(); err != nil {
		return 0, err
	}
	left, err := io.Copy(io.Discard, r)
	return strings.Count(text[:len(text)-int(left)], "\n"), err
}

// Browse opens an address in the person's browser: the program that BROWSER names,
// else the system's own. It is an error where there is none, as in a session
// without a display. The program is one of PATH, never of the directory that this
// one runs in.
func Browse(address, browser string, getenv func(string) string) error {
	words := strings.Fields(browser)
	switch {
	case len(words) > 0:
	case runtime.GOOS == "windows":
		words = []string{"rundll32", "url.dll,FileProtocolHandler"}
	case runtime.GOOS == "darwin":
		words = []string{"open"}
	case getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != "":
		words = []string{"xdg-open"}
	default:
		return errors.New("there is no display, and BROWSER names no program")
	}
	cmd := exec.Command(words[0], append(words[1:], address)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stderr, os.Stderr // some browsers are in the terminal
	return cmd.Run()
}

// paging is how many pagers have the terminal.
var paging atomic.Int32

// TempDir makes a directory for the time that the program runs: it is removed with all
// that is in it also when the person ends the program before (Ctrl-C, a terminal that
// closes), which then ends as it would have.
func TempDir(pattern string) (dir string, remove func(), err error) {
	if dir, err = os.MkdirTemp("", pattern); err != nil {
		return "", nil, err
	}
	ended, done := make(chan os.Signal, 1), make(chan struct{})
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // as under nohup, where it ends nothing
			signal.Notify(ended, s)
		}
	}
	go func() {
		for {
			select {
			case <-done:
				return
			case s := <-ended:
				if s == os.Interrupt && paging.Load() > 0 {
					continue
				}
				os.RemoveAll(dir)
				signal.Reset(s)
				if self, err := os.FindProcess(os.Getpid()); err != nil || self.Signal(s) != nil {
					_ = self.Kill()
				}
			}
		}
	}()
	return dir, sync.OnceFunc(func() {
		signal.Stop(ended)
		close(done)
		os.RemoveAll(dir)
	}), nil
}

// Copying is the code that offers a text to a terminal's clipboard (xterm's OSC 52),
// which works through ssh as well. A terminal that does not know it shows nothing.
func Copying(text string) string {
	return "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\a"
}

// Progress is one line on a terminal that says what a command is at, while it prints nothing:
// numbers, and no other text. What is printed by way of Over takes its place. Several
// goroutines may use it; a nil Progress is for nobody.
type Progress struct {
	command string
	on      io.Writer
	now     func() time.Time
	stop    chan struct{}

	mu           sync.Mutex
	text         string
	began, quiet time.Time // quiet is since when nothing was printed
	drawn        time.Time
	wide         int  // columns that the line has now
	midline      bool // what was printed last is no whole line, as a question is none
	still        bool // what asks the person itself may be there: the line is not drawn again
	held, ended  bool
}

// patience is how long nothing is printed before the line is shown, and redraw how often it
// then is drawn.
const (
	patience = 50 * time.Millisecond
	redraw   = 40 * time.Millisecond
)

// Begin shows the progress of a command on a terminal until it ends.
func Begin(command string, on io.Writer, now func() time.Time) *Progress {
	at := now()
	p := &Progress{command: command, on: on, now: now, began: at, quiet: at, stop: make(chan struct{})}
	go func() {
		ticks := time.NewTicker(patience / 3)
		defer ticks.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-ticks.C:
				p.tick()
			}
		}
	}()
	return p
}

func (p *Progress) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.held || p.ended || p.midline || now.Sub(p.quiet) < patience || p.wide > 0 && (p.still || now.Sub(p.drawn) < redraw) {
		return
	}
	what := p.text
	if what == "" {
		what = "working"
	}
	text := fmt.Sprintf("%s: %s (%.1f s)", p.command, what, now.Sub(p.began).Seconds())
	fmt.Fprintf(p.on, "\r%-*s", p.wide, text)
	p.wide, p.drawn = max(p.wide, len(text)), now
}

// Show says how far it is; total 0 is not known.
func (p *Progress) Show(what string, done, total int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf("%d %s", done, what)
	if total > 0 {
		p.text = fmt.Sprintf("%d of %d %s", done, total, what)
	}
}

// Hold leaves the terminal to somebody else, as a pager or a person who answers, until the
// function that it returns is called.
func (p *Progress) Hold() (release func()) {
	if p == nil {
		return func() {}
	}
	p.set(func() { p.held = true })
	return func() { p.set(func() { p.held, p.midline, p.quiet = false, false, p.now() }) }
}

// Still draws the line once at most from now on: a program that may ask has the terminal, too.
func (p *Progress) Still() {
	if p != nil {
		p.set(func() { p.still = true })
	}
}

// End wipes the line for good.
func (p *Progress) End() {
	if p != nil {
		p.set(func() {
			if !p.ended {
				p.ended = true
				close(p.stop)
			}
		})
	}
}

// set wipes the line and changes what it depends on.
func (p *Progress) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	change()
}

func (p *Progress) wipe() {
	if p.wide > 0 {
		fmt.Fprintf(p.on, "\r%*s\r", p.wide, "")
		p.wide = 0
	}
}

// Over is a writer whose text takes the place of the line. Once something goes elsewhere than
// to a terminal, as to a pager, the line ends.
func (p *Progress) Over(w io.Writer) io.Writer { return &over{p, w} }

type over struct {
	p *Progress
	w io.Writer
}

func (o *over) Write(text []byte) (n int, err error) {
	if !IsTerminal(o.w) {
		o.p.End()
		return o.w.Write(text)
	}
	o.p.set(func() {
		n, err = o.w.Write(text)
		o.p.midline, o.p.quiet = len(text) > 0 && text[len(text)-1] != '\n', o.p.now()
	})
	return n, err
}

// A Locked writer lets several goroutines write, one at a time.
type Locked struct {
	W  io.Writer
	mu sync.Mutex
}

func (l *Locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.W.Write(p)
}
