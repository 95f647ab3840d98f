package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/patch"
)

// A State is what a file on disk is, compared with a change.
type State int

// The states of a file on disk.
const (
	Other  State = iota // neither
	Before              // as the change found it
	After               // as the change leaves it
)

// Inspect compares each file on disk with its Before and After, in order. An
// error is a file that could not be read, never one that differs.
func (t *Tree) Inspect(files []patch.Change) ([]State, error) {
	out := make([]State, len(files))
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
	state State
	info  fs.FileInfo
	err   error
}

// look compares files with what is on disk. Where a file is to come, whatever
// is in its way must be among the gone.
func (t *Tree) look(files []patch.Change, gone map[string]bool) []sight {
	out := make([]sight, len(files))
	all := folders(files, func(int) bool { return true })
	_ = inParallel(t.workers, len(all), func(n int) error {
		t.lookInto(all[n], files, gone, out)
		return nil
	})
	return out
}

func (t *Tree) lookInto(folder folder, files []patch.Change, gone map[string]bool, out []sight) {
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
		return sight{state: Other}
	case f.Before == nil:
		return sight{state: Before}
	case f.After == nil:
		return sight{state: After}
	}
	return sight{state: Other}
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
