package packfile

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// A repo is a repository that the real git made.
type repo struct {
	t   testing.TB
	dir string
}

func newRepo(t testing.TB) repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := repo{t, t.TempDir()}
	r.git("", "init", "--quiet", "--initial-branch=main")
	r.git("", "config", "gc.auto", "0")
	return r
}

func (r repo) git(stdin string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org",
		"GIT_AUTHOR_DATE=2026-01-05T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-05T00:00:00Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func (r repo) objects() string { return filepath.Join(r.dir, ".git", "objects") }

// write writes a batch, held.
func (r repo) write(b *Batch) Held {
	r.t.Helper()
	held, err := Write(r.objects(), b)
	fatal(r.t, err)
	return held
}

// packs are the paths of the packs that have an index, without extensions.
func (r repo) packs() (out []string) {
	found, err := filepath.Glob(filepath.Join(r.objects(), "pack", "*.idx"))
	fatal(r.t, err)
	for _, idx := range found {
		out = append(out, strings.TrimSuffix(idx, ".idx"))
	}
	return out
}

// history makes commits that change files of many sizes, and a tag.
func (r repo) history(commits int) {
	r.t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var stream strings.Builder
	files := make([]string, 12)
	for n := range commits {
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter A <a@example.org> %d +0000\ndata 5\nmore\n\n", 1767571200+n)
		for i := range files {
			if n > 0 && random.IntN(3) > 0 {
				continue
			}
			at := 0
			if len(files[i]) > 0 {
				at = random.IntN(len(files[i]))
			}
			files[i] = files[i][:at] + strings.Repeat(fmt.Sprintf("line %d of %d\n", n, i), 1<<random.IntN(i+1)) + files[i][at:]
			fmt.Fprintf(&stream, "M 100644 inline dir%d/sub/file%d\ndata %d\n%s\n", i%3, i, len(files[i]), files[i])
		}
		fmt.Fprintf(&stream, "M 100644 inline empty\ndata 0\n\n")
	}
	r.git(stream.String(), "fast-import", "--quiet")
	r.git("", "tag", "-a", "-m", "a tag", "v1", "main")
}

// all reads every object with git.
func (r repo) all() map[ID]Object {
	r.t.Helper()
	out := map[ID]Object{}
	text := bufio.NewReader(strings.NewReader(r.git("", "cat-file", "--batch", "--batch-all-objects") + "\n"))
	for {
		var id, kind string
		var size int
		if _, err := fmt.Fscanf(text, "%s %s %d\n", &id, &kind, &size); err != nil {
			return out
		}
		data := make([]byte, size+1)
		if _, err := io.ReadFull(text, data); err != nil {
			r.t.Fatal(err)
		}
		k, err := plumbing.ParseObjectType(kind)
		fatal(r.t, err)
		out[ParseID(id)] = Object{k, data[:size]}
	}
}

// agrees fails the test unless git has these objects alone.
func (r repo) agrees(want map[ID]Object) {
	r.t.Helper()
	got := r.all()
	if !maps.EqualFunc(got, want, func(a, b Object) bool { return a.Type == b.Type && bytes.Equal(a.Data, b.Data) }) {
		r.t.Errorf("git has %d objects, want %d, or others", len(got), len(want))
	}
}
