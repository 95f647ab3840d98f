package packfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
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

func (r repo) open() *Store {
	r.t.Helper()
	s, err := Open(r.objects())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = s.Close() })
	return s
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
func (r repo) all() map[plumbing.Hash]Object {
	r.t.Helper()
	out := map[plumbing.Hash]Object{}
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
		if err != nil {
			r.t.Fatal(err)
		}
		out[plumbing.NewHash(id)] = Object{k, data[:size]}
	}
}

// agrees reads every object on several goroutines, twice.
func (r repo) agrees(s *Store, want map[plumbing.Hash]Object) {
	r.t.Helper()
	if len(want) == 0 {
		r.t.Fatal("git has no objects")
	}
	var ids []plumbing.Hash
	for id := range want {
		ids = append(ids, id, id)
	}
	errs := make([]error, len(ids))
	Parallel(len(ids), 1, func(i int) {
		o := want[ids[i]]
		kind, size, err := s.Size(ids[i])
		if err == nil && (kind != o.Type || size != int64(len(o.Data))) {
			err = fmt.Errorf("%s: a %s of %d bytes, want a %s of %d", ids[i], kind, size, o.Type, len(o.Data))
		}
		got, readErr := s.Read(ids[i])
		if readErr == nil && (got.Type != o.Type || !bytes.Equal(got.Data, o.Data)) {
			readErr = fmt.Errorf("%s: other content", ids[i])
		}
		clear(got.Data) // it is the caller's own
		if errs[i] = err; err == nil {
			errs[i] = readErr
		}
	})
	for _, err := range errs {
		if err != nil {
			r.t.Error(err)
		}
	}
}

// TestReadsWhatGitWrote: every object of a real repository, however git keeps
// it.
func TestReadsWhatGitWrote(t *testing.T) {
	r := newRepo(t)
	r.history(40)
	want := r.all()
	for _, c := range []struct {
		name string
		pack [][]string
	}{
		{"as imported", nil},
		{"one pack", [][]string{{"repack", "-adfq", "--depth=50"}}},
		{"deep chains", [][]string{{"repack", "-adfq", "--depth=4000", "--window=50"}}},
		{"deltas by hash", [][]string{{"-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq"}}},
		{"not compressed", [][]string{{"-c", "pack.compression=0", "repack", "-adFq"}}},
		{"many packs", [][]string{{"-c", "pack.packSizeLimit=1m", "-c", "pack.compression=0", "repack", "-adFq"}}},
		{"a multi-pack index", [][]string{{"multi-pack-index", "write"}}},
		{"offsets of 8 bytes", [][]string{{"-c", "pack.indexVersion=2", "repack", "-adfq"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, args := range c.pack {
				r.git("", args...)
			}
			if c.name == "offsets of 8 bytes" {
				r.wideOffsets()
			}
			for _, limit := range []struct{ small, rare int64 }{{1 << 20, 1 << 20}, {0, 1 << 20}, {0, 100}} {
				small, rare := smallIndex, rareSearch
				smallIndex, rareSearch = limit.small, limit.rare
				s := r.open()
				r.agrees(s, want)
				for _, p := range s.dirs[0].packs {
					if loaded := p.index.loaded.Load() != nil; loaded != (limit.rare == 100) {
						t.Errorf("%v: the index is in memory: %v", limit, loaded)
					}
				}
				smallIndex, rareSearch = small, rare
			}
		})
	}
	r.git("", "multi-pack-index", "write")
	t.Run("loose", func(t *testing.T) {
		packs, err := filepath.Glob(filepath.Join(r.objects(), "pack", "*.pack"))
		if err != nil || len(packs) == 0 {
			t.Fatal(err)
		}
		aside := t.TempDir()
		for _, pack := range packs {
			to := filepath.Join(aside, filepath.Base(pack))
			if err := os.Rename(pack, to); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(to)
			if err != nil {
				t.Fatal(err)
			}
			r.git(string(data), "unpack-objects", "-q")
		}
		r.agrees(r.open(), want)
	})
}

// wideOffsets writes the index anew, with 8 bytes for nearly every offset.
func (r repo) wideOffsets() { r.reindex("--index-version=2,0x40") }

// reindex writes the only pack's index anew.
func (r repo) reindex(option string) {
	packs, err := filepath.Glob(filepath.Join(r.objects(), "pack", "*.pack"))
	if err != nil || len(packs) != 1 {
		r.t.Fatal(packs, err)
	}
	idx := strings.TrimSuffix(packs[0], ".pack") + ".idx"
	if err := os.Remove(idx); err != nil {
		r.t.Fatal(err)
	}
	r.git("", "index-pack", option, "-o", idx, packs[0])
}

// TestIndexVersion1: an index as Git wrote it before 1.6 is not damaged.
func TestIndexVersion1(t *testing.T) {
	r := newRepo(t)
	r.history(3)
	r.git("", "repack", "-a", "-d", "-q")
	r.reindex("--index-version=1")
	_, err := r.open().Read(plumbing.NewHash(r.git("", "rev-parse", "main")))
	if err == nil || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "git repack -a -d") {
		t.Error(err)
	}
}
