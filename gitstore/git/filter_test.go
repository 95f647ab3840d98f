//go:build unix

package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// runner is one for a working tree that has programs of its own, in a directory that PATH
// names in three ways.
func runner(t *testing.T) git.FilterRunner {
	t.Helper()
	tree := t.TempDir()
	for _, name := range []string{"planted", "cat", "sh"} {
		fatal(t, teststand.WriteFile(filepath.Join(tree, name), []byte("#!/bin/sh\necho planted\n")))
	}
	link := filepath.Join(t.TempDir(), "link")
	fatal(t, os.Symlink(tree, link))
	t.Chdir(tree)
	return git.FilterRunner{Worktree: tree, Path: strings.Join([]string{"", ".", tree, link, os.Getenv("PATH")}, string(os.PathListSeparator))}
}

// T84 What lies in a working tree is no program, whatever the command, PATH and the
// directory that this process is in say; and no command hears of secrets or of a repository.
func TestT84Filter(t *testing.T) {
	r := runner(t)
	if out, err := r.Run("cat", "x", []byte("in")); err != nil || string(out) != "in" {
		t.Errorf("%q, %v", out, err)
	}
	for _, command := range []string{"./planted", "planted", "sh planted"} {
		if out, err := r.Run(command, "x", nil); err == nil || len(out) > 0 {
			t.Errorf("%s: %q, %v", command, out, err)
		}
	}
	for _, name := range []string{"COUNTERSIGN_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "INPUT_TOKEN", "ACTIONS_RUNTIME_TOKEN", "GIT_CONFIG_VALUE_0", "GIT_WORK_TREE"} {
		t.Setenv(name, "s3cret")
	}
	t.Setenv("MINE", "kept")
	out, err := r.Run("env; git rev-parse --git-dir 2>&1; ls -A; pwd", "x", nil)
	if text := string(out); err != nil || strings.Contains(text, "s3cret") || strings.Contains(text, r.Worktree) || !strings.Contains(text, "MINE=kept") || !strings.Contains(text, "fatal: not a git repository") {
		t.Errorf("%v: %s", err, text)
	}
	r.Inside = true
	if out, err := r.Run("pwd -P; ./planted", "x", nil); err != nil || !strings.HasSuffix(string(out), "\nplanted\n") {
		t.Errorf("at the top: %q, %v", out, err)
	}
}

// TestRunner: the path is one word for the shell, whatever it holds, and an error is one line
// that shows what it is.
func TestRunner(t *testing.T) {
	r := git.FilterRunner{Worktree: t.TempDir(), Path: os.Getenv("PATH")}
	for _, path := range []string{"a b/c", "'; touch ran; '", "$(touch ran)`touch ran`", "a!b", `a\b"c`, "%f%%", "-n"} {
		if out, err := r.Run("printf '%%s|' %f 100%%", path, nil); err != nil || string(out) != path+"|100%|" {
			t.Errorf("%q: %q, %v", path, out, err)
		}
	}
	for command, want := range map[string]string{
		"printf 'a\\033[2J\\nb' >&2; exit 4": `exit status 4: "a\x1b[2J\nb"`,
		"exit 5":                             "exit status 5",
		"yes | head -c 9000 >&2; kill -9 $$": `signal: killed: "`,
		"yes":                                "it prints more than 100 MiB",
	} {
		if _, err := r.Run(command, "x", []byte("what nobody reads")); err == nil || !strings.HasPrefix(err.Error(), want) || len(err.Error()) > 500 {
			t.Errorf("%s: %v", command, err)
		}
	}
	r.Path = ""
	if _, err := r.Run("cat", "x", nil); err == nil || err.Error() != "there is no sh to run it with" {
		t.Error(err)
	}
}
