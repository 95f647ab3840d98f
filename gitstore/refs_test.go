package gitstore_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/lineage"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// T95 No hook of the repository's runs when a ref moves, and a lost race leaves all as it was.
func TestT95MoveRefRunsNothing(t *testing.T) {
	w := newWork(t, map[string]string{"a": "1\n"})
	was := w.git("rev-parse", "HEAD")
	w.git("commit", "-q", "--allow-empty", "-m", "two")
	now, ran := w.git("rev-parse", "HEAD"), filepath.Join(t.TempDir(), "ran")
	w.write(".git/hooks/reference-transaction", "#!/bin/sh\n: > '"+ran+"'\nexit 1\n")
	w.chmod(".git/hooks/reference-transaction", 0o755)
	for key, value := range map[string]string{"event": "reference-transaction", "command": ": > '" + ran + "'", "enabled": "true"} {
		w.git("config", "hook.a.b."+key, value) // which git 2.54 knows
	}
	repo := w.open()
	for _, c := range []struct {
		name, old, next string
		moved           bool
	}{
		{"refs/heads/x", "", was, true}, {"refs/heads/x", "", now, false}, {"refs/heads/x", now, now, false},
		{"refs/heads/none", was, now, false}, {"refs/heads/x", was, now, true},
	} {
		before := w.git("for-each-ref")
		err := repo.MoveRef(t.Context(), c.name, c.old, c.next)
		if moved := err == nil; moved != c.moved || !moved && !errors.Is(err, writing.ErrMoved) || !moved && w.git("for-each-ref") != before {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := os.Stat(ran); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the hook has run: %v", err)
	}
	for _, name := range []string{"--stdin", "-d", "refs/heads/-x/../y", "refs/heads/a\nrefs/heads/b", "refs/heads/a b"} {
		var no *gitstore.RefError
		if err := repo.MoveRef(t.Context(), name, "", now); !errors.As(err, &no) {
			t.Errorf("%q: %v", name, err)
		}
		if tip, err := repo.Ref(t.Context(), name); !errors.As(err, &no) {
			t.Errorf("%q is at %q, %v", name, tip, err)
		}
	}
}

// T95 A ref that cannot be read is an error and not absent, though git does not say so.
func TestT95UnreadableRefs(t *testing.T) {
	hide := map[string]func(t *testing.T, dir string){
		"a link to itself": func(t *testing.T, dir string) {
			if err := errors.Join(os.RemoveAll(dir), os.Symlink(dir, dir)); err != nil {
				t.Skip(err)
			}
		},
	}
	for _, mode := range []fs.FileMode{0, 0o100, 0o400} {
		hide["mode "+mode.String()] = func(t *testing.T, dir string) {
			if os.Geteuid() <= 0 {
				t.Skip("no permission stops this user, or there are none")
			}
			fatal(t, os.Chmod(dir, mode))
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
		}
	}
	for name, hide := range hide {
		for _, below := range []string{"refs", "refs/agent"} {
			t.Run(below+" "+name, func(t *testing.T) {
				w := newWork(t, map[string]string{"a": "1\n"})
				const ref = "refs/agent/ledger"
				w.git("update-ref", ref, "HEAD")
				repo := w.open()
				hide(t, w.path(".git/"+below))
				if tip, err := repo.Ref(t.Context(), ref); err == nil {
					t.Errorf("Ref: %q", tip)
				}
				if err := repo.CheckRef(t.Context(), ref); err == nil {
					t.Error("CheckRef")
				}
				if names, err := repo.RefNames(); err == nil {
					t.Errorf("RefNames: %q", names)
				}
			})
		}
	}
}

// T95 Only git's "no" means that HEAD is detached, or that a remote has none: any other failure is an error.
func TestT95FailureIsNotNo(t *testing.T) {
	w := newWork(t, map[string]string{"a": "1\n"})
	w.git("update-ref", "refs/remotes/origin/main", "HEAD")
	repo, tip, bin := w.open(), w.git("rev-parse", "HEAD"), t.TempDir()
	for _, remote := range []string{"origin", "https://example.org/a b"} {
		if branch, err := repo.DefaultBranch(remote); branch != "" || err != nil {
			t.Errorf("DefaultBranch of %s: %q, %v", remote, branch, err)
		}
	}
	w.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	if branch, err := repo.DefaultBranch("origin"); branch != "main" || err != nil {
		t.Errorf("DefaultBranch: %q, %v", branch, err)
	}
	program, err := exec.LookPath("git")
	if err == nil {
		err = os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\ncase \"$*\" in *symbolic-ref*|*show-ref*|*\"worktree list\"*) echo fatal: broken >&2; exit 128;; esac\nexec '"+program+"' \"$@\"\n"), 0o777)
	}
	fatal(t, err)
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if branch, err := repo.DefaultBranch("origin"); err == nil {
		t.Errorf("DefaultBranch: %q", branch)
	}
	if err := repo.MoveRef(t.Context(), "refs/heads/none", "", tip); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("MoveRef: %v", err)
	}
	if branch, err := repo.Branch(t.Context()); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("Branch: %q, %v", branch, err)
	}
}

