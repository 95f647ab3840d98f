package packapply

import (
	"errors"
	"path"
	"path/filepath"
	"syscall"

	"github.com/countersign-dev/countersign/pipeline/canon"
)

// A forecast is the target as the operations so far would have left it (APPLY_SPEC
// 6). It only ever reads.
type forecast struct {
	disk    disk
	dir     string           // where the target is, to ask for permissions
	changed map[string]entry // by name; what is removed is nothing
}

var errInTheWay = errors.New("something in the way is not a directory")

func (f forecast) look(name string) (entry, error) {
	if e, known := f.changed[name]; known {
		return e, nil
	}
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		if e, known := f.changed[above]; known && e.kind != directory {
			return entry{}, nil
		}
	}
	return f.disk.look(name)
}

func (f forecast) put(name, content string, before entry) error {
	made := []string{name}
	dir := path.Dir(name)
	for ; dir != "."; dir = path.Dir(dir) {
		e, err := f.look(dir)
		if err != nil {
			return err
		}
		if e.kind == directory {
			break
		}
		if e.kind != nothing {
			return errInTheWay
		}
		made = append(made, dir)
	}
	if err := f.allowed(dir, made); err != nil {
		return err
	}
	for _, above := range made[1:] {
		f.changed[above] = entry{kind: directory}
	}
	sum := canon.Sum([]byte(content))
	f.changed[name] = entry{file, before.perm, &sum}
	return nil
}

func (f forecast) remove(name string) error {
	if err := f.allowed(path.Dir(name), nil); err != nil {
		return err
	}
	f.changed[name] = entry{}
	return nil
}

// allowed asks whether names can come into an existing directory, or go from it.
func (f forecast) allowed(dir string, names []string) error {
	_, ours := f.changed[dir]
	if !ours && !writable(filepath.Join(f.dir, filepath.FromSlash(dir))) {
		return syscall.EACCES
	}
	for _, name := range names {
		if _, err := f.disk.root.Lstat(path.Base(name)); errors.Is(err, syscall.ENAMETOOLONG) {
			return err
		}
	}
	return nil
}
