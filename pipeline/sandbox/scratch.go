package sandbox

import (
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
