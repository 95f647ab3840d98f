package forgetest

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// A Repository is one on the server.
type Repository struct {
	*Server
	ID          int64
	Owner, Name string

	made string // by scratch
}

// Repository makes a repository of an owner, which is the user or an organization that the user may make some in, with one commit on main.
func (s *Server) Repository(u User, owner, name string, files map[string]string) *Repository {
	s.t.Helper()
	r := s.Empty(u, owner, name)
	r.Commit(u, "main", "begin", files)
	r.filled()
	return r
}

// filled waits until the server knows that the repository is not empty any more, which it finds out some time after
// the first push has ended: one that it takes for empty has no pull requests, nor has a fork of it, ever (404).
func (r *Repository) filled() {
	r.t.Helper()
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(20 * time.Millisecond) {
		var told struct{ Empty bool }
		if r.Must(r.Admin, http.MethodGet, r.Path(), nil, &told); !told.Empty {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("gitea: %s is empty to the server", r.FullName())
		}
	}
}

// Empty is a repository without a commit.
func (s *Server) Empty(u User, owner, name string) *Repository {
	s.t.Helper()
	path := "/orgs/" + owner + "/repos"
	if owner == u.Name {
		path = "/user/repos"
	}
	r := &Repository{Server: s, Owner: owner, Name: name}
	var made struct{ ID int64 }
	s.Must(u, http.MethodPost, path, map[string]any{"name": name, "default_branch": "main"}, &made)
	r.ID = made.ID
	return r
}

// Fork forks a repository to the user's own.
func (r *Repository) Fork(u User) *Repository {
	r.t.Helper()
	var made struct{ ID int64 }
	r.Must(u, http.MethodPost, r.Path("forks"), map[string]any{}, &made)
	return &Repository{Server: r.Server, Owner: u.Name, Name: r.Name, ID: made.ID}
}

// FullName is the owner and the name.
func (r *Repository) FullName() string { return r.Owner + "/" + r.Name }

// Path is a path below the repository, for Do: Path("pulls", 1) is "/repos/o/r/pulls/1".
func (r *Repository) Path(parts ...any) string {
	path := "/repos/" + r.FullName()
	for _, part := range parts {
		path += "/" + fmt.Sprint(part)
	}
	return path
}

// Remote is the address that git fetches from and pushes to, without who asks.
func (r *Repository) Remote() string { return r.URL + "/" + r.FullName() + ".git" }

// RemoteAs is Remote with a user's token in it.
func (r *Repository) RemoteAs(u User) string {
	remote, err := url.Parse(r.Remote())
	check(r.t, err)
	remote.User = url.UserPassword(u.Name, u.Token)
	return remote.String()
}

// Dir is the bare repository on the server's disk.
func (r *Repository) Dir() string {
	return filepath.Join(r.Server.Dir, "data", "gitea-repositories", strings.ToLower(r.Owner), strings.ToLower(r.Name)+".git")
}

// Git runs git in the bare repository as the server does, past all that it checks, and returns what it prints, trimmed.
func (r *Repository) Git(args ...string) string {
	r.t.Helper()
	return r.output(r.inside(args))
}

// TryGit is Git that may fail, and may run beside the test.
func (r *Repository) TryGit(args ...string) (string, error) {
	out, err := r.inside(args).CombinedOutput()
	return string(out), err
}

func (r *Repository) inside(args []string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.Dir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.Server.Dir, "GIT_CONFIG_NOSYSTEM=1"}
	asOwn(cmd)
	return cmd
}

// Ref is the commit that a ref is at, or "".
func (r *Repository) Ref(name string) string {
	r.t.Helper()
	return r.Git("for-each-ref", "--format=%(objectname)", name)
}

// Hook installs a hook of the server's owner, a script of the shell, beside Gitea's own: "pre-receive", say.
func (r *Repository) Hook(name, script string) {
	r.t.Helper()
	path := filepath.Join(r.Dir(), "hooks", name+".d", "test")
	check(r.t, teststand.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n")))
	check(r.t, own(path))
}

// Commit puts a commit with these files beside those that are there on a branch, by a push, and returns its id.
// A branch that is new begins at main's.
func (r *Repository) Commit(u User, branch, message string, files map[string]string) string {
	r.t.Helper()
	commit := r.commit(u, branch, message, files)
	r.Push(u, commit+":refs/heads/"+branch)
	return commit
}

// Force is Commit on main's tip, whatever the branch has.
func (r *Repository) Force(u User, branch, message string, files map[string]string) string {
	r.t.Helper()
	commit := r.commit(u, "main", message, files)
	r.Push(u, "+"+commit+":refs/heads/"+branch)
	return commit
}

// Push pushes what was committed, or deletes a ref, as a user.
func (r *Repository) Push(u User, refspecs ...string) {
	r.t.Helper()
	r.output(r.git(u, r.scratch(), append([]string{"push", "--quiet", r.RemoteAs(u)}, refspecs...)...))
}

// TryPush is Push that may fail, and returns what git printed.
func (r *Repository) TryPush(u User, refspecs ...string) (string, error) {
	r.t.Helper()
	out, err := r.git(u, r.scratch(), append([]string{"push", r.RemoteAs(u)}, refspecs...)...).CombinedOutput()
	return string(out), err
}

func (r *Repository) commit(u User, branch, message string, files map[string]string) string {
	r.t.Helper()
	dir := r.scratch()
	parent := r.Ref("refs/heads/" + branch)
	if parent == "" {
		parent = r.Ref("refs/heads/main")
	}
	index := "GIT_INDEX_FILE=" + filepath.Join(r.t.TempDir(), "index")
	git := func(stdin string, args ...string) string {
		r.t.Helper()
		cmd := r.git(u, dir, args...)
		cmd.Env, cmd.Stdin = append(cmd.Env, index), strings.NewReader(stdin)
		return r.output(cmd)
	}
	if parent != "" {
		git("", "read-tree", parent)
	}
	return teststand.CommitFiles(git, parent, message, files)
}

// scratch is a repository that commits are made in, and that has all that the server's has.
func (r *Repository) scratch() string {
	r.t.Helper()
	if r.made == "" {
		r.made = r.t.TempDir()
		r.output(r.git(User{}, r.made, "init", "--quiet", "--bare"))
		check(r.t, os.WriteFile(filepath.Join(r.made, "objects", "info", "alternates"), []byte(filepath.Join(r.Dir(), "objects")+"\n"), 0o600))
	}
	return r.made
}

// git is a command of git that goes past faults, as that user, with none of the settings of whoever runs the tests.
func (r *Repository) git(u User, dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=" + u.Name, "GIT_AUTHOR_EMAIL=" + u.Name + "@example.com", "GIT_COMMITTER_NAME=" + u.Name, "GIT_COMMITTER_EMAIL=" + u.Name + "@example.com",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=" + pastFaults + ": yes",
	}
	return cmd
}

func (r *Repository) output(cmd *exec.Cmd) string {
	r.t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("gitea: %s: %v: %s", strings.Join(cmd.Args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out))
}
