package sandbox

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

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

// argNot permits the call unless the argument is one of values.
func argNot(arg uint32, e unix.Errno, values ...uint32) []unix.SockFilter {
	return compareArg(arg, values, fail(e), allow())
}

// compareArg looks at the low half of an argument: all those compared here are ints to the kernel.
func compareArg(arg uint32, values []uint32, equal, otherwise unix.SockFilter) []unix.SockFilter {
	f := []unix.SockFilter{load(offArg0 + 8*arg)}
	for _, v := range values {
		f = append(f, jump(unix.BPF_JEQ, v, 0, 1), equal)
	}
	return append(f, otherwise)
}

// install puts the filter on every thread; all that they start inherits it.
func install(f []unix.SockFilter) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := &unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(program)))
	runtime.KeepAlive(f)
	if errno != 0 {
		return errno
	}
	return nil
}
