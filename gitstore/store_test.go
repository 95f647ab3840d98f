package gitstore_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

func TestT52StoreSuite(t *testing.T) {
	storetest.StoreSuite(t, func(t *testing.T) storetest.Ledger {
		w := newWork(t, map[string]string{"a": "1\n"})
		t.Cleanup(func() {
			if n := w.git("rev-list", "--count", "--all", "--not", "--branches"); n != "0" {
				var count int
				_, _ = fmt.Sscan(n, &count)
				w.sound(count)
			}
		})
		return w
	})
}

// add appends one line, which makes one commit.
func (w work) add(line string) {
	w.t.Helper()
	fatal(w.t, storetest.AppendLine(w.Open(), line))
}

func (w work) tip() string { return w.git("rev-parse", gitstore.LedgerRef) }

// TestCommit pins what `git log` shows of an entry.
func TestCommit(t *testing.T) {
	w := newWork(t, nil)
	e := writing.Entry{
		Message: "review: x\n\nCountersign-Stage: review\n",
		When:    time.Date(2026, 1, 5, 1, 0, 0, 0, time.FixedZone("", 3600)),
		Files:   map[string][]byte{"a/b": []byte("1"), "c": nil},
	}
	tip, err := w.Open().Append(t.Context(), "", e)
	if err != nil || tip != w.tip() {
		t.Fatalf("%s %v", tip, err)
	}
	want := "countersign <countersign@localhost> 2026-01-05T00:00:00+00:00|countersign <countersign@localhost> 2026-01-05T00:00:00+00:00||review: x\n\nCountersign-Stage: review"
	if got := w.git("log", "--format=%an <%ae> %aI|%cn <%ce> %cI|%P|%B", "-1", tip); strings.TrimSpace(got) != strings.ReplaceAll(want, "+00:00", "Z") && strings.TrimSpace(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := w.git("ls-tree", "-r", "--format=%(objectmode) %(path)", tip); got != "100644 a/b\n100644 c" {
		t.Errorf("tree %q", got)
	}
	if got := w.git("log", "-1", "--format=%(trailers:key=Countersign-Stage,valueonly)", tip); strings.TrimSpace(got) != "review" {
		t.Errorf("trailer %q", got)
	}
	if got := w.git("status", "--porcelain"); got != "" {
		t.Errorf("the working tree changed: %s", got)
	}
	// The same entry in another repository is the same commit.
	if again, err := newWork(t, map[string]string{"x": "y"}).Open().Append(t.Context(), "", e); err != nil || again != tip {
		t.Errorf("%s, then %s (%v)", tip, again, err)
	}
}

// TestT52ProcessesLoseNothing: real processes append at once, while git packs
// the refs again and again.
func TestT52ProcessesLoseNothing(t *testing.T) {
	w := newWork(t, nil)
	self, err := os.Executable()
	fatal(t, err)
	var want []string
	var cmds []*exec.Cmd
	for p := range 4 {
		cmd := exec.Command(self, fmt.Sprint(p))
		cmd.Env = append(os.Environ(), appendTo+"="+w.dir)
		cmd.Stderr = os.Stderr
		fatal(t, cmd.Start())
		cmds = append(cmds, cmd)
		for i := range 5 {
			want = append(want, fmt.Sprintf("%d-%d", p, i))
		}
	}
	for range 20 {
		_, _ = w.try("pack-refs", "--all") // may find the ref locked
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	storetest.CheckLines(t, w.Open(), want)
	w.sound(len(want))
}

// TestT52GitItselfRaces: git update-ref takes part as another writer.
func TestT52GitItselfRaces(t *testing.T) {
	w := newWork(t, nil)
	w.add("first")
	tree := w.git("rev-parse", gitstore.LedgerRef+"^{tree}")
	const each = 15
	var done sync.WaitGroup
	done.Go(func() {
		if err := appendLines(w.dir, "ours", each); err != nil {
			t.Error(err)
		}
	})
	done.Go(func() {
		for n := 0; n < each; {
			tip, err := w.try("rev-parse", gitstore.LedgerRef)
			if err != nil {
				continue
			}
			next, err := w.try("commit-tree", "-p", tip, "-m", fmt.Sprint("git ", n), tree)
			if err != nil {
				t.Error(next)
				return
			}
			if _, err := w.try("update-ref", gitstore.LedgerRef, next, tip); err == nil {
				n++
			}
		}
	})
	done.Wait()
	w.sound(1 + 2*each)
}

func TestT52StaleLock(t *testing.T) {
	gitstore.ImpatientLocks(t)
	w := newWork(t, nil)
	w.add("one")
	before := w.tip()
	lock := ".git/" + gitstore.LedgerRef + ".lock"
	w.write(lock, "")
	snap, err := w.Open().Snapshot(t.Context())
	fatal(t, err)
	_, err = w.Open().Append(t.Context(), snap.Tip, writing.Entry{Files: map[string][]byte{"x": nil}})
	if err == nil || !strings.HasPrefix(err.Error(), "the ledger is locked by ") || !strings.HasSuffix(err.Error(), "ledger.lock") || errors.Is(err, writing.ErrMoved) {
		t.Errorf("%v", err)
	}
	if w.tip() != before {
		t.Error("the ledger moved")
	}
	if _, err := os.Stat(w.path(lock)); err != nil {
		t.Errorf("somebody else's lock: %v", err)
	}
	fatal(t, os.Remove(w.path(lock)))
	w.add("two")
	if _, err := os.Stat(w.path(lock)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("our own lock stays behind: %v", err)
	}
	w.sound(2)
}

// TestT52OwnStaleLock: a process of ours that is killed leaves no lock behind, as its git ends with it.
func TestT52OwnStaleLock(t *testing.T) {
	gitstore.ImpatientLocks(t)
	w := newWork(t, nil)
	w.add("one")
	before := w.tip()
	die := w.Open().(*gitstore.Ledger).HoldRef(t)
	if _, err := w.try("update-ref", gitstore.LedgerRef, "HEAD"); err == nil {
		t.Error("git does not see the lock")
	}
	die()
	if w.tip() != before {
		t.Error("the ref moved")
	}
	w.add("two")
	w.sound(2)
}

// TestT51DamagedRef: a ledger whose tip cannot be read is neither empty nor
// what packed-refs last knew.
func TestT51DamagedRef(t *testing.T) {
	for name, data := range map[string]string{
		"empty": "", "zeros": strings.Repeat("\x00", 41), "half": "0123456789abcdef\n",
		"symbolic": "ref: refs/heads/main\n", "upper case junk": strings.Repeat("Z", 40) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t, nil)
			w.add("one")
			w.git("pack-refs", "--all")
			w.add("two")
			ref := ".git/" + gitstore.LedgerRef
			w.write(ref, data)
			if snap, err := w.Open().Snapshot(t.Context()); err == nil {
				t.Errorf("a snapshot of %q", snap.Tip)
			}
			for _, tip := range []string{"", w.git("rev-parse", "main")} {
				if tip, err := w.Open().Append(t.Context(), tip, writing.Entry{}); err == nil || errors.Is(err, writing.ErrMoved) {
					t.Errorf("appended %q: %v", tip, err)
				}
			}
			if got, err := os.ReadFile(w.path(ref)); err != nil || string(got) != data {
				t.Errorf("the ref became %q (%v)", got, err)
			}
		})
	}
}

