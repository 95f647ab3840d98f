package batch

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline"
)

// A turn is a member's time at a place: a ref, or files of the working tree.
type turn struct {
	target string // "" for the working tree
	ready  chan struct{}
	err    error
}

// places are where somebody is.
type places struct {
	refs  map[string]bool
	files map[string]bool
	above map[string]int // how many of the files are below a directory
}

// turn waits until nobody is at a place, and for the end of the round: whose turn
// it is does not depend on who was faster.
func (m *member) turn(ctx context.Context, target string) (done func(), err error) {
	t := &turn{target: target, ready: make(chan struct{})}
	if target == pipeline.TargetWorktree {
		t.target = ""
	}
	m.await(ctx, t.ready, func() { m.asked = t })
	done = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.places.take(t.target, m.files, -1)
	}
	if t.err != nil {
		done()
	}
	return done, t.err
}

// call gives those who wait their turn, the oldest transaction first: nobody goes
// before an older one that has not had its turn and touches one of its files.
// Another process may have been at the place: they see the ledger as it is now.
func (b *Batch) call(ctx context.Context) {
	if !slices.ContainsFunc(b.all, func(m *member) bool { return m.asked != nil }) {
		return
	}
	err := b.refresh(ctx)
	var older places
	for _, m := range b.all {
		t := m.asked
		switch {
		case m.over:
		case t != nil && b.places.free(t.target, m.files) && older.free("", m.files):
			b.places.take(t.target, m.files, 1)
			m.asked, m.over = nil, true
			b.waiting--
			t.err = err
			close(t.ready)
		default:
			older.take("", m.files, 1)
		}
	}
}

// folded are the names by which files are compared: two may be one.
func folded(files []string) []string {
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = strings.ToLower(f)
	}
	return out
}

// free reports whether nobody is at a place, at a directory above it, or below it.
//
// A ref is one member's. The files then play no part.
func (p *places) free(target string, files []string) bool {
	if target != "" {
		return !p.refs[target]
	}
	for _, file := range files {
		if p.files[file] || p.above[file] > 0 {
			return false
		}
		for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
			if p.files[dir] {
				return false
			}
		}
	}
	return true
}

// take marks a place as taken (1), or leaves it (-1).
func (p *places) take(target string, files []string, by int) {
	if p.refs == nil {
		p.refs, p.files, p.above = map[string]bool{}, map[string]bool{}, map[string]int{}
	}
	if target != "" {
		p.refs[target] = by > 0
		return
	}
	for _, file := range files {
		p.files[file] = by > 0
		for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
			p.above[dir] += by
		}
	}
}
