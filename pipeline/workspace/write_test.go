package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/result"
)

// rows are changes that can be carried out; other files are there throughout.
var rows = []struct {
	name                 string
	before, after, other files
}{
	{"add", files{}, files{"a": "1\n"}, files{"z": "0\n"}},
	{"add to an empty file's name", files{}, files{"a": ""}, nil},
	{"add below new directories", files{}, files{"x/y/z/a": "1\n", "x/b": "2\n"}, files{"x.txt": "0\n"}},
	{"add an executable", files{}, files{"run": "+x 1\n"}, nil},
	{"update", files{"a": "1\n"}, files{"a": "2\n"}, files{"b": "1\n"}},
	{"update an executable", files{"run": "+x 1\n"}, files{"run": "+x 2\n"}, nil},
	{"update bytes that are no text", files{"a": "\x00\xff"}, files{"a": "\xff\x00\r\n"}, nil},
	{"delete", files{"a": "1\n"}, files{}, files{"b": "1\n"}},
	{"delete the last file of a directory", files{"x/y/a": "1\n"}, files{}, files{"b": "1\n"}},
	{"delete all but one file of a directory", files{"x/y/a": "1\n"}, files{}, files{"x/b": "1\n"}},
	{"make executable", files{"a": "1\n"}, files{"a": "+x 1\n"}, nil},
	{"make regular, and update", files{"a": "+x 1\n"}, files{"a": "2\n"}, nil},
	{"rename", files{"a": "1\n"}, files{"x/b": "1\n"}, nil},
	{"exchange", files{"a": "1\n", "b": "2\n"}, files{"a": "2\n", "b": "1\n"}, nil},
	{"a directory becomes a file", files{"x/a": "1\n", "x/y/b": "2\n"}, files{"x": "3\n"}, files{"z": "0\n"}},
	{"a file becomes a directory", files{"x": "1\n"}, files{"x/a": "2\n", "x/y/b": "3\n"}, files{"z": "0\n"}},
	{"deep down a file becomes a directory", files{"d/x": "1\n"}, files{"d/x/y/z/a": "2\n"}, files{"d/e": "0\n"}},
	{"everything at once", files{"a": "1\n", "b": "+x 2\n", "x/c": "3\n", "y": "4\n"},
		files{"a": "+x 5\n", "b": "6\n", "n/e/w": "7\n", "x": "8\n", "y/z": "9\n"}, files{"q/r": "0\n"}},
}

func TestWrite(t *testing.T) {
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.before.plus(c.other).put(t, dir)
			tree, cs := open(t, dir), changes(c.before, c.after)
			inspect(t, tree, cs, Before)
			same(t, dir, c.before.plus(c.other))

			ops := tree.Write(cs)
			same(t, dir, c.after.plus(c.other))
			inspect(t, tree, cs, After)
			if want := Predict(cs); !reflect.DeepEqual(ops, want) {
				t.Errorf("reported %+v, predicted %+v", ops, want)
			}
			checkReport(t, ops, cs)

			if again := tree.Write(cs); !reflect.DeepEqual(again, ops) {
				t.Errorf("T64 written twice: %+v", again)
			}
			same(t, dir, c.after.plus(c.other))
		})
	}
}

func checkReport(t *testing.T, ops []result.Operation, cs []patch.Change) {
	t.Helper()
	for i, f := range cs {
		want := result.Operation{Op: "modify", Path: f.Path, Status: result.StatusSuccess, BeforeHash: f.Before.Sum(), AfterHash: f.After.Sum()}
		switch {
		case f.Before == nil:
			want.Op = "create"
		case f.After == nil:
			want.Op = "delete"
		}
		if f.After != nil {
			want.BytesWritten = int64(len(f.After.Data))
		}
		if !reflect.DeepEqual(ops[i], want) {
			t.Errorf("%+v, want %+v", ops[i], want)
		}
	}
}

