package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
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
	{"names that are options", files{"--help/-n": "1\n", "-rf": "1\n"}, files{"--help/-n": "2\n", "--": "3\n"}, files{"a": "0\n"}},
	{"names like the temporary ones", files{".countersign-0.tmp": "1\n"}, files{".countersign-0.tmp": "2\n", ".countersign-1.tmp": "3\n"}, nil},
	{"everything at once", files{"a": "1\n", "b": "+x 2\n", "x/c": "3\n", "y": "4\n"},
		files{"a": "+x 5\n", "b": "6\n", "n/e/w": "7\n", "x": "8\n", "y/z": "9\n"}, files{"q/r": "0\n"}},
}

func TestWrite(t *testing.T) {
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.before.plus(c.other).put(t, dir)
			tree, cs := open(t, dir), changes(c.before, c.after)
			inspect(t, tree, cs, effect.Before)
			same(t, dir, c.before.plus(c.other))

			ops := tree.Write(cs)
			same(t, dir, c.after.plus(c.other))
			inspect(t, tree, cs, effect.After)
			if want := effect.Predict(cs); !reflect.DeepEqual(ops, want) {
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

func checkReport(t *testing.T, ops []ledger.Operation, cs []patch.Change) {
	t.Helper()
	for i, f := range cs {
		want := ledger.Operation{Op: "modify", Path: f.Path, Status: ledger.StatusSuccess, BeforeHash: f.Before.Sum(), AfterHash: f.After.Sum()}
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
				if bad != (op.Status == ledger.StatusError) || !bad && op.Status != ledger.StatusSkipped || op.AfterHash != nil || op.BytesWritten != 0 {
					t.Errorf("%+v", op)
				}
				if bad && !strings.Contains(op.Error, "not as the approved change found it") {
					t.Errorf("error %q", op.Error)
				}
			}
			if got := outcome(ops); got != ledger.OutcomeFailed {
				t.Errorf("outcome %s", got)
			}
		})
	}
}

// TestT40EditedMeanwhile: between check and rename somebody saves a file, makes
// one, or deletes one. What they did is not overwritten.
func TestT40EditedMeanwhile(t *testing.T) {
	before := files{"gone": "1\n", "here": "1\n", "old": "1\n"}
	after := files{"here": "2\n", "new": "2\n", "old": "2\n"}
	for _, c := range []struct{ path, content string }{
		{"old", "mine\n"}, {"old", "1\n"}, {"new", "mine\n"}, {"new", ""}, {"gone", "mine\n"}, {"here", ""},
	} {
		dir := t.TempDir()
		before.put(t, dir)
		w := newWriter(open(t, dir), changes(before, after))
		w.check()
		w.stage()
		mine := filepath.Join(dir, c.path)
		fatal(t, errors.Join(os.RemoveAll(mine), os.WriteFile(mine, []byte(c.content), 0o600)))
		if c.path == "here" {
			fatal(t, os.Remove(mine))
		}
		w.place()
		w.readBack()
		w.finish()
		data, err := os.ReadFile(mine)
		if string(data) != c.content || (err != nil) != (c.path == "here") {
			t.Errorf("%s is %q now (%v)", c.path, data, err)
		}
		if report := fmt.Sprint(w.ops); !strings.Contains(report, errChanged.Error()) {
			t.Errorf("%s: %s", c.path, report)
		}
		for name := range get(t, dir) {
			if strings.HasPrefix(name, tempPrefix) {
				t.Errorf("%s is left", name)
			}
		}
	}
}

// TestMany: more files than are synced one by one.
func TestMany(t *testing.T) {
	before, after := files{"file": "1\n"}, files{"file/now/a/directory": "2\n", "dir": "3\n"}
	for i := range 4 * few {
		name := fmt.Sprintf("%02d/%02d/%d", i%7, i%5, i)
		before["dir/"+name] = "1\n"
		before["kept/"+name], after["kept/"+name] = "1\n", "2\n"
		after["made/"+name] = "+x 2\n"
	}
	dir, state := t.TempDir(), t.TempDir()
	before.put(t, dir)
	cs := changes(before, after)
	for range 2 {
		if ops := openWith(t, dir, state).Write(cs); !reflect.DeepEqual(ops, effect.Predict(cs)) {
			t.Errorf("reported %+v", ops)
		}
		same(t, dir, after)
		nothingNoted(t, state)
	}
}

