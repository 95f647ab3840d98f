package gitstore_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

// offers makes commits of changes, bundles them as the real git does, and goes back to
// where it was.
func (w work) offers(bundle []string, changes ...func()) []byte {
	w.t.Helper()
	base := w.git("rev-parse", "HEAD")
	w.git("checkout", "-q", "-B", "topic")
	for i, change := range changes {
		change()
		w.git("add", "--all")
		w.git("commit", "-q", "-m", fmt.Sprint("change ", i+1))
	}
	return w.bundled(base, bundle...)
}

// bundled bundles what the branch topic has and base has not, and removes it.
func (w work) bundled(base string, args ...string) []byte {
	w.t.Helper()
	file := w.path(".git/new.bundle")
	if len(args) == 0 {
		args = []string{base + "..topic"}
	}
	w.git(append([]string{"bundle", "create", "-q", file}, args...)...)
	w.git("checkout", "-q", "main")
	w.git("reset", "-q", "--hard", base)
	w.git("branch", "-q", "-D", "topic")
	w.git("reflog", "expire", "--expire=now", "--all")
	w.git("prune", "--expire=now")
	raw, err := os.ReadFile(file)
	fatal(w.t, err)
	return raw
}

// lines are many, so that git writes deltas on them.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d of a file that is long\n", i)
	}
	return b.String()
}

// TestReadOffered: what git bundles of a range of commits is the change that they make,
// also where the pack is thin.
func TestReadOffered(t *testing.T) {
	w := newWork(t, map[string]string{"long.txt": lines(500), "a.txt": "a\n", "dir/b.txt": "b\n", "run.sh": "#!/bin/sh\n"})
	base := w.git("rev-parse", "HEAD")
	raw := w.offers(nil,
		func() { w.write("long.txt", strings.Replace(lines(500), "line 250 ", "LINE 250 ", 1)) },
		func() { w.write("dir/new/c.txt", "c\n"); w.git("rm", "-q", "a.txt") },
		func() { w.git("mv", "dir/b.txt", "b.txt"); w.chmod("run.sh", 0o755) },
	)
	if !bytes.Contains(raw[:200], []byte("-"+base)) {
		t.Fatalf("the bundle has no prerequisite: %q", raw[:200])
	}
	w.write("there.bundle", string(raw))
	w.git("bundle", "verify", "-q", "there.bundle")
	if len(raw) > 2000 {
		t.Errorf("the pack of %d bytes is not thin", len(raw))
	}
	got, err := w.open().ReadOffered(context.Background(), raw)
	fatal(t, err)
	if got.Base != base || len(got.Commits) != 3 || !strings.HasSuffix(string(got.Commits[0]), "\n\nchange 1\n") {
		t.Errorf("%s, %q", got.Base, got.Commits)
	}
	w.git("fetch", "-q", "there.bundle", "topic:topic")
	want, err := w.open().Diff(context.Background(), base, w.git("rev-parse", "topic"))
	if err != nil || want.ID() != got.Set.ID() {
		t.Errorf("%s, %v, of git's own fetch %s", got.Set.ID(), err, want.ID())
	}
}

