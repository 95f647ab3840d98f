//go:build amd64 || arm64

package sandbox

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// denied are the system calls no command needs and an attacker would like. They
// fail with EPERM, as they do for a user without privileges.
var denied = append([]uint32{
	// Other processes.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_KCMP,
	unix.SYS_PIDFD_GETFD, unix.SYS_PERF_EVENT_OPEN, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	// The kernel: keys, programs, modules, page faults.
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_INIT_MODULE,
	unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
	unix.SYS_SYSLOG, unix.SYS_ACCT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_NFSSERVCTL, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_VHANGUP, unix.SYS_LSM_SET_SELF_ATTR,
	// Rings of calls that no filter sees.
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	// Mounts, roots, namespaces.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	// Files without a path, and watches over whole file systems.
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
	// The clock.
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
}, deniedHere...)

// newNamespaces are the flags of clone that make namespaces.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// firstUnknown is the first system call that was not there when the list above was
// made. The numbers of the x32 ABI, which the list would not match, are above it.
const firstUnknown = unix.SYS_LISTNS + 1

// filter is the program for a command. Without namespaces it must do their work
// as well: deny sockets, and keep every process in the group that is killed.
func filter(namespaces, network bool) []unix.SockFilter {
	f := []unix.SockFilter{
		load(offArch), jump(unix.BPF_JEQ, filterArch, 1, 0), ret(unix.SECCOMP_RET_KILL_PROCESS),
		load(offNumber), jump(unix.BPF_JGE, firstUnknown, 0, 1), fail(unix.ENOSYS),
	}
	for _, nr := range denied {
		f = append(f, on(nr, fail(unix.EPERM))...)
	}
	// The flags of clone3 are in memory, out of sight; without it libraries use clone.
	f = append(f, on(unix.SYS_CLONE3, fail(unix.ENOSYS))...)
	f = append(f, on(unix.SYS_CLONE, load(offArg0), jump(unix.BPF_JSET, newNamespaces, 0, 1), fail(unix.EPERM), allow())...)
	f = append(f, on(unix.SYS_IOCTL, terminals()...)...)
	f = append(f, on(unix.SYS_PERSONALITY, argOnly(0, unix.EPERM, 0, 0xffffffff)...)...)
	f = append(f, sockets(namespaces, network)...)
	if !namespaces {
		f = append(f, on(unix.SYS_SETSID, fail(unix.EPERM))...)
		f = append(f, on(unix.SYS_SETPGID, fail(unix.EPERM))...)
	}
	return append(f, allow())
}

// tiocLinux pastes into a console, as TIOCSTI types into a terminal.
const tiocLinux = 0x541C

// terminals lets a command set up its terminal, but not type there, take away what makes it one (TIOCSETD), or, by all that begins
// with 'K' and 'V', change how Linux's console shows text: an agent has that from whoever attends, who is then asked there.
func terminals() []unix.SockFilter {
	f := compareArg(1, []uint32{unix.TIOCSTI, tiocLinux, unix.TIOCSETD}, fail(unix.EPERM), allow())
	f = f[:len(f)-1]
	for _, from := range []uint32{'K' << 8, 'V' << 8} {
		f = append(f, jump(unix.BPF_JGE, from, 0, 2), jump(unix.BPF_JGE, from+0x100, 1, 0), fail(unix.EPERM))
	}
	return append(f, allow())
}

// sockets permits the families that a network namespace holds. Without one, only
// those of the Internet, or none; and only pairs of streams, since a datagram
// socket of a pair can send to any socket on the disk.
func sockets(namespaces, network bool) []unix.SockFilter {
	families := []uint32{unix.AF_INET, unix.AF_INET6}
	switch {
	case namespaces:
		families = append(families, unix.AF_UNIX, unix.AF_NETLINK)
	case !network:
		families = nil
	}
	f := on(unix.SYS_SOCKET, argOnly(0, unix.EACCES, families...)...)
	if namespaces {
		return append(f, on(unix.SYS_SOCKETPAIR, argOnly(0, unix.EACCES, unix.AF_UNIX)...)...)
	}
	streams := []uint32{unix.SOCK_STREAM, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, unix.SOCK_STREAM | unix.SOCK_NONBLOCK,
		unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK}
	pair := append([]unix.SockFilter{load(offArg0), jump(unix.BPF_JEQ, unix.AF_UNIX, 1, 0), fail(unix.EACCES)}, argOnly(1, unix.EACCES, streams...)...)
	f = append(f, on(unix.SYS_SOCKETPAIR, pair...)...)
	for _, nr := range []uint32{unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK} {
		f = append(f, on(nr, fail(unix.EPERM))...)
	}
	return append(f, on(unix.SYS_PRLIMIT64, argOnly(0, unix.EPERM, 0)...)...)
}

// Offsets in the data a filter sees.
const (
	offNumber = 0
	offArch   = 4
	offArg0   = 16
)

// load puts the 32 bits at offset into the accumulator.
func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// jump compares the accumulator with k and skips jt instructions when true, jf when not.
func jump(compare uint16, k uint32, jt, jf uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | compare | unix.BPF_K, Jt: jt, Jf: jf, K: k}
}

func ret(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}

func allow() unix.SockFilter { return ret(unix.SECCOMP_RET_ALLOW) }

func fail(e unix.Errno) unix.SockFilter { return ret(unix.SECCOMP_RET_ERRNO | uint32(e)) }

// on is body for system call nr. Body must end in a return; the accumulator holds
// the number before and after.
func on(nr uint32, body ...unix.SockFilter) []unix.SockFilter {
	return append([]unix.SockFilter{jump(unix.BPF_JEQ, nr, 0, uint8(len(body)))}, body...)
}

// argOnly permits the call when the argument is one of values.
func argOnly(arg uint32, e unix.Errno, values ...uint32) []unix.SockFilter {
	return compareArg(arg, values, allow(), fail(e))
}

// compareArg looks at the low half of an argument: all those compared here are ints to the kernel.
func compareArg(arg uint32, values []uint32, equal, otherwise unix.SockFilter) []unix.SockFilter {
	f := []unix.SockFilter{load(offArg0 + 8*arg)}
	for _, v := range values {
		f = append(f, jump(unix.BPF_JEQ, v, 0, 1), equal)
	}
	return append(f, otherwise)
}

// restrictCalls puts the filter on every thread; all that they start inherits it.
func (s *settings) restrictCalls() error {
	if !s.Walls {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("seccomp", err)
	}
	f := filter(s.Namespaces, s.Network)
	program := &unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(program)))
	runtime.KeepAlive(f)
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
}
