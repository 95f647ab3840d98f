package git_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	fatal(t, os.WriteFile(script, []byte("#!/bin/sh\n: > '"+ran+"'\n"), 0o777))
	config := "[core]\n\tfsmonitor = " + script + "\n\thooksPath = " + dir + "\n\tpager = " + script + "\n[pager]\n\trev-parse = true\n\tstatus = true\n" +
		"[alias]\n\trev-parse = !" + script + "\n"
	file, err := os.OpenFile(filepath.Join(dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteString(config)
	}
	fatal(t, errors.Join(err, file.Close()))
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

// T95 What the repository's own files say, and what they include, is told from the user's.
func TestT95ConfigScope(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	if _, err := git.Run(t.Context(), dir, "init", "--quiet"); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		filepath.Join(home, ".gitconfig"):             "[filter \"F\"]\n\tclean = mine\n[include]\n\tpath = more\n",
		filepath.Join(home, "more"):                   "[Filter \"F\"]\n\trequired\n",
		filepath.Join(dir, ".git", "config"):          "[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tworktreeConfig = true\n[include]\n\tpath = ../own\n",
		filepath.Join(dir, ".git", "config.worktree"): "[filter \"a=b.c\"]\n\tSmudge = \"x\\nscope\"\n",
		filepath.Join(dir, "own"):                     "[filter \"F\"]\n\tclean = evil\n\tsmudge =\n",
	} {
		fatal(t, os.WriteFile(name, []byte(text), 0o666))
	}
	said, err := git.Command{Dir: dir, Env: []string{"HOME=" + home, "XDG_CONFIG_HOME=", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=filter.e.clean", "GIT_CONFIG_VALUE_0=here"}}.Config(t.Context())
	fatal(t, err)
	var got []string
	for _, s := range said {
		if strings.HasPrefix(s.Key, "filter.") {
			got = append(got, fmt.Sprintf("%s %v %s=%s", s.Scope, s.IsUsers(), s.Key, s.Value))
		}
	}
	want := []string{"global true filter.F.clean=mine", "global true filter.F.required=true", "local false filter.F.clean=evil", "local false filter.F.smudge=",
		"worktree false filter.a=b.c.smudge=x\nscope", "command false filter.e.clean=here"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want\n%q", got, want)
	}
}
