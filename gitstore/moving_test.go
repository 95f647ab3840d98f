package gitstore_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
)

// T80 A ledger on a path moves between any two questions that a look at it takes:
// git gives only what a ref names, and the look ends at what is there in the end.
func TestT80MovesWhileLookedAt(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("it takes git, and a shell script before it")
	}
	moved := 0
	for question := 1; question <= 4; question++ {
		r, _ := newRemote(t, false)
		r.url = r.repo.Dir
		other := r.share(r.clone(), gitstore.LedgerOptions{})
		advance(t, other, "tx1", "1")
		us := r.share(r.clone(), gitstore.LedgerOptions{})
		if _, err := us.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		advance(t, other, "tx2", "1")
		advance(t, other, "tx3", "1")
		before := r.repo.Git("rev-parse", gitstore.LedgerRef)
		advance(t, other, "tx4", "1")
		after := r.repo.Git("rev-parse", gitstore.LedgerRef)
		r.repo.Git("update-ref", gitstore.LedgerRef, before)

		dir := t.TempDir()
		script := fmt.Sprintf(`#!/bin/sh
if [ "$1" = upload-pack ]; then
	echo >> %[1]s/asked
	if [ "$(wc -l < %[1]s/asked)" -eq %[2]d ]; then %[3]s -C %[4]s update-ref %[5]s %[6]s && echo > %[1]s/moved; fi
fi
exec %[3]s "$@"
`, dir, question, git, r.repo.Dir, gitstore.LedgerRef, after)
		if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		path := os.Getenv("PATH")
		t.Setenv("PATH", dir+string(os.PathListSeparator)+path)
		snap, err := us.Snapshot(t.Context())
		t.Setenv("PATH", path)
		want := before
		if _, err := os.Stat(filepath.Join(dir, "moved")); err == nil {
			moved++
			want = after
		}
		if err != nil || snap.Tip != want && snap.Tip != before {
			t.Errorf("moved at question %d: %s, %v; want %s", question, snap.Tip, err, want)
		}
	}
	if moved < 3 {
		t.Errorf("the ledger moved %d times: a look takes a tip, its objects and its history", moved)
	}
}
