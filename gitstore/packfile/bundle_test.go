package packfile_test

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/countersign-dev/countersign/gitstore/packfile"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

var few = packfile.Limits{Held: 1 << 20, Made: 1 << 22}

// A repo is one that the real git made.
type repo struct {
	t   testing.TB
	dir string
}

func (r repo) git(args ...string) string {
	r.t.Helper()
	return strings.TrimSpace(teststand.Git(r.t, r.dir, "", args...))
}

// newRepo has three commits of a long file, so that git makes deltas.
func newRepo(t testing.TB) repo {
	r := repo{t, t.TempDir()}
	r.git("init", "-q", "-b", "main")
	text := strings.Repeat("a line of a file\n", 200)
	for _, more := range []string{"one", "two", "three"} {
		text += more + "\n"
		fatal(t, os.WriteFile(filepath.Join(r.dir, "file"), []byte(text), 0o644))
		r.git("add", ".")
		r.git("commit", "-qm", more)
	}
	return r
}

func (r repo) bundle(args ...string) []byte {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "x")
	version := "--version=2"
	if strings.HasPrefix(args[0], "--version") {
		version, args = args[0], args[1:]
	} else if strings.HasPrefix(args[0], "--filter") {
		version = "--version=3"
	}
	r.git(append([]string{"bundle", "create", "-q", version, file}, args...)...)
	raw, err := os.ReadFile(file)
	fatal(r.t, err)
	return raw
}

func readBytes(raw []byte) (*packfile.Bundle, error) {
	return packfile.ReadBundle(bytes.NewReader(raw), int64(len(raw)), few)
}

