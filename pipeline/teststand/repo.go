package teststand

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
)

// A Repo is a bare repository that the real git made.
type Repo struct {
	t   testing.TB
	Dir string
}

// Bare makes an empty repository in dir, which it makes too.
func Bare(t testing.TB, dir string) Repo {
	t.Helper()
	r := Repo{t, dir}
	r.run(nil, filepath.Dir(dir), "", "init", "--quiet", "--bare", "--initial-branch=main", dir)
	return r
}

// isolate keeps the settings of whoever runs the tests away from git, and makes
// commits the same each time.
func isolate(cmd *exec.Cmd, env ...string) {
	cmd.Env = append(cmd.Environ(),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=1700000000 +0000",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=1700000000 +0000")
	cmd.Env = append(cmd.Env, env...)
}

func (r Repo) run(env []string, dir, stdin string, args ...string) string {
	r.t.Helper()
	out, err := output(env, dir, stdin, args...)
	Fatal(r.t, err)
	return out
}

// output is what git prints; what it says of an error is in that.
func output(env []string, dir, stdin string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	isolate(cmd, env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out), err
}

// TryGit runs git in a directory as nobody's, whose commits are all of one person at one time, and returns what it
// prints. What it says of an error is in that.
func TryGit(dir, stdin string, args ...string) (string, error) {
	return output([]string{
		"GIT_ATTR_NOSYSTEM=1", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_AUTHOR_DATE=2026-01-05T00:00:00Z",
		"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_COMMITTER_DATE=2026-01-05T00:00:00Z",
	}, dir, stdin, args...)
}

// Git is TryGit where an error ends the test.
func Git(t testing.TB, dir, stdin string, args ...string) string {
	t.Helper()
	out, err := TryGit(dir, stdin, args...)
	Fatal(t, err)
	return out
}

// Git runs git in the repository and returns what it prints, trimmed.
func (r Repo) Git(args ...string) string {
	r.t.Helper()
	return strings.TrimSpace(r.run(nil, r.Dir, "", args...))
}

// Ref returns what a ref is at, zero if it does not exist.
func (r Repo) Ref(name string) packfile.ID {
	r.t.Helper()
	return packfile.ParseID(r.Git("for-each-ref", "--format=%(objectname)", name))
}

// Commit puts a commit with exactly these files on a ref.
func (r Repo) Commit(ref string, files map[string]string) packfile.ID {
	r.t.Helper()
	commit := r.commit(nil, r.Ref(ref), files)
	r.Git("update-ref", ref, commit.String())
	return commit
}

// Pack makes a commit that the repository does not get, on parent, which may be
// zero, and returns it with a pack of its new objects.
func (r Repo) Pack(parent packfile.ID, files map[string]string) (packfile.ID, []byte) {
	r.t.Helper()
	env := []string{"GIT_OBJECT_DIRECTORY=" + r.t.TempDir(), "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(r.Dir, "objects")}
	commit := r.commit(env, parent, files)
	want := commit.String() + "\n"
	if !parent.IsZero() {
		want += "^" + parent.String() + "\n"
	}
	pack := r.run(env, r.Dir, want, "pack-objects", "--revs", "--stdout", "--quiet")
	return commit, []byte(pack)
}

func (r Repo) commit(env []string, parent packfile.ID, files map[string]string) packfile.ID {
	r.t.Helper()
	env = append(env, "GIT_INDEX_FILE="+filepath.Join(r.t.TempDir(), "index"))
	on := ""
	if !parent.IsZero() {
		on = parent.String()
	}
	return packfile.ParseID(CommitFiles(func(stdin string, args ...string) string {
		return strings.TrimSpace(r.run(env, r.Dir, stdin, args...))
	}, on, "commit", files))
}

// CommitFiles makes a commit on a parent, "" for none, by calls of git with an index of their own, whose output is
// trimmed. Its files are those that the index has already, and these.
func CommitFiles(git func(stdin string, args ...string) string, parent, message string, files map[string]string) string {
	var entries strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		entries.WriteString("100644 " + git(files[name], "hash-object", "-w", "--stdin") + "\t" + name + "\x00")
	}
	git(entries.String(), "update-index", "-z", "--index-info")
	commit := []string{"commit-tree", "-m", message}
	if parent != "" {
		commit = append(commit, "-p", parent)
	}
	return git("", append(commit, git("", "write-tree"))...)
}

// Hook installs a hook, a script of the shell.
func (r Repo) Hook(name, script string) {
	r.t.Helper()
	path := filepath.Join(r.Dir, "hooks", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		r.t.Fatal(err)
	}
	if err := WriteFile(path, []byte("#!/bin/sh\n"+script+"\n")); err != nil {
		r.t.Fatal(err)
	}
}

// Refuse installs a hook that lets no push through and says why.
func (r Repo) Refuse(why string) {
	r.t.Helper()
	r.Hook("pre-receive", "echo '"+why+"' >&2; exit 1")
}
