package sandbox

import (
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup kills the command alone: a group is no more than a target of console
// signals here.
func killGroup(p *os.Process) { _ = p.Kill() }
