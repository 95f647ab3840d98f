package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

func TestPermissionsKept(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no permissions")
	}
	for _, c := range []struct {
		before, after string
		have, want    fs.FileMode
	}{
		{"1\n", "2\n", 0o640, 0o640},
		{"1\n", "2\n", 0o444, 0o444},
		{"+x 1\n", "+x 2\n", 0o700, 0o700},
		{"1\n", "+x 1\n", 0o640, 0o750},
		{"1\n", "+x 2\n", 0o600, 0o700},
		{"+x 1\n", "1\n", 0o755, 0o644},
		{"+x 1\n", "2\n", 0o751, 0o640},
		{"+x 1\n", "+x 2\n", 0o755 | fs.ModeSetuid, 0o755},
		{"+x 1\n", "+x 2\n", 0o755 | fs.ModeSetgid | fs.ModeSticky, 0o755},
	} {
		dir := t.TempDir()
		before, after := files{"a": c.before}, files{"a": c.after}
		before.put(t, dir)
		fatal(t, os.Chmod(filepath.Join(dir, "a"), c.have))
		ops := open(t, dir).Write(changes(before, after))
		info, err := os.Stat(filepath.Join(dir, "a"))
		if err != nil || info.Mode() != c.want || outcome(ops) != ledger.OutcomeSuccess {
			t.Errorf("%q to %q with %v: %v %v %v, want %v", c.before, c.after, c.have, info.Mode(), err, ops, c.want)
		}
	}
}

// TestT32HardLink: a file with another name elsewhere is replaced, not written.
func TestT32HardLink(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	fatal(t, os.WriteFile(outside, []byte("1\n"), 0o644))
	if err := os.Link(outside, filepath.Join(dir, "a")); err != nil {
		t.Skip(err)
	}
	ops := open(t, dir).Write(changes(files{"a": "1\n"}, files{"a": "2\n"}))
	same(t, dir, files{"a": "2\n"})
	if data, err := os.ReadFile(outside); err != nil || string(data) != "1\n" || outcome(ops) != ledger.OutcomeSuccess {
		t.Errorf("outside is %q (%v), %+v", data, err, ops)
	}
}
