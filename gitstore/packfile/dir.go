package packfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
)

// dir is one objects directory.
type dir struct {
	path string

	mu     sync.RWMutex
	listed bool
	packs  []*pack
	bad    []error // indexes that cannot be read
	change int     // how often the packs changed

	last atomic.Pointer[pack] // where the last object was: the next one is likely there
}

// list reads which packs there are, if it was not done yet or is to be done
// again, and returns how often they have changed. Packs that are open stay, even
// when their file is gone.
func (d *dir) list(again bool) (change int, err error) {
	d.mu.RLock()
	done, change := d.listed && !again, d.change
	d.mu.RUnlock()
	if done {
		return change, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listed && !again {
		return d.change, nil
	}
	before := d.packs
	entries, err := os.ReadDir(filepath.Join(d.path, "pack"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.change, fmt.Errorf("listing the packs: %w", err)
	}
	have := map[string]bool{}
	for _, e := range entries {
		have[e.Name()] = true
	}
	d.keep(have)
	for _, e := range entries {
		if base, ok := strings.CutSuffix(e.Name(), ".idx"); ok && have[base+".pack"] {
			d.add(base)
		}
	}
	if !slices.Equal(before, d.packs) {
		d.change++
	}
	d.listed = true
	return d.change, nil
}

// keep forgets the packs whose files are gone and not open.
func (d *dir) keep(have map[string]bool) {
	var packs []*pack
	for _, p := range d.packs {
		if have[p.name+".pack"] || p.isOpen() {
			packs = append(packs, p)
		}
	}
	d.packs, d.bad = packs, nil
	d.last.Store(nil)
}

// forget takes packs out of the list, which is read again before it is used.
// Who reads one of them goes on, and the collector closes its files.
func (d *dir) forget(names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.packs = slices.DeleteFunc(slices.Clone(d.packs), func(p *pack) bool { return slices.Contains(names, p.name) })
	d.listed = false
	d.last.Store(nil)
}

func (d *dir) add(name string) {
	for _, p := range d.packs {
		if p.name == name {
			return
		}
	}
	path := filepath.Join(d.path, "pack", name)
	x, err := openIndex(path + ".idx")
	switch {
	case errors.Is(err, fs.ErrNotExist): // deleted since it was listed
	case err != nil:
		d.bad = append(d.bad, fmt.Errorf("%s.idx: %w", name, err))
	default:
		d.packs = append(d.packs, &pack{name: name, path: path + ".pack", index: x})
	}
}

func (d *dir) unreadable() error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return errors.Join(d.bad...)
}

func (d *dir) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, p := range d.packs {
		errs = append(errs, p.close())
	}
	d.packs, d.listed = nil, false
	d.last.Store(nil)
	return errors.Join(errs...)
}

// locate finds the pack that holds an object, and where. A nil pack means that
// none does.
func (d *dir) locate(id plumbing.Hash) (*pack, int64, error) {
	last := d.last.Load()
	if last != nil {
		if offset, err := last.index.find(id); err != nil || offset > 0 {
			return last, offset, err
		}
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, p := range d.packs {
		if p == last {
			continue
		}
		offset, err := p.index.find(id)
		if err != nil {
			return nil, 0, fmt.Errorf("%s.idx: %w", p.name, err)
		}
		if offset > 0 {
			d.last.Store(p)
			return p, offset, nil
		}
	}
	return nil, 0, nil
}

func (d *dir) read(id plumbing.Hash, c *cache) (Object, error) {
	p, offset, err := d.locate(id)
	if err != nil {
		return Object{}, err
	}
	if p != nil {
		o, err := p.read(offset, c)
		if !errors.Is(err, fs.ErrNotExist) {
			return o, p.wrap(err)
		}
	}
	return readLoose(d.loose(id))
}

func (d *dir) size(id plumbing.Hash, c *cache) (header, error) {
	p, offset, err := d.locate(id)
	if err != nil {
		return header{}, err
	}
	if p != nil {
		h, err := p.size(offset, c)
		if !errors.Is(err, fs.ErrNotExist) {
			return h, p.wrap(err)
		}
	}
	return sizeLoose(d.loose(id))
}

// loose is the file of a loose object.
func (d *dir) loose(id plumbing.Hash) string {
	name := id.String()
	return filepath.Join(d.path, name[:2], name[2:])
}
