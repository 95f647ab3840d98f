package owners

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// Locations are where a CODEOWNERS file is looked for, in this order.
func Locations() []string {
	return []string{".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"}
}

// Read reads the CODEOWNERS file of a tree. Without one nobody owns anything. One
// that is no ordinary file, or cannot be read, is an error: the next location is
// looked at only where there is none.
func Read(tree fs.FS) (*Rules, error) {
	for _, name := range Locations() {
		found, err := lookFor(tree, name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		if !found {
			continue
		}
		raw, err := fs.ReadFile(tree, name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		return Parse(raw)
	}
	return &Rules{}, nil
}

// lookFor goes by what each directory lists, which no link leads astray.
func lookFor(tree fs.FS, name string) (bool, error) {
	if dir := path.Dir(name); dir != "." {
		if e, err := entry(tree, ".", dir); err != nil || e == nil || !e.IsDir() {
			return false, err
		}
	}
	e, err := entry(tree, path.Dir(name), path.Base(name))
	if err != nil || e == nil {
		return false, err
	}
	if !e.Type().IsRegular() {
		return false, errors.New("it is no ordinary file")
	}
	return true, nil
}

func entry(tree fs.FS, dir, name string) (fs.DirEntry, error) {
	entries, err := fs.ReadDir(tree, dir)
	for _, e := range entries {
		if err == nil && e.Name() == name {
			return e, nil
		}
	}
	return nil, err
}
