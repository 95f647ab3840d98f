package sandbox

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// devices are the command's: a person who attends has a terminal.
func (s *settings) devices() []string {
	if s.Attended {
		return append(slices.Clone(devices), "/dev/tty")
	}
	return devices
}

// makeRoot replaces the file system by one with only what the command needs.
func (s *settings) makeRoot() error {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // first to go when memory runs out
	if !s.Namespaces {
		return nil
	}
	unix.Umask(0o022)
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return os.NewSyscallError("sethostname", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("mount", err)
	}
	binds, err := copyTrees(s.binds())
	if err != nil {
		return err
	}
	root := s.Scratch // any directory will do; its tree has been copied
	if err := unix.Mount("tmpfs", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m"); err != nil {
		return os.NewSyscallError("mount tmpfs", err)
	}
	if err := attach(root, binds); err != nil {
		return err
	}
	if err := systemLinks(root); err != nil {
		return err
	}
	// A /proc of our own processes. A container that hides parts of its own refuses
	// that; then there is no /proc at all.
	if proc := filepath.Join(root, "proc"); os.MkdirAll(proc, 0o755) == nil {
		_ = unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "")
	}
	if pts := filepath.Join(root, "dev/pts"); s.Attended && os.MkdirAll(pts, 0o755) == nil {
		if unix.Mount("devpts", pts, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620") == nil {
			_ = os.Symlink("pts/ptmx", filepath.Join(root, "dev/ptmx"))
		}
	}
	return enter(root)
}

// binds are in the order of their targets, so that each is made in the one that holds it.
func (s *settings) binds() []bind {
	var all []bind
	add := func(attributes uint64, paths ...string) {
		for _, path := range paths {
			all = append(all, bind{source: path, target: path, attributes: attributes})
		}
	}
	for _, dir := range systemDirs {
		if info, err := os.Lstat(dir); err != nil || info.Mode()&os.ModeSymlink == 0 {
			add(readOnlyTree, dir)
		}
	}
	add(readOnlyTree, "/etc")
	add(readOnlyTree, s.Read...)
	if resolver, err := filepath.EvalSymlinks("/etc/resolv.conf"); s.Network && err == nil && !within(resolver, "/etc") {
		add(readOnlyTree, resolver)
	}
	add(deviceFile, s.devices()...)
	add(writableTree, s.Dir)
	for _, b := range s.Binds {
		one := bind{source: b.Source, target: b.Target, attributes: readOnlyTree}
		if b.Write {
			one.attributes = writableTree
		}
		all = append(all, one)
	}
	all = append(all, bind{source: s.Scratch, target: "/tmp", attributes: writableTree})
	slices.SortStableFunc(all, func(a, b bind) int { return cmp.Compare(a.target, b.target) })
	return all
}

// systemLinks are those of the host's root, such as /bin to usr/bin, and those of /dev.
func systemLinks(root string) error {
	links := map[string]string{
		"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
	}
	for _, dir := range systemDirs {
		if to, err := os.Readlink(dir); err == nil {
			links[dir] = to
		}
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return nil
}

// enter makes root the root and lets go of the old one.
func enter(root string) error {
	if err := unix.Chdir(root); err != nil {
		return os.NewSyscallError("chdir", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return os.NewSyscallError("pivot_root", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return os.NewSyscallError("umount", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return os.NewSyscallError("chdir", err)
	}
	attributes := unix.MountAttr{Attr_set: readOnlyTree}
	return os.NewSyscallError("mount_setattr", unix.MountSetattr(unix.AT_FDCWD, "/", 0, &attributes))
}

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
