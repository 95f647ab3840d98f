// Package teststand has what tests give programs: programs that stand in for others, made-up secrets, and keys of nobody that sign
// as ssh-keygen, an agent or a security key does; and the other side of package wire, real bare repositories behind git
// http-backend and behind an ssh server, both on 127.0.0.1, that fail on demand. It needs git.
package teststand

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// WriteFile writes a file that everybody may execute, whatever the umask, while this process starts no other: a child that is
// born meanwhile has the file open for writing until it executes its own program, and Linux executes no file that
// anybody has open so (ETXTBSY, execve(2)).
func WriteFile(file string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return errors.Join(os.WriteFile(file, content, 0o755), os.Chmod(file, 0o755))
}

// Fatal ends a test that has an error.
func Fatal(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
