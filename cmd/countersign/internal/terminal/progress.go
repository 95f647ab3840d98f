package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Progress is one line on a terminal that says how far a command is: numbers, and no other
// text. Several goroutines may use it. The zero Progress is for nobody.
type Progress struct {
	Command string
	On      func() io.Writer // the terminal; nil: nobody is looking
	Now     func() time.Time

	mu   sync.Mutex
	last time.Time
	wide int
}

// Show says how far it is, at most ten times a second; total 0 is not known.
func (p *Progress) Show(what string, done, total int) {
	if p.On == nil || !p.mu.TryLock() {
		return
	}
	defer p.mu.Unlock()
	now := p.Now()
	if now.Sub(p.last) < 100*time.Millisecond {
		return
	}
	p.last = now
	text := fmt.Sprintf("%s: %d %s", p.Command, done, what)
	if total > 0 {
		text = fmt.Sprintf("%s: %d of %d %s", p.Command, done, total, what)
	}
	fmt.Fprintf(p.On(), "\r%-*s", p.wide, text)
	p.wide = max(p.wide, len(text))
}

// End wipes the line.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.On != nil && p.wide > 0 {
		fmt.Fprintf(p.On(), "\r%*s\r", p.wide, "")
	}
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
