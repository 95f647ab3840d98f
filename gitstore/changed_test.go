package gitstore_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

func (w work) do(errs ...error) {
	w.t.Helper()
	fatal(w.t, errors.Join(errs...))
}

func (w work) changed(want ...string) {
	w.t.Helper()
	repo := w.open()
	defer repo.Close()
	if got, err := repo.Changed(w.t.Context()); err != nil || !slices.Equal(got, want) {
		w.t.Errorf("%q %v, want %q", got, err, want)
	}
}

// staged fails the test unless these are the paths among a and dir/c whose entries are
// not the commit's, and these those that need not be checked out.
func (w work) staged(staged, sparse string) {
	w.t.Helper()
	repo := w.open()
	defer repo.Close()
	one := &patch.File{Mode: patch.Regular, Data: []byte("1\n")}
	got, err := repo.Index(w.t.Context(), []patch.Change{{Path: "a", Before: one}, {Path: "dir/c", Before: one}})
	if err != nil || strings.Join(got.Staged, " ") != staged || strings.Join(got.Sparse, " ") != sparse {
		w.t.Errorf("%+v %v, want %q and %q", got, err, staged, sparse)
	}
}

// changedWork is a repository with the files a, b, dir/c, dir/deep/d, run
// (executable), empty and, where there are such, a link.
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

func (w work) submodule() {
	w.t.Helper()
	w.git("init", "-q", "sub")
	w.write("sub/x", "1\n")
	w.git("-C", "sub", "add", "x")
	w.git("-C", "sub", "commit", "-q", "-m", "sub")
	w.git("add", "sub")
	w.git("commit", "-q", "-m", "with sub")
}

// TestChanged: states of a working tree, with the paths that are told.
func TestChanged(t *testing.T) {
	for _, s := range []struct {
		name   string
		change func(work)
		want   string
	}{
		{"clean", func(work) {}, ""},
		{"modified", func(w work) { w.write("a", "2\n") }, "a"},
		{"executable", func(w work) { w.git("update-index", "--chmod=+x", "a") }, "a"},
		{"deleted", func(w work) { w.do(os.RemoveAll(w.path("dir"))) }, "dir/c dir/deep/d"},
		{"new", func(w work) { w.write("new", "1\n"); w.write("x/y/z", "1\n") }, "new x/y/z"},
		{"staged", func(w work) { w.write("dir/deep/d", "2\n"); w.git("add", "--all") }, "dir/deep/d"},
		{"staged and taken back", func(w work) { w.write("a", "2\n"); w.git("add", "a"); w.write("a", "1\n") }, "a"},
		{"staged new and removed", func(w work) { w.write("new", "1\n"); w.git("add", "new"); w.do(os.Remove(w.path("new"))) }, "new"},
		{"moved", func(w work) { w.git("mv", "a", "c") }, "a c"},
		{"intended", func(w work) { w.write("new", "1\n"); w.git("add", "-N", "new") }, "new"},
		{"removed from the index alone", func(w work) { w.git("rm", "-q", "--cached", "a") }, "a"},
		{"a directory in place of a file", func(w work) { w.do(os.Remove(w.path("a"))); w.write("a/x", "1\n") }, "a a/x"},
		{"a file in place of a directory", func(w work) { w.do(os.RemoveAll(w.path("dir"))); w.write("dir", "1\n"); w.git("add", "--all") }, "dir dir/c dir/deep/d"},
		{"ignored", func(w work) {
			w.write(".gitignore", "*.o\n!keep.o\n")
			w.write("x.o", "1\n")
			w.write("dir/keep.o", "1\n")
		}, ".gitignore dir/keep.o"},
		{"a merge's conflict", func(w work) { w.conflict("2\n") }, "a"},
		{"odd names", func(w work) {
			for _, name := range []string{"a b", "ü", "-n", "..x", ".gitx", "1 .M", "x\ny"} {
				w.write(name, "1\n")
			}
		}, "-n ..x .gitx 1 .M a b x\ny ü"},
		{"no commits", func(w work) {
			w.git("update-ref", "-d", "HEAD")
			w.git("rm", "-rq", "--cached", "dir", "run", "empty", "link")
		}, "a b dir/c dir/deep/d empty link run"},
		{"detached", func(w work) { w.git("checkout", "-q", "--detach"); w.write("a", "2\n") }, "a"},
		{"settings of status", func(w work) {
			for key, value := range map[string]string{"status.renames": "copies", "status.showUntrackedFiles": "no", "status.relativePaths": "false", "status.branch": "true",
				"status.short": "true", "color.status": "always", "core.quotePath": "true", "status.showStash": "true", "column.status": "always", "diff.ignoreSubmodules": "all", "status.submoduleSummary": "true"} {
				w.git("config", key, value)
			}
			w.write("a", "2\n")
			w.git("stash", "-q")
			w.git("mv", "b", "new")
			w.write("x", "1\n")
		}, "b new x"},
		{"a setting before any section", func(w work) {
			raw, err := os.ReadFile(w.path(".git/config"))
			w.do(err, os.WriteFile(w.path(".git/config"), append([]byte("alone = 1\n"), raw...), 0o666))
			w.write("a", "2\n")
		}, "a"},
		{"another repository", func(w work) {
			w.git("init", "-q", "nested")
			w.write("nested/x", "1\n")
			w.write("half/.git/HEAD", "none\n")
			w.write("half/x", "1\n")
		}, "half/x"},
		{"a submodule as it was committed", func(w work) { w.submodule(); w.write("sub/x", "2\n"); w.write("sub/new", "2\n") }, ""},
		{"a submodule at another commit", func(w work) {
			w.submodule()
			w.git("config", "submodule.sub.ignore", "all")
			w.git("-C", "sub", "commit", "-q", "--allow-empty", "-m", "more")
		}, "sub"},
		{"a submodule that is not checked out", func(w work) {
			w.git("update-index", "--add", "--cacheinfo", "160000,"+w.git("rev-parse", "HEAD")+",sub")
			w.git("commit", "-q", "-m", "with sub")
			w.do(os.MkdirAll(w.path("sub"), 0o777))
		}, ""},
		{"a split index", func(w work) {
			w.git("update-index", "--split-index")
			w.write("b", "2\n")
			w.git("add", "b")
			w.write("run", "2\n")
		}, "b run"},
		{"index version 4", func(w work) { w.git("update-index", "--index-version", "4"); w.write("dir/deep/d", "2\n") }, "dir/deep/d"},
		{"an untracked cache", func(w work) { w.git("update-index", "--untracked-cache"); w.git("status"); w.write("x/z", "1\n") }, "x/z"},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := changedWork(t)
			s.change(w)
			want := strings.Fields(s.want)
			if s.name == "odd names" {
				want = []string{"-n", "..x", ".gitx", "1 .M", "a b", "x\ny", "ü"}
			}
			w.changed(want...)
		})
	}
}

