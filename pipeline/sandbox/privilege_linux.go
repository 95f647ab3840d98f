package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// nobody is the user and group id of commands run by root. The kernel's overflow
// id, 65534, would stand for files of any user outside the namespace.
const nobody = 65533

// unprivileged is nobody where we may become it, which takes root; else -1.
func unprivileged() int {
	if os.Geteuid() != 0 || !hasCapability(unix.CAP_SETUID) || !hasCapability(unix.CAP_SETGID) {
		return -1
	}
	if !covers(wholeMap("/proc/self/uid_map"), nobody) || !covers(wholeMap("/proc/self/gid_map"), nobody) {
		return -1
	}
	return nobody
}

// wholeMap maps every id of our namespace to itself, so that the files of all
// users keep their owners.
func wholeMap(file string) []syscall.SysProcIDMap {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	var all []syscall.SysProcIDMap
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var inside, outside, size int
		if n, _ := fmt.Sscan(lines.Text(), &inside, &outside, &size); n == 3 {
			all = append(all, syscall.SysProcIDMap{ContainerID: inside, HostID: inside, Size: size})
		}
	}
	return all
}

func covers(ranges []syscall.SysProcIDMap, id int) bool {
	for _, r := range ranges {
		if id >= r.ContainerID && id-r.ContainerID < r.Size {
			return true
		}
	}
	return false
}

func hasCapability(c int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[c/32].Effective&(1<<(c%32)) != 0
}

// dropPrivileges leaves no capability, and no way to get one back.
func (s *settings) dropPrivileges() error {
	if !s.Walls {
		return nil
	}
	if err := dropBounding(); err != nil {
		return os.NewSyscallError("dropping the bounding set", err)
	}
	if s.User >= 0 {
		if err := become(s.User); err != nil {
			return os.NewSyscallError("changing the user id", err)
		}
	}
	if err := dropCapabilities(); err != nil {
		return os.NewSyscallError("dropping capabilities", err)
	}
	// Nobody may read or trace this process; and a new user id has cleared the death signal.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return os.NewSyscallError("hiding from traces", err)
	}
	return os.NewSyscallError("setting the death signal", unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0))
}

// dropBounding takes every capability out of this thread's bounding set, where we
// may. It is the thread that starts the command; asking every thread 41 times
// would cost more than all else.
func dropBounding() error {
	if !hasCapability(unix.CAP_SETPCAP) {
		return nil // no_new_privs keeps out what the set would let in
	}
	for c := range unix.CAP_LAST_CAP + 1 {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && err != unix.EINVAL {
			return err
		}
	}
	return nil
}

func become(id int) error {
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(id, id, id); err != nil {
		return err
	}
	return syscall.Setresuid(id, id, id)
}

// noCapabilities is what capset takes; it is not on a stack, which could move.
var noCapabilities = struct {
	header unix.CapUserHeader
	data   [2]unix.CapUserData
}{header: unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}}

// dropCapabilities empties the sets of every thread, the ambient one with them.
func dropCapabilities() error {
	c := &noCapabilities
	if _, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&c.header)), uintptr(unsafe.Pointer(&c.data)), 0); errno != 0 {
		return errno
	}
	return nil
}
