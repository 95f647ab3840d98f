package githubtest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// A bare is a bare repository of the real git.
type bare struct {
	dir     string
	known   map[string]string // what git said of whole commit ids, which stays so
	changes *atomic.Int64     // it is another before what may change a ref begins, and after
}

// isolated is an environment in which nobody's settings reach git.
func isolated() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
	}
}

// run runs git in the repository and returns what it prints.
func (b bare) run(stdin string, args ...string) (string, error) {
	if !slices.Contains([]string{"cat-file", "diff", "log", "merge-base", "merge-tree", "rev-parse"}, args[0]) {
		b.changes.Add(1)
		defer b.changes.Add(1)
	}
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin, cmd.Env = b.dir, strings.NewReader(stdin), isolated()
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
	out, err := b.run("", args...)
	if err != nil {
		misuse("%v", err)
	}
	return strings.TrimSpace(out)
}

// once is run where the arguments name commits by their whole ids alone: what git
// answered to them once it is not asked again. A process for each question was
// half of the processor time of a test.
func (b bare) once(args ...string) (string, error) {
	key := strings.Join(args, "\x00")
	if out, ok := b.known[key]; ok {
		return out, nil
	}
	out, err := b.run("", args...)
	if err == nil {
		b.known[key] = out
	}
	return out, err
}

// resolve returns the commit of a revision, "" if there is none.
func (b bare) resolve(revision string) string {
	ask := b.once
	if !wholeID.MatchString(revision) {
		ask = func(args ...string) (string, error) { return b.run("", args...) }
	}
	out, err := ask("rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// refs returns the refs whose name begins with a directory such as refs/heads/,
// and what they are at. They are read as git keeps them: in one file, and each in
// a file of its own, which counts more.
func (b bare) refs(directory string) map[string]string {
	refs := map[string]string{}
	packed, _ := os.ReadFile(filepath.Join(b.dir, "packed-refs")) // usually there is none
	for line := range strings.Lines(string(packed)) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if wholeID.MatchString(id) && strings.HasPrefix(name, directory) {
			refs[name] = id
		}
	}
	_ = filepath.WalkDir(filepath.Join(b.dir, directory), func(path string, _ fs.DirEntry, _ error) error {
		data, err := os.ReadFile(path)
		if id := strings.TrimSpace(string(data)); err == nil && wholeID.MatchString(id) {
			name, _ := filepath.Rel(b.dir, path)
			refs[filepath.ToSlash(name)] = id
		}
		return nil
	})
	return refs
}

// ref returns what a whole ref is at, "" if it is not there.
func (b bare) ref(name string) string { return b.refs(name)[name] }

// setRef moves a ref as git does, but for a process, of which tests start thousands.
func (b bare) setRef(name, commit string) {
	b.changes.Add(1)
	defer b.changes.Add(1)
	path := filepath.Join(b.dir, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path+".lock", []byte(commit+"\n"), 0o644)
	}
	if err == nil {
		err = os.Rename(path+".lock", path)
	}
	if err != nil {
		misuse("%v", err)
	}
}

// change is what a new commit has: a parent's tree, or the tree of that id, with
// files written and deleted.
type change struct {
	tree    string
	files   map[string]string
	deleted []string
}

// commit writes a commit, moves a ref there and returns its id.
func (b bare) commit(ref, message string, by *account, at time.Time, c change, parents ...string) string {
	var in strings.Builder
	data := func(text string) { fmt.Fprintf(&in, "data %d\n%s\n", len(text), text) }
	who := fmt.Sprintf("%s <%s> %d +0000", by.login, by.email, at.Unix())
	fmt.Fprintf(&in, "commit %s\nmark :1\nauthor %s\ncommitter %s\n", ref, who, who)
	data(strings.TrimSuffix(message, "\n") + "\n")
	for i, parent := range parents {
		fmt.Fprintf(&in, "%s %s\n", []string{"from", "merge"}[min(i, 1)], parent)
	}
	if c.tree != "" {
		fmt.Fprintf(&in, "M 040000 %s \"\"\n", c.tree)
	}
	for _, name := range c.deleted {
		fmt.Fprintf(&in, "D %s\n", name)
	}
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		fmt.Fprintf(&in, "M 100644 inline %s\n", name)
		data(c.files[name])
	}
	in.WriteString("get-mark :1\n")
	out, err := b.run(in.String(), "fast-import", "--quiet", "--force")
	if err != nil {
		misuse("%v", err)
	}
	return strings.TrimSpace(out)
}

// newBare makes an empty repository in dir that refuses what GitHub refuses:
// its update hook asks the environment that the server gives it.
func newBare(dir string) bare {
	for _, name := range []string{"objects", "refs/heads", "hooks"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			misuse("%v", err)
		}
	}
	for name, text := range map[string]string{
		"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n[receive]\n\tautogc = false\n",
		"hooks/update": updateHook,
	} {
		if err := teststand.WriteFile(filepath.Join(dir, name), []byte(text)); err != nil {
			misuse("%v", err)
		}
	}
	return bare{dir, map[string]string{}, new(atomic.Int64)}
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

// mergeBase is the commit that a pull request's diff starts at, "" for none.
func (p *pull) mergeBase() string { return p.repo.mergeBase(p.base.sha, p.head.sha) }

func (b bare) mergeBase(one, other string) string {
	out, err := b.once("merge-base", one, other)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// files are the paths of the pull request's diff.
func (p *pull) files() []string {
	base := p.mergeBase()
	if base == "" {
		return nil
	}
	out, err := p.repo.once("diff", "--name-only", "-z", "-M", base, p.head.sha)
	if err != nil {
		misuse("%v", err)
	}
	return strings.FieldsFunc(out, func(r rune) bool { return r == 0 })
}

// A commitInfo is a commit as git tells it.
type commitInfo struct {
	sha, tree         string
	parents           []string
	author, committer signature
	message           string
}

// signature is who wrote a commit, and when.
type signature struct {
	name, email, date string
}

const commitFormat = "%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B%x00%x01"

// log returns commits, oldest first; they are named by their whole ids.
func (b bare) log(args ...string) []commitInfo {
	out, err := b.once(append([]string{"log", "--reverse", "--format=" + commitFormat}, args...)...)
	if err != nil {
		misuse("%v", err)
	}
	var all []commitInfo
	for one := range strings.SplitSeq(out, "\x01") {
		f := strings.Split(strings.TrimLeft(one, "\n"), "\x00")
		if len(f) < 10 {
			continue
		}
		all = append(all, commitInfo{
			f[0], f[1], strings.Fields(f[2]), signature{f[3], f[4], f[5]}, signature{f[6], f[7], f[8]}, strings.TrimSpace(f[9]),
		})
	}
	return all
}

// info is a commit; ok is false if git does not have it.
func (b bare) info(id string) (commitInfo, bool) {
	if !wholeID.MatchString(id) || b.resolve(id) != id {
		return commitInfo{}, false
	}
	return b.log("-1", id)[0], true
}

// commits are the commits of a pull request, oldest first.
func (p *pull) commits() []commitInfo {
	base := p.mergeBase()
	if base == "" {
		return nil
	}
	return p.repo.log(base + ".." + p.head.sha)
}