// TestT51DamagedPackedRefs: where packed-refs cannot be read, refs are not known; the ledger's, which has a file of
// its own, is that or not known.
func TestT51DamagedPackedRefs(t *testing.T) {
	w := newWork(t, nil)
	w.add("one")
	w.git("pack-refs", "--all")
	w.add("two")
	packed, err := os.ReadFile(w.path(".git/packed-refs"))
	fatal(t, err)
	tip := w.tip()
	ledger := tip + " "
	for _, data := range []string{"garbage\n", "\x00\x01", "PACK\x00\x00", ledger, ledger + "\n", "^" + ledger + "\n", "\n"} {
		w.write(".git/packed-refs", string(packed)+data)
		if _, err := w.open().RefNames(); err == nil {
			t.Errorf("%q is taken", data)
		}
		if snap, err := w.Open().Snapshot(t.Context()); err == nil && snap.Tip != tip { // git may have had no reason to read that line
			t.Errorf("%q: %s", data, snap.Tip)
		}
		if out, err := w.try("for-each-ref"); err == nil {
			t.Errorf("git takes %q: %s", data, out)
		}
	}
	w.write(".git/packed-refs", string(packed))
	w.sound(2)
}

// TestT51SymbolicRef: a ledger that is another branch's other name would move
// that branch.
func TestT51SymbolicRef(t *testing.T) {
	for _, target := range []string{"refs/heads/main", "refs/heads/unborn"} {
		w := newWork(t, nil)
		w.git("symbolic-ref", gitstore.LedgerRef, target)
		_, err := w.Open().Snapshot(t.Context())
		_, err2 := w.Open().Append(t.Context(), "", writing.Entry{})
		for _, err := range []error{err, err2} {
			if err == nil || !strings.Contains(err.Error(), "symbolic") {
				t.Errorf("%s: %v", target, err)
			}
		}
		if got := w.git("symbolic-ref", gitstore.LedgerRef); got != target {
			t.Errorf("the ref is %s now", got)
		}
	}
}

