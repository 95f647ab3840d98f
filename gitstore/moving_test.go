package gitstore_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// T80 A ledger on a path moves between any two questions that a look at it takes:
// git gives only what a ref names, and the look ends at what is there in the end.
func TestT80MovesWhileLookedAt(t *testing.T) {
	if os.Getenv("COUNTERSIGN_LONG") == "" {
		t.Skip("COUNTERSIGN_LONG=1 runs it")
	}
	git, err := exec.LookPath("git")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("it takes git, and a shell script before it")
	}
	moved := map[bool]int{}
	for n := range 8 {
		question, gone := 1+n/2, n%2 == 1
		r, _ := newRemote(t, false)
		r.url = r.repo.Dir
		other := r.share(r.clone(), gitstore.LedgerOptions{Pages: page.Versions{}})
		advance(t, other, "tx1", "1")
		clone := r.clone()
		us := r.share(clone, gitstore.LedgerOptions{Pages: page.Versions{}})
		if _, err := us.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		advance(t, other, "tx2", "1")
		advance(t, other, "tx3", "1")
		before := r.repo.Git("rev-parse", gitstore.LedgerRef)
		advance(t, other, "tx4", "1")
		after := r.repo.Git("rev-parse", gitstore.LedgerRef)
		r.repo.Git("update-ref", gitstore.LedgerRef, before)
		if gone { // the copy
			fatal(t, os.RemoveAll(clone.path(".git/countersign/ledgers")))
			us = r.share(clone, gitstore.LedgerOptions{Pages: page.Versions{}})
		}

		dir := t.TempDir()
		script := fmt.Sprintf(`#!/bin/sh
if [ "$1" = upload-pack ]; then
	echo >> %[1]s/asked
	if [ "$(wc -l < %[1]s/asked)" -eq %[2]d ]; then %[3]s -C %[4]s update-ref %[5]s %[6]s && echo > %[1]s/moved; fi
fi
exec %[3]s "$@"
`, dir, question, git, r.repo.Dir, gitstore.LedgerRef, after)
		fatal(t, teststand.WriteFile(filepath.Join(dir, "git"), []byte(script)))
		path := os.Getenv("PATH")
		t.Setenv("PATH", dir+string(os.PathListSeparator)+path)
		snap, err := us.Snapshot(t.Context())
		t.Setenv("PATH", path)
		want := before
		if _, err := os.Stat(filepath.Join(dir, "moved")); err == nil {
			moved[gone]++
			want = after
		}
		if err != nil || snap.Tip != want && snap.Tip != before {
			t.Errorf("moved at question %d: %s, %v; want %s", question, snap.Tip, err, want)
		}
	}
	if moved[false] < 2 || moved[true] < 3 {
		t.Errorf("the ledger moved %v times: a look takes a tip and what came since, or the tip's objects and then the history", moved)
	}
}

// T80 A look whose copy has begun anew ends although the ledger moves at every other
// question: what was fetched as a whole is gone on from.
func TestT80MovesAllTheTime(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("it takes git, and a shell script before it")
	}
	r, _ := newRemote(t, false)
	r.url = r.repo.Dir
	other, clone := r.share(r.clone(), gitstore.LedgerOptions{Pages: page.Versions{}}), r.clone()
	advance(t, other, "tx1", "1")
	if _, err := r.share(clone, gitstore.LedgerOptions{Pages: page.Versions{}}).Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	var tips string
	for n := range 12 {
		advance(t, other, fmt.Sprint("later", n), "1")
		tips += r.repo.Git("rev-parse", gitstore.LedgerRef) + "\n"
	}
	r.repo.Git("update-ref", gitstore.LedgerRef, tips[41:81]) // two after what is remembered
	fatal(t, os.RemoveAll(clone.path(".git/countersign/ledgers")))
	dir := t.TempDir()
	script := fmt.Sprintf(`#!/bin/sh
if [ "$1" = upload-pack ]; then
	echo >> %[1]s/asked
	n=$(wc -l < %[1]s/asked)
	if [ "$n" -gt 2 ] && [ $((n %% 2)) = 1 ]; then
		%[2]s -C %[3]s update-ref %[4]s "$(sed -n "$((n / 2 + 2))p" %[1]s/tips)"
	fi
fi
exec %[2]s "$@"
`, dir, git, r.repo.Dir, gitstore.LedgerRef)
	for name, text := range map[string]string{"git": script, "tips": tips} {
		fatal(t, teststand.WriteFile(filepath.Join(dir, name), []byte(text)))
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	if _, err := r.share(clone, gitstore.LedgerOptions{Pages: page.Versions{}}).Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	if err != nil || len(asked) > 8 {
		t.Errorf("%d questions, %v", len(asked), err)
	}
}