// TestReadOfferedRefuses: a bundle that is no plain change to what is here is refused, and
// nothing of it is kept.
func TestReadOfferedRefuses(t *testing.T) {
	w := newWork(t, map[string]string{"a.txt": "a\n", "long.txt": lines(500)})
	base := w.git("rev-parse", "HEAD")
	edit := func() { w.write("a.txt", "b\n") }
	link := func() {
		w.write("x", "")
		fatal(t, errors.Join(os.Remove(w.path("x")), os.Symlink("/etc/passwd", w.path("x"))))
	}
	submodule := func() { w.git("update-index", "--add", "--cacheinfo", "160000,"+base+",sub") }
	merge := func() []byte {
		w.git("checkout", "-q", "-B", "side")
		w.write("side.txt", "s\n")
		w.git("add", "--all")
		w.git("commit", "-q", "-m", "side")
		w.git("checkout", "-q", "main")
		w.git("checkout", "-q", "-B", "topic")
		w.write("topic.txt", "t\n")
		w.git("add", "--all")
		w.git("commit", "-q", "-m", "topic")
		w.git("merge", "-q", "--no-ff", "-m", "merged", "side")
		w.git("branch", "-q", "-D", "side")
		return w.bundled(base)
	}
	other := func() []byte {
		w.git("checkout", "-q", "--orphan", "topic")
		w.git("commit", "-q", "-m", "another root")
		return w.bundled(base, "topic")
	}
	onMissing := func() []byte {
		w.git("checkout", "-q", "-b", "topic")
		w.write("a.txt", "between\n")
		w.git("commit", "-q", "-a", "-m", "between")
		between := w.git("rev-parse", "HEAD")
		w.write("b.txt", "b\n")
		w.git("add", "--all")
		w.git("commit", "-q", "-m", "last")
		return w.bundled(base, between+"..topic")
	}
	plain := w.offers(nil, edit)
	tip := string(plain[bytes.Index(plain, []byte("\n"+"-"))+1:])
	tip = strings.SplitN(tip, "\n", 3)[1][:40]
	pack := plain[bytes.Index(plain, []byte("PACK")):]
	head := func(lines ...string) []byte {
		return append([]byte("# v2 git bundle\n"+strings.Join(lines, "\n")+"\n\n"), pack...)
	}
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"nothing":                {nil, "not a Git bundle"},
		"no prerequisite":        {other(), "made on 0 commits"},
		"missing prerequisite":   {onMissing(), "which the bundle is made on, is not here"},
		"merge":                  {merge(), "has 2 parents"},
		"two refs":               {head("-"+base, tip+" refs/heads/a", tip+" refs/heads/b"), "has 2 refs"},
		"two prerequisites":      {head("-"+base, "-"+tip, tip+" refs/heads/a"), "made on 2 commits"},
		"prerequisite no id":     {head("-main", tip+" refs/heads/a"), "is no commit"},
		"prerequisite no commit": {head("-"+w.git("rev-parse", "HEAD:a.txt"), tip+" refs/heads/a"), "is a blob"},
		"ref elsewhere":          {head("-"+base, strings.Repeat("1", 40)+" refs/heads/a"), "lacks the commit"},
		"ref is the tree":        {head("-"+base, w.git("rev-parse", "HEAD^{tree}")+" refs/heads/a"), "lacks the commit"},
		"ref is the base":        {head("-"+base, base+" refs/heads/a"), "changes nothing"},
		"link":                   {w.offers(nil, link), "x: symbolic links are refused"},
		"submodule":              {w.submodules(base, submodule), "sub: submodules are refused"},
		"base of a delta":        {append([]byte("# v2 git bundle\n-"+base+"\n"+tip+" refs/heads/a\n\n"), onNothing(t)...), "the object is not here"},
		"delta bomb":             {append([]byte("# v2 git bundle\n-"+base+"\n"+tip+" refs/heads/a\n\n"), deltaBomb(t, w.git("rev-parse", "HEAD:long.txt"))...), "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			var was, is runtime.MemStats
			runtime.ReadMemStats(&was)
			_, err := w.open().ReadOffered(context.Background(), c.raw)
			runtime.ReadMemStats(&is)
			if taken := is.TotalAlloc - was.TotalAlloc; taken > 512<<20 {
				t.Errorf("%d bytes of memory were taken", taken)
			}
			var refused *gitstore.BundleError
			var unfit *patch.Error
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &refused) && !errors.As(err, &unfit) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if strings.Contains(fmt.Sprint(err), "\n") {
				t.Errorf("more than one line: %v", err)
			}
		})
	}
	if _, err := w.try("cat-file", "-e", tip); err == nil {
		t.Error("the bundle's commit is in the repository")
	}
}

// submodules is offers for a change that is in the index alone.
func (w work) submodules(base string, stage func()) []byte {
	w.git("checkout", "-q", "-B", "topic")
	stage()
	w.git("commit", "-q", "-m", "a submodule")
	return w.bundled(base)
}

// thin is a pack of deltas on objects by their names.
func thin(t *testing.T, deltas map[string][]byte) []byte {
	t.Helper()
	pack := []byte(fmt.Sprintf("PACK\x00\x00\x00\x02\x00\x00\x00%c", len(deltas)))
	for on, delta := range deltas {
		size := len(delta)
		b := byte(7<<4) | byte(size&15)
		for size >>= 4; size > 0; size >>= 7 {
			pack, b = append(pack, b|0x80), byte(size&0x7f)
		}
		id := packfile.ParseID(on)
		pack = append(append(append(pack, b), id.Append(nil)...), zipped(t, delta)...)
	}
	return sealed(pack)
}

// onNothing is a delta on an object that nobody has.
func onNothing(t *testing.T) []byte {
	return thin(t, map[string][]byte{strings.Repeat("2", 40): {1, 1, 1, 'x'}})
}

// deltaBomb is a delta on an object of 15 KB that says it makes 2 GB of it, by copying
// it over and over.
func deltaBomb(t *testing.T, on string) []byte {
	size := len(lines(500))
	const copies = 120_000
	delta := append(varint(size), varint(copies*size)...)
	for range copies {
		delta = append(delta, 0xb0, byte(size), byte(size>>8))
	}
	return thin(t, map[string][]byte{on: delta})
}

func varint(n int) (out []byte) {
	for ; n > 127; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(out, byte(n))
}

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	_, err := w.Write(data)
	fatal(t, errors.Join(err, w.Close()))
	return out.Bytes()
}

func sealed(pack []byte) []byte {
	sum := sha1.Sum(pack)
	return append(pack, sum[:]...)
}
