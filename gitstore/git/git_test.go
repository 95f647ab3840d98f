package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore/git"
)

// T95 Nothing that a repository's own configuration names is run, and no variable of the
// caller's leads git elsewhere.
func TestT95NothingOfTheRepositoryRuns(t *testing.T) {
	dir, ran := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	if _, err := git.Run(t.Context(), dir, "init", "--quiet"); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "evil")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n: > '"+ran+"'\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	config := "[core]\n\tfsmonitor = " + script + "\n\thooksPath = " + dir + "\n\tpager = " + script + "\n[pager]\n\trev-parse = true\n\tstatus = true\n" +
		"[alias]\n\trev-parse = !" + script + "\n"
	file, err := os.OpenFile(filepath.Join(dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteString(config)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_DIR", t.TempDir())
	t.Setenv("GIT_PAGER", script)
	t.Setenv("GIT_TRACE2", ran)
	for _, args := range [][]string{{"rev-parse", "--git-dir"}, {"status", "--porcelain"}} {
		if said, err := git.Run(t.Context(), dir, args...); err != nil || said == "" {
			t.Errorf("%q: %q, %v", args, said, err)
		}
	}
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program of the repository's was run: %v", err)
	}
}

func TestRun(t *testing.T) {
	var failed *git.Error
	if _, err := git.Run(t.Context(), t.TempDir(), "rev-parse", "--git-dir"); !errors.As(err, &failed) || !strings.HasPrefix(failed.Said, "not a git repository") {
		t.Errorf("no repository: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := git.Run(t.Context(), t.TempDir(), "version"); !errors.Is(err, git.ErrNotInstalled) {
		t.Errorf("without git: %v", err)
	}
}
