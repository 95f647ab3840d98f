package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Read returns the Policy of a tree, and whether the tree has a file. A tree
// without one has Default. Everything else that keeps the file from being read
// is an error and never Default: that it is a directory or a link, or stands
// below one, that it has another spelling of the name, that reading fails.
func Read(tree fs.FS) (p Policy, found bool, err error) {
	if found, err = lookFor(tree); err != nil {
		return Policy{}, false, fmt.Errorf("reading the Policy: %w", err)
	}
	if !found {
		return Default(), false, nil
	}
	raw, err := fs.ReadFile(tree, Path)
	if err != nil {
		return Policy{}, false, fmt.Errorf("reading the Policy: %w", err)
	}
	p, err = Parse(Path, raw)
	return p, err == nil, err
}

// lookFor goes down to the file by what each directory lists, which no link and
// no file system that ignores case can lead astray.
func lookFor(tree fs.FS) (bool, error) {
	dir := path.Dir(Path)
	if in, err := entry(tree, ".", dir); err != nil || in == nil {
		return false, err
	} else if !in.IsDir() {
		return false, fmt.Errorf("%s is %s, not a directory", dir, kindOf(in))
	}
	file, err := entry(tree, dir, path.Base(Path))
	if err != nil || file == nil {
		return false, err
	}
	if !file.Type().IsRegular() {
		return false, fmt.Errorf("%s is %s, not a file", Path, kindOf(file))
	}
	return true, nil
}

// entry returns the entry of a directory that has a name, nil if none has. One
// that has it in another spelling is taken for a slip, not for absence.
func entry(tree fs.FS, dir, name string) (fs.DirEntry, error) {
	entries, err := fs.ReadDir(tree, dir)
	if err != nil {
		return nil, err
	}
	var other fs.DirEntry
	for _, e := range entries {
		if e.Name() == name {
			return e, nil
		}
		if spelling(e.Name()) == spelling(name) {
			other = e
		}
	}
	if other != nil {
		return nil, fmt.Errorf("%s: %w", path.Join(dir, other.Name()), errSpelling)
	}
	return nil, nil
}

var errSpelling = errors.New("the Policy is " + Path + ", in this spelling")

// spelling is what two names share that a hurried reader takes for one.
func spelling(name string) string {
	if stem, ok := strings.CutSuffix(fold(name), ".yaml"); ok {
		return stem + ".yml"
	}
	return fold(name)
}

func kindOf(e fs.DirEntry) string {
	switch {
	case e.IsDir():
		return "a directory"
	case e.Type()&fs.ModeSymlink != 0:
		return "a link"
	case e.Type().IsRegular():
		return "a file"
	}
	return "no ordinary file"
}