// T95 Grafts, replacements, a forged list of a shallow clone and what a shallow clone lacks make no commit an
// ancestor of another, nor a merge base: at most it is not known.
func TestT95DistortedHistory(t *testing.T) {
	w := newWork(t, map[string]string{"a": "1\n"})
	ids := []string{w.git("rev-parse", "HEAD")}
	for range 4 {
		w.git("commit", "-q", "--allow-empty", "-m", "more")
		ids = append(ids, w.git("rev-parse", "HEAD"))
	}
	w.git("checkout", "-q", "--orphan", "apart")
	w.git("commit", "-q", "-m", "apart")
	apart, tip := w.git("rev-parse", "HEAD"), ids[4]
	truth := func(name string, repo *gitstore.Repo) {
		t.Helper()
		if yes, err := repo.Descends(t.Context(), tip, apart); yes || err != nil && !errors.Is(err, lineage.ErrCutOff) {
			t.Errorf("%s: descends from what is apart: %v, %v", name, yes, err)
		}
		if yes, err := repo.Descends(t.Context(), tip, ids[3]); !yes || err != nil {
			t.Errorf("%s: descends from its parent: %v, %v", name, yes, err)
		}
		if yes, err := repo.Descends(t.Context(), ids[3], tip); yes || err != nil && !errors.Is(err, lineage.ErrCutOff) {
			t.Errorf("%s: descends from what comes later: %v, %v", name, yes, err)
		}
		var cut *gitstore.CutOffError
		if base, err := repo.MergeBase(t.Context(), tip, apart); !errors.Is(err, gitstore.ErrNoMergeBase) && !errors.As(err, &cut) {
			t.Errorf("%s: merge base %q, %v", name, base, err)
		}
	}
	truth("as it is", w.open())
	w.write(".git/info/grafts", tip+" "+ids[3]+" "+apart+"\n"+ids[3]+"\n")
	truth("grafted", w.open())
	fatal(t, os.Remove(w.path(".git/info/grafts")))
	w.git("replace", "--graft", tip, apart)
	truth("replaced", w.open())
	w.git("replace", "-d", tip)
	w.write(".git/shallow", ids[3]+"\n")
	truth("said to be shallow", w.open())
	if yes, err := w.open().Descends(t.Context(), tip, ids[0]); !yes || err != nil {
		t.Errorf("its root is not before it, as the list of a shallow clone has it: %v, %v", yes, err)
	}
	fatal(t, os.Remove(w.path(".git/shallow")))
	dir := filepath.Join(t.TempDir(), "shallow")
	w.git("branch", "-f", "main", tip)
	w.git("clone", "-q", "--depth=2", "--no-single-branch", "file://"+w.dir, dir)
	repo, err := gitstore.Open(dir)
	fatal(t, err)
	defer repo.Close()
	truth("shallow", repo)
	if base, err := repo.MergeBase(t.Context(), tip, ids[3]); base != ids[3] || err != nil {
		t.Errorf("shallow: merge base %q, %v", base, err)
	}
	if root, err := repo.Root(t.Context(), tip); err == nil || root == ids[3] && !strings.Contains(err.Error(), ids[2]) {
		t.Errorf("shallow: root %q, %v", root, err)
	}
}

// T95 The configuration is asked for once while no hook can be in it. One that comes to the repository's own files
// after that, in whichever of them and however it is brought in, is off all the same.
func TestT95HookConfiguredMeanwhile(t *testing.T) {
	w := newWork(t, map[string]string{"a": "1\n"})
	tip, bin, asked := w.git("rev-parse", "HEAD"), t.TempDir(), filepath.Join(t.TempDir(), "asked")
	w.git("config", "extensions.worktreeConfig", "true")
	w.write("more", "[hook \"late\"]\n\tcommand = false\n\tevent = reference-transaction\n")
	program, err := exec.LookPath("git")
	w.do(err, os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\nprintf '%s\\n' \"$*\" >>'"+asked+"'\nexec '"+program+"' \"$@\"\n"), 0o777))
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	repo := w.open()
	_, err = repo.Settings(os.Getenv)
	w.do(err)
	plain, err := os.ReadFile(w.path(".git/config"))
	w.do(err)
	for i, c := range []struct{ file, text string }{
		{"config", ""}, {"config", "[HOOK \"late\"]\n\tcommand = false\n"}, {"config", "[include]\n\tpath = ../more\n"}, {"config", "[includeIf \"gitdir:**\"]\n\tpath = ../more\n"},
		{"config.worktree", "[hook \"late\"]\n\tcommand = false\n"}, {"config", ""},
	} {
		w.do(os.WriteFile(w.path(".git/"+c.file), append(plain[:len(plain):len(plain)], c.text...), 0o666), os.WriteFile(asked, nil, 0o666))
		w.do(repo.MoveRef(t.Context(), fmt.Sprintf("refs/heads/b%d", i), "", tip))
		said, err := os.ReadFile(asked)
		w.do(err)
		if off := strings.Contains(string(said), "--config-env=hook.late.enabled="); off != (c.text != "") || strings.Contains(string(said), "config --list") != off {
			t.Errorf("%s with %q: git was asked\n%s", c.file, c.text, said)
		}
		w.do(os.WriteFile(w.path(".git/config"), plain, 0o666), os.RemoveAll(w.path(".git/config.worktree")))
	}
}
