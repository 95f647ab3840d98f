package sandbox

import "golang.org/x/sys/unix"

const filterArch = unix.AUDIT_ARCH_X86_64

// deniedHere are calls that other architectures do not have.
var deniedHere = []uint32{
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE,
	unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE,
}
