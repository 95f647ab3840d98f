package gitstore_test

import (
	"crypto/sha256"
	"errors"
	"maps"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

func TestBesideRef(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string]string{
		"refs/agent/ledger":             "refs/agent/ledger-checkpoints",
		"refs/agent/ledger-1234":        "refs/agent/ledger-1234-checkpoints",
		"refs/heads/countersign-ledger": "refs/agent/heads/countersign-ledger-checkpoints",
	} {
		if got := gitstore.Checkpoints.Ref(ref); got != want {
			t.Errorf("%s: %s, not %s", ref, got, want)
		}
	}
}

var someTime = time.Unix(1_700_000_000, 0)

// kept are two files, and what is passed over.
func kept(text string) map[string][]byte {
	return map[string][]byte{"1-0123456789ab": []byte(text), "12-ba9876543210": []byte("two\n")}
}

// TestCheckpointsLocal: the files are replaced whole, on the commit that had them, and git agrees.
func TestCheckpointsLocal(t *testing.T) {
	t.Parallel()
	w := newWork(t, map[string]string{"a": "1\n"})
	l := ledgerAt(t, w.dir)
	none, err := l.Kept(t.Context(), gitstore.Checkpoints, nil)
	if err != nil || none.Tip != "" || len(none.Files) != 0 {
		t.Fatalf("%v %+v", err, none)
	}
	for _, text := range []string{"one\n", "one more\n"} {
		before, err := l.Kept(t.Context(), gitstore.Checkpoints, nil)
		fatal(t, err)
		fatal(t, l.Keep(t.Context(), gitstore.Checkpoints, before, kept(text), someTime))
	}
	got, err := l.Kept(t.Context(), gitstore.Checkpoints, nil)
	if err != nil || string(got.Files["1-0123456789ab"]) != "one more\n" || len(got.Files) != 2 {
		t.Fatalf("%v %q", err, got.Files)
	}
	if err := l.Keep(t.Context(), gitstore.Checkpoints, none, kept("late\n"), someTime); !errors.Is(err, writing.ErrMoved) {
		t.Errorf("a late writer: %v", err)
	}
	if out := w.git("rev-list", "--count", "refs/agent/ledger-checkpoints"); strings.TrimSpace(out) != "2" {
		t.Errorf("%s commits", out)
	}
	w.git("fsck", "--strict", "--no-dangling")
}

// TestCheckpointsHostile: what another put on the ref is passed over where it is no checkpoint's file.
func TestCheckpointsHostile(t *testing.T) {
	t.Parallel()
	w := newWork(t, map[string]string{
		"1-0123456789ab": "good\n", "README.md": "no\n", "2-0123456789AB": "no\n", "3-0123456789ab/x": "no\n", "4-0123456789ab": strings.Repeat("x", 40<<10),
	})
	w.git("update-ref", "refs/agent/ledger-checkpoints", "HEAD")
	l := ledgerAt(t, w.dir)
	got, err := l.Kept(t.Context(), gitstore.Checkpoints, nil)
	if err != nil || len(got.Files) != 1 || string(got.Files["1-0123456789ab"]) != "good\n" {
		t.Errorf("%v %q", err, got.Files)
	}
	w.git("update-ref", "refs/agent/ledger-checkpoints", "HEAD:README.md")
	if _, err := l.Kept(t.Context(), gitstore.Checkpoints, nil); err == nil {
		t.Error("a ref that is on a file reads as one without checkpoints")
	}
}

