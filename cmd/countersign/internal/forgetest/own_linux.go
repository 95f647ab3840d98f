package forgetest

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ownUser is the user that servers run as where the tests are root: one that every system has, and that
// owns nothing else.
const ownUser = "nobody"

// runUser is the name of the user that servers run as.
func runUser() (string, error) {
	if os.Getuid() == 0 {
		return ownUser, nil
	}
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	return u.Username, nil
}

func ownIDs() (uid, gid int, err error) {
	u, err := user.Lookup(ownUser)
	if err != nil {
		return 0, 0, err
	}
	uid, err = strconv.Atoi(u.Uid)
	if err != nil {
		return 0, 0, err
	}
	gid, err = strconv.Atoi(u.Gid)
	return uid, gid, err
}

// own gives a file to the user that servers run as.
func own(path string) error {
	if os.Getuid() != 0 {
		return nil
	}
	uid, gid, err := ownIDs()
	if err != nil {
		return err
	}
	return os.Chown(path, uid, gid)
}

// asOwn has a program run as that user.
func asOwn(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if uid, gid, err := ownIDs(); err == nil && os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
}

// endWithParent has a program end when the tests do.
func endWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// killInside ends the programs whose working directory is inside a directory, and those that they start meanwhile.
func killInside(dir string) error {
	for found := true; found; {
		found = false
		links, err := filepath.Glob("/proc/[0-9]*/cwd")
		if err != nil {
			return err
		}
		for _, link := range links {
			if cwd, err := os.Readlink(link); err != nil || !strings.HasPrefix(cwd, dir+"/") {
				continue // also of one that has ended
			}
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			if err != nil {
				return err
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
			found = true
		}
	}
	return nil
}
