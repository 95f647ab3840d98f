package packfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/gofrs/flock"
)

// dir is one objects directory.
type dir struct {
	path      string
	removable bool // by Remove, unless lock is held

	mu     sync.RWMutex
	lock   *flock.Flock
	listed bool
	packs  []*pack
	files  map[string]bool // beside them, as they were listed last
	bad    []error         // indexes that cannot be read
	change int             // how often any of these changed

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
	if err := d.use(); err != nil {
		return d.change, fmt.Errorf("listing the packs: %w", err)
	}
	names, files, err := packNames(d.path)
	if err != nil {
		return d.change, err
	}
	before, moved := d.packs, !maps.Equal(d.files, files) // in the middle of a move the files alone tell of it
	d.packs, d.files, d.bad = nil, files, nil
	d.last.Store(nil)
	for _, p := range before {
		if files[p.name+".pack"] || p.isOpen() {
			d.packs = append(d.packs, p)
		}
	}
	for _, name := range names {
		if slices.ContainsFunc(d.packs, func(p *pack) bool { return p.name == name }) {
			continue
		}
		path := filepath.Join(d.path, "pack", name)
		x, err := openIndex(path + ".idx")
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted since it was listed, and what it had is elsewhere
			moved = true
		case err != nil:
			d.bad = append(d.bad, fmt.Errorf("%s.idx: %w", name, err))
		default:
			d.packs = append(d.packs, &pack{name: name, path: path + ".pack", index: x})
		}
	}
	if moved || !slices.Equal(before, d.packs) {
		d.change++
	}
	d.listed = true
	return d.change, nil
}

// packNames lists the packs that have an index, in the order of their names,
// and all files beside them.
func packNames(objectsDir string) (names []string, files map[string]bool, err error) {
	entries, err := os.ReadDir(filepath.Join(objectsDir, "pack"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("listing the packs: %w", err)
	}
	files = map[string]bool{}
	for _, e := range entries {
		files[e.Name()] = true
	}
	for _, e := range entries {
		if base, ok := strings.CutSuffix(e.Name(), ".idx"); ok && files[base+".pack"] {
			names = append(names, base)
		}
	}
	return names, files, nil
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
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	d.packs, d.listed, d.lock = nil, false, nil
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
	h, data, err := readLoose(d.loose(id), true)
	return Object{h.kind, data}, err
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
	h, _, err := readLoose(d.loose(id), false)
	return h, err
}

// loose is the file of a loose object.
func (d *dir) loose(id plumbing.Hash) string {
	name := id.String()
	return filepath.Join(d.path, name[:2], name[2:])
}

// readLoose reads a loose object, or its header alone.
func readLoose(path string, whole bool) (h header, data []byte, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil, ErrMissing
	}
	if err != nil {
		return h, nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r := getReader()
	defer r.put()
	if err := r.at(f, 0, 1<<62).stream(); err != nil {
		return h, nil, err
	}
	if h, err = looseHeader(r.zlib); err == nil && whole {
		data, err = r.rest(nil, h.size)
	}
	return h, data, err
}

// looseHeader reads "<type> <size>\0".
func looseHeader(z io.Reader) (header, error) {
	const longest = len("commit 18446744073709551615\x00")
	var text []byte
	for one := make([]byte, 1); ; text = append(text, one[0]) {
		if _, err := io.ReadFull(z, one); err != nil {
			return header{}, readError(err)
		}
		if one[0] == 0 {
			break
		}
		if len(text) == longest {
			return header{}, damaged("a loose object without a header")
		}
	}
	name, digits, _ := strings.Cut(string(text), " ")
	kind, err1 := plumbing.ParseObjectType(name)
	size, err2 := strconv.ParseUint(digits, 10, 62)
	if err1 != nil || err2 != nil || kind > plumbing.TagObject || strconv.FormatUint(size, 10) != digits {
		return header{}, damaged("a loose object with the header %+q", text)
	}
	return header{kind: kind, size: int64(size)}, nil
}
