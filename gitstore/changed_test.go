package gitstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/exectest"
)

// changed returns what we say is changed and what git says.
func (w work) changed() (ours, gits []string) {
	w.t.Helper()
	repo := w.open()
	var err error
	if repo.Config, err = repo.Settings(noEnv); err != nil {
		w.t.Fatal(err)
	}
	if ours, err = repo.Changed(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command("git", "--no-optional-locks", "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
	cmd.Dir, cmd.Env = w.dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.Output()
	w.do(err)
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if line != "" && !strings.HasSuffix(line, "/") { // another repository
			gits = append(gits, line[3:])
		}
	}
	slices.Sort(gits)
	return ours, slices.Compact(gits)
}

func (w work) same(what string) {
	w.t.Helper()
	if ours, gits := w.changed(); !slices.Equal(ours, gits) {
		w.t.Errorf("%s: we say\n%q, git\n%q", what, ours, gits)
	}
}

// age makes what git knows of the files older than the index, so that none of
// them is read to tell whether it has changed.
func (w work) age() {
	w.t.Helper()
	past := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(w.dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if err == nil && d.Type().IsRegular() {
			err = os.Chtimes(name, past, past)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.git("update-index", "-q", "--refresh")
}

// rewrite gives a file other content of the same size and leaves the times of
// the content as they were.
func (w work) rewrite(name, data string) {
	w.t.Helper()
	info, err := os.Stat(w.path(name))
	if err != nil {
		w.t.Fatal(err)
	}
	w.write(name, data)
	if err := os.Chtimes(w.path(name), info.ModTime(), info.ModTime()); err != nil {
		w.t.Fatal(err)
	}
}

// race has git note a file that then changes, and looks as it did. The index is
// written that much later than the file.
func (w work) race(later time.Duration) {
	w.t.Helper()
	w.git("config", "core.trustCtime", "false")
	w.write("a", "3\n")
	w.git("add", "a")
	w.git("commit", "-q", "-m", "a")
	w.rewrite("a", "4\n")
	info, err := os.Stat(w.path("a"))
	w.do(err)
	at := info.ModTime().Add(later)
	w.do(os.Chtimes(w.path(".git/index"), at, at))
}

func (w work) do(errs ...error) {
	w.t.Helper()
	if err := errors.Join(errs...); err != nil {
		w.t.Fatal(err)
	}
}

// states are made of a repository with the files a, b, dir/c, dir/deep/d, run
// (executable), empty and, where there are such, a link. The first word of a
// name that begins with "unix" is a state that other systems cannot have.
var states = []struct {
	name   string
	change func(work)
}{
	{"clean", func(work) {}},
	{"modified", func(w work) { w.write("a", "2\n") }},
	{"modified to another size", func(w work) { w.write("dir/c", "longer\n") }},
	{"touched", func(w work) { w.do(os.Chtimes(w.path("a"), time.Now(), time.Now())) }},
	{"touched, long", func(w work) { w.age(); w.do(os.Chtimes(w.path("a"), time.Now(), time.Now())) }},
	{"deleted", func(w work) { w.do(os.Remove(w.path("a"))) }},
	{"directory deleted", func(w work) { w.do(os.RemoveAll(w.path("dir"))) }},
	{"new", func(w work) { w.write("new", "1\n"); w.write("dir/new", "1\n"); w.write("x/y/z", "1\n") }},
	{"staged", func(w work) { w.write("dir/deep/d", "2\n"); w.git("add", "--all") }},
	{"staged and taken back", func(w work) { w.write("a", "2\n"); w.git("add", "a"); w.write("a", "1\n") }},
	{"staged new and removed", func(w work) { w.write("new", "1\n"); w.git("add", "new"); w.do(os.Remove(w.path("new"))) }},
	{"removed from the index alone", func(w work) { w.git("rm", "-q", "--cached", "-r", "dir") }},
	{"staged removal of a directory", func(w work) { w.git("rm", "-q", "-r", "dir") }},
	{"no index", func(w work) { w.do(os.Remove(w.path(".git/index"))) }},
	{"no trees noted", func(w work) { w.git("read-tree", "--empty"); w.git("add", "--all") }},
	{"racy", func(w work) { w.race(0) }},
	{"racy, the index a moment older", func(w work) { w.race(-time.Minute) }},
	{"not racy", func(w work) { w.race(time.Minute) }}, // git takes it for the same
	{"racy, as it was", func(w work) { w.race(0); w.rewrite("a", "3\n") }},
	{"racy, noted by git with size 0", func(w work) { w.race(0); w.write("new", "1\n"); w.git("add", "new") }},
	{"noted with size 0, as it was", func(w work) {
		w.race(0)
		w.write("new", "1\n")
		w.git("add", "new")
		w.rewrite("a", "3\n")
	}},
	{"noted with size 0, emptied", func(w work) {
		w.race(0)
		w.write("new", "1\n")
		w.git("add", "new")
		w.rewrite("a", "")
	}},
	{"written over, time of content kept", func(w work) { w.age(); time.Sleep(1100 * time.Millisecond); w.rewrite("a", "4\n") }},
	{"emptied", func(w work) { w.write("a", "") }},
	{"assumed unchanged", func(w work) {
		w.git("update-index", "--assume-unchanged", "a", "dir/c")
		w.write("a", "other\n")
		w.do(os.Remove(w.path("dir/c")))
	}},
	{"skip-worktree", func(w work) {
		w.git("update-index", "--skip-worktree", "a", "dir/c")
		w.write("a", "other\n")
		w.do(os.RemoveAll(w.path("dir")))
	}},
	{"intent to add", func(w work) { w.write("new", "1\n"); w.git("add", "-N", "new") }},
	{"intent to add, empty", func(w work) { w.write("new", ""); w.git("add", "-N", "new") }},
	{"intent to add, gone", func(w work) {
		w.write("new", "1\n")
		w.git("add", "-N", "new")
		w.do(os.Remove(w.path("new")))
	}},
	{"intent to add in place of what was removed", func(w work) { w.git("rm", "-q", "--cached", "a"); w.git("add", "-N", "a") }},
	{"unix mode", func(w work) { w.do(os.Chmod(w.path("a"), 0o755), os.Chmod(w.path("run"), 0o644)) }},
	{"unix mode, not looked at", func(w work) {
		w.git("config", "core.fileMode", "false")
		w.do(os.Chmod(w.path("a"), 0o755), os.Chmod(w.path("run"), 0o644))
	}},
	{"mode in the index", func(w work) { w.git("update-index", "--chmod=+x", "a") }},
	{"unix link", func(w work) {
		w.do(os.Symlink("a", w.path("new")), os.Remove(w.path("link")), os.Symlink("b", w.path("link")))
	}},
	{"unix link in place of a file", func(w work) { w.do(os.Remove(w.path("a")), os.Symlink("b", w.path("a"))) }},
	{"unix file in place of a link", func(w work) { w.do(os.Remove(w.path("link"))); w.write("link", "a") }},
	{"unix link in place of a directory", func(w work) {
		w.do(os.Rename(w.path("dir"), w.path("moved")), os.Symlink("moved", w.path("dir")))
	}},
	{"unix links as files", func(w work) {
		w.git("config", "core.symlinks", "false")
		w.do(os.Remove(w.path("link")))
		w.write("link", "a")
	}},
	{"unix pipe", func(w work) {
		w.do(exec.Command("mkfifo", w.path("pipe")).Run(), os.Remove(w.path("a")), exec.Command("mkfifo", w.path("a")).Run())
	}},
	{"directory in place of a file", func(w work) { w.do(os.Remove(w.path("a"))); w.write("a/x", "1\n") }},
	{"empty directory in place of a file", func(w work) { w.do(os.Remove(w.path("a")), os.Mkdir(w.path("a"), 0o777)) }},
	{"file in place of a directory", func(w work) { w.do(os.RemoveAll(w.path("dir"))); w.write("dir", "1\n") }},
	{"file in place of a directory, staged", func(w work) {
		w.do(os.RemoveAll(w.path("dir")))
		w.write("dir", "1\n")
		w.git("add", "--all")
	}},
	{"names around a slash", func(w work) {
		for _, n := range []string{"dir-x", "dir.x", "dir0", "dir/c-", "dir/c.", "di"} {
			w.write(n, "1\n")
		}
		w.git("add", "dir-x", "dir0")
	}},
	{"ignored", func(w work) {
		w.write(".gitignore", "*.o\n!keep.o\nbuild/\n/dir/no\n")
		for _, n := range []string{"x.o", "keep.o", "dir/x.o", "build/x", "dir/build/keep.o", "dir/no", "dir/deep/no"} {
			w.write(n, "1\n")
		}
	}},
	{"ignored below", func(w work) {
		w.write("dir/.gitignore", "*\n!.gitignore\n!deep\n")
		w.write("dir/deep/.gitignore", "!y\n")
		for _, n := range []string{"dir/x", "dir/deep/y", "dir/deep/x", "dir/new/y"} {
			w.write(n, "1\n")
		}
	}},
	{"tracked in what is ignored", func(w work) {
		w.write(".gitignore", "dir\n")
		w.write("dir/c", "2\n")
		w.write("dir/new", "1\n")
		w.write("dir/deep/new", "1\n")
	}},
	{"ignored by the repository", func(w work) {
		w.write(".git/info/exclude", "x*\n")
		w.write(".gitignore", "!xy\n")
		w.write("xx", "1\n")
		w.write("xy", "1\n")
	}},
	{"ignored by the user", func(w work) {
		w.write("mine", "y*\n")
		w.git("config", "core.excludesFile", w.path("mine"))
		w.write("yy", "1\n")
	}},
	{"ignored by the user, relative", func(w work) {
		w.write("dir/mine", "y*\n")
		w.git("config", "core.excludesFile", "dir/mine")
		w.write("yy", "1\n")
	}},
	{"unix ignored by a link", func(w work) {
		w.write("list", "x*\n")
		w.do(os.Symlink("list", w.path(".gitignore")))
		w.write("xx", "1\n")
	}},
	{"case", func(w work) {
		w.git("config", "core.ignoreCase", "true")
		w.write(".gitignore", "*.LOG\nOUT/\n")
		w.write("x.log", "1\n")
		w.write("out/x", "1\n")
		w.write("new", "1\n")
	}},
	{"unix case of a file", func(w work) { // where the system tells them apart
		w.git("config", "core.ignoreCase", "true")
		w.do(os.Rename(w.path("a"), w.path("A")))
	}},
	{"case counts", func(w work) {
		w.git("config", "core.ignoreCase", "false")
		w.write(".gitignore", "*.LOG\n")
		w.write("x.log", "1\n")
	}},
	{"another repository", func(w work) {
		w.git("init", "-q", "nested")
		w.write("nested/x", "1\n")
		w.write("half/.git/HEAD", "no repository\n")
		w.write("half/x", "1\n")
	}},
	{"submodule", func(w work) {
		w.git("init", "-q", "sub")
		w.write("sub/x", "1\n")
		w.git("-C", "sub", "add", "x")
		w.git("-C", "sub", "commit", "-q", "-m", "sub")
		w.git("add", "sub")
		w.git("commit", "-q", "-m", "with sub")
		w.same("submodule as it was committed")
		w.git("-C", "sub", "commit", "-q", "--allow-empty", "-m", "more")
	}},
	{"submodule that is not checked out", func(w work) {
		w.git("update-index", "--add", "--cacheinfo", "160000,"+w.git("rev-parse", "HEAD")+",sub")
		w.git("commit", "-q", "-m", "with sub")
		w.same("no directory")
		w.do(os.Mkdir(w.path("sub"), 0o777))
	}},
	{"merge's conflict", func(w work) { w.conflict("2\n") }},
	{"index version 4", func(w work) {
		w.git("update-index", "--index-version", "4")
		w.write("dir/new", "1\n")
		w.git("add", "dir/new")
		w.write("dir/deep/d", "2\n")
		w.do(os.Remove(w.path("b")))
	}},
	{"index version 3", func(w work) {
		w.git("update-index", "--skip-worktree", "dir/c")
		w.write("dir/c", "other\n")
		w.write("dir/deep/d", "2\n")
	}},
	{"sparse checkout", func(w work) {
		w.write(".gitignore", "*.o\n")
		w.write("dir/.gitignore", "!y.o\n")
		w.git("add", "--all")
		w.git("commit", "-q", "-m", "lists")
		w.git("sparse-checkout", "set", "--no-cone", "/a")
		w.same("as it was checked out")
		w.write("a", "2\n")
		w.write("dir/c", "2\n")
		w.write("dir/y.o", "2\n")
		w.write("dir/z.o", "2\n")
	}},
	{"sparse index", func(w work) {
		w.git("sparse-checkout", "set", "--cone", "--sparse-index", "none")
		w.same("as it was checked out")
		w.write("a", "2\n")
		w.git("add", "a")
		w.write("x/y", "1\n")
	}},
	{"sparse index, the rest is there", func(w work) {
		w.git("sparse-checkout", "set", "--cone", "--sparse-index", "none")
		w.write("dir/c", "2\n")
		w.write("dir/new", "2\n")
	}},
	{"sparse index, HEAD is another", func(w work) {
		w.write("dir/deep/d", "2\n")
		w.write("dir/new", "2\n")
		w.git("add", "--all")
		w.git("commit", "-q", "-m", "more")
		w.git("sparse-checkout", "set", "--cone", "--sparse-index", "none")
		w.git("update-ref", "HEAD", "HEAD~1")
	}},
	{"untracked cache", func(w work) {
		w.git("config", "core.untrackedCache", "true")
		w.write("x/y", "1\n")
		w.write(".gitignore", "*.o\n")
		w.git("status", "-uall")
		w.write("x/z", "1\n")
		w.write("dir/z.o", "1\n")
		w.write("dir/.gitignore", "!z.o\n")
		w.git("update-index", "--untracked-cache")
		w.git("status")
		w.do(os.Remove(w.path("x/y")))
	}},
	{"no commits", func(w work) { w.git("update-ref", "-d", "HEAD") }},
	{"stat checked less", func(w work) {
		w.git("config", "core.checkStat", "minimal")
		w.git("config", "core.trustCtime", "false")
		w.age()
		time.Sleep(1100 * time.Millisecond)
		w.rewrite("a", "4\n")
		w.write("b", "5\n")
	}},
	{"odd names", func(w work) {
		for _, n := range []string{"a b", "ü", "[x]", ".hidden", "..x", "dir/...", ".gitx", "x.git"} {
			w.write(n, "1\n")
		}
		w.git("add", "..x", "dir/...")
		w.write("..x", "2\n")
	}},
}

// TestChanged: what git says of many states of a working tree.
func TestChanged(t *testing.T) {
	for _, s := range states {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS == "windows" && strings.HasPrefix(s.name, "unix") {
				t.Skip("not on this system")
			}
			w := changedWork(t)
			s.change(w)
			w.same("changed")
			w.git("status", "--porcelain") // writes what it found into the index
			w.same("after git has looked")
		})
	}
}

func changedWork(t *testing.T) work {
	t.Helper()
	w := initWork(t)
	for _, name := range []string{"a", "b", "dir/c", "dir/deep/d", "run"} {
		w.write(name, "1\n")
	}
	w.write("empty", "")
	if runtime.GOOS != "windows" {
		w.do(os.Chmod(w.path("run"), 0o755), os.Symlink("a", w.path("link")))
	}
	w.git("add", "--all")
	w.git("commit", "--quiet", "--message=base")
	return w
}

// TestT34MonitorIsNotAsked: an index that a file system monitor's answer is in
// says no more than one without, as the monitor is a program that the
// repository's configuration names.
func TestT34MonitorIsNotAsked(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the monitor is a shell script")
	}
	w := changedWork(t)
	w.do(exectest.WriteFile(w.path(".git/monitor"), []byte("#!/bin/sh\necho ran >>\"$(dirname \"$0\")/ran\"\nprintf 'token\\0'\n")))
	w.git("config", "core.fsmonitor", w.path(".git/monitor"))
	w.git("update-index", "--fsmonitor")
	w.age()
	w.git("status")
	if index, err := os.ReadFile(w.path(".git/index")); err != nil || !strings.Contains(string(index), "FSMN") {
		t.Fatalf("the index has no answer of a monitor (%v)", err)
	}
	w.do(os.Remove(w.path(".git/ran")))
	w.write("a", "other\n") // the monitor says that nothing has changed
	w.write("new", "1\n")
	ours, err := w.open().Changed(t.Context())
	w.do(err)
	if want := []string{"a", "new"}; !slices.Equal(ours, want) {
		t.Errorf("%q, want %q", ours, want)
	}
	if _, err := os.Stat(w.path(".git/ran")); err == nil {
		t.Error("the monitor has run")
	}
}

