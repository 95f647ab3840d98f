package gitpatch_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/gitpatch"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// repo is a scratch repository of the real git.
type repo struct {
	t   testing.TB
	dir string
}

func newRepo(t testing.TB) repo {
	t.Helper()
	r := repo{t, t.TempDir()}
	r.git("init", "-q", "-b", "main")
	r.git("config", "user.name", "t")
	r.git("config", "user.email", "t@localhost")
	r.git("config", "core.autocrlf", "false")
	return r
}

func (r repo) git(args ...string) []byte {
	r.t.Helper()
	return r.gitIn(nil, args...)
}

func (r repo) gitIn(stdin []byte, args ...string) []byte {
	r.t.Helper()
	return []byte(teststand.Git(r.t, r.dir, string(stdin), args...))
}

func (r repo) write(name string, f *patch.File) {
	r.t.Helper()
	full := filepath.Join(r.dir, filepath.FromSlash(name))
	if f == nil {
		fatal(r.t, os.Remove(full))
		return
	}
	fatal(r.t, os.MkdirAll(filepath.Dir(full), 0o777))
	_ = os.Remove(full)
	perm := os.FileMode(0o644)
	if f.Mode == patch.Executable {
		perm = 0o755
	}
	fatal(r.t, os.WriteFile(full, f.Data, perm))
}

func (r repo) commit() {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "x")
}

// TestExpands: what is not in a diff of git's as it is. The largest number that a
// literal can say makes nothing.
func TestExpands(t *testing.T) {
	zeros := func(n int) *patch.File { return &patch.File{Mode: patch.Regular, Data: make([]byte, n)} }
	noise := func(seed uint64, n int) *patch.File {
		b := make([]byte, n)
		_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(b)
		return &patch.File{Mode: patch.Regular, Data: b}
	}
	text := &patch.File{Mode: patch.Regular, Data: []byte(strings.Repeat("a line\n", 300))}
	more := &patch.File{Mode: patch.Regular, Data: append([]byte("first\n"), text.Data...)}
	grown := &patch.File{Mode: patch.Regular, Data: slices.Concat(noise(1, 5000).Data, noise(1, 5000).Data, []byte("x"))}
	for name, c := range map[string]struct {
		before, after map[string]*patch.File
		want          int64
	}{
		"text":    {map[string]*patch.File{"a": text}, map[string]*patch.File{"a": more}, 0},
		"literal": {nil, map[string]*patch.File{"z": zeros(90_000), "y": zeros(10_000)}, 100_000},
		"delta":   {map[string]*patch.File{"a": noise(1, 5000)}, map[string]*patch.File{"a": grown}, 5001},
		"deleted": {map[string]*patch.File{"a": noise(1, 5000)}, map[string]*patch.File{"a": nil}, 0},
		"copy":    {map[string]*patch.File{"a": text}, map[string]*patch.File{"b": text, "c": more}, 2 * 2100},
		"renamed": {map[string]*patch.File{"a": noise(1, 5000)}, map[string]*patch.File{"a": nil, "b": noise(1, 5000)}, 0},
	} {
		r := newRepo(t)
		for path, f := range c.before {
			r.write(path, f)
		}
		r.commit()
		base := fstest.MapFS{}
		for path, f := range c.before {
			base[path] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
		}
		for path, f := range c.after {
			r.write(path, f)
		}
		r.git("add", "-A")
		raw := r.git("diff", "--cached", "--binary", "-M", "-C", "--find-copies-harder", "--full-index")
		d, err := gitpatch.Parse(raw)
		if err != nil {
			t.Fatal(name, err)
		}
		if got := gitpatch.Expands(base, d); got != c.want {
			t.Errorf("%s: %d, want %d\n%s", name, got, c.want, raw)
		}
	}
	parse := func(raw string) gitpatch.Diff {
		t.Helper()
		d, err := gitpatch.Parse([]byte(raw))
		fatal(t, err)
		return d
	}
	most := "diff --git a/%[1]s b/%[1]s\nnew file mode 100644\nindex " + strings.Repeat("0", 40) + ".." + strings.Repeat("1", 40) + "\nGIT binary patch\nliteral 9223372036854775807\nHcmV?d00001\n\n"
	two := parse(fmt.Sprintf(most, "a") + fmt.Sprintf(most, "b"))
	made := parse("diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+1234567\n")
	copied := parse("diff --git a/n b/m\nsimilarity index 100%\ncopy from n\ncopy to m\n")
	again := parse("diff --git a/m b/l\nsimilarity index 100%\ncopy from m\ncopy to l\n")
	if base := (fstest.MapFS{}); gitpatch.Expands(base, two) != math.MaxInt64 || gitpatch.Expands(base, made, copied, again) != 16 {
		t.Error(gitpatch.Expands(base, two), gitpatch.Expands(base, made, copied, again))
	}
}

// content makes a file of one of the kinds that diffs get wrong.
func content(rnd *rand.Rand) []byte {
	lines := make([]string, rnd.IntN(40))
	for i := range lines {
		lines[i] = fmt.Sprintf("line %d", rnd.IntN(12))
	}
	text := strings.Join(lines, "\n")
	switch rnd.IntN(8) {
	case 0:
		return []byte(text) // no final newline
	case 1:
		return []byte(strings.ReplaceAll(text, "\n", "\r\n") + "\r\n")
	case 2:
		return []byte("\xef\xbb\xbf" + text + "\n")
	case 3:
		return append([]byte(text), 0, 1, 2, byte(rnd.IntN(256)))
	case 4:
		return nil
	case 5:
		return []byte(text + "\n\xff\xfe latin\n")
	}
	return []byte(text + "\n")
}