// TestEmptyDirectories: what Git does not know of is not in the way.
func TestEmptyDirectories(t *testing.T) {
	dir := t.TempDir()
	files{"a/b/c": "/", "a/d": "/", "z": "0\n"}.put(t, dir)
	ops := open(t, dir).Write(changes(files{}, files{"a": "1\n"}))
	same(t, dir, files{"a": "1\n", "z": "0\n"})
	if outcome(ops) != ledger.OutcomeSuccess {
		t.Errorf("%+v", ops)
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
			w.check()
			if late {
				w.stage()
			}
			swap(t, dir, swapped)
			if !late {
				w.stage()
			}
			if w.failed == late {
				t.Fatalf("%s, late %v: staged %+v", swapped, late, w.ops)
			}
			if late {
				w.place()
			}
			if report := fmt.Sprint(w.ops); !strings.Contains(report, "symbolic link") {
				t.Errorf("%s, late %v: %s", swapped, late, report)
			}
			w.readBack()
			w.finish()
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

func prefix(cs []patch.Change) string {
	return newPrefix(cs, func(i int) *string { return cs[i].After.Sum() })
}

// TestT44TemporaryName: somebody put a link where new content would wait.
func TestT44TemporaryName(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	cs := changes(files{"a": "1\n"}, files{"a": "2\n"})
	files{prefix(cs) + "0.tmp": "-> " + outside, "a": "1\n"}.put(t, dir)
	ops := open(t, dir).Write(cs)
	same(t, dir, files{"a": "2\n"})
	if _, err := os.Lstat(outside); !errors.Is(err, fs.ErrNotExist) || outcome(ops) != ledger.OutcomeSuccess {
		t.Errorf("outside: %v, %+v", err, ops)
	}
}

// TestT45ReadBack: success is what is on disk, not what was sent there.
func TestT45ReadBack(t *testing.T) {
	dir := t.TempDir()
	files{"a": "1\n", "b": "1\n"}.put(t, dir)
	cs := changes(files{"a": "1\n", "b": "1\n"}, files{"a": "2\n", "b": "2\n"})
	w := newWriter(open(t, dir), cs)
	w.check()
	w.stage()
	files{prefix(cs) + "0.tmp": "other\n"}.put(t, dir)
	w.place()
	w.readBack()
	w.finish()
	if w.ops[0].Status != ledger.StatusError || !strings.Contains(w.ops[0].Error, "not what was written") || w.ops[0].AfterHash != nil {
		t.Errorf("%+v", w.ops[0])
	}
	if got := outcome(w.ops); got != ledger.OutcomePartial || w.ops[1].Status != ledger.StatusSuccess {
		t.Errorf("%s %+v", got, w.ops[1])
	}
	same(t, dir, files{"a": "other\n", "b": "2\n"})
}

// TestIgnoreMode: with core.fileMode off the executable bit says nothing.
func TestIgnoreMode(t *testing.T) {
	dir := t.TempDir()
	files{"a": "+x 1\n"}.put(t, dir)
	tree, err := Open(dir, t.TempDir(), true)
	fatal(t, err)
	cs := changes(files{"a": "1\n"}, files{"a": "2\n"})
	inspect(t, tree, cs, effect.Before)
	if got := outcome(tree.Write(cs)); got != ledger.OutcomeSuccess {
		t.Errorf("outcome %s", got)
	}
	inspect(t, tree, cs, effect.After)
}

// TestT52Lock: a second apply waits until the first is done.
func TestT52Lock(t *testing.T) {
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "not", "yet")
	lock := func() func() {
		tree, err := Open(dir, state, false)
		fatal(t, err)
		unlock, err := tree.Lock(t.Context())
		fatal(t, err)
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
