package gitstore_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

const attested = "tx_01ARZ3NDEKTSV4RRFFQ69G5FAV"

// attestationOf is a file of the ref for attestations, and its name.
func attestationOf(text string) (name string, files map[string][]byte) {
	name = fmt.Sprintf("%s/approval.%040d.%s.json", ledger.Dir(attested), 7, canon.Hex([]byte(text)))
	return name, map[string][]byte{name: []byte(text)}
}

// TestT79AttestationsHostile: what another put on the ref is passed over where it is no
// statement's file, and a tree that cannot be added to is an error.
func TestT79AttestationsHostile(t *testing.T) {
	t.Parallel()
	name, files := attestationOf("good\n")
	large, _ := attestationOf("large\n")
	dir := ledger.Dir(attested)
	w := newWork(t, map[string]string{
		name: "good\n", "README.md": "no\n", dir + "/x.json": "no\n", dir + "/below/" + name[strings.LastIndex(name, "/")+1:]: "no\n",
		"transactions/2026/01/01/00/" + attested + "/" + name[strings.LastIndex(name, "/")+1:]: "another day\n",
		strings.Replace(name, "approval.", "approval.f", 1):                                    "no\n",
		large: strings.Repeat("x", gitstore.MaxAttestation+1),
	})
	w.git("update-ref", "refs/agent/ledger-attestations", "HEAD")
	l := ledgerAt(t, w.dir)
	got, err := l.Kept(t.Context(), gitstore.Attestations, nil)
	if err != nil || len(got.Files) != 1 || string(got.Files[name]) != "good\n" {
		t.Errorf("%v %q", err, got.Files)
	}
	w.git("update-ref", "refs/agent/ledger-attestations", "HEAD:README.md")
	if _, err := l.Kept(t.Context(), gitstore.Attestations, nil); err == nil {
		t.Error("a ref that is on a file reads as one without attestations")
	}
	v := newWork(t, map[string]string{"transactions": "a file\n"})
	v.git("update-ref", "refs/agent/ledger-attestations", "HEAD")
	l = ledgerAt(t, v.dir)
	before, err := l.Kept(t.Context(), gitstore.Attestations, nil)
	if err != nil || len(before.Files) != 0 {
		t.Fatalf("%v %q", err, before.Files)
	}
	if err := l.Keep(t.Context(), gitstore.Attestations, before, files, someTime); err == nil || !strings.Contains(err.Error(), `"transactions" is not a directory`) {
		t.Errorf("a file where the directory has to be: %v", err)
	}
}

// TestAttestationsGrow: every writer's statements stay, in the clone, at the remote, and after
// a sync of both; the same ones make no commit.
func TestAttestationsGrow(t *testing.T) {
	if os.Getenv("COUNTERSIGN_LONG") == "" {
		t.Skip("COUNTERSIGN_LONG=1 runs it")
	}
	t.Parallel()
	r, _ := newRemote(t, true)
	s := r.Open().(*gitstore.Shared)
	if _, err := s.Append(t.Context(), "", entryOf(0)); err != nil {
		t.Fatal(err)
	}
	keep := func(s *gitstore.Shared, files map[string][]byte) {
		t.Helper()
		for range 20 {
			before, err := s.Kept(t.Context(), gitstore.Attestations, nil)
			if err == nil {
				err = s.Keep(t.Context(), gitstore.Attestations, before, files, someTime)
			}
			if err == nil {
				return
			}
			if !errors.Is(err, writing.ErrMoved) {
				t.Error(err)
				return
			}
		}
		t.Error("it moved every time")
	}
	w := r.clone()
	mine := r.share(w, gitstore.LedgerOptions{Pages: page.Versions{}})
	if _, err := mine.Sync(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	l := ledgerAt(t, w.dir)
	here, files := attestationOf("here\n")
	fatal(t, l.Keep(t.Context(), gitstore.Attestations, gitstore.Kept{}, files, someTime))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			_, files := attestationOf(fmt.Sprintf("writer %d\n", i))
			keep(r.Open().(*gitstore.Shared), files)
		})
	}
	wg.Wait()
	for range 2 {
		if there, err := mine.SyncBeside(t.Context(), gitstore.Attestations, someTime); !there || err != nil {
			t.Fatalf("%v %v", there, err)
		}
		got, err := l.Kept(t.Context(), gitstore.Attestations, nil)
		if err != nil || len(got.Files) != 5 || string(got.Files[here]) != "here\n" {
			t.Fatalf("after a sync: %v %q", err, got.Files)
		}
	}
	_, more := attestationOf("more\n")
	keep(mine, more)
	keep(mine, more)
	keep(s, more)
	fresh := r.clone()
	late := r.share(fresh, gitstore.LedgerOptions{Pages: page.Versions{}})
	if _, err := late.Sync(t.Context(), false, nil); err != nil {
		t.Fatal(err)
	}
	keep(late, more)
	if out := fresh.git("cat-file", "-t", "refs/agent/ledger-attestations"); strings.TrimSpace(out) != "commit" {
		t.Errorf("a clone that keeps what the remote has: %q", out)
	}
	got, err := s.Kept(t.Context(), gitstore.Attestations, nil)
	if err != nil || len(got.Files) != 6 || string(got.Files[here]) != "here\n" {
		t.Errorf("at the remote: %v %q", err, got.Files)
	}
	if out := (work{t, r.repo.Dir}).git("rev-list", "--count", "refs/agent/ledger-attestations"); strings.TrimSpace(out) != "5" {
		t.Errorf("%s commits for five writes of something new", strings.TrimSpace(out))
	}
	one, err := s.Kept(t.Context(), gitstore.Attestations, func(name string) bool { return name == here })
	if err != nil || len(one.Files) != 1 {
		t.Errorf("one that is wanted: %v %q", err, one.Files)
	}
	w.git("fsck", "--strict", "--no-dangling")
	work{t, r.repo.Dir}.git("fsck", "--strict", "--no-dangling")
}

// TestAttestationsPartial: a copy that has nothing of the ledger adds to what the remote keeps.
func TestAttestationsPartial(t *testing.T) {
	t.Parallel()
	r, _ := newRemote(t, false)
	s := r.Open().(*gitstore.Shared)
	if _, err := s.Append(t.Context(), "", entryOf(0)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		s := r.Open().(*gitstore.Shared)
		before, err := s.Kept(t.Context(), gitstore.Attestations, func(string) bool { return false })
		if err != nil || len(before.Files) != 0 {
			t.Fatalf("%v %q", err, before.Files)
		}
		_, files := attestationOf(fmt.Sprintf("copy %d\n", i))
		fatal(t, s.Keep(t.Context(), gitstore.Attestations, before, files, someTime))
	}
	if got, err := s.Kept(t.Context(), gitstore.Attestations, nil); err != nil || len(got.Files) != 3 {
		t.Errorf("%v %q", err, got.Files)
	}
	work{t, r.repo.Dir}.git("fsck", "--strict", "--no-dangling")
}