func edit(rnd *rand.Rand, data []byte) []byte {
	lines := bytes.SplitAfter(data, []byte("\n"))
	var out []byte
	for _, l := range lines {
		switch rnd.IntN(10) {
		case 0:
		case 1:
			out = append(append(out, l...), "new line\n"...)
		default:
			out = append(out, l...)
		}
	}
	return out
}

var names = []string{
	"a.txt", "b b.txt", "dir/c.txt", "dir/deep/d", "dir/\u00e9.txt", `q"uote.txt`, `q" uo te".txt`, "z-last", "-option", "x.bin", "\u65e5\u672c/\u8a9e.md",
}

func randomFile(rnd *rand.Rand) *patch.File {
	mode := patch.Regular
	if rnd.IntN(4) == 0 {
		mode = patch.Executable
	}
	return &patch.File{Mode: mode, Data: content(rnd)}
}

// change returns the content of some paths afterwards, nil for a deletion.
func change(rnd *rand.Rand, base map[string]*patch.File) map[string]*patch.File {
	after := map[string]*patch.File{}
	for _, name := range names {
		was := base[name]
		switch rnd.IntN(5) {
		case 0:
			if was != nil {
				after[name] = nil
			}
		case 1:
			if was != nil {
				after[name] = &patch.File{Mode: was.Mode, Data: edit(rnd, was.Data)}
			} else {
				after[name] = randomFile(rnd)
			}
		case 2:
			if was != nil { // a rename, sometimes with an edit
				to := "moved/" + name
				after[name], after[to] = nil, &patch.File{Mode: was.Mode, Data: was.Data}
				if rnd.IntN(2) == 0 {
					after[to].Data = edit(rnd, was.Data)
				}
			}
		case 3:
			if was != nil {
				after[name] = &patch.File{Mode: patch.Executable, Data: was.Data}
			}
		}
	}
	return after
}

// One change has one patch_id, however the real git writes it, and the real git
// applies the canonical bytes to the same tree. COUNTERSIGN_LONG is for ten times as many.
func TestOneChangeOneID(t *testing.T) {
	rounds := 2
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		rounds = 20
	}
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { oneChange(t, rand.New(rand.NewPCG(1, uint64(seed)))) })
	}
}

func oneChange(t *testing.T, rnd *rand.Rand) {
	r := newRepo(t)
	base := map[string]*patch.File{"keep": {Mode: patch.Regular, Data: []byte("kept\n")}}
	for _, name := range names {
		if rnd.IntN(3) > 0 {
			base[name] = randomFile(rnd)
		}
	}
	for name, f := range base {
		r.write(name, f)
	}
	r.commit()
	checkout := filepath.Join(t.TempDir(), "base")
	r.git("worktree", "add", "-q", "--detach", checkout)
	tree := os.DirFS(checkout)
	after := change(rnd, base)
	want, err := patch.NewTree(tree).Between(after)
	if err != nil {
		t.Skip(err) // nothing changed
	}
	for name, f := range after {
		if f != nil || base[name] != nil {
			r.write(name, f)
		}
	}
	r.commit()
	for _, args := range [][]string{
		{"-U3"}, {"-U0"}, {"-U10", "--patience"}, {"--histogram", "-U1"}, {"--minimal", "-U2"},
		{"-M"}, {"-M40%", "-C", "--find-copies-harder"}, {"--no-renames", "-U5"}, {"--full-index"},
	} {
		diff := r.git(append([]string{"-c", "core.quotePath=" + fmt.Sprint(rnd.IntN(2) == 0), "diff", "--binary", "HEAD~", "HEAD"}, args...)...)
		assertSame(t, tree, diff, want, strings.Join(args, " "))
	}
	assertSame(t, tree, r.git("format-patch", "--stdout", "--binary", "-1"), want, "format-patch")
	assertSame(t, tree, want.Bytes(), want, "canonical bytes")
	r.git("checkout", "-q", "HEAD~")
	if rnd.IntN(2) == 0 {
		r.gitIn(want.Bytes(), "apply", "--index", "--whitespace=nowarn", "-")
	} else {
		r.gitIn(want.Bytes(), "apply", "--cached", "--whitespace=nowarn", "-")
	}
	if got, want := r.git("write-tree"), r.git("rev-parse", "main^{tree}"); !bytes.Equal(got, want) {
		t.Errorf("git apply of the canonical bytes gives tree %s, want %s", got, want)
	}
}

func assertSame(t *testing.T, tree fs.FS, diff []byte, want patch.Patchset, how string) {
	t.Helper()
	d, err := gitpatch.Parse(diff)
	if err != nil {
		t.Errorf("%s: %v\n%s", how, err, diff)
		return
	}
	got, err := d.Resolve(tree)
	if err != nil {
		t.Errorf("%s: %v\n%s", how, err, diff)
		return
	}
	if got.ID() != want.ID() {
		t.Errorf("%s: another patch_id:\n%s\nwant\n%s", how, got.Bytes(), want.Bytes())
	}
}
