package packapply

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// openTarget opens a target that is safe to write to (APPLY_SPEC 4, AS5).
func openTarget(target string) (*os.Root, error) {
	if slices.Contains(strings.FieldsFunc(target, func(r rune) bool { return r == '/' || r == '\\' }), "..") {
		return nil, refuse("AS5", "", "target root contains path traversal")
	}
	dir := filepath.Clean(target)
	info, err := checkTarget(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the target: %w", err)
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		err = errors.New("it is another directory than it was before")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the target: %w", err), root.Close())
	}
	if err := checkTree(root.FS()); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// checkTarget looks at the target itself and at what is above it. Of a relative
// target this is what it names: where the process runs is not for us to judge.
func checkTarget(dir string) (fs.FileInfo, error) {
	info, err := os.Lstat(dir)
	_, missing := os.Stat(dir) // follows a link; one to nowhere is no target at all
	top, topErr := os.Lstat(filepath.VolumeName(dir) + string(filepath.Separator))
	message := ""
	switch {
	case err == nil && topErr == nil && os.SameFile(info, top):
		message = "target root cannot be filesystem root"
	case err != nil || missing != nil:
		message = "target root is not a directory"
	case info.Mode().Type() == fs.ModeSymlink:
		message = "target root is a symbolic link"
	case !info.IsDir():
		message = "target root is not a directory"
	case underLink(dir):
		message = "target root is under a symbolic link"
	case !writable(dir):
		message = "target root is not writable"
	default:
		return info, nil
	}
	return nil, refuse("AS5", "", message)
}

func underLink(dir string) bool {
	above := filepath.Dir(dir)
	if above == dir || above == "." {
		return false
	}
	info, err := os.Lstat(above)
	return err != nil || info.Mode().Type() == fs.ModeSymlink || underLink(above)
}

// checkTree refuses the first link in the target, in the order of names. Where
// it cannot look there may be links, so that is refused as well.
func checkTree(tree fs.FS) error {
	return fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		path := strings.ToValidUTF8(name, "\uFFFD")
		switch {
		case err != nil && absent(err):
			return nil // gone since its directory was read
		case err != nil:
			return refuse("AS5", path, "target tree cannot be read: "+path)
		case d.Type() == fs.ModeSymlink:
			return refuse("AS5", path, "symlink found in target tree: "+path)
		}
		return nil
	})
}
