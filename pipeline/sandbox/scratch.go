package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
)

// makeScratch makes a temporary directory with a home in it.
func makeScratch(parent string) (string, error) {
	dir, err := os.MkdirTemp(parent, "sandbox-")
	if err != nil {
		return "", err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return dir, os.Mkdir(filepath.Join(dir, "home"), 0o700)
}

// removeScratch removes dir, also where the command took away its own right to
// write, as Go's module cache does. It follows no links.
func removeScratch(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	openUp(root, ".")
	return os.RemoveAll(dir)
}

// openUp makes the directories below name writable, each before it is read.
func openUp(root *os.Root, name string) {
	_ = root.Chmod(name, 0o700)
	entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(name))
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			openUp(root, filepath.Join(name, e.Name()))
		}
	}
}
