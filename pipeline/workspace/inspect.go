package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// Inspect compares each file on disk with its Before and After, in order. An
// error is a file that could not be read, never one that differs.
func (t *Tree) Inspect(files []patch.Change) ([]effect.State, error) {
	out := make([]effect.State, len(files))
	var errs []error
	for i, s := range t.look(files, deleted(files)) {
		out[i] = s.state
		if s.err != nil {
			errs = append(errs, fmt.Errorf("reading %s: %w", patch.Quote(files[i].Path), plain(s.err)))
		}
	}
	return out, errors.Join(errs...)
}

// deleted returns the paths that a change removes.
func deleted(files []patch.Change) map[string]bool {
	gone := map[string]bool{}
	for _, f := range files {
		gone[f.Path] = f.After == nil
	}
	return gone
}

// A sight is what was seen of a file. info is nil where there is none.
type sight struct {
	state effect.State
	info  fs.FileInfo
	err   error
}

// look compares files with what is on disk. Where a file is to come, whatever
// is in its way must be among the gone.
func (t *Tree) look(files []patch.Change, gone map[string]bool) []sight {
	out := make([]sight, len(files))
	all := folders(files, func(int) bool { return true })
	_ = parallel.Try(t.workers, len(all), func(n int) error {
		folder := all[n]
		dir, at, err := t.reach(folder.name)
		if dir != nil {
			defer dir.Close()
		}
		buf := make([]byte, 16<<10)
		for _, i := range folder.files {
			switch {
			case errors.Is(err, errLink):
			case errors.Is(err, fs.ErrNotExist):
				out[i] = absent(files[i], true)
			case err != nil:
				out[i].err = err
			case at != folder.name:
				out[i] = absent(files[i], gone[below(at, folder.name)])
			default:
				out[i] = t.see(dir, files[i], gone, buf)
			}
		}
		return nil
	})
	return out
}

// below is the path of the next step from a directory to one further down.
func below(at, name string) string {
	next := strings.TrimPrefix(name, at+"/")
	if at == "." {
		next = name
	}
	next, _, _ = strings.Cut(next, "/")
	return path.Join(at, next)
}

// absent is what a path is at which there is no file.
func absent(f patch.Change, free bool) sight {
	switch {
	case f.After != nil && !free:
		return sight{state: effect.Other}
	case f.Before == nil:
		return sight{state: effect.Before}
	case f.After == nil:
		return sight{state: effect.After}
	}
	return sight{state: effect.Other}
}

// plain drops the operation and path that a caller has said already.
func plain(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}

// see looks at one file. What is not a regular file is not opened: a pipe would
// wait for ever, and a device may do anything.
func (t *Tree) see(dir *os.Root, f patch.Change, gone map[string]bool, buf []byte) sight {
	name := path.Base(f.Path)
	info, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent(f, true)
	case err != nil:
		return sight{err: err}
	case info.IsDir():
		return absent(f, f.After == nil || onlyGone(dir, f.Path, gone))
	case !info.Mode().IsRegular():
		return sight{state: effect.Other}
	}
	before, after := t.fits(info, f.Before), t.fits(info, f.After)
	if !before.same && !after.same {
		return sight{state: effect.Other}
	}
	file, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe may just have taken its place
	if err != nil {
		return sight{err: err}
	}
	defer file.Close()
	opened, err := file.Stat()
	if err != nil || !os.SameFile(info, opened) {
		return sight{state: effect.Other, err: err} // it was replaced, perhaps by a link
	}
	err = compare(file, buf, &before, &after)
	s := sight{info: opened, err: err}
	switch {
	case before.same:
		s.state = effect.Before
	case after.same:
		s.state = effect.After
	}
	return s
}

// A candidate is content that a file may turn out to have.
type candidate struct {
	rest []byte
	same bool
}

// fits says what a file of this size and mode may be.
func (t *Tree) fits(info fs.FileInfo, f *patch.File) candidate {
	if f == nil || info.Size() != int64(len(f.Data)) || !t.ignoreMode && patch.ModeOf(info) != f.Mode {
		return candidate{}
	}
	return candidate{f.Data, true}
}

// compare reads to the end or to where it is none of the candidates.
func compare(r io.Reader, buf []byte, cs ...*candidate) error {
	for {
		n, err := r.Read(buf)
		undecided := false
		for _, c := range cs {
			if c.same = c.same && bytes.HasPrefix(c.rest, buf[:n]); c.same {
				c.rest = c.rest[n:]
			}
			undecided = undecided || c.same
		}
		switch {
		case errors.Is(err, io.EOF):
			for _, c := range cs {
				c.same = c.same && len(c.rest) == 0
			}
			return nil
		case err != nil || !undecided:
			return err
		}
	}
}
