package sandbox

import (
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownThreads is how many threads of ours count with the command's, where it has our user id.
const ownThreads = 16

// openFiles is the limit of open files.
const openFiles = 8192

// setLimits sets the limits of the command on ourselves; it inherits them.
func (s *settings) setLimits() error {
	unix.Umask(0o022)
	limits := []struct {
		name  string
		which int
		value uint64
	}{
		{"limit of core files", unix.RLIMIT_CORE, 0},
		{"limit of memory", unix.RLIMIT_AS, uint64(s.Limits.Memory)},
		{"limit of file size", unix.RLIMIT_FSIZE, uint64(s.Limits.FileSize)},
		{"limit of open files", unix.RLIMIT_NOFILE, openFiles},
		{"limit of processes", unix.RLIMIT_NPROC, uint64(s.Limits.Processes) + ownThreads},
	}
	for _, l := range limits {
		if err := setLimit(l.which, l.value); err != nil {
			return os.NewSyscallError(l.name, err)
		}
	}
	return nil
}

// setLimit lowers a limit for good; one that is lower already stays.
func setLimit(which int, value uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(which, &now); err != nil {
		return err
	}
	value = min(value, now.Max)
	return unix.Setrlimit(which, &unix.Rlimit{Cur: value, Max: value})
}

// tasksOf counts the threads that user has now, or we where user is -1. Without a
// user namespace the kernel counts them with the command's.
func tasksOf(user int) int {
	if user < 0 {
		user = os.Geteuid()
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*/task")
	n := 0
	for _, dir := range dirs {
		var st syscall.Stat_t
		if syscall.Stat(dir, &st) == nil && int(st.Uid) == user {
			n += int(st.Nlink) - 2
		}
	}
	return n
}
