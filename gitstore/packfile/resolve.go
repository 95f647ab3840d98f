package packfile

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
)

// resolve names every object: first those that are whole and all that stands
// on them, on all cores, then those whose bases are elsewhere.
func (d *decoder) resolve(base func(plumbing.Hash) (Object, error)) error {
	var whole []int32
	for i := range d.entries {
		if d.entries[i].kind <= plumbing.TagObject {
			whole = append(whole, int32(i))
		}
	}
	var failed atomic.Pointer[error]
	Parallel(len(whole), 8, func(i int) {
		if failed.Load() != nil {
			return
		}
		if err := d.above(whole[i]); err != nil {
			failed.Store(&err)
		}
	})
	if err := failed.Load(); err != nil {
		return *err
	}
	return d.complete(base)
}

// complete asks for the bases that are not in the pack. A base that is missing
// may yet be made of another one's delta.
func (d *decoder) complete(base func(plumbing.Hash) (Object, error)) error {
	ids := make([]plumbing.Hash, 0, len(d.waiting))
	for id := range d.waiting {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b plumbing.Hash) int { return int(d.waiting[a][0] - d.waiting[b][0]) })
	for _, id := range ids {
		if len(d.waiting[id]) == 0 {
			continue
		}
		o, err := base(id)
		if errors.Is(err, ErrMissing) {
			continue
		}
		if err != nil {
			return fmt.Errorf("the base of a delta: %w", err)
		}
		d.thin = true
		if err := d.walk(d.named(nil, id, none, o)); err != nil {
			return err
		}
	}
	for id := range d.waiting {
		return fmt.Errorf("the base of a delta: object %s: %w", id, ErrMissing)
	}
	return nil
}

// step is a delta to apply. The last one on its base lets go of it.
type step struct {
	entry, parent int32
	depth         int
	base          Object
	release       int64
}

// above names a whole object and all that stands on it.
func (d *decoder) above(i int32) error {
	steps, err := d.name(nil, i, 0, Object{d.entries[i].kind, d.entries[i].data})
	if err != nil {
		return err
	}
	return d.walk(steps)
}

// walk applies deltas, the last first, and then those that stand on them.
func (d *decoder) walk(steps []step) error {
	for len(steps) > 0 {
		s := steps[len(steps)-1]
		steps = steps[:len(steps)-1]
		if s.depth > maxChain {
			return damaged("more than %d deltas on each other", maxChain)
		}
		e := &d.entries[s.entry]
		data, err := applyDelta(s.base.Data, e.data)
		d.held.Add(-s.release)
		if err != nil {
			return err
		}
		o := Object{s.base.Type, data}
		if e.base = s.parent; e.base == none { // the batch has no base for it
			e.data = data
			if err := d.hold(int64(len(data))); err != nil {
				return err
			}
		}
		if steps, err = d.name(steps, s.entry, s.depth, o); err != nil {
			return err
		}
	}
	return nil
}

// name names an entry and adds the deltas on it to the steps.
func (d *decoder) name(steps []step, i int32, depth int, o Object) ([]step, error) {
	if d.made.Add(int64(len(o.Data))) > maxMade {
		return nil, damaged("its objects are larger than %d bytes together", maxMade)
	}
	id, err := o.ID()
	if err != nil {
		return nil, err
	}
	e := &d.entries[i]
	e.id, e.kind = id, o.Type
	n := len(steps)
	for child := e.first; child != none; child = d.entries[child].other {
		steps = append(steps, step{child, i, depth + 1, o, 0})
	}
	steps = d.named(steps, id, i, o)
	for k := n; k < len(steps); k++ {
		steps[k].depth = depth + 1
	}
	if len(steps) > n && depth > 0 {
		steps[n].release = int64(len(o.Data))
		err = d.hold(int64(len(o.Data)))
	}
	return steps, err
}

// named adds the deltas that wait for a name, once.
func (d *decoder) named(steps []step, id plumbing.Hash, parent int32, o Object) []step {
	if !d.byName {
		return steps
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, child := range d.waiting[id] {
		steps = append(steps, step{child, parent, 1, o, 0})
	}
	delete(d.waiting, id)
	return steps
}