// TestCheckpointsShared: two clones keep theirs on one remote, whole and in part, and lose nothing.
func TestCheckpointsShared(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]bool{"whole": true, "partial": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newRemote(t, full)
			s := r.Open().(*gitstore.Shared)
			tip := ""
			for i := range 3 {
				var err error
				if tip, err = s.Append(t.Context(), tip, entryOf(i)); err != nil {
					t.Fatal(err)
				}
			}
			other := r.Open().(*gitstore.Shared)
			before, err := other.Kept(t.Context(), gitstore.Checkpoints, nil)
			if err != nil || before.Tip != "" {
				t.Fatal(err, before.Tip)
			}
			if _, err := other.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
			leaves, err := other.Leaves(t.Context(), tip, sha256.Sum256)
			if err != nil || len(leaves) != 3 || leaves[2].ID != tip {
				t.Fatalf("%v: %d leaves", err, len(leaves))
			}
			for _, leaf := range leaves {
				raw, err := exec.Command("git", "-C", r.repo.Dir, "cat-file", "commit", leaf.ID).Output()
				if err != nil || sha256.Sum256(raw) != leaf.Hash {
					t.Errorf("%v: git has another commit %s", err, leaf.ID)
				}
			}
			fatal(t, other.Keep(t.Context(), gitstore.Checkpoints, before, kept("one\n"), someTime))
			if err := s.Keep(t.Context(), gitstore.Checkpoints, before, kept("late\n"), someTime); !errors.Is(err, writing.ErrMoved) {
				t.Errorf("a late writer: %v", err)
			}
			now, err := s.Kept(t.Context(), gitstore.Checkpoints, nil)
			if err != nil || string(now.Files["1-0123456789ab"]) != "one\n" {
				t.Fatalf("%v %q", err, now.Files)
			}
			fatal(t, s.Keep(t.Context(), gitstore.Checkpoints, now, kept("two\n"), someTime))
			if got, err := other.Kept(t.Context(), gitstore.Checkpoints, nil); err != nil || string(got.Files["1-0123456789ab"]) != "two\n" {
				t.Errorf("%v %q", err, got.Files)
			}
			work{t, r.repo.Dir}.git("fsck", "--strict", "--no-dangling")
		})
	}
}

// TestSyncCheckpoints: a clone gets what the remote keeps, and keeps what it has beside that.
func TestSyncCheckpoints(t *testing.T) {
	t.Parallel()
	r, _ := newRemote(t, true)
	s := r.Open().(*gitstore.Shared)
	if _, err := s.Append(t.Context(), "", entryOf(0)); err != nil {
		t.Fatal(err)
	}
	w := r.clone()
	mine := r.share(w, gitstore.LedgerOptions{Pages: page.Versions{}})
	if _, err := mine.Sync(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	if there, err := mine.SyncBeside(t.Context(), gitstore.Checkpoints, someTime); there || err != nil {
		t.Fatalf("%v %v", there, err)
	}
	first := map[string][]byte{"1-0123456789ab": []byte("theirs\n")}
	fatal(t, s.Keep(t.Context(), gitstore.Checkpoints, gitstore.Kept{}, first, someTime))
	l := ledgerAt(t, w.dir)
	fatal(t, l.Keep(t.Context(), gitstore.Checkpoints, gitstore.Kept{}, map[string][]byte{"2-0123456789ab": []byte("mine\n")}, someTime))
	for range 2 {
		if there, err := mine.SyncBeside(t.Context(), gitstore.Checkpoints, someTime); !there || err != nil {
			t.Fatalf("%v %v", there, err)
		}
		got, err := l.Kept(t.Context(), gitstore.Checkpoints, nil)
		if err != nil || len(got.Files) != 2 {
			t.Fatalf("%v %q", err, got.Files)
		}
	}
	w.git("fsck", "--strict", "--no-dangling")
	all := maps.Clone(first)
	all["3-0123456789ab"] = []byte("more\n")
	before, err := s.Kept(t.Context(), gitstore.Checkpoints, nil)
	fatal(t, err)
	fatal(t, s.Keep(t.Context(), gitstore.Checkpoints, before, all, someTime))
	if _, err := mine.SyncBeside(t.Context(), gitstore.Checkpoints, someTime); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Kept(t.Context(), gitstore.Checkpoints, nil); err != nil || len(got.Files) != 3 {
		t.Errorf("%v %q", err, got.Files)
	}
}
