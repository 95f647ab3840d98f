package gitstore_test

import (
	"errors"
	"io/fs"
	"os"
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
		var none *gitstore.NoMergeBaseError
		var cut *gitstore.CutOffError
		if base, err := repo.MergeBase(t.Context(), tip, apart); !errors.As(err, &none) && !errors.As(err, &cut) {
			t.Errorf("%s: merge base %q, %v", name, base, err)
		}
	}
	truth("as it is", w.open())
	w.write(".git/info/grafts", tip+" "+ids[3]+" "+apart+"\n"+ids[3]+"\n")
	truth("grafted", w.open())
	if err := os.Remove(w.path(".git/info/grafts")); err != nil {
		t.Fatal(err)
	}
	w.git("replace", "--graft", tip, apart)
	truth("replaced", w.open())
	w.git("replace", "-d", tip)
	w.write(".git/shallow", ids[3]+"\n")
	truth("said to be shallow", w.open())
	if yes, err := w.open().Descends(t.Context(), tip, ids[0]); !yes || err != nil {
		t.Errorf("its root is not before it, as the list of a shallow clone has it: %v, %v", yes, err)
	}
	if err := os.Remove(w.path(".git/shallow")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "shallow")
	w.git("branch", "-f", "main", tip)
	w.git("clone", "-q", "--depth=2", "--no-single-branch", "file://"+w.dir, dir)
	repo, err := gitstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	truth("shallow", repo)
	if base, err := repo.MergeBase(t.Context(), tip, ids[3]); base != ids[3] || err != nil {
		t.Errorf("shallow: merge base %q, %v", base, err)
	}
	if root, err := repo.Root(t.Context(), tip); err == nil || root == ids[3] && !strings.Contains(err.Error(), ids[2]) {
		t.Errorf("shallow: root %q, %v", root, err)
	}
}
