//go:build unix

package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

const nobody = 65534

// unprivileged runs a test again as nobody where root, whom no permission
// stops, runs it; it says whether to go on here.
func unprivileged(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	// The test binary and t.TempDir are in directories of root's own.
	dir, err := os.MkdirTemp("", "nobody")
	fatal(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	tmp := filepath.Join(dir, "tmp")
	fatal(t, os.Mkdir(tmp, 0o700))
	if err := os.Chown(tmp, nobody, nobody); err != nil {
		t.Skip(err)
	}
	fatal(t, os.Chmod(dir, 0o755))
	cmd := exec.Command(copySelf(t, dir), "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = tmp, append(os.Environ(), "TMPDIR="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if _, ran := err.(*exec.ExitError); err != nil && !ran {
		t.Skip(err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
	return false
}

func copySelf(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	fatal(t, err)
	program, err := os.ReadFile(self)
	fatal(t, err)
	to := filepath.Join(dir, "test")
	fatal(t, teststand.WriteFile(to, program))
	return to
}

// readOnly takes the permission to write from a directory until the test ends.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	fatal(t, os.Chmod(dir, 0o555))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
}

// TestT41StagingFails: one directory may not be written, and the tree stays as
// it was: no file, no temporary file, no directory more.
func TestT41StagingFails(t *testing.T) {
	if !unprivileged(t) {
		return
	}
	before := files{"a": "1\n", "gone": "1\n", "ro/b": "1\n", "ro/gone": "1\n"}
	for _, c := range []struct {
		name, path, doing string
		after             files
	}{
		{"update", "ro/b", "cannot write", files{"a": "2\n", "n/e/w/er": "1\n", "n/e/w/est": "1\n", "n/o": "1\n", "ro/b": "2\n", "ro/gone": "1\n"}},
		{"add", "ro/c", "cannot write", files{"a": "2\n", "gone": "1\n", "n/e/w/er": "1\n", "ro/b": "1\n", "ro/c": "1\n", "ro/gone": "1\n"}},
		{"add below a new directory", "ro/x/c", "cannot write", files{"a": "2\n", "n/e/w/er": "1\n", "ro/b": "1\n", "ro/gone": "1\n", "ro/x/c": "1\n"}},
		{"delete", "ro/gone", "cannot delete", files{"a": "2\n", "gone": "1\n", "n/e/w/er": "1\n", "ro/b": "1\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			before.put(t, dir)
			readOnly(t, filepath.Join(dir, "ro"))
			ops := open(t, dir).Write(changes(before, c.after))
			same(t, dir, before)
			for _, op := range ops {
				if bad := op.Path == c.path; bad != (op.Status == ledger.StatusError) || bad && op.Error != c.doing+": permission denied" {
					t.Errorf("%+v", op)
				}
			}
			if got := outcome(ops); got != ledger.OutcomeFailed {
				t.Errorf("outcome %s", got)
			}
		})
	}
}

// TestUnreadable: a file that cannot be read is an error, not one that differs.
func TestUnreadable(t *testing.T) {
	if !unprivileged(t) {
		return
	}
	dir := t.TempDir()
	files{"a": "1\n"}.put(t, dir)
	fatal(t, os.Chmod(filepath.Join(dir, "a"), 0))
	cs := changes(files{"a": "1\n"}, files{"a": "2\n"})
	tree := open(t, dir)
	if states, err := tree.Inspect(cs); err == nil || err.Error() != "reading a: permission denied" {
		t.Errorf("%v %v", states, err)
	}
	if ops := tree.Write(cs); ops[0].Error != "cannot read: permission denied" {
		t.Errorf("%+v", ops)
	}
}

// TestSpecialFile: what is no file is neither, whether it is at the path or
// above it, and is not opened: a pipe would wait for ever.
func TestSpecialFile(t *testing.T) {
	for name, mode := range map[string]uint32{"pipe": syscall.S_IFIFO, "socket": syscall.S_IFSOCK, "device": syscall.S_IFCHR} {
		for _, at := range []string{"a", "x", "x/y"} {
			dir := t.TempDir()
			fatal(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, at)), 0o777))
			if err := syscall.Mknod(filepath.Join(dir, at), mode|0o600, 0); err != nil {
				t.Logf("no %s: %v", name, err)
				continue
			}
			path := "a"
			if at != "a" {
				path = "x/y/a"
			}
			for _, before := range []files{{}, {path: "1\n"}, {path: ""}} {
				inspect(t, open(t, dir), changes(before, files{path: "2\n"}), effect.Other)
				if ops := open(t, dir).Write(changes(before, files{path: "2\n"})); outcome(ops) != ledger.OutcomeFailed {
					t.Errorf("%s at %s: %+v", name, at, ops)
				}
			}
			inspect(t, open(t, dir), changes(files{path: "1\n"}, files{}), effect.Other)
			if info, err := os.Lstat(filepath.Join(dir, at)); err != nil || uint32(info.Sys().(*syscall.Stat_t).Mode)&syscall.S_IFMT != mode {
				t.Errorf("%s at %s: %v %v", name, at, info, err)
			}
		}
	}
}
