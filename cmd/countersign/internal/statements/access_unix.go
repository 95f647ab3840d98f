//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package statements

import "syscall"

// writable reports whether the process may list, enter and change a directory
// (access(2): R_OK, W_OK and X_OK), without trying.
func writable(dir string) bool { return syscall.Access(dir, 4|2|1) == nil }