// TestT41Crash: a write that is cut off anywhere leaves each file old or new,
// and the next write finishes it and clears what the first left behind.
func TestT41Crash(t *testing.T) {
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			cs := changes(c.before, c.after)
			for n, cut := 0, false; !cut; n++ {
				dir := t.TempDir()
				c.before.plus(c.other).put(t, dir)
				cut = !crash(t, open(t, dir), cs, n)
				tree := open(t, dir)
				states, err := tree.Inspect(cs)
				if err != nil {
					t.Fatal(err)
				}
				for i, s := range states {
					if s == Other {
						t.Errorf("after %d steps %s is neither old nor new", n, cs[i].Path)
					}
				}
				if got := outcome(tree.Write(cs)); got != result.Success {
					t.Errorf("after %d steps: %s", n, got)
				}
				inspect(t, tree, cs, After)
				same(t, dir, c.after.plus(c.other))
			}
		})
	}
}

// crash takes the first n steps of a Write, and says whether there were more.
func crash(t *testing.T, tree *Tree, cs []patch.Change, n int) bool {
	t.Helper()
	w := newWriter(tree, cs)
	w.check(cs)
	step := func(err error) {
		if n--; err != nil {
			t.Fatal(err)
		}
	}
	for i, f := range cs {
		if f.After == nil {
			continue
		}
		if n == 0 {
			return true
		}
		step(w.stageOne(i, f))
	}
	for _, f := range cs {
		if f.After != nil {
			continue
		}
		if n == 0 {
			return true
		}
		step(w.remove(f.Path))
	}
	for i := range w.temps {
		if n == 0 {
			return true
		}
		step(w.put(&w.temps[i], cs[w.temps[i].index]))
	}
	return false
}

// TestInspect: what is neither as it was nor as it should be.
func TestInspect(t *testing.T) {
	add, update, gone := files{"a": "2\n"}, files{"a": "1\n"}, files{}
	for _, c := range []struct {
		name          string
		before, after files
		disk          files
		want          State
	}{
		{"update: before", update, add, files{"a": "1\n"}, Before},
		{"update: after", update, add, files{"a": "2\n"}, After},
		{"update: other content", update, add, files{"a": "3\n"}, Other},
		{"update: other mode", update, add, files{"a": "+x 1\n"}, Other},
		{"update: gone", update, add, files{}, Other},
		{"update: a directory", update, add, files{"a/b": "1\n"}, Other},
		{"update: an empty directory", update, add, files{"a": "/"}, Other},
		{"T44 update: a link to the same bytes", update, add, files{"a": "-> b", "b": "1\n"}, Other},
		{"add: free", gone, add, files{}, Before},
		{"add: there already", gone, add, files{"a": "2\n"}, After},
		{"add: something else is there", gone, add, files{"a": "1\n"}, Other},
		{"add: an empty directory is there", gone, add, files{"a": "/"}, Before},
		{"add: empty directories are there", gone, add, files{"a/b/c": "/"}, Before},
		{"add: a directory of untracked files is there", gone, add, files{"a/b/c": "1\n"}, Other},
		{"T44 add: a dangling link is there", gone, add, files{"a": "-> nowhere"}, Other},
		{"T44 add: a link that leads outside is there", gone, add, files{"a": "-> ../outside"}, Other},
		{"delete: there", update, gone, files{"a": "1\n"}, Before},
		{"delete: gone", update, gone, files{}, After},
		{"delete: changed", update, gone, files{"a": "3\n"}, Other},
		{"delete: a link", update, gone, files{"a": "-> b", "b": "1\n"}, Other},
		{"T31 below a link", files{"x/a": "1\n"}, files{"x/a": "2\n"}, files{"x": "-> y", "y/a": "1\n"}, Other},
		{"T31 below a link that leads outside", gone, files{"x/a": "2\n"}, files{"x": "-> .."}, Other},
		{"below a file", gone, files{"x/a": "2\n"}, files{"x": "1\n"}, Other},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.disk.put(t, dir)
			inspect(t, open(t, dir), changes(c.before, c.after), c.want)
			same(t, dir, c.disk)
		})
	}
}

