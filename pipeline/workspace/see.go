package workspace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/countersign-dev/countersign/pipeline/patch"
)

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
		return sight{state: Other}
	}
	before, after := t.fits(info, f.Before), t.fits(info, f.After)
	if !before.same && !after.same {
		return sight{state: Other}
	}
	file, err := dir.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return sight{err: err}
	}
	defer file.Close()
	opened, err := file.Stat()
	if err != nil || !os.SameFile(info, opened) {
		return sight{state: Other, err: err} // it was replaced, perhaps by a link
	}
	err = compare(file, buf, &before, &after)
	s := sight{info: opened, err: err}
	switch {
	case before.same:
		s.state = Before
	case after.same:
		s.state = After
	}
	return s
}

// onlyGone reports whether a directory holds nothing but directories and files
// that the same change removes.
func onlyGone(dir *os.Root, name string, gone map[string]bool) bool {
	above := path.Dir(name)
	err := fs.WalkDir(dir.FS(), path.Base(name), func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !gone[path.Join(above, p)] {
			return errInTheWay
		}
		return err
	})
	return err == nil
}

// A candidate is content that a file may turn out to have.
type candidate struct {
	rest []byte
	same bool
}

// fits says what a file of this size and mode may be.
func (t *Tree) fits(info fs.FileInfo, f *patch.File) candidate {
	if f == nil || info.Size() != int64(len(f.Data)) || !t.ignoreMode && modeOf(info) != f.Mode {
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
