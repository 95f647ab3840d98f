package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// RemoveAll removes a directory that a hostile program had for itself: with
// directories that may not be entered, and deeper than handles or paths reach. It
// follows no links.
func RemoveAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	err := os.Chmod(dir, 0o700)
	if err == nil {
		err = flatten(dir)
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return fmt.Errorf("removing what a command left: %w", err)
	}
	return nil
}

// flatten empties a directory. A directory inside another is moved to the top
// before it is looked into, so that nothing is ever reached by a long path.
func flatten(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	var queue []string
	for _, e := range entries {
		queue = append(queue, e.Name())
	}
	for i := 0; err == nil && i < len(queue); i++ {
		var moved []string
		moved, err = takeApart(root, queue[i])
		queue = append(queue, moved...)
	}
	return err
}

// takeApart removes what lies at the top; it moves the directories inside to
// the top and returns their new names. To be moved or emptied, a directory must
// be open to us.
func takeApart(root *os.Root, name string) (moved []string, err error) {
	if info, err := root.Lstat(name); err != nil || !info.IsDir() {
		return nil, errors.Join(err, root.Remove(name))
	}
	if err := root.Chmod(name, 0o700); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(root.FS(), name)
	for _, e := range entries {
		inside := path.Join(name, e.Name())
		if !e.IsDir() {
			err = errors.Join(err, root.Remove(inside))
			continue
		}
		moved = append(moved, rand.Text())
		err = errors.Join(err, root.Chmod(inside, 0o700), root.Rename(inside, moved[len(moved)-1]))
	}
	return moved, errors.Join(err, root.Remove(name))
}