// TestT40Refused: one file that is not as the change found it, and nothing is
// written.
func TestT40Refused(t *testing.T) {
	before := files{"b": "1\n", "gone": "1\n"}
	after := files{"a": "new\n", "b": "2\n", "x/y/z": "new\n"}
	for _, c := range []struct {
		name, path string
		disk       files
	}{
		{"changed", "b", files{"b": "3\n", "gone": "1\n"}},
		{"deleted", "b", files{"gone": "1\n"}},
		{"made meanwhile", "a", files{"a": "mine\n", "b": "1\n", "gone": "1\n"}},
		{"T44 made a link", "a", files{"a": "-> b", "b": "1\n", "gone": "1\n"}},
		{"T31 directory made a link", "x/y/z", files{"b": "1\n", "gone": "1\n", "x": "-> ."}},
		{"a directory in the way", "a", files{"a/mine": "1\n", "b": "1\n", "gone": "1\n"}},
		{"a file in the way of a directory", "x/y/z", files{"b": "1\n", "gone": "1\n", "x": "mine\n"}},
		{"what is to go has changed", "gone", files{"b": "1\n", "gone": "mine\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.disk.put(t, dir)
			ops := open(t, dir).Write(changes(before, after))
			same(t, dir, c.disk)
			for _, op := range ops {
				bad := op.Path == c.path
				if bad != (op.Status == result.StatusError) || !bad && op.Status != result.StatusSkipped || op.AfterHash != nil || op.BytesWritten != 0 {
					t.Errorf("%+v", op)
				}
				if bad && !strings.Contains(op.Error, "not as the approved change found it") {
					t.Errorf("error %q", op.Error)
				}
			}
			if got := outcome(ops); got != result.Failed {
				t.Errorf("outcome %s", got)
			}
		})
	}
}

// TestEmptyDirectories: what Git does not know of is not in the way.
func TestEmptyDirectories(t *testing.T) {
	dir := t.TempDir()
	files{"a/b/c": "/", "a/d": "/", "z": "0\n"}.put(t, dir)
	ops := open(t, dir).Write(changes(files{}, files{"a": "1\n"}))
	same(t, dir, files{"a": "1\n", "z": "0\n"})
	if outcome(ops) != result.Success {
		t.Errorf("%+v", ops)
	}
}

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
	} {
		dir := t.TempDir()
		before, after := files{"a": c.before}, files{"a": c.after}
		before.put(t, dir)
		if err := os.Chmod(filepath.Join(dir, "a"), c.have); err != nil {
			t.Fatal(err)
		}
		ops := open(t, dir).Write(changes(before, after))
		info, err := os.Stat(filepath.Join(dir, "a"))
		if err != nil || info.Mode().Perm() != c.want || outcome(ops) != result.Success {
			t.Errorf("%q to %q with %v: %v %v %v, want %v", c.before, c.after, c.have, info.Mode(), err, ops, c.want)
		}
	}
}

// TestT32HardLink: a file with another name elsewhere is replaced, not written.
func TestT32HardLink(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(outside, filepath.Join(dir, "a")); err != nil {
		t.Skip(err)
	}
	ops := open(t, dir).Write(changes(files{"a": "1\n"}, files{"a": "2\n"}))
	same(t, dir, files{"a": "2\n"})
	if data, err := os.ReadFile(outside); err != nil || string(data) != "1\n" || outcome(ops) != result.Success {
		t.Errorf("outside is %q (%v), %+v", data, err, ops)
	}
}

