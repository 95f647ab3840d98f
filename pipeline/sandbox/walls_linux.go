package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// landlockVersions are what go-landlock can enforce, by ABI from 1 on.
var landlockVersions = []landlock.Config{
	landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8, landlock.V9,
	landlock.V10, landlock.V11,
}

// systemDirs hold the system's programs and libraries.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"}

// etc are the files below /etc that programs need to start, to name users and
// hosts, and to check certificates.
var etc = []string{
	"alternatives", "ca-certificates", "ca-certificates.conf", "debian_version", "gai.conf", "group", "host.conf", "hosts",
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "locale.alias", "localtime", "mime.types", "networks",
	"nsswitch.conf", "os-release", "passwd", "pki", "protocols", "resolv.conf", "services", "shells", "ssl", "static",
	"terminfo", "timezone",
}

// devices are the only ones there are, but for a terminal.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// restrictFiles confines us and the command to the paths it needs. With no
// network at all it denies TCP as well, and it keeps signals and abstract
// sockets within, where the kernel can.
func (s *settings) restrictFiles() error {
	if !s.Walls {
		return nil
	}
	config := landlockVersions[s.Landlock-1]
	if s.Network || s.Loopback {
		config.HandledAccessNet = 0
	}
	write := landlock.RWDirs(s.Dir, s.temp())
	if s.Landlock > 1 {
		write = write.WithRefer()
	}
	var plain []string
	for _, b := range s.Binds {
		if within(b.Target, Lent) {
			plain = append(plain, b.Target)
		}
	}
	lent := landlock.PathAccess(plainFiles, plain...).IgnoreIfMissing()
	terminals := landlock.RWDirs() // the command's own
	if s.Attended {
		terminals = landlock.RWDirs("/dev/pts").WithIoctlDev().IgnoreIfMissing()
	}
	readable := slices.Concat(systemDirs, s.Read)
	for _, name := range etc {
		readable = append(readable, filepath.Join("/etc", name))
	}
	if s.Namespaces {
		readable = append(readable, "/proc")
	}
	var dirs, files []string // a rule for a file may not speak of directories
	for _, path := range readable {
		switch info, err := os.Stat(path); {
		case err != nil:
		case info.IsDir():
			dirs = append(dirs, path)
		default:
			files = append(files, path)
		}
	}
	use := landlock.RWFiles(s.devices()...).WithIoctlDev().IgnoreIfMissing()
	return config.Restrict(write, lent, terminals, use, landlock.RODirs(dirs...), landlock.ROFiles(files...))
}

// plainFiles lets files and directories be read, written, made, moved and removed, and none of another kind be made.
const plainFiles = landlock.AccessFSSet(ll.AccessFSReadFile | ll.AccessFSReadDir | ll.AccessFSWriteFile | ll.AccessFSTruncate |
	ll.AccessFSMakeReg | ll.AccessFSMakeDir | ll.AccessFSRemoveFile | ll.AccessFSRemoveDir | ll.AccessFSRefer)

// temp is the temporary directory as the command sees it.
func (s *settings) temp() string {
	if s.Namespaces {
		return "/tmp"
	}
	return s.Scratch
}

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
	// The sets of every thread are emptied, the ambient one with them.
	c := &noCapabilities
	if _, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&c.header)), uintptr(unsafe.Pointer(&c.data)), 0); errno != 0 {
		return os.NewSyscallError("dropping capabilities", errno)
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

// ownThreads is how many threads of ours count with the command's, where it has our user id.
const ownThreads = 16

// openFiles is the limit of open files.
const openFiles = 8192

// setLimits sets the limits of the command on ourselves; it inherits them.
func (s *settings) setLimits() error {
	unix.Umask(0o022)
	if s.Attended {
		return os.NewSyscallError("limit of core files", unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}))
	}
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
		var now unix.Rlimit
		if err := unix.Getrlimit(l.which, &now); err != nil {
			return os.NewSyscallError(l.name, err)
		}
		value := min(l.value, now.Max) // lowered for good; one that is lower already stays
		if err := unix.Setrlimit(l.which, &unix.Rlimit{Cur: value, Max: value}); err != nil {
			return os.NewSyscallError(l.name, err)
		}
	}
	return nil
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

// settings are all that the child is told.
type settings struct {
	Argv, Env  []string
	Path, Dir  string
	Scratch    string
	Read       []string
	Walls      bool // false with full access
	Namespaces bool
	Network    bool
	Loopback   bool
	Landlock   int
	User       int
	Limits     Limits
	Attended   bool
	Binds      []Bind
}