// TestT34FilterIsNotRun: a filter that the configuration names is not run to
// tell whether a file has changed.
func TestT34FilterIsNotRun(t *testing.T) {
	w := changedWork(t)
	w.write(".gitattributes", "* filter=evil\n")
	w.git("config", "filter.evil.clean", "echo ran >.git/ran; cat")
	w.do(os.Chtimes(w.path("a"), time.Now(), time.Now()))
	repo := w.open()
	if got, err := repo.Changed(t.Context()); err != nil || !slices.Equal(got, []string{".gitattributes"}) {
		t.Errorf("%q %v", got, err)
	}
	if _, err := os.Stat(w.path(".git/ran")); err == nil {
		t.Error("the filter has run")
	}
}

// TestChangedForms: a file that Git would store as the index has it has not changed,
// whatever its line endings, its $Id$ and its time are.
func TestChangedForms(t *testing.T) {
	w := changedWork(t)
	w.write(".gitattributes", "*.crlf eol=crlf\n*.id ident\n*.raw -text\n")
	for _, name := range []string{"1.crlf", "2.crlf", "1.id", "2.id", "1.raw", "1.txt", "2.txt"} {
		w.write(name, "one\n$Id$\n")
	}
	w.git("add", "-A")
	w.git("commit", "-qm", "forms")
	for name, data := range map[string]string{
		"3.crlf": "new\r\n", "1.crlf": "one\r\n$Id$\r\n", "2.crlf": "two\r\n$Id$\r\n", "1.id": "one\n$Id: 12 $\n", "2.id": "one\n$Ib: 12 $\n", "1.raw": "one\r\n$Id$\r\n", "1.txt": "one\r\n$Id$\r\n",
	} {
		w.write(name, data)
	}
	for _, auto := range []string{"false", "true", "input"} {
		w.git("config", "core.autocrlf", auto)
		w.same("edited, autocrlf=" + auto)
		w.git("stash", "-q")
		w.do(os.RemoveAll(w.path(".git/index")))
		w.git("reset", "-q", "--hard")
		for _, name := range []string{"1.crlf", "1.id", "1.raw", "1.txt"} {
			w.do(os.Chtimes(w.path(name), time.Now(), time.Now().Add(time.Minute))) // its content is read
		}
		w.same("touched, autocrlf=" + auto)
		if ours, _ := w.changed(); !slices.Equal(ours, []string{"3.crlf"}) {
			t.Errorf("autocrlf=%s: touched files have changed: %q", auto, ours)
		}
		w.git("stash", "pop", "-q")
	}
}

