package console

import (
	"bytes"
	"testing"
	"time"
)

// TestProgress: the line comes while nothing is printed, leaves no trace, and stands in
// nobody's way.
func TestProgress(t *testing.T) {
	now := time.Unix(0, 0)
	var out bytes.Buffer
	p := &Progress{command: "sync", on: &out, now: func() time.Time { return now }, began: now, quiet: now, stop: make(chan struct{})}
	after := func(ms int, want string) {
		t.Helper()
		now = now.Add(time.Duration(ms) * time.Millisecond)
		p.tick()
		if got := out.String(); got != want {
			t.Errorf("at %v: %q, want %q", now.Sub(p.began), got, want)
		}
		out.Reset()
	}
	print := func(text string) {
		p.set(func() { p.midline, p.quiet = text[len(text)-1] != '\n', now; out.WriteString(text) })
		out.Reset()
	}
	after(40, "")
	after(30, "\rsync: working (0.1 s)")
	after(30, "")
	after(70, "\rsync: working (0.2 s)")
	p.Show("commits", 7, 0)
	after(100, "\rsync: 7 commits (0.3 s)")
	p.Show("commits", 9, 10)
	after(100, "\rsync: 9 of 10 commits (0.4 s)")
	p.set(func() {})
	after(0, "\r                             \r\rsync: 9 of 10 commits (0.4 s)")
	print("said\n")
	after(40, "")
	after(60, "\rsync: 9 of 10 commits (0.5 s)")
	print("a question? ")
	after(1000, "")
	release := p.Hold()
	after(1000, "")
	release()
	after(40, "")
	after(120, "\rsync: 9 of 10 commits (2.6 s)")
	p.Still()
	out.Reset()
	after(100, "\rsync: 9 of 10 commits (2.7 s)")
	after(1000, "")
	p.End()
	out.Reset()
	p.End()
	after(1000, "")
	var nobody *Progress
	nobody.Show("commits", 1, 1)
	nobody.Hold()()
	nobody.Still()
	nobody.End()
}

// What goes elsewhere than to a terminal ends the line: a pager may read it.
func TestProgressElsewhere(t *testing.T) {
	var out bytes.Buffer
	p := Begin("list", &out, time.Now)
	over := p.Over(&out)
	if _, err := over.Write([]byte("x")); err != nil || !p.ended || !Watched(over) || Watched(&out) || IsTerminal(over) {
		t.Errorf("%v, ended: %v", err, p.ended)
	}
}
