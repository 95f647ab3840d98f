package sandbox

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A bind is a file or directory of the host that the command sees.
type bind struct {
	source, target string
	attributes     uint64
	tree           int // the detached copy of the mount
}

const (
	readOnlyTree = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	writableTree = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	deviceFile   = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
)

// copyTrees makes a detached copy of every source with its restrictions; what
// does not exist is left out.
func copyTrees(binds []bind) ([]bind, error) {
	var found []bind
	for _, b := range binds {
		tree, err := unix.OpenTree(unix.AT_FDCWD, b.source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return nil, os.NewSyscallError("open_tree "+b.target, err)
		}
		attributes := unix.MountAttr{Attr_set: b.attributes}
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attributes); err != nil {
			return nil, os.NewSyscallError("mount_setattr "+b.target, err)
		}
		b.tree = tree
		found = append(found, b)
	}
	return found, nil
}

// attach puts the copies at their targets below root.
func attach(root string, binds []bind) error {
	for _, b := range binds {
		target := filepath.Join(root, b.target)
		if err := mountPoint(target, b.tree); err != nil {
			return err
		}
		if err := unix.MoveMount(b.tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return os.NewSyscallError("move_mount "+b.target, err)
		}
		_ = unix.Close(b.tree)
	}
	return nil
}

// mountPoint makes a directory or file, as the tree is one.
func mountPoint(target string, tree int) error {
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(target, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if _, err := os.Lstat(target); err == nil {
		return nil
	}
	return os.WriteFile(target, nil, 0o644)
}