// TestSparse: what is not checked out has not changed, and is told apart, also where the
// index has a directory as one entry.
func TestSparse(t *testing.T) {
	for _, how := range []string{"--no-sparse-index", "--sparse-index"} {
		w := changedWork(t)
		w.git("sparse-checkout", "set", "--cone", how, "none")
		w.changed()
		w.staged("", "dir/c")
		w.write("a", "2\n")
		w.git("add", "a")
		w.write("dir/c", "2\n") // it is there all the same
		w.write("dir/new", "2\n")
		w.changed("a", "dir/c", "dir/new")
		w.staged("a", "")
	}
}

// TestIndexOfMany: the index is read at once where many files are asked for.
func TestIndexOfMany(t *testing.T) {
	w := changedWork(t)
	w.git("update-index", "--chmod=+x", "b")
	files := []patch.Change{{Path: "b", Before: &patch.File{Mode: patch.Regular, Data: []byte("1\n")}}, {Path: "dir"}, {Path: "dir/deep/d"}}
	for i := range 1000 {
		files = append(files, patch.Change{Path: fmt.Sprint("no/such/", i)})
	}
	repo := w.open()
	defer repo.Close()
	for _, some := range [][]patch.Change{files[:5], files} {
		if got, err := repo.Index(t.Context(), some); err != nil || !slices.Equal(got.Staged, []string{"b", "dir/deep/d"}) || got.Sparse != nil {
			t.Errorf("%+v %v", got, err)
		}
	}
}

// evil has every program of a repository's configuration leave a trace, and returns where.
func (w work) evil(gitDir string) (ran string) {
	w.t.Helper()
	ran = w.path(gitDir + "/ran")
	w.do(teststand.WriteFile(w.path(gitDir+"/evil"), []byte("#!/bin/sh\n: >'"+ran+"'\ncat\n")))
	program := w.path(gitDir + "/evil")
	text := "[core]\n\tfsmonitor = " + program + "\n\thooksPath = " + w.path(gitDir) + "\n\tpager = " + program + "\n\tsshCommand = " + program +
		"\n\taskPass = " + program + "\n\teditor = " + program + "\n\tuntrackedCache = true\n[gpg]\n\tprogram = " + program + "\n[commit]\n\tgpgSign = true\n[include]\n\tpath = included\n" +
		"[filter \"evil\"]\n\tclean = " + program + "\n\tsmudge = " + program + "\n\tprocess = " + program + "\n\trequired = true\n[diff \"evil\"]\n\tcommand = " + program + "\n\ttextconv = " + program + "\n" +
		"[alias]\n\tstatus = !" + program + "\n\tls-files = !" + program + "\n[gc]\n\tauto = 1\n[status]\n\tsubmoduleSummary = true\n"
	file, err := os.OpenFile(w.path(gitDir+"/config"), os.O_APPEND|os.O_WRONLY, 0)
	w.do(err)
	_, err = file.WriteString(text)
	w.do(err, file.Close(), os.WriteFile(w.path(gitDir+"/included"), []byte("[filter \"a=b.c\"]\n\tclean = "+program+"\n\tprocess = "+program+"\n[filter \"\"]\n\tclean = "+program+"\n[filter.Old]\n\tclean = "+program+"\n"), 0o666))
	for _, hook := range []string{"post-index-change", "pre-commit", "post-commit", "prepare-commit-msg", "commit-msg", "reference-transaction", "pre-auto-gc", "fsmonitor-watchman"} {
		w.do(os.Symlink(program, w.path(gitDir+"/"+hook)))
	}
	return ran
}

