//go:build unix

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/sandbox"
)

// deep makes directories inside each other, deeper than a path can be long, and
// then takes away the right to enter each. It returns the name to give to remove.
func deep(t *testing.T, levels int) string {
	t.Helper()
	top := filepath.Join(t.TempDir(), "copy")
	fatal(t, os.Mkdir(top, 0o700))
	root, err := os.OpenRoot(top)
	if err == nil {
		err = errors.Join(dig(root, levels), root.Close(), os.Chmod(top, 0o500))
	}
	fatal(t, err)
	return top
}

func dig(at *os.Root, levels int) error {
	if levels == 0 {
		return nil
	}
	name := strings.Repeat("d", 100)
	err := errors.Join(at.Mkdir(name, 0o700), at.Mkdir("empty", 0), at.WriteFile("file", nil, 0), at.Symlink("/etc", "link"))
	if err != nil {
		return err
	}
	below, err := at.OpenRoot(name)
	if err != nil {
		return err
	}
	return errors.Join(dig(below, levels-1), below.Close(), at.Chmod(name, 0))
}

func TestRemove(t *testing.T) {
	if !unprivileged(t) {
		return
	}
	for _, levels := range []int{0, 1, 3, 200} {
		t.Run(fmt.Sprint(levels), func(t *testing.T) {
			top := deep(t, levels)
			fatal(t, sandbox.RemoveAll(top))
			if _, err := os.Lstat(top); !errors.Is(err, fs.ErrNotExist) {
				t.Error("the copy is still there", err)
			}
		})
	}
	if _, err := os.Stat("/etc"); err != nil {
		t.Error(err)
	}
}

// TestCopyModes: the modes are those of the commit, whatever the umask.
func TestCopyModes(t *testing.T) {
	for _, mask := range []int{0, 0o027, 0o077} {
		dir := t.TempDir()
		was := syscall.Umask(mask)
		tree := treeFiles{"a": "1", "d/run": "+x 2"}
		err := Copy(tree.tree(), dir)
		syscall.Umask(was)
		if got := read(t, dir); err != nil || !maps.Equal(got, tree) {
			t.Errorf("umask %o: %q %v", mask, got, err)
		}
	}
}

// TestT31RemoveFollowsNoLink: the directory itself has become a link, or holds
// links to directories.
func TestT31RemoveFollowsNoLink(t *testing.T) {
	outside, dir := inside(t)
	for _, link := range []string{"a", "b"} {
		fatal(t, os.Symlink(outside, filepath.Join(dir, link)))
	}
	fatal(t, errors.Join(sandbox.RemoveAll(dir), os.Mkdir(dir, 0o700)))
	untouched(t, outside)
}
