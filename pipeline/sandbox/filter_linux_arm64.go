package sandbox

import "golang.org/x/sys/unix"

const filterArch = unix.AUDIT_ARCH_AARCH64

// deniedHere are calls that other architectures do not have.
var deniedHere []uint32
