//go:build !linux

package forgetest

import (
	"os/exec"
	"os/user"
)

// runUser is the name of the user that servers run as.
func runUser() (string, error) {
	u, err := user.Current()
	if err != nil {
		return "", err
	}
	return u.Username, nil
}

func own(string) error        { return nil }
func asOwn(*exec.Cmd)         {}
func endWithParent(*exec.Cmd) {}
func killInside(string) error { return nil }