func TestLedgerNames(t *testing.T) {
	repo := newWork(t, nil).open()
	for name, ok := range map[string]bool{
		"refs/agent/ledger": true, "refs/heads/ledger": true, "refs/agent/deep/er": true,
		"": false, "ledger": false, "refs/ledger": false, "HEAD": false, "refs/agent/../heads/main": false,
		"refs/agent/led ger": false, "refs/agent/ledger.lock": false, "/refs/agent/ledger": false, "refs/agent/": false,
		"refs/agent/a\nb": false, "../refs/agent/ledger": false, "refs//x": false,
	} {
		if _, err := repo.Ledger(name, gitstore.LedgerOptions{Pages: page.Versions{}}); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestLinkedWorktree: `git worktree add` shares refs, and so the ledger.
func TestLinkedWorktree(t *testing.T) {
	w := newWork(t, map[string]string{"a": "1\n"})
	linked := work{t, w.dir + "-linked"}
	w.git("worktree", "add", "--quiet", "-b", "side", linked.dir)
	linked.write("a", "2\n")
	linked.git("commit", "--quiet", "--all", "--message=side")
	linked.add("one")
	w.add("two")
	linked.add("three")
	storetest.CheckLines(t, w.Open(), []string{"one", "two", "three"})
	w.sound(3)

	main, side := w.open(), linked.open()
	if a, b := main.StateDir(), side.StateDir(); a == b {
		t.Errorf("two locks: %s and %s", a, b)
	}
	if root := side.Worktree(); root != linked.dir {
		t.Errorf("root %s, want %s", root, linked.dir)
	}
	for branch, repo := range map[string]*gitstore.Repo{"main": main, "side": side} {
		if head, err := repo.Head(t.Context()); err != nil || head != w.git("rev-parse", branch) {
			t.Errorf("HEAD of %s is %s (%v)", branch, head, err)
		}
	}
}

// TestAlternates: the objects of a shared clone are in another repository.
func TestAlternates(t *testing.T) {
	w := newWork(t, map[string]string{"a": "1\n"})
	w.add("one")
	for _, pack := range []bool{false, true} {
		if pack {
			w.git("repack", "-a", "-d", "--quiet")
		}
		clone := work{t, t.TempDir() + "/clone"}
		w.git("clone", "--quiet", "--shared", ".", clone.dir)
		repo := clone.open()
		head, err := repo.Head(t.Context())
		fatal(t, err)
		tree, err := repo.Tree(t.Context(), head)
		fatal(t, err)
		if data, err := fs.ReadFile(tree, "a"); err != nil || string(data) != "1\n" {
			t.Errorf("packed %v: %q %v", pack, data, err)
		}
		clone.git("fetch", "--quiet", "origin", gitstore.LedgerRef+":"+gitstore.LedgerRef)
		clone.add("two")
		clone.sound(2)
	}
}

// TestRepackMeanwhile: git moves every object while a human thinks; old
// snapshot and open repository go on.
func TestT58RepackMeanwhile(t *testing.T) {
	w := newWork(t, map[string]string{"a": "1\n"})
	w.add("one")
	w.git("repack", "-a", "-d", "--quiet")
	w.add("two")
	repo := w.open()
	base, err := repo.Tree(t.Context(), w.git("rev-parse", "main")) // it is packed: the packs are listed now
	fatal(t, err)
	s := ledgerAt(t, w.dir)
	old, err := s.Snapshot(t.Context())
	fatal(t, err)
	w.add("three")
	w.git("repack", "-a", "-d", "--quiet")
	w.git("prune-packed")
	if data, err := fs.ReadFile(old.Tree, "lines"); err != nil || string(data) != "one\ntwo\n" {
		t.Errorf("the old snapshot: %q %v", data, err)
	}
	if data, err := fs.ReadFile(base, "a"); err != nil || string(data) != "1\n" {
		t.Errorf("the base: %q %v", data, err)
	}
	if err := storetest.AppendLine(s, "four"); err != nil {
		t.Error(err)
	}
	storetest.CheckLines(t, w.Open(), []string{"one", "two", "three", "four"})
	w.sound(4)
}

// TestNotADirectory: an entry never turns a file of the ledger into a directory.
func TestNotADirectory(t *testing.T) {
	w := newWork(t, nil)
	w.add("one")
	before := w.tip()
	_, err := w.Open().Append(t.Context(), before, writing.Entry{Files: map[string][]byte{"lines/x": nil}})
	if err == nil || w.tip() != before {
		t.Errorf("%v", err)
	}
}

// TestBare: a bare repository has a ledger and no working tree.
func TestBare(t *testing.T) {
	w := work{t, t.TempDir()}
	newWork(t, nil).git("clone", "--quiet", "--bare", ".", w.dir)
	w.add("one")
	w.add("two")
	w.sound(2)
	if root := w.open().Worktree(); root != "" {
		t.Errorf("%q", root)
	}
	if state, err := w.open().Index(t.Context(), nil); state.Staged != nil || err != nil {
		t.Errorf("%v %v", state, err)
	}
	storetest.CheckLines(t, w.Open(), []string{"one", "two"})
}

// TestBareBelow: a bare repository inside another's working tree is itself.
func TestBareBelow(t *testing.T) {
	outer := newWork(t, nil)
	inner := work{t, outer.path("inner.git")}
	outer.git("init", "--quiet", "--bare", inner.dir)
	inner.add("one")
	if out, err := outer.try("rev-parse", "--verify", gitstore.LedgerRef); err == nil {
		t.Errorf("the outer repository has a ledger: %s", out)
	}
}
