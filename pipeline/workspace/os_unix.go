//go:build unix

package workspace

import (
	"os"

	"golang.org/x/sys/unix"
)

// rmdir removes an empty directory and, unlike os.Root.Remove, nothing else: not
// the link or file that has just taken its place.
func rmdir(parent *os.Root, name string) error {
	f, err := parent.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Unlinkat(int(f.Fd()), name, unix.AT_REMOVEDIR)
}
