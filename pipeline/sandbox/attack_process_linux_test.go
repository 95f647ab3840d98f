package sandbox_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func self(args ...string) *exec.Cmd {
	return exec.Command("/proc/self/exe", append([]string{"attack"}, args...)...)
}

func inNamespace(then string, flags uintptr) error {
	cmd := self(then)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  flags,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	return cmd.Run()
}

// clone3 makes a user namespace by the call whose flags a filter cannot see.
func clone3() error {
	args := [11]uint64{unix.CLONE_NEWUSER, 0, 0, 0, uint64(unix.SIGCHLD)}
	return cloneRaw(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args))
}

// cloneRaw makes a process that does nothing.
func cloneRaw(nr, a, b uintptr) error {
	pid, _, errno := unix.RawSyscall6(nr, a, b, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	_, err := syscall.Wait4(int(pid), nil, 0, nil)
	return err
}

// leaveBehind leaves a sleeper of another session, parent and name, with our output.
func leaveBehind(name string) error {
	cmd := self("left", name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	if errors.Is(err, syscall.EPERM) { // no session of its own: stay in the group
		cmd = self("left", name)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		err = cmd.Run()
	}
	return err
}

func leaveOne() error {
	cmd := self("sleep", os.Args[3])
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Start()
}

// fork starts n processes that sleep, and ends them.
func fork(n int) error {
	for range n {
		cmd := exec.Command("/bin/sleep", "60")
		if err := cmd.Start(); err != nil {
			return err
		}
		defer cmd.Process.Kill()
	}
	return nil
}

// flood writes n MiB.
func flood(n int) error {
	b := bytes.Repeat([]byte("x"), 1<<20)
	for range n {
		if _, err := os.Stdout.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// reserve takes n GiB of address space, without touching it.
func reserve(n int) error {
	_, err := unix.Mmap(-1, 0, n<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	return err
}

// grow makes a file of n GiB, all of it a hole.
func grow(name string, n int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer os.Remove(name)
	return f.Truncate(int64(n) << 30)
}

// rawCall makes a system call with senseless arguments: what counts is whether
// the kernel gets to look at them.
func rawCall(nr int) error {
	_, _, errno := unix.Syscall6(uintptr(nr), ^uintptr(0), 0, ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0))
	if errno == unix.EPERM || errno == unix.EACCES {
		return errno
	}
	return nil
}
