package gitstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// diffID is the patch_id of what "git diff" says, resolved on a.
func (w work) diffID(a, b string, options ...string) (string, error) {
	w.t.Helper()
	raw := teststand.Git(w.t, w.dir, "", append(append([]string{"diff", "--binary"}, options...), a, b)...)
	diff, err := gitpatch.Parse([]byte(raw))
	if err != nil {
		return "", err
	}
	base, err := w.open().Tree(context.Background(), w.git("rev-parse", a))
	fatal(w.t, err)
	set, err := diff.Resolve(base)
	return set.ID(), err
}

// TestDiffIsGitDiff: one change has one patch_id, whoever wrote it down.
func TestDiffIsGitDiff(t *testing.T) {
	w := newWork(t, map[string]string{"a.txt": "1\n2\n", "dir/b.txt": "b\n", "dir/deep/c.txt": "c\n", "run.sh": "#!/bin/sh\n", "twin": "b\n"})
	rnd := rand.New(rand.NewPCG(1, 1))
	commits := []string{w.git("rev-parse", "HEAD")}
	for i, change := range []func(){
		func() { w.write("a.txt", "1\n2\n3") },
		func() { w.git("mv", "dir/b.txt", "moved.txt") },
		func() { w.git("mv", "dir/deep", "elsewhere"); w.write("elsewhere/c.txt", "c\nchanged\n") },
		func() { w.git("update-index", "--chmod=+x", "run.sh"); w.chmod("run.sh", 0o755) },
		func() { w.write("bin", string([]byte{0, 1, 2, 255})); w.write("ö \"x\" y", "odd\n") },
		func() { w.git("rm", "-q", "a.txt"); w.write("a.txt/now/a/dir", "x\n") },
		func() { w.git("rm", "-q", "-r", "a.txt"); w.write("a.txt", "a file again\n") },
		func() { w.write("copy1", "b\n"); w.write("copy2", "b\n"); w.git("rm", "-q", "moved.txt", "twin") },
		func() {
			for range 30 {
				w.write(fmt.Sprintf("many/%d/%d", rnd.IntN(5), rnd.IntN(20)), fmt.Sprint(rnd.IntN(9), "\n"))
			}
		},
	} {
		change()
		w.git("add", "--all")
		w.git("commit", "-q", "-m", fmt.Sprint(i))
		commits = append(commits, w.git("rev-parse", "HEAD"))
	}
	repo := w.open()
	for i, a := range commits {
		for j, b := range commits {
			if a == b || (i+j)%3 > 0 && os.Getenv("COUNTERSIGN_LONG") == "" {
				continue
			}
			options := [][]string{{"--no-renames"}, {"-M10%"}, {"-C", "--find-copies-harder", "-U0"}, {"-B", "-M", "--full-index"}}[i%4]
			want, wantErr := w.diffID(a, b, options...)
			set, err := repo.Diff(context.Background(), a, b)
			if wantErr != nil || err != nil {
				t.Errorf("%.7s..%.7s: %v; of git diff: %v", a, b, err, wantErr)
			}
			if set.ID() != want {
				t.Errorf("%.7s..%.7s: the patch_id is %s, of git diff %v %s", a, b, set.ID(), options, want)
			}
		}
	}
}

func (w work) chmod(name string, mode os.FileMode) {
	w.t.Helper()
	fatal(w.t, os.Chmod(w.path(name), mode))
}

// crafted makes a commit of tree entries as "git mktree" takes them, or of a
// raw tree.
func (w work) crafted(entries string) string {
	w.t.Helper()
	return w.stdin("", "commit-tree", "-m", "crafted", "-p", "HEAD", w.stdin(entries, "mktree", "--missing"))
}

func (w work) stdin(in string, args ...string) string {
	w.t.Helper()
	return strings.TrimSpace(teststand.Git(w.t, w.dir, in, args...))
}

func TestT31T33DiffRefuses(t *testing.T) {
	w := newWork(t, map[string]string{"a": "1\n"})
	blob := w.git("rev-parse", "HEAD:a")
	tree := w.git("rev-parse", "HEAD^{tree}")
	raw := func(entries ...string) string { // whatever order and names
		var b strings.Builder
		for _, e := range entries {
			id := packfile.ParseID(blob)
			if strings.HasPrefix(e, "40000 ") {
				id = packfile.ParseID(tree)
			}
			b.WriteString(e + "\x00" + string(id.Append(nil)))
		}
		id := w.stdin(b.String(), "hash-object", "-w", "-t", "tree", "--literally", "--stdin")
		return w.stdin("", "commit-tree", "-m", "crafted", "-p", "HEAD", id)
	}
	link := w.crafted("120000 blob " + blob + "\ta\n")
	bomb := tree
	for range 12 {
		var in strings.Builder
		for i := range 10 {
			fmt.Fprintf(&in, "040000 tree %s\td%d\n", bomb, i)
		}
		bomb = w.stdin(in.String(), "mktree")
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"link added":     {"HEAD", w.crafted("100644 blob " + blob + "\ta\n120000 blob " + blob + "\tl\n"), "l: symbolic links are refused"},
		"link replaced":  {link, "HEAD", "a: symbolic links are refused"},
		"submodule":      {"HEAD", w.crafted("100644 blob " + blob + "\ta\n160000 commit " + w.git("rev-parse", "HEAD") + "\ts\n"), "s: submodules are refused"},
		"path":           {"HEAD", w.crafted("100644 blob " + blob + "\ta\n100644 blob " + blob + "\tCON\n"), "CON: "},
		"collision":      {"HEAD", w.crafted("100644 blob " + blob + "\tA\n100644 blob " + blob + "\ta\n"), "collides with"},
		"nothing":        {"HEAD", "HEAD", "changes nothing"},
		"not sorted":     {"HEAD", raw("100644 b", "100644 a"), "not sorted"},
		"twice":          {"HEAD", raw("100644 a", "100644 a"), "malformed entry"},
		"file and dir":   {"HEAD", raw("100644 a", "100644 a.b", "40000 a"), "malformed entry"},
		"slash":          {"HEAD", raw("100644 a", "100644 b/c"), "malformed entry"},
		"dots":           {"HEAD", raw("100644 ..", "100644 a"), "malformed entry"},
		"other mode":     {"HEAD", raw("100600 a"), "unknown file mode 100600"},
		"tree of trees":  {"HEAD", w.stdin("", "commit-tree", "-m", "bomb", bomb), "changes more than 200000 files"},
		"no such object": {"HEAD", w.crafted("100644 blob 1234567890123456789012345678901234567890\tnew\n"), "the object is not here"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.open().Diff(context.Background(), w.git("rev-parse", c.from), w.git("rev-parse", c.to))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			var unfit *patch.Error
			if bad := errors.As(err, &unfit); bad != (strings.Contains(c.want, "refused") || strings.Contains(c.want, "chang") || strings.Contains(c.want, "CON") || strings.Contains(c.want, "collides") || strings.Contains(c.want, "mode")) {
				t.Errorf("a *patch.Error: %v: %v", bad, err)
			}
		})
	}
}
