package githubtest

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A bare is a bare repository of the real git.
type bare struct{ dir string }

// isolated is an environment in which nobody's settings reach git.
func isolated() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
	}
}

// run runs git in the repository and returns what it prints.
func (b bare) run(env []string, stdin string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = b.dir, strings.NewReader(stdin)
	cmd.Env = append(isolated(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// git runs git, which must work, and returns what it prints, trimmed.
func (b bare) git(args ...string) string {
	out, err := b.run(nil, "", args...)
	if err != nil {
		misuse("%v", err)
	}
	return strings.TrimSpace(out)
}

// resolve returns the commit of a revision, "" if there is none.
func (b bare) resolve(revision string) string {
	out, err := b.run(nil, "", "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// ref returns what a whole ref is at, "" if it is not there.
func (b bare) ref(name string) string {
	out, err := b.run(nil, "", "for-each-ref", "--format=%(refname) %(objectname)", name)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(out) {
		if got, id, _ := strings.Cut(strings.TrimSpace(line), " "); got == name {
			return id
		}
	}
	return ""
}

// heads returns the branches and their commits.
func (b bare) heads() map[string]string {
	heads := map[string]string{}
	for line := range strings.Lines(b.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/")) {
		name, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		heads[strings.TrimPrefix(name, "refs/heads/")] = id
	}
	return heads
}

// change is what a new commit changes in its parent's tree.
type change struct {
	files   map[string]string
	deleted []string
}

// tree writes the tree of a commit, which may be "", with a change.
func (b bare) tree(parent string, c change) string {
	index, err := os.CreateTemp(b.dir, "index-")
	if err != nil {
		misuse("%v", err)
	}
	_ = index.Close()
	_ = os.Remove(index.Name())
	defer os.Remove(index.Name())
	env := []string{"GIT_INDEX_FILE=" + index.Name()}
	must := func(stdin string, args ...string) string {
		out, err := b.run(env, stdin, args...)
		if err != nil {
			misuse("%v", err)
		}
		return strings.TrimSpace(out)
	}
	if parent != "" {
		must("", "read-tree", parent)
	}
	var lines strings.Builder
	for _, name := range c.deleted {
		fmt.Fprintf(&lines, "0 %s\t%s\n", strings.Repeat("0", 40), name)
	}
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		blob := must(c.files[name], "hash-object", "-w", "--stdin")
		fmt.Fprintf(&lines, "100644 %s\t%s\n", blob, name)
	}
	must(lines.String(), "update-index", "--add", "--index-info")
	return must("", "write-tree")
}

// signature is who wrote a commit, and when.
type signature struct {
	name, email, date string
}

// commit writes a commit.
func (b bare) commit(tree, message string, by signature, parents ...string) string {
	args := []string{"commit-tree", "-m", message, tree}
	for _, parent := range parents {
		args = append(args, "-p", parent)
	}
	env := []string{
		"GIT_AUTHOR_NAME=" + by.name, "GIT_AUTHOR_EMAIL=" + by.email, "GIT_AUTHOR_DATE=" + by.date,
		"GIT_COMMITTER_NAME=" + by.name, "GIT_COMMITTER_EMAIL=" + by.email, "GIT_COMMITTER_DATE=" + by.date,
	}
	out, err := b.run(env, "", args...)
	if err != nil {
		misuse("%v", err)
	}
	return strings.TrimSpace(out)
}

// newBare makes an empty repository in dir that refuses what GitHub refuses:
// its update hook asks the environment that the server gives it.
func newBare(dir string) bare {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		misuse("%v", err)
	}
	bare{filepath.Dir(dir)}.git("init", "--quiet", "--bare", "--initial-branch=main", dir)
	hook := filepath.Join(dir, "hooks", "update")
	if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
		misuse("%v", err)
	}
	if err := os.WriteFile(hook, []byte(updateHook), 0o755); err != nil {
		misuse("%v", err)
	}
	return bare{dir}
}

// updateHook refuses pushes to protected branches, and workflow files where the
// token lacks the permission.
const updateHook = `#!/bin/sh
for branch in $GITHUBTEST_PROTECTED; do
	if [ "$1" = "refs/heads/$branch" ]; then
		echo "GH006: Protected branch update failed for $1." >&2
		exit 1
	fi
done
if [ -n "$GITHUBTEST_NO_WORKFLOWS" ] && [ "$3" != 0000000000000000000000000000000000000000 ]; then
	if [ -n "$(git log --format= --name-only "$3" --not --all -- .github/workflows)" ]; then
		echo "refusing to allow a GitHub App to create or update workflow without 'workflows' permission" >&2
		exit 1
	fi
fi
if [ -n "$GITHUBTEST_ONLY" ]; then
	for branch in $GITHUBTEST_ONLY; do
		if [ "$1" = "refs/heads/$branch" ]; then
			exit 0
		fi
	done
	echo "You're not authorized to push to this branch." >&2
	exit 1
fi
exit 0
`
