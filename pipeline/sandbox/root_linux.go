package sandbox

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

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
	mountProc(root)
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
	add(readOnlyTree, slices.DeleteFunc(slices.Clone(systemDirs), isLink)...)
	add(readOnlyTree, "/etc")
	add(readOnlyTree, s.Read...)
	if resolver, err := filepath.EvalSymlinks("/etc/resolv.conf"); s.Network && err == nil && !within(resolver, "/etc") {
		add(readOnlyTree, resolver)
	}
	add(deviceFile, devices...)
	add(writableTree, s.Dir)
	all = append(all, bind{source: s.Scratch, target: "/tmp", attributes: writableTree})
	slices.SortStableFunc(all, func(a, b bind) int { return cmp.Compare(a.target, b.target) })
	return all
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSymlink != 0
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

// mountProc mounts a /proc of our own processes. A container that hides parts of
// its own refuses that; then there is no /proc at all.
func mountProc(root string) {
	proc := filepath.Join(root, "proc")
	if os.MkdirAll(proc, 0o755) != nil {
		return
	}
	_ = unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "")
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
