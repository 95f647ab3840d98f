package gitstore_test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/git"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

func TestOpenErrors(t *testing.T) {
	if _, err := gitstore.Open(t.TempDir()); !errors.Is(err, gitstore.ErrNotRepository) {
		t.Errorf("a plain directory: %v", err)
	}
	if _, err := gitstore.Open(t.TempDir() + "/none"); !errors.Is(err, gitstore.ErrNotRepository) {
		t.Errorf("no directory: %v", err)
	}
	if _, err := initWork(t).open().Head(t.Context()); !errors.Is(err, gitstore.ErrNoCommits) {
		t.Errorf("no commits: %v", err)
	}
}

func TestInit(t *testing.T) {
	w := work{t, t.TempDir()}
	if _, err := gitstore.Init(w.dir); err != nil {
		t.Fatal(err)
	}
	w.add("one")
	if _, err := os.Stat(w.path(".git/refs/agent/ledger")); err != nil {
		t.Error(err)
	}
}

// TestStaged: whatever the index has that HEAD has not would be lost from sight.
func TestStaged(t *testing.T) {
	base := &patch.File{Mode: patch.Regular, Data: []byte("1\n")}
	file := []patch.Change{{Path: "a", Before: base}}
	for _, c := range []struct {
		name   string
		files  []patch.Change
		change func(work)
		want   []string
	}{
		{"clean", file, func(work) {}, nil},
		{"only the working tree", file, func(w work) { w.write("a", "2\n") }, nil},
		{"another file", file, func(w work) { w.write("b", "2\n"); w.git("add", "b") }, nil},
		{"content", file, func(w work) { w.write("a", "2\n"); w.git("add", "a") }, []string{"a"}},
		{"content, taken back on disk alone", file, func(w work) { w.write("a", "2\n"); w.git("add", "a"); w.write("a", "1\n") }, []string{"a"}},
		{"removed", file, func(w work) { w.git("rm", "--quiet", "--cached", "a") }, []string{"a"}},
		{"mode", file, func(w work) { w.git("update-index", "--chmod=+x", "a") }, []string{"a"}},
		{"a merge's conflict", file, func(w work) { w.conflict("2\n") }, []string{"a"}},
		{"a conflict, theirs being the base", file, func(w work) { w.conflict("1\n") }, []string{"a"}},
		{"new and not there", []patch.Change{{Path: "new", After: base}}, func(work) {}, nil},
		{"new and there", []patch.Change{{Path: "new", After: base}}, func(w work) { w.write("new", "1\n"); w.git("add", "new") }, []string{"new"}},
		{"new and intended", []patch.Change{{Path: "new", After: base}}, func(w work) { w.write("new", "1\n"); w.git("add", "-N", "new") }, []string{"new"}},
		{"no index", file, func(w work) { _ = os.Remove(w.path(".git/index")) }, []string{"a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWork(t, map[string]string{"a": "1\n"})
			c.change(w)
			state, err := w.open().Index(t.Context(), c.files)
			got := state.Staged
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%v %v, want %v", got, err, c.want)
			}
		})
	}
}

// conflict leaves "a" unmerged: our side says "ours", theirs says theirs.
func (w work) conflict(theirs string) {
	w.t.Helper()
	w.git("update-index", "--force-remove", "a")
	info := ""
	for stage, data := range []string{"", "base\n", "ours\n", theirs} {
		if stage == 0 {
			continue
		}
		w.write(".git/blob", data)
		info += "100644 " + w.git("hash-object", "-w", ".git/blob") + " " + string(rune('0'+stage)) + "\ta\n"
	}
	w.stdin(info, "update-index", "--index-info")
}

