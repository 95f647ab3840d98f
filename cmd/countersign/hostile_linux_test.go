package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const nobody = 65534

// usualUmask lets others read what tests make from then on, whatever the umask of who runs them.
func usualUmask() { syscall.Umask(0o022) }

// asNobody runs the program as a user whom file modes stop.
func (s playground) asNobody(want int, args ...string) (stdout, stderr string) {
	s.t.Helper()
	cmd := s.command(args...)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return s.runCmd(want, cmd)
}

func (s playground) giveAway() { s.t.Helper(); s.belongsTo(nobody) }

// takeBack makes it our own again: git opens nobody else's.
func (s playground) takeBack() { s.t.Helper(); s.belongsTo(0) }

func (s playground) belongsTo(user int) {
	s.t.Helper()
	if os.Geteuid() == 0 {
		check(s.t, exec.Command("chown", "-R", fmt.Sprintf("%d:%d", user, user), s.repo).Run())
	}
}

// A directory that may not be written: the apply is FAILED and says which file,
// the tree is as it was, and once the directory is writable it can go on.
func TestDirectoryThatMayNotBeWritten(t *testing.T) {
	t.Parallel()
	usualUmask()
	s := newSandbox(t, map[string]string{"a.txt": "a\n", "locked/b.txt": "b\n"})
	s.git("init", "-q", "-b", "main")
	s.commit()
	patch := filepath.Join(s.dir, "p.patch")
	check(t, os.WriteFile(patch, []byte("diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+A\n"+
		addition("locked/c.txt", "c\n")), 0o644))
	s.giveAway()
	check(t, os.Chmod(filepath.Join(s.repo, "locked"), 0o555))
	s.asNobody(0, "review", "--patch", patch)
	s.asNobody(0, "approve", s.newest())
	out, errs := s.asNobody(1, "run")
	if !strings.Contains(out, "A locked/c.txt  error: cannot write: permission denied") {
		t.Errorf("the report does not say which file:\n%s", out)
	}
	if !strings.Contains(errs, "countersign: hint: countersign run ") {
		t.Errorf("stderr: %s", errs)
	}
	if got := s.read("a.txt"); got != "a\n" {
		t.Errorf("a.txt is %q after a failed apply", got)
	}
	if left, err := filepath.Glob(filepath.Join(s.repo, "*", ".countersign*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	check(t, os.Chmod(filepath.Join(s.repo, "locked"), 0o755))
	s.asNobody(0, "run")
	if got := s.read("a.txt") + s.read("locked/c.txt"); got != "A\nc\n" {
		t.Errorf("after the second run: %q", got)
	}
	s.takeBack()
	s.validLedger()
}

// A Git directory that may not be written: an I/O error, and nothing recorded.
func TestLedgerThatMayNotBeWritten(t *testing.T) {
	long(t)
	t.Parallel()
	usualUmask()
	s := newSandbox(t, map[string]string{"a.txt": "a\n"})
	s.git("init", "-q", "-b", "main")
	s.commit()
	patch := filepath.Join(s.dir, "p.patch")
	check(t, os.WriteFile(patch, []byte(addition("b.txt", "b\n")), 0o644))
	s.giveAway()
	check(t, exec.Command("chmod", "-R", "a-w", filepath.Join(s.repo, ".git")).Run())
	_, errs := s.asNobody(3, "review", "--patch", patch)
	if !strings.Contains(errs, "permission denied") || !strings.Contains(errs, "countersign: hint: ") {
		t.Errorf("stderr: %s", errs)
	}
	check(t, exec.Command("chmod", "-R", "u+w", filepath.Join(s.repo, ".git")).Run())
	s.asNobody(0, "review", "--patch", patch)
	s.takeBack()
	s.validLedger()
}

// A full disk: the apply is FAILED with nothing written; with room again it
// goes on. The Git directory is on another disk, so that the failure can be
// recorded.
func TestFullDisk(t *testing.T) {
	s := newSandbox(t, nil)
	if err := syscall.Mount("tmpfs", s.repo, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("mounting a small tmpfs: %v", err)
	}
	t.Cleanup(func() { check(t, syscall.Unmount(s.repo, syscall.MNT_DETACH)) }) // a working tree is open here until it is collected
	s.write("a.txt", "a\n")
	s.git("init", "-q", "-b", "main", "--separate-git-dir", filepath.Join(s.dir, "git"))
	s.commit()
	patch := filepath.Join(s.dir, "p.patch")
	check(t, os.WriteFile(patch, []byte("diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+A\n"+
		addition("big.txt", strings.Repeat("0123456789abcdef\n", 8000))), 0o644))
	s.run(0, "review", "--patch", patch)
	s.run(0, "approve", s.newest())
	s.write("filler", strings.Repeat("x", 200<<10))
	out, _ := s.run(1, "run")
	if !strings.Contains(out, "A big.txt  error: cannot write: no space left on device") {
		t.Errorf("the report does not say which file:\n%s", out)
	}
	if got := s.read("a.txt"); got != "a\n" {
		t.Errorf("a.txt is %q after a failed apply", got)
	}
	check(t, os.Remove(filepath.Join(s.repo, "filler")))
	s.run(0, "run")
	if got := s.read("a.txt"); got != "A\n" {
		t.Errorf("a.txt is %q", got)
	}
	s.takeBack()
	s.validLedger()
}

// The disk with the Git directory is full: an I/O error, and no broken ledger.
func TestFullDiskUnderTheLedger(t *testing.T) {
	long(t)
	s := newSandbox(t, nil)
	if err := syscall.Mount("tmpfs", s.repo, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a small tmpfs: %v", err)
	}
	t.Cleanup(func() { check(t, syscall.Unmount(s.repo, syscall.MNT_DETACH)) }) // a working tree is open here until it is collected
	s.write("a.txt", "a\n")
	s.git("init", "-q", "-b", "main", "--template=")
	s.commit()
	patch := filepath.Join(s.dir, "p.patch")
	check(t, os.WriteFile(patch, []byte(addition("b.txt", strings.Repeat("0123456789abcdef\n", 8000))), 0o644))
	_ = os.WriteFile(filepath.Join(s.repo, "filler"), make([]byte, 2<<20), 0o644)
	_, errs := s.run(3, "review", "--patch", patch)
	if !strings.Contains(errs, "no space left on device") {
		t.Errorf("stderr: %s", errs)
	}
	check(t, os.Remove(filepath.Join(s.repo, "filler")))
	s.run(0, "review", "--patch", patch)
	s.takeBack()
	s.validLedger()
}
