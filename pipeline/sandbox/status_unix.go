//go:build unix

package sandbox

import "syscall"

// endingOfStatus is the end of a process as a shell would tell it.
func endingOfStatus(status syscall.WaitStatus) ending {
	if status.Signaled() {
		return ending{exit: 128 + int(status.Signal()), signal: status.Signal().String()}
	}
	return ending{exit: status.ExitStatus()}
}
