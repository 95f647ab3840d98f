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
	member *member
	target string
	files  []string
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
func (m *member) turn(ctx context.Context, target string, files []string) (done func(), err error) {
	t := &turn{member: m, target: target, ready: make(chan struct{})}
	if target == pipeline.TargetWorktree {
		t.target = ""
		for _, f := range files {
			t.files = append(t.files, strings.ToLower(f)) // two names may be one file
		}
	}
	m.await(ctx, t.ready, func() { m.queue = append(m.queue, t) })
	done = func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.places.take(t, -1)
	}
	if t.err != nil {
		done()
	}
	return done, t.err
}

// call gives those who wait their turn, the oldest transaction first. Another
// process may have been at the place: they see the ledger as it is now.
func (b *Batch) call(ctx context.Context) {
	if len(b.queue) == 0 {
		return
	}
	err := b.refresh(ctx)
	slices.SortFunc(b.queue, func(x, y *turn) int { return x.member.index - y.member.index })
	left := b.queue[:0]
	for _, t := range b.queue {
		if !b.places.free(t) {
			left = append(left, t)
			continue
		}
		b.places.take(t, 1)
		b.waiting--
		t.err = err
		close(t.ready)
	}
	b.queue = left
}

// free tells whether nobody is at a place, at a directory above it, or below it.
func (p *places) free(t *turn) bool {
	if p.refs[t.target] {
		return false
	}
	for _, file := range t.files {
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
func (p *places) take(t *turn, by int) {
	if p.refs == nil {
		p.refs, p.files, p.above = map[string]bool{}, map[string]bool{}, map[string]int{}
	}
	if t.target != "" {
		p.refs[t.target] = by > 0
	}
	for _, file := range t.files {
		p.files[file] = by > 0
		for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
			p.above[dir] += by
		}
	}
}