// TestRemotes: where a remote is, and what goes with it, as git has it.
func TestRemotes(t *testing.T) {
	w := newWork(t, nil)
	w.git("remote", "add", "origin", "gh:owner/repo")
	w.git("remote", "add", "plain", "https://example.org/r.git")
	w.git("config", "url.https://example.com/.insteadOf", "gh:")
	w.git("config", "url.https://example.com/long/.insteadOf", "gh:owner/")
	w.git("config", "http.https://example.com/.extraheader", "AUTHORIZATION: basic eA==")
	s, err := w.open().Settings(noEnv)
	fatal(t, err)
	for name, want := range map[string]string{
		"origin": w.git("remote", "get-url", "origin"), "plain": "https://example.org/r.git",
		"nothing": "", "../beside": "../beside", "git@host:path": "git@host:path",
	} {
		if got := s.RemoteURL(name); got != want {
			t.Errorf("%s is at %q, want %q", name, got, want)
		}
	}
	for url, want := range map[string]string{
		"https://example.com/x": "AUTHORIZATION: basic eA==", "https://example.com.evil.org/x": "", "http://example.com/x": "",
	} {
		if got := s.ExtraHeader(url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

func noEnv(string) string { return "" }

// Repositories of other kinds are read, or refused in a plain sentence.
func TestKindsOfRepository(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(work)
		want   string // part of the refusal, "" if it is read
	}{
		{"sparse checkout", func(w work) { w.git("sparse-checkout", "set", "--cone", "none") }, ""},
		{"partial clone", func(w work) {
			w.git("config", "core.repositoryFormatVersion", "1")
			w.git("config", "extensions.partialClone", "origin")
		}, ""},
		{"a value that go-git does not know", func(w work) { w.git("config", "branch.main.rebase", "merges") }, ""},
		{"a newer format", func(w work) { w.git("config", "core.repositoryFormatVersion", "2") }, "repo version <= 1, found 2"},
		{"core.worktree of somebody else", func(w work) { w.git("config", "core.worktree", filepath.Dir(w.dir)) }, "which is not a working tree of it"},
		{"an extension of the future", func(w work) {
			w.git("config", "core.repositoryFormatVersion", "1")
			w.appendConfig("[extensions]\n\tnovelty = true\n")
		}, "unknown repository extension"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWork(t, map[string]string{"a": "1\n", "dir/b": "2\n"})
			c.change(w)
			repo, err := gitstore.Open(w.dir)
			var unsupported *gitstore.UnsupportedError
			if c.want != "" {
				if !errors.As(err, &unsupported) || errors.Unwrap(err) == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
				return
			}
			fatal(t, err)
			if head, err := repo.Head(t.Context()); err != nil || len(head) != 40 {
				t.Errorf("%s %v", head, err)
			}
		})
	}
}

// TestPlaces: where git says that a repository and its working tree are, also where the
// caller's environment names another one.
func TestPlaces(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	fatal(t, err)
	w := work{t, dir}
	w.git("init", "--quiet", "plain")
	w.git("-C", "plain", "-c", "user.name=A", "-c", "user.email=a@x", "commit", "--quiet", "--allow-empty", "--message=1")
	w.git("-C", "plain", "worktree", "add", "--quiet", "../linked")
	w.git("clone", "--quiet", "--bare", "plain", "hidden/.bare")
	w.write("hidden/.git", "gitdir: ./.bare\n")
	w.git("-C", "hidden", "worktree", "add", "--quiet", "-b", "dev", "dev")
	w.git("init", "--quiet", "saysbare")
	w.git("-C", "saysbare", "config", "extensions.worktreeConfig", "true")
	w.git("-C", "saysbare", "config", "--worktree", "core.bare", "true")
	w.git("init", "--quiet", "--separate-git-dir=apart.git", "apart")
	w.git("init", "--quiet", "super")
	w.git("-C", "super", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", dir+"/plain", "sub")
	w.git("-C", "super/sub", "worktree", "add", "--quiet", "../../ofsub")
	w.write("plain/sub/x", "")
	w.git("init", "--quiet", "other")
	t.Setenv("GIT_DIR", dir+"/other/.git")
	t.Setenv("GIT_WORK_TREE", dir+"/other")
	for _, c := range []struct{ from, worktree, gitDir string }{
		{"plain", "plain", "plain/.git"},
		{"plain/sub", "plain", "plain/.git"},
		{"plain/.git", "", "plain/.git"},
		{"linked", "linked", "plain/.git"},
		{"hidden/.bare", "", "hidden/.bare"},
		{"hidden/dev", "hidden/dev", "hidden/.bare"},
		{"saysbare", "", "saysbare/.git"},
		{"apart", "apart", "apart.git"},
		{"super/sub", "super/sub", "super/.git/modules/sub"},
		{"ofsub", "ofsub", "super/.git/modules/sub"},
	} {
		repo, err := gitstore.Open(w.path(c.from))
		if err != nil {
			t.Errorf("%s: %v", c.from, err)
			continue
		}
		if c.worktree != "" {
			c.worktree = w.path(c.worktree)
		}
		if root := repo.Worktree(); root != c.worktree || repo.Dir() != w.path(c.gitDir) {
			t.Errorf("%s: its working tree is %q and its Git directory %q", c.from, root, repo.Dir())
		}
	}
	if _, err := gitstore.Open(dir); !errors.Is(err, gitstore.ErrNotRepository) {
		t.Errorf("no repository: %v", err)
	}
	t.Setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
	var unsafe *fault.Error
	if _, err := gitstore.Open(w.path("plain")); !errors.As(err, &unsafe) || !strings.HasPrefix(unsafe.Message, w.path("plain")+" belongs to another user") || unsafe.Try != "git config --global --add safe.directory "+w.path("plain") {
		t.Errorf("of another user: %v, %+v", err, unsafe)
	}
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "safe.directory")
	t.Setenv("GIT_CONFIG_VALUE_0", w.path("plain"))
	if _, err := gitstore.Open(w.path("plain")); err != nil {
		t.Errorf("of another user, and called safe: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := gitstore.Open(w.path("plain")); !errors.Is(err, git.ErrNotInstalled) {
		t.Errorf("without git: %v", err)
	}
}

func (w work) appendConfig(text string) {
	f, err := os.OpenFile(w.path(".git/config"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
	}
	fatal(w.t, errors.Join(err, f.Close()))
}

// Git's configuration is read with what it includes.
func TestSettings(t *testing.T) {
	w := newWork(t, nil)
	home := t.TempDir()
	write := func(name, text string) {
		fatal(t, os.WriteFile(filepath.Join(home, name), []byte(text), 0o666))
	}
	write(".gitconfig", "[user]\n\tname = Home\n\temail = home@localhost\n[include]\n\tpath = more\n"+
		"[includeIf \"gitdir:"+w.dir+"/\"]\n\tpath = here\n[includeIf \"gitdir:/nowhere/\"]\n\tpath = not-here\n")
	write("more", "[user]\n\tname = More\n[core]\n\tfileMode = false\n")
	write("here", "[user]\n\temail = here@localhost\n")
	write("not-here", "[user]\n\temail = not-here@localhost\n")
	for _, unset := range []string{"user.name", "user.email", "core.filemode"} {
		_ = exec.Command("git", "-C", w.dir, "config", "--unset", unset).Run()
	}
	write("linked", "[user]\n\temail = linked@localhost\n")
	link := filepath.Join(t.TempDir(), "home")
	if err := os.Symlink(filepath.Dir(w.dir), link); err != nil {
		t.Skip(err)
	}
	fatal(t, os.WriteFile(filepath.Join(link, ".gitconfig"), []byte("[includeIf \"gitdir:~/"+filepath.Base(w.dir)+"/\"]\n\tpath = "+home+"/linked\n"), 0o666))
	if got, err := w.open().Settings(func(name string) string { return map[string]string{"HOME": link, "GIT_CONFIG_NOSYSTEM": "1"}[name] }); err != nil || got.Email != "linked@localhost" {
		t.Errorf("a home that is a link: %+v %v", got, err)
	}
	env := map[string]string{"HOME": home, "GIT_CONFIG_NOSYSTEM": "1"}
	got, err := w.open().Settings(func(name string) string { return env[name] })
	if err != nil || got.Name != "More" || got.Email != "here@localhost" || !got.IgnoreMode {
		t.Errorf("%+v %v", got, err)
	}
	for _, key := range []string{"user.name", "user.email"} {
		cmd := exec.Command("git", "-C", w.dir, "config", key)
		cmd.Env = append(os.Environ(), "HOME="+home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+filepath.Join(home, ".gitconfig"))
		out, err := cmd.Output()
		if ours := map[string]string{"user.name": got.Name, "user.email": got.Email}[key]; err != nil || strings.TrimSpace(string(out)) != ours {
			t.Errorf("%s: git says %q (%v), we say %q", key, out, err, ours)
		}
	}
	if got, err := w.open().Settings(noEnv); err != nil || got.Name != "" || got.IgnoreMode {
		t.Errorf("without HOME: %+v %v", got, err)
	}
}

// TestIdentity holds whose commits would be made here to git itself.
func TestIdentity(t *testing.T) {
	w := newWork(t, nil)
	for _, unset := range []string{"user.name", "user.email"} {
		_ = exec.Command("git", "-C", w.dir, "config", "--unset", unset).Run()
	}
	for _, c := range []struct {
		config string
		env    []string
		want   string // "" where git has none either
	}{
		{"", nil, ""},
		{"[user]\n\temail = u@x\n\tname = U\n", nil, "U <u@x>"},
		{"[user]\n\temail = u@x\n\tname = U\n[committer]\n\temail = c@x\n", nil, "U <c@x>"},
		{"[user]\n\temail = u@x\n\tname = U\n", []string{"GIT_COMMITTER_EMAIL= e@x ", "GIT_COMMITTER_NAME=E"}, "E <e@x>"},
		{"[user]\n\temail = u@x\n\tname = U\n", []string{"GIT_AUTHOR_EMAIL=a@x", "GIT_AUTHOR_NAME=A"}, "U <u@x>"},
		{"[user]\n\temail = \"  \"\n", nil, ""},
		{"[user]\n\temail = u@x\n", []string{"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=user.email", "GIT_CONFIG_VALUE_0=n@x", "GIT_CONFIG_KEY_1=User.Name", "GIT_CONFIG_VALUE_1=N"}, "N <n@x>"},
	} {
		home := t.TempDir()
		fatal(t, os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(c.config), 0o666))
		env := map[string]string{"HOME": home, "GIT_CONFIG_NOSYSTEM": "1"}
		cmd := exec.Command("git", "-C", w.dir, "-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
		for _, one := range c.env {
			name, value, _ := strings.Cut(one, "=")
			env[name], cmd.Env = value, append(cmd.Env, one)
		}
		out, err := cmd.Output()
		if his, _, _ := strings.Cut(string(out), ">"); err == nil && his+">" != c.want || err != nil && c.want != "" {
			t.Errorf("%q %q: git says %q, %v", c.config, c.env, out, err)
		}
		got, err := w.open().Settings(func(name string) string { return env[name] })
		if ours := got.Name + " <" + got.Email + ">"; err != nil || c.want != "" && ours != c.want || c.want == "" && got.Email != "" {
			t.Errorf("%q %q: we say %q, %v; want %q", c.config, c.env, ours, err, c.want)
		}
	}
	for _, env := range []map[string]string{{"GIT_CONFIG_COUNT": "x"}, {"GIT_CONFIG_COUNT": "-1"}, {"GIT_CONFIG_COUNT": "1"}, {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user"}} {
		if _, err := w.open().Settings(func(name string) string { return env[name] }); err == nil {
			t.Errorf("%v is taken", env)
		}
	}
	env := map[string]string{"GIT_AUTHOR_EMAIL": "a@x", "GIT_CONFIG_NOSYSTEM": "1"} // for a decision, an author will do
	if got, err := w.open().Settings(func(name string) string { return env[name] }); err != nil || got.Email != "a@x" {
		t.Errorf("an author alone: %+v %v", got, err)
	}
}

// TestCommitAll: git takes what was committed, and the index after it, for its
// own.
func TestCommitAll(t *testing.T) {
	w := work{t, t.TempDir()}
	r, err := gitstore.Init(w.dir)
	fatal(t, err)
	if _, err := gitstore.Init(w.dir); err == nil {
		t.Error("made twice")
	}
	at := time.Unix(1795000000, 0)
	for _, files := range []map[string]string{
		{"a": "1\n", "b/c": "2\n", "b/d": "3\n", ".gitignore": "x\n", "x": "ignored\n"},
		{"a": "4\n", "b/c": "", "e": "5\n"},
	} {
		for name, text := range files {
			if text == "" {
				fatal(t, os.Remove(w.path(name)))
				continue
			}
			w.write(name, text)
		}
		id, err := r.CommitAll(t.Context(), "words", "demo", at)
		fatal(t, err)
		if head := w.git("rev-parse", "refs/heads/main"); head != id || w.git("rev-parse", "HEAD") != id {
			t.Errorf("HEAD is %s, want %s", head, id)
		}
		if out := w.git("status", "--porcelain"); out != "" {
			t.Errorf("status: %s", out)
		}
		if changed, err := r.Changed(t.Context()); err != nil || len(changed) != 0 {
			t.Errorf("%v %v", changed, err)
		}
	}
	if got := w.git("ls-tree", "-r", "--name-only", "HEAD"); got != ".gitignore\na\nb/d\ne" {
		t.Errorf("%q", got)
	}
	if got := w.git("log", "--format=%an %ae %cn %ct %s"); got != "demo demo@localhost demo 1795000000 words\ndemo demo@localhost demo 1795000000 words" {
		t.Errorf("%q", got)
	}
	w.git("fsck", "--strict")
	w.git("stash", "list") // reads the index
}

// T84 A filter is run only where all that is said of it is the user's, and in a workflow
// never.
func TestT84FiltersOfTheUser(t *testing.T) {
	const own, process = "the repository's own configuration names its program, and only yours may (git config --global)", "a long-running program (process) is not run, only clean and smudge are"
	all := "[filter \"f\"]\n\tclean = c %f\n\tsmudge = s\n\tprocess = p\n"
	for name, c := range map[string]struct {
		home, repo string
		want       map[string]git.Filter
	}{
		"nothing":                {"", "", map[string]git.Filter{}},
		"the user's":             {all, "", map[string]git.Filter{"f": {Clean: "c %f", Smudge: "s"}}},
		"required":               {"[filter \"a.b\"]\n\tclean = c\n\trequired\n", "", map[string]git.Filter{"a.b": {Clean: "c", Required: true}}},
		"not required":           {"[filter \"f\"]\n\tclean = c\n\trequired = no\n", "", map[string]git.Filter{"f": {Clean: "c"}}},
		"a process":              {"[filter \"f\"]\n\tprocess = p\n\tclean = c\n", "", map[string]git.Filter{"f": {Clean: "c", Refused: process}}},
		"the repository's":       {"", all, map[string]git.Filter{"f": {Clean: "c %f", Smudge: "s", Refused: own}}},
		"an include of it":       {"", "[include]\n\tpath = ../more\n", map[string]git.Filter{"f": {Clean: "c %f", Smudge: "s", Refused: own}}},
		"one of both":            {all, "[filter \"f\"]\n\tsmudge = evil\n", map[string]git.Filter{"f": {Clean: "c %f", Smudge: "evil", Refused: own}}},
		"taken away":             {all, "[filter \"f\"]\n\tclean =\n", map[string]git.Filter{"f": {Smudge: "s", Refused: own}}},
		"all of it taken away":   {"[filter \"f\"]\n\tclean = c\n", "[filter \"f\"]\n\tclean =\n", map[string]git.Filter{"f": {Refused: own}}},
		"empty":                  {"[filter \"f\"]\n\tclean =\n", "", map[string]git.Filter{}},
		"required by it":         {all, "[filter \"f\"]\n\trequired = true\n", map[string]git.Filter{"f": {Clean: "c %f", Smudge: "s", Required: true, Refused: own}}},
		"another process":        {all, "[filter \"f\"]\n\tprocess = evil\n", map[string]git.Filter{"f": {Clean: "c %f", Smudge: "s", Refused: own}}},
		"the same again":         {all, all, map[string]git.Filter{"f": {Clean: "c %f", Smudge: "s"}}},
		"where to run, not here": {all, "[countersign]\n\tfilters = worktree\n", map[string]git.Filter{"f": {Clean: "c %f", Smudge: "s"}}},
	} {
		t.Run(name, func(t *testing.T) {
			home, dir := t.TempDir(), t.TempDir()
			if _, err := gitstore.Init(dir); err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{home + "/.gitconfig": c.home, dir + "/.git/config": c.repo, dir + "/more": all} {
				fatal(t, os.WriteFile(file, []byte(text), 0o666))
			}
			env := map[string]string{"HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.Getenv("PATH")}
			repo, err := gitstore.Open(dir)
			fatal(t, err)
			defer repo.Close()
			s, err := repo.Settings(func(name string) string { return env[name] })
			if err != nil || !maps.Equal(s.Attributes.Filters, c.want) || s.Attributes.Run == nil {
				t.Fatalf("%+v, %v, want %+v", s.Attributes.Filters, err, c.want)
			}
			if out, err := s.Attributes.Run("pwd -P", "x", nil); err != nil || strings.HasPrefix(string(out), dir) {
				t.Errorf("it runs in %s, %v", out, err)
			}
			env["GITHUB_ACTIONS"] = "true"
			if s, err := repo.Settings(func(name string) string { return env[name] }); err != nil || s.Attributes.Run != nil {
				t.Errorf("in a workflow: %v", err)
			}
		})
	}
}