func TestRead(t *testing.T) {
	r := newRepo(t)
	for name, raw := range map[string][]byte{
		"version 2": r.bundle("main"),
		"version 3": r.bundle("--version=3", "main"),
	} {
		b, err := readBytes(raw)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ref, err := b.Ref("")
		if err != nil || ref.Name != "refs/heads/main" || ref.ID.String() != r.git("rev-parse", "main") {
			t.Errorf("%s: %v %v", name, ref, err)
		}
		for line := range strings.Lines(r.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype) %(objectsize)")) {
			f := strings.Fields(line)
			o, err := b.View(packfile.ParseID(f[0]))
			if err != nil || o.Type.String() != f[1] || plumbing.ComputeHash(o.Type, o.Data).String() != f[0] {
				t.Errorf("%s: %s: %v %v", name, line, o.Type, err)
			}
		}
		if _, err := b.View(packfile.ParseID("12")); !errors.Is(err, packfile.ErrMissing) {
			t.Error(err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	r := newRepo(t)
	id := r.git("rev-parse", "main")
	pack := string(r.bundle("main"))
	pack = pack[strings.Index(pack, "PACK"):]
	r.git("branch", "other")
	for name, c := range map[string]struct{ raw, want string }{
		"nothing":            {"", "not a Git bundle"},
		"another format":     {"# v4 git bundle\n", "not a Git bundle"},
		"no ref":             {"# v2 git bundle\n\n" + pack, "no ref"},
		"cut short":          {"# v2 git bundle\n" + id, "cut short"},
		"a line too long":    {"# v2 git bundle\n" + id + " " + strings.Repeat("x", 5000) + "\n\n", "more than 4096 bytes"},
		"lines without end":  {"# v2 git bundle\n" + strings.Repeat(id+" x\n", 10_001), "header lines"},
		"no id":              {"# v2 git bundle\nmain refs/heads/main\n\n" + pack, "no ref"},
		"v2 has none of v3":  {"# v2 git bundle\n@object-format=sha1\n" + id + " main\n\n" + pack, "no ref"},
		"another hash":       {"# v3 git bundle\n@object-format=sha256\n" + id + " main\n\n" + pack, "no ref"},
		"a filter":           {string(r.bundle("--filter=blob:none", "main")), "capability"},
		"part of a history":  {string(r.bundle("main~1..main")), "not all in the bundle"},
		"no pack":            {"# v2 git bundle\n" + id + " main\n\n", "not a pack"},
		"more after it":      {"# v2 git bundle\n" + id + " main\n\n" + pack + "x", "more than its"},
		"more than it may":   {"# v2 git bundle\n" + id + " main\n\n" + bomb(4<<20), "larger than"},
		"less than it says":  {"# v2 git bundle\n" + id + " main\n\n" + claims(1<<30, 20), "larger than|cut short"},
		"too many objects":   {"# v2 git bundle\n" + id + " main\n\n" + seal("PACK\x00\x00\x00\x02\xff\xff\xff\xff"), "do not fit"},
		"a delta on a later": {"# v2 git bundle\n" + id + " main\n\n" + seal("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x60\x05"+strings.Repeat("x", 30)), "no entry before"},
	} {
		b, err := readBytes([]byte(c.raw))
		if err == nil {
			_, err = b.Ref("")
		}
		ok := false
		for want := range strings.SplitSeq(c.want, "|") {
			ok = ok || err != nil && strings.Contains(err.Error(), want)
		}
		if !ok {
			t.Errorf("%s: %v, not %q", name, err, c.want)
		}
	}
	b, err := readBytes(r.bundle("--all"))
	fatal(t, err)
	if _, err := b.Ref(""); err == nil {
		t.Error("one of several refs was taken")
	}
	if ref, err := b.Ref("refs/heads/other"); err != nil || ref.ID.String() != id {
		t.Error(ref, err)
	}
}

func seal(pack string) string {
	sum := sha1.Sum([]byte(pack))
	return pack + string(sum[:])
}

// bomb is a pack of one blob of so many zeros: a few bytes.
func bomb(size int) string {
	b := &packfile.Batch{}
	if _, err := b.Add(packfile.Object{Type: plumbing.BlobObject, Data: make([]byte, size)}); err != nil {
		panic(err)
	}
	pack, err := b.Encode()
	if err != nil {
		panic(err)
	}
	return string(pack)
}

// claims is a pack whose one blob says that it is larger than it is.
func claims(size uint64, really int) string {
	head := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01")
	b := byte(3<<4) | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		head = append(head, b|0x80)
		b = byte(size & 0x7f)
	}
	small := bomb(really)
	return seal(string(append(head, b)) + small[14:len(small)-20])
}

// TestReadMangled: bytes that are not what git wrote are an error, whatever is
// changed; where the checksum is made good, the objects have other names.
func TestReadMangled(t *testing.T) {
	r := newRepo(t)
	raw := r.bundle("main")
	start := bytes.Index(raw, []byte("PACK"))
	random := rand.New(rand.NewPCG(1, 1))
	for range 400 {
		bad := bytes.Clone(raw)
		at := start + random.IntN(len(raw)-start)
		bad[at] ^= 1 << random.IntN(8)
		if _, err := readBytes(bad); err == nil {
			t.Errorf("byte %d: not found", at)
		}
		if _, err := readBytes(raw[:random.IntN(len(raw))]); err == nil {
			t.Error("cut short: not found")
		}
		holds(t, resealed(bad, start))
	}
}

// resealed makes the checksum of a pack good.
func resealed(raw []byte, start int) []byte {
	if len(raw) < start+20 {
		return raw
	}
	sum := sha1.Sum(raw[start : len(raw)-20])
	return append(bytes.Clone(raw[:len(raw)-20]), sum[:]...)
}

// holds reads a bundle, and holds every object that it can name to its name.
func holds(t *testing.T, raw []byte) {
	b, err := readBytes(raw)
	if err != nil {
		return
	}
	ref, err := b.Ref("")
	if err != nil {
		return
	}
	for _, id := range append([]packfile.ID{ref.ID}, idsIn(b, ref.ID)...) {
		o, err := b.View(id)
		if named := plumbing.ComputeHash(o.Type, o.Data).String(); err == nil && named != id.String() {
			t.Errorf("%s is something else", id)
		}
	}
}

func idsIn(b *packfile.Bundle, commit packfile.ID) (ids []packfile.ID) {
	if o, err := b.View(commit); err == nil && o.Type == plumbing.CommitObject {
		if c, err := packfile.ParseCommit(o.Data); err == nil {
			return append(c.Parents, c.Tree)
		}
	}
	return nil
}

// FuzzRead: any bytes end in an error, or in objects that have their names. The
// checksum is made good, so that the fuzzer gets past it.
func FuzzRead(f *testing.F) {
	r := newRepo(f)
	for _, raw := range [][]byte{r.bundle("main"), r.bundle("--version=3", "main"), r.bundle("main~1..main"), []byte("# v2 git bundle\n" + strings.Repeat("1", 40) + " x\n\n" + bomb(100))} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if start := bytes.Index(raw, []byte("PACK")); start >= 0 {
			raw = resealed(raw, start)
		}
		holds(t, raw)
	})
}

// TestWrite: the real git takes what is written, and reads the same from it.
func TestWrite(t *testing.T) {
	r := newRepo(t)
	from, err := readBytes(r.bundle("main"))
	fatal(t, err)
	batch, err := from.Objects().Encode()
	fatal(t, err)
	var out bytes.Buffer
	tip := packfile.ParseID(r.git("rev-parse", "main"))
	pack := func(w io.Writer) error { _, err := w.Write(batch); return err }
	fatal(t, packfile.WriteBundle(&out, pack, packfile.Ref{Name: "refs/agent/ledger", ID: tip}))
	other := repo{t, t.TempDir()}
	other.git("init", "-q", "--bare")
	file := filepath.Join(other.dir, "x.bundle")
	fatal(t, os.WriteFile(file, out.Bytes(), 0o644))
	other.git("bundle", "verify", "-q", file)
	other.git("fetch", "-q", file, "refs/agent/*:refs/agent/*")
	other.git("fsck", "--strict", "--full")
	if got := other.git("rev-parse", "refs/agent/ledger"); got != tip.String() {
		t.Error(got)
	}
	if err := packfile.WriteBundle(&out, pack, packfile.Ref{Name: "a b", ID: tip}); err == nil {
		t.Error("a name with a space was written")
	}
}
