package main

import (
	"bytes"
	cryptorand "crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
)

// A kind makes repositories of one kind. src is an ordinary one with the files here/a.txt, there/b.txt and
// big.bin (a pointer of Git LFS), each of two commits.
type kind struct {
	t         *testing.T
	work, src string
}

func (k kind) git(dir string, args ...string) {
	k.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@localhost", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@localhost")
	if out, err := cmd.CombinedOutput(); err != nil {
		k.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func (k kind) write(name, text string) {
	k.t.Helper()
	check(k.t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(text), 0o666)))
}

// clone clones src and returns where.
func (k kind) clone(options ...string) string {
	k.t.Helper()
	dir := filepath.Join(k.work, "clone")
	k.git(k.work, append(append([]string{"clone", "-q"}, options...), "file://"+k.src, dir)...)
	return dir
}

// sha256 makes a repository of SHA-256 objects with the files of src, in two commits.
func (k kind) sha256() string {
	k.t.Helper()
	dir := filepath.Join(k.work, "sha256")
	k.git(k.work, "init", "-q", "-b", "main", "--object-format=sha256", dir)
	for _, end := range []string{"x", ""} {
		for _, name := range []string{"here/a.txt", "there/b.txt", "big.bin"} {
			text, err := os.ReadFile(filepath.Join(k.src, name))
			check(k.t, err)
			k.write(filepath.Join(dir, name), string(text)+end)
		}
		k.in(dir, "add -A", "commit -qm base")
	}
	return dir
}

// in runs git in a clone, which it returns.
func (k kind) in(dir string, commands ...string) string {
	k.t.Helper()
	for _, c := range commands {
		k.git(dir, strings.Fields(c)...)
	}
	return dir
}

const detached = "detached"

// kinds are ways to have a repository. Each returns the directory that commands run in.
var kinds = []struct {
	name string
	make func(k kind) string
}{
	{"plain", func(k kind) string { return k.clone() }},
	{"sub-directory", func(k kind) string { return filepath.Join(k.clone(), "there") }},
	{"linked", func(k kind) string {
		k.in(k.clone(), "worktree add -q -b dev ../linked")
		return filepath.Join(k.work, "linked")
	}},
	{"linked of a bare one", func(k kind) string {
		k.in(k.clone("--bare"), "worktree add -q -b dev ../linked", "config remote.origin.fetch +refs/heads/*:refs/remotes/origin/*")
		return filepath.Join(k.work, "linked")
	}},
	{"config.worktree", func(k kind) string {
		return k.in(k.clone(), "config extensions.worktreeConfig true", "config --worktree core.fileMode false", "config --worktree core.autocrlf input")
	}},
	{"a submodule in it", func(k kind) string {
		return k.in(k.clone(), "submodule --quiet add "+k.src+" sub", "commit -qm sub", "submodule --quiet update --init")
	}},
	{"a submodule", func(k kind) string {
		return filepath.Join(k.in(k.clone(), "submodule --quiet add file://"+k.src+" sub", "commit -qm sub"), "sub")
	}},
	{"linked of a submodule", func(k kind) string {
		sub := filepath.Join(k.in(k.clone(), "submodule --quiet add file://"+k.src+" sub", "commit -qm sub"), "sub")
		k.in(sub, "worktree add -q -b dev "+k.work+"/linked")
		return filepath.Join(k.work, "linked")
	}},
	{"a git directory elsewhere", func(k kind) string { return k.clone("--separate-git-dir=" + filepath.Join(k.work, "elsewhere")) }},
	{"split index", func(k kind) string {
		return k.in(k.clone(), "config core.splitIndex true", "update-index --split-index")
	}},
	{"index version 4", func(k kind) string {
		return k.in(k.clone(), "config index.version 4", "update-index --index-version 4")
	}},
	{"untracked cache", func(k kind) string {
		return k.in(k.clone(), "config core.untrackedCache true", "update-index --untracked-cache", "status")
	}},
	{"monitor", func(k kind) string {
		dir := k.clone()
		k.write(filepath.Join(dir, ".git", "config.monitor"), "[core]\n\tfsmonitor = false\n")
		return k.in(dir, "-c core.fsmonitor=/bin/true update-index --fsmonitor", "config core.fsmonitor /no/such/monitor")
	}},
	{"sparse", func(k kind) string { return k.in(k.clone(), "sparse-checkout set --cone --no-sparse-index here") }},
	{"sparse index", func(k kind) string { return k.in(k.clone(), "sparse-checkout set --cone --sparse-index here") }},
	{detached, func(k kind) string { return k.in(k.clone(), "checkout -q --detach") }},
	{"partial", func(k kind) string { return k.clone("--filter=blob:none") }},
	{"partial, sparse", func(k kind) string {
		return k.in(k.clone("--filter=blob:none", "--sparse"), "sparse-checkout set here")
	}},
	{"shallow", func(k kind) string { return k.clone("--depth=1") }},
	{"pack index of version 1", func(k kind) string { return k.clone("-c", "pack.indexVersion=1") }},
	{"alternates", func(k kind) string {
		dir := filepath.Join(k.work, "clone")
		k.git(k.work, "clone", "-q", "--shared", k.src, dir)
		return dir
	}},
	{"packed by git", func(k kind) string {
		return k.in(k.clone(), "pack-refs --all", "repack -adq --write-bitmap-index", "commit-graph write", "multi-pack-index write")
	}},
	{"reftable", func(k kind) string {
		if out, err := exec.Command("git", "init", "-q", "--ref-format=reftable", filepath.Join(k.work, "try")).CombinedOutput(); err != nil {
			k.t.Skipf("NOT RUN: repositories with reftable need Git 2.45 in PATH, and there is %s", out)
		}
		return k.in(k.clone("--ref-format=reftable"), "pack-refs --all")
	}},
	{"SHA-256", func(k kind) string {
		return k.in(k.sha256(), "clone -q --bare . ../hub", "remote add origin ../hub", "fetch -q")
	}},
	{"SHA-256, shallow, linked", func(k kind) string {
		k.in(k.sha256(), "clone -q --depth=1 file://"+filepath.Join(k.work, "sha256")+" ../clone")
		k.in(filepath.Join(k.work, "clone"), "worktree add -q -b dev ../linked")
		return filepath.Join(k.work, "linked")
	}},
	{"SHA-256, partial, packed", func(k kind) string {
		k.in(k.sha256(), "config uploadpack.allowFilter true", "config uploadpack.allowAnySHA1InWant true")
		return k.in(k.in(k.work, "clone -q --filter=blob:none file://"+filepath.Join(k.work, "sha256")+" clone")+"/clone", "pack-refs --all", "repack -adq", "commit-graph write")
	}},
	{"Git LFS without it", func(k kind) string {
		dir := k.clone()
		k.write(filepath.Join(dir, ".git", "info", "attributes"), "*.bin filter=lfs diff=lfs merge=lfs -text\n")
		return dir
	}},
}