// TestT31Swapped: between check and write a directory becomes a link to where
// nothing was approved. An os.Root alone would follow it there.
func TestT31Swapped(t *testing.T) {
	before := files{"x/y/gone": "1\n", "x/y/old": "1\n"}
	after := files{"x/y/new": "2\n", "x/y/old": "2\n"}
	hooks := files{".git/hooks/gone": "1\n", ".git/hooks/old": "keep\n", ".git/hooks/y/gone": "1\n", ".git/hooks/y/old": "keep\n"}
	for _, swapped := range []string{"x", "x/y"} {
		for _, late := range []bool{false, true} {
			dir := t.TempDir()
			before.plus(hooks).put(t, dir)
			tree, cs := open(t, dir), changes(before, after)
			w := newWriter(tree, cs)
			w.check(cs)
			if late {
				w.stage(cs)
			}
			swap(t, dir, swapped)
			if !late {
				w.stage(cs)
			}
			if w.failed == late {
				t.Fatalf("%s, late %v: staged %+v", swapped, late, w.ops)
			}
			if late {
				w.place(cs)
			}
			if report := fmt.Sprint(w.ops); !strings.Contains(report, "symbolic link") {
				t.Errorf("%s, late %v: %s", swapped, late, report)
			}
			w.clean()
			got := get(t, filepath.Join(dir, ".git"))
			for name, want := range hooks {
				if got[strings.TrimPrefix(name, ".git/")] != want {
					t.Errorf("%s, late %v: %s is %q", swapped, late, name, got[strings.TrimPrefix(name, ".git/")])
				}
			}
			if len(got) != len(hooks) || !w.failed {
				t.Errorf("%s, late %v: %v, %+v", swapped, late, got, w.ops)
			}
		}
	}
}

func swap(t *testing.T, dir, name string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	err := os.Rename(file, filepath.Join(dir, "moved"))
	if err == nil {
		err = os.Symlink(filepath.Join(strings.Repeat("../", strings.Count(name, "/")), ".git/hooks"), file)
	}
	if err != nil {
		t.Skip(err)
	}
}

// TestT44TemporaryName: somebody put a link where new content would wait.
func TestT44TemporaryName(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	files{".countersign-0.tmp": "-> " + outside, "a": "1\n"}.put(t, dir)
	ops := open(t, dir).Write(changes(files{"a": "1\n"}, files{"a": "2\n"}))
	same(t, dir, files{"a": "2\n"})
	if _, err := os.Lstat(outside); !errors.Is(err, fs.ErrNotExist) || outcome(ops) != result.Success {
		t.Errorf("outside: %v, %+v", err, ops)
	}
}

// TestT45ReadBack: success is what is on disk, not what was sent there.
func TestT45ReadBack(t *testing.T) {
	dir := t.TempDir()
	files{"a": "1\n", "b": "1\n"}.put(t, dir)
	cs := changes(files{"a": "1\n", "b": "1\n"}, files{"a": "2\n", "b": "2\n"})
	w := newWriter(open(t, dir), cs)
	w.check(cs)
	w.stage(cs)
	files{".countersign-0.tmp": "other\n"}.put(t, dir)
	w.place(cs)
	w.clean()
	if w.ops[0].Status != result.StatusError || !strings.Contains(w.ops[0].Error, "not what was written") || w.ops[0].AfterHash != nil {
		t.Errorf("%+v", w.ops[0])
	}
	if w.ops[1].Status != result.StatusSkipped {
		t.Errorf("%+v", w.ops[1])
	}
	same(t, dir, files{"a": "other\n", "b": "1\n"})
}

// TestIgnoreMode: with core.fileMode off the executable bit says nothing.
func TestIgnoreMode(t *testing.T) {
	dir := t.TempDir()
	files{"a": "+x 1\n"}.put(t, dir)
	tree, err := Open(dir, t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	cs := changes(files{"a": "1\n"}, files{"a": "2\n"})
	inspect(t, tree, cs, Before)
	if got := outcome(tree.Write(cs)); got != result.Success {
		t.Errorf("outcome %s", got)
	}
	inspect(t, tree, cs, After)
}

// TestT52Lock: a second apply waits until the first is done.
func TestT52Lock(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "not", "yet")
	lock := func() func() {
		tree, err := Open(dir, state, false)
		if err != nil {
			t.Fatal(err)
		}
		unlock, err := tree.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return unlock
	}
	var released atomic.Bool
	unlock := lock()
	go func() {
		released.Store(true)
		unlock()
	}()
	lock()()
	if !released.Load() {
		t.Error("two hold the lock")
	}
	if _, err := Open(filepath.Join(dir, "none"), state, false); err == nil {
		t.Error("opened nothing")
	}
}