// T34 T84 T95 Nothing that a repository, or a submodule in it, names is run to tell what has changed, to
// read or to write the index, or to commit: no filter, whoever names it, and whatever its name; no monitor, hook,
// alias or signing program; and no variable leads git elsewhere.
func TestT95WorkingTreeRunsNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	w := changedWork(t)
	w.submodule()
	ran, below := w.evil(".git"), w.evil("sub/.git")
	users := w.path(".git/users")
	home := t.TempDir()
	w.do(os.WriteFile(home+"/.gitconfig", []byte("[filter \"mine\"]\n\tclean = touch "+users+"; cat\n"), 0o666))
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_TRACE", "GIT_EXTERNAL_DIFF", "GIT_ICASE_PATHSPECS", "GIT_ATTR_SOURCE"} {
		t.Setenv(name, w.path(".git/evil"))
	}
	w.write(".gitattributes", "* filter=evil diff=evil\nb filter=a=b.c\nrun filter=mine\nsub filter=evil\ndir/c filter=\ndir/deep/d filter=old\n")
	for _, name := range []string{"a", "b", "run", "sub/x", "dir/c", "dir/deep/d"} {
		w.write(name, "3\n") // of the same size: git looks into it
	}
	w.changed(".gitattributes", "a", "b", "dir/c", "dir/deep/d", "run")
	w.staged("", "")
	repo := w.open()
	defer repo.Close()
	two := &patch.File{Mode: patch.Executable, Data: []byte("2\n")}
	w.do(repo.Stage(t.Context(), []patch.Change{{Path: "a", After: two}, {Path: "dir/c"}}))
	w.staged("a dir/c", "")
	if _, err := repo.CommitAll(t.Context(), "all", "demo", time.Unix(1795000000, 0)); err != nil {
		t.Error(err)
	}
	w.changed()
	for _, name := range []string{ran, below, users} {
		if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a program was run: %v", name, err)
		}
	}
}

// T95 A submodule whose .git leads elsewhere makes nothing there run or change, and an index, or a list of
// what is ignored, is not believed to lead out or to be endless.
func TestT95HostileTree(t *testing.T) {
	w := changedWork(t)
	w.submodule()
	other := changedWork(t)
	w.do(os.RemoveAll(w.path("sub/.git")))
	for _, gitDir := range []string{other.path(".git"), "/", "../.git", "nowhere", "sub", strings.Repeat("x/", 3000)} {
		w.write("sub/.git", "gitdir: "+gitDir+"\n")
		repo := w.open()
		got, err := repo.Changed(t.Context())
		if err == nil && len(got) > 1 {
			t.Errorf("%s: %q", gitDir, got)
		}
		w.do(repo.Close())
	}
	w.do(os.RemoveAll(w.path("sub")))
	w.git("rm", "-q", "--cached", "sub")
	w.git("commit", "-qm", "none")
	var many, long []string
	for i := range 2000 {
		name := fmt.Sprintf("%04d%s", i, strings.Repeat("n", 240))
		many, long = append(many, "many/"+name), append(long, "!*a*b*"+name+"**/")
		w.write("many/"+name, "1\n")
	}
	w.write("dir/.gitignore", "\x00\xff[\\\n!\n/../../**\n"+strings.Join(long, "\n"))
	w.changed(append([]string{"dir/.gitignore"}, many...)...)
}

// T95 An index that is damaged, or made by hand, is an error or is read as git does, and leads nowhere.
func TestT95HostileIndex(t *testing.T) {
	cut := func(n int) func([]byte) []byte { return func(x []byte) []byte { return x[:n] } }
	rename := func(to string) func([]byte) []byte {
		return func(x []byte) []byte { return []byte(strings.Replace(string(x), "dir/c\x00", to+"\x00", 1)) }
	}
	for name, damage := range map[string]func([]byte) []byte{
		"empty": cut(0), "cut": cut(100), "version": func(x []byte) []byte { x[7] = 9; return x }, "absolute": rename("/etc/"), "a name that leads out": rename("d/../"),
		"its own directory": rename(".git/"), "more than there is": func(x []byte) []byte { x[8] = 0x7f; return x },
	} {
		w := changedWork(t)
		x, err := os.ReadFile(w.path(".git/index"))
		w.do(err, os.WriteFile(w.path(".git/index"), damage(x), 0o666))
		repo := w.open()
		if got, err := repo.Changed(t.Context()); err == nil && name != "its own directory" {
			t.Errorf("%s: %q", name, got)
		}
		one := &patch.File{Mode: patch.Regular, Data: []byte("1\n")}
		if got, err := repo.Index(t.Context(), []patch.Change{{Path: "dir/c", Before: one}}); err == nil && len(got.Staged) == 0 {
			t.Errorf("%s: as it was", name)
		}
		w.do(repo.Close())
	}
}