// TestIndexRefused: an index that is not read says so, and is not taken for one
// that is empty.
func TestIndexRefused(t *testing.T) {
	cut := func(n int) func(work) {
		return func(w work) {
			data, err := os.ReadFile(w.path(".git/index"))
			w.do(err)
			w.do(os.WriteFile(w.path(".git/index"), data[:n], 0o666))
		}
	}
	for _, c := range []struct {
		name   string
		change func(work)
		want   string
	}{
		{"split", func(w work) { w.git("update-index", "--split-index") }, "--no-split-index"},
		{"empty file", cut(0), "no index file"},
		{"cut in an entry", cut(100), "cut off"},
		{"version 5", func(w work) { w.patchIndex(7, 5) }, "version 5"},
		{"a name that leads out", func(w work) { w.renameEntry("dir/c", "d/../") }, "no path"},
		{"not in order", func(w work) { w.renameEntry("dir/c", "xir/c") }, "not in order"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := changedWork(t)
			c.change(w)
			var unsupported *gitstore.UnsupportedError
			if got, err := w.open().Changed(t.Context()); !errors.As(err, &unsupported) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q %v, want %q", got, err, c.want)
			}
			if got, err := w.open().Index(t.Context(), nil); !errors.As(err, &unsupported) {
				t.Errorf("%v %v", got, err)
			}
		})
	}
}