// program runs the program in a directory, and returns what it printed.
func (k kind) program(dir string, args ...string) string {
	k.t.Helper()
	var out, errs bytes.Buffer
	home := filepath.Join(k.work, "home")
	env := map[string]string{"HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.Getenv("PATH"), "USER": "ada"}
	app := console.Process{
		Args: args, Dir: dir, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Getenv: func(name string) string { return env[name] }, Now: time.Now, Entropy: cryptorand.Reader,
	}
	if code := Main(app); code != 0 {
		k.t.Errorf("%q: exit code %d\n%s%s", args, code, &out, &errs)
	}
	return out.String()
}

// TestKinds leads a change through its whole life in each kind of repository: what git takes for a working tree is one.
// By default in three; in all of them with COUNTERSIGN_LONG.
func TestKinds(t *testing.T) {
	src := t.TempDir()
	s := kind{t: t, src: src}
	s.git(src, "init", "-q", "-b", "main")
	s.in(src, "config uploadpack.allowFilter true", "config uploadpack.allowAnySHA1InWant true")
	for _, end := range []string{"", "\n"} {
		s.write(filepath.Join(src, "here", "a.txt"), "a"+end)
		s.write(filepath.Join(src, "there", "b.txt"), "b"+end)
		s.write(filepath.Join(src, "big.bin"), "version https://git-lfs.github.com/spec/v1\noid sha256:4665a5ea423c2713d436b5ee50593a9640e0018c1550b5a0002f74190d6caea8\nsize 12"+end)
		s.in(src, "add -A", "commit -qm base")
	}
	for i, c := range kinds {
		if !everything() && i%12 != 3 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := kind{t: t, work: t.TempDir(), src: src}
			k.write(filepath.Join(k.work, "home", ".gitconfig"), "[user]\n\tname = Ada\n\temail = ada@localhost\n")
			dir := c.make(k)
			top := dir
			if c.name == "sub-directory" {
				top = filepath.Dir(dir)
			}
			file, fix := filepath.Join(top, "here", "a.txt"), filepath.Join(k.work, "fix.patch")
			k.write(fix, "diff --git a/here/a.txt b/here/a.txt\n--- a/here/a.txt\n+++ b/here/a.txt\n@@ -1 +1 @@\n-a\n+A\n")
			k.write(file, "A\n")
			if out := k.program(dir, "review", "--worktree", "--dry-run"); !strings.Contains(out, "\n+A\n") || strings.Count(out, "diff --git") != 1 {
				t.Errorf("the working tree's change is not shown, or another one:\n%s", out)
			}
			k.in(top, "checkout -q -- here/a.txt")
			id := regexp.MustCompile(`countersign approve ([0-9A-Z]{7})`).FindStringSubmatch(k.program(dir, "review", "--patch", fix))
			if id == nil {
				t.Fatal("nothing is proposed")
			}
			k.program(dir, "approve", id[1], "-m", "ok")
			if c.name == detached {
				k.program(dir, "run")
			} else {
				k.program(dir, "run", "--commit")
				k.in(top, "diff --quiet HEAD", "diff --quiet --cached HEAD")
			}
			if text, err := os.ReadFile(file); err != nil || string(text) != "A\n" {
				t.Errorf("here/a.txt is %q, %v", text, err)
			}
			commands := []string{"show", "audit", "sync"}
			if everything() {
				commands = append(commands, "validate", "list --all")
			}
			for _, command := range commands {
				k.program(dir, strings.Fields(command)...)
			}
		})
	}
}
