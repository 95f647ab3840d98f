package statements_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/statements"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

const nobody = 65534

// asNobody runs the rest of a test in a second process, which if we are root is
// that of a user whom permissions stop, in a directory made of tree.
func asNobody(t *testing.T, tree files, test func(t *testing.T)) {
	t.Helper()
	if os.Getenv("PACKAPPLY_DIR") != "" {
		t.Chdir(os.Getenv("PACKAPPLY_DIR"))
		test(t)
		return
	}
	dir, err := os.MkdirTemp("", "packapply-")
	must(t, err)
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwx", dir).Run(); _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	work := filepath.Join(dir, "work")
	tree.make(t, work)
	self, err := os.Executable()
	must(t, err)
	data, err := os.ReadFile(self)
	must(t, err)
	must(t, teststand.WriteFile(filepath.Join(dir, "test"), data))
	cmd := exec.Command(filepath.Join(dir, "test"), "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PACKAPPLY_DIR="+work)
	if os.Geteuid() == 0 {
		must(t, exec.Command("chown", "-R", fmt.Sprintf("%[1]d:%[1]d", nobody), work).Run())
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

func TestTargetNotWritable(t *testing.T) {
	tree := files{"t/a": "x", "p/patch.json": patchOf(t, "create b x")}
	asNobody(t, tree, func(t *testing.T) {
		for _, mode := range []os.FileMode{0o555, 0o444, 0o333, 0o666, 0} {
			must(t, os.Chmod("t", mode))
			for _, dryRun := range []bool{true, false} {
				r, err := statements.Apply("p", "t", dryRun)
				if err != nil || told(r) != "REFUSED target root is not writable\nAS5 : target root is not writable" {
					t.Errorf("%o: %s, %v", mode, told(r), err)
				}
			}
		}
		must(t, os.Chmod("t", 0o777))
		if got := read(t, "t"); !maps.Equal(got, files{"a": "x"}) {
			t.Errorf("after: %v", got)
		}
	})
}

// What cannot be written is that operation's error, foreseen by a dry run; the
// others go on.
func TestDirectoryNotWritable(t *testing.T) {
	tree := files{"t/locked/a": "x", "t/locked/b": "y", "t/open/secret": "x", "p/patch.json": patchOf(t,
		"create locked/c/d x", "modify locked/a y", "delete locked/b", "create other/x z", "modify open/secret y")}
	asNobody(t, tree, func(t *testing.T) {
		must(t, os.Chmod("t/locked", 0o555))
		must(t, os.Chmod("t/open/secret", 0o000))
		want := "PARTIAL 3 operations failed\nmodify locked/a x#→- 0 cannot write: locked/a\ndelete locked/b y#→- 0 cannot write: locked/b\n" +
			"create locked/c/d -→- 0 cannot write: locked/c/d\nmodify open/secret -→y# 1 \ncreate other/x -→z# 1 "
		for _, dryRun := range []bool{true, false} {
			r, err := statements.Apply("p", "t", dryRun)
			if err != nil || told(r) != want {
				t.Errorf("dry run %v: %v\n got %s\nwant %s", dryRun, err, told(r), want)
			}
		}
		must(t, os.Chmod("t/open/secret", 0o600))
		if got := read(t, "t"); !maps.Equal(got, files{"locked/a": "x", "locked/b": "y", "open/secret": "y", "other/x": "z"}) {
			t.Errorf("after: %v", got)
		}
	})
}

// Where it is not allowed to look, there may be links.
func TestTreeNotReadable(t *testing.T) {
	tree := files{"t/d/l": "→x", "p/patch.json": patchOf(t, "create b x")}
	asNobody(t, tree, func(t *testing.T) {
		must(t, os.Chmod("t/d", 0))
		r, err := statements.Apply("p", "t", false)
		if err != nil || told(r) != "REFUSED target tree cannot be read: d\nAS5 d: target tree cannot be read: d" {
			t.Errorf("%s, %v", told(r), err)
		}
	})
}

func TestPackNotReadable(t *testing.T) {
	tree := files{"t/": "", "p/patch.json": patchOf(t)}
	asNobody(t, tree, func(t *testing.T) {
		must(t, os.Chmod("p/patch.json", 0))
		if _, err := statements.Apply("p", "t", false); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("a patch.json that may not be read: %v", err)
		}
		must(t, os.Chmod("p", 0))
		if _, err := statements.Apply("p", "t", false); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("a pack that may not be read: %v", err)
		}
	})
}

// A full disk (here: a limit on the size of a file) is the operation's error, and
// leaves neither a part of the file nor a directory.
func TestDiskFull(t *testing.T) {
	tree := files{"t/b": "x", "p/patch.json": patchOf(t,
		"create a/n "+long+long, "modify b "+long+long, "create c x")}
	asNobody(t, tree, func(t *testing.T) {
		var limit syscall.Rlimit
		must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
		must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 512, Max: limit.Max}))
		r, err := statements.Apply("p", "t", false)
		must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
		want := "PARTIAL 2 operations failed\ncreate a/n -→- 0 cannot write: a/n\nmodify b x#→- 0 cannot write: b\ncreate c -→x# 1 "
		if err != nil || told(r) != want {
			t.Errorf("%v\n got %s\nwant %s", err, told(r), want)
		}
		if got := read(t, "t"); !maps.Equal(got, files{"b": "x", "c": "x"}) {
			t.Errorf("after: %v", got)
		}
	})
}