func (w work) patchIndex(at int, b byte) {
	data, err := os.ReadFile(w.path(".git/index"))
	w.do(err)
	data[at] = b
	w.do(os.WriteFile(w.path(".git/index"), data, 0o666))
}

func (w work) renameEntry(from, to string) {
	data, err := os.ReadFile(w.path(".git/index"))
	w.do(err)
	w.do(os.WriteFile(w.path(".git/index"), []byte(strings.Replace(string(data), from+"\x00", to+"\x00", 1)), 0o666))
}

// TestChangedAtRandom: any mixture of changes and lists.
func TestChangedAtRandom(t *testing.T) {
	if testing.Short() {
		t.Skip("runs git some hundred times")
	}
	random := rand.New(rand.NewPCG(14, 1))
	one := func(from ...string) string { return from[random.IntN(len(from))] }
	lines := []string{
		"a", "/b", "*.o", "!x.o", "d/", "!d/", "*", "!*", "d/**", "**/e", "d/*/e", "/d/e", "e/*.o", "!e/", "[ab]", "[!a]*", "?", "\\a", "a\\ ", "**", "d/**/x.o",
	}
	name := func() string {
		return strings.Repeat(one("d/", "e/", "d/e/"), random.IntN(3)) + one("a", "b", "x.o", "y.o", "c", ".gitignore")
	}
	w := initWork(t)
	w.git("commit", "-q", "--allow-empty", "-m", "base")
	for i := range 100 {
		var did []string
		for range 1 + random.IntN(6) {
			n := name()
			at := w.path(n)
			data := fmt.Sprintln(random.IntN(5))
			if strings.HasSuffix(n, ".gitignore") {
				for data = ""; random.IntN(4) > 0; {
					data += one(lines...) + "\n"
				}
			}
			did = append(did, n)
			switch random.IntN(8) {
			case 0, 1, 2, 3:
				if os.MkdirAll(filepath.Dir(at), 0o777) == nil {
					_ = os.WriteFile(at, []byte(data), 0o666) // where nothing else is in the way
				}
			case 4:
				_ = os.RemoveAll(at)
			case 5:
				_ = os.RemoveAll(filepath.Dir(at) + "/" + one("d", "e"))
			case 6:
				_, _ = w.try("add", "-f", "--", n)
			case 7:
				_, _ = w.try(strings.Fields(one("add -A", "commit -q -a -m more", "reset -q", "rm -q -r --cached d", "update-index --index-version "+one("2", "4"), "add -N .", "stash -q", "status"))...)
			}
		}
		w.do(os.MkdirAll(w.dir, 0o777))
		if w.same(fmt.Sprintf("step %d, %q", i, did)); t.Failed() {
			t.Log(w.git("ls-files", "-s"))
			break
		}
	}
}
