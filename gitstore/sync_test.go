package gitstore_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/teststand"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// idOf is a transaction's id that the name stands for.
func idOf(name string) string {
	id, err := writing.NewID(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC), strings.NewReader(canon.Hex([]byte(name))))
	if err != nil {
		panic(err)
	}
	return id
}

// advance adds a line to the events of a transaction, and the files of an
// index and of the root that a first stage has.
func advance(t *testing.T, s writing.Store, name, line string) {
	t.Helper()
	id := idOf(name)
	file := ledger.Dir(id) + "/" + ledger.EventsFile
	_, err := storetest.Append(s, func(tree fs.FS) (map[string][]byte, error) {
		raw, err := fs.ReadFile(tree, file)
		files := map[string][]byte{}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
			files["denied/00/"+strings.Repeat("0", 64)+"/fileChange.json"] = []byte(name + "\n")
			if _, err := fs.Stat(tree, "ledger.json"); err != nil {
				files["ledger.json"] = []byte("made by " + name + "\n")
			}
		}
		files[file] = append(raw, line+"\n"...)
		files[ledger.Dir(id)+"/"+ledger.TransactionFile] = []byte(line + "\n")
		return files, err
	})
	fatal(t, err)
}

// events returns the lines of a transaction in the remote's ledger.
func (r remote) events(name string) string {
	r.t.Helper()
	out, err := work{r.t, r.repo.Dir}.try("show", gitstore.LedgerRef+":"+ledger.Dir(idOf(name))+"/events.jsonl")
	if err != nil {
		return "none"
	}
	return strings.ReplaceAll(out, "\n", " ")
}

func (r remote) sync(w work, o gitstore.LedgerOptions, leaveOut bool) (gitstore.Joined, error) {
	return r.share(w, o).Sync(r.t.Context(), leaveOut, nil)
}

// TestSync: work that was recorded offline, on both sides, is joined; nothing
// is lost, nothing is there twice, and both ends are the same.
func TestSync(t *testing.T) {
	r, _ := newRemote(t, true)
	a, b := r.clone(), r.clone()
	advance(t, a.Open(), "tx1", "1")
	advance(t, a.Open(), "tx1", "2")
	advance(t, b.Open(), "tx2", "1") // a ledger with a root of its own
	for i, c := range []struct {
		w                       work
		fetched, sent, replayed int
	}{
		{a, 0, 2, 0}, {a, 0, 0, 0}, {b, 2, 1, 1}, {a, 1, 0, 0}, {b, 0, 0, 0},
	} {
		done, err := r.sync(c.w, gitstore.LedgerOptions{Pages: page.Versions{}}, false)
		if err != nil || done.Fetched != c.fetched || done.Sent != c.sent || done.Replayed != c.replayed {
			t.Fatalf("%d: %+v %v", i, done, err)
		}
		if done.Tip != c.w.tip() || done.Tip != (work{t, r.repo.Dir}).tip() {
			t.Errorf("%d: tips differ", i)
		}
	}
	r.sound(3)
	// Both go on with the transactions of both, offline.
	advance(t, a.Open(), "tx2", "2")
	advance(t, a.Open(), "tx3", "1")
	advance(t, b.Open(), "tx1", "3")
	for _, w := range []work{b, a, b} {
		if _, err := r.sync(w, gitstore.LedgerOptions{Pages: page.Versions{}}, false); err != nil {
			t.Fatal(err)
		}
	}
	r.sound(6)
	for name, want := range map[string]string{"tx1": "1 2 3", "tx2": "1 2", "tx3": "1"} {
		if got := r.events(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if a.tip() != b.tip() {
		t.Error("the clones differ")
	}
	if got := (work{t, r.repo.Dir}).git("show", gitstore.LedgerRef+":ledger.json"); got != "made by tx1" {
		t.Errorf("the root file is %q", got)
	}
	// Somebody pushed half of our work by hand: the rest follows.
	advance(t, a.Open(), "tx4", "1")
	advance(t, a.Open(), "tx4", "2")
	a.git("push", "--quiet", r.repo.Dir, gitstore.LedgerRef+"~1:"+gitstore.LedgerRef)
	advance(t, b.Open(), "tx5", "1")
	for _, w := range []work{b, a} {
		if _, err := r.sync(w, gitstore.LedgerOptions{Pages: page.Versions{}}, false); err != nil {
			t.Fatal(err)
		}
	}
	r.sound(9)
	if got := r.events("tx4"); got != "1 2" {
		t.Errorf("tx4: %s", got)
	}
	a.git("fsck", "--strict", "--no-dangling")
}

// TestSyncConflict: one transaction that was advanced differently is reported,
// and nothing moves, until a person says which stands; the other is kept.
func TestSyncConflict(t *testing.T) {
	r, _ := newRemote(t, true)
	a, b := r.clone(), r.clone()
	advance(t, a.Open(), "tx1", "1")
	for _, w := range []work{a, b} {
		if _, err := r.sync(w, gitstore.LedgerOptions{Pages: page.Versions{}}, false); err != nil {
			t.Fatal(err)
		}
	}
	advance(t, a.Open(), "tx1", "approve")
	advance(t, b.Open(), "tx1", "deny")
	advance(t, b.Open(), "tx2", "1")
	if _, err := r.sync(a, gitstore.LedgerOptions{Pages: page.Versions{}}, false); err != nil {
		t.Fatal(err)
	}
	theirs, ours := (work{t, r.repo.Dir}).tip(), b.tip()
	_, err := r.sync(b, gitstore.LedgerOptions{Pages: page.Versions{}}, false)
	var conflict *gitstore.ConflictError
	if !errors.As(err, &conflict) || !slices.Equal(conflict.Transactions, []string{idOf("tx1")}) {
		t.Fatalf("%v", err)
	}
	if (work{t, r.repo.Dir}).tip() != theirs || b.tip() != ours {
		t.Error("something moved")
	}
	if _, err := r.share(b, gitstore.LedgerOptions{Pages: page.Versions{}}).Snapshot(t.Context()); !errors.As(err, &conflict) {
		t.Errorf("a snapshot over a conflict: %v", err)
	}
	done, err := r.sync(b, gitstore.LedgerOptions{Pages: page.Versions{}}, true)
	if err != nil || !slices.Equal(done.LeftOut, []string{idOf("tx1")}) || done.Sent != 1 {
		t.Fatalf("%+v %v", done, err)
	}
	if got := b.git("rev-parse", done.SetAside); got != ours {
		t.Errorf("kept %s, want %s", got, ours)
	}
	if r.events("tx1") != "1 approve" || r.events("tx2") != "1" || b.tip() != done.Tip {
		t.Errorf("tx1 %s, tx2 %s", r.events("tx1"), r.events("tx2"))
	}
	r.sound(3)
}

// TestT03SyncKeepsDenials: a transaction with a denial that only the clone has
// cannot be left out.
func TestT03SyncKeepsDenials(t *testing.T) {
	r, _ := newRemote(t, true)
	a, b := r.clone(), r.clone()
	advance(t, a.Open(), "tx1", "1")
	for _, w := range []work{a, b} {
		if _, err := r.sync(w, gitstore.LedgerOptions{Pages: page.Versions{}}, false); err != nil {
			t.Fatal(err)
		}
	}
	file := ledger.Dir(idOf("tx1")) + "/" + ledger.EventsFile
	if _, err := storetest.Append(b.Open(), func(fs.FS) (map[string][]byte, error) {
		return map[string][]byte{file: []byte("1\ndenied\n"), "denied/11/" + strings.Repeat("1", 64) + "/fileChange.json": nil}, nil
	}); err != nil {
		t.Fatal(err)
	}
	advance(t, a.Open(), "tx1", "2")
	if _, err := r.sync(a, gitstore.LedgerOptions{Pages: page.Versions{}}, false); err != nil {
		t.Fatal(err)
	}
	was := b.tip()
	var conflict *gitstore.ConflictError
	if _, err := r.sync(b, gitstore.LedgerOptions{Pages: page.Versions{}}, true); !errors.As(err, &conflict) || !slices.Equal(conflict.Denied, []string{idOf("tx1")}) {
		t.Errorf("%v", err)
	}
	if b.tip() != was {
		t.Error("the clone's ledger moved")
	}
}

// TestSyncAcceptance: an acceptance names its parent, so it is not made again on
// another commit.
func TestSyncAcceptance(t *testing.T) {
	r, _ := newRemote(t, true)
	a, b := r.clone(), r.clone()
	advance(t, a.Open(), "tx1", "1")
	for _, w := range []work{a, b} {
		if _, err := r.sync(w, gitstore.LedgerOptions{Pages: page.Versions{}}, false); err != nil {
			t.Fatal(err)
		}
	}
	accept := func(fs.FS) (map[string][]byte, error) {
		e, err := writing.OwnEntry(fstest.MapFS{ledger.SchemaFile: {Data: writing.Schema("", "1.0")}}, time.Unix(1795000000, 0), &ledger.AcceptTip{AcceptedTip: b.tip(), RememberedTip: a.tip(), Reason: "x"})
		return e.Files, err
	}
	if _, err := storetest.Append(b.Open(), accept); err != nil {
		t.Fatal(err)
	}
	advance(t, a.Open(), "tx1", "2")
	if _, err := r.sync(a, gitstore.LedgerOptions{Pages: page.Versions{}}, false); err != nil {
		t.Fatal(err)
	}
	var conflict *gitstore.ConflictError
	if _, err := r.sync(b, gitstore.LedgerOptions{Pages: page.Versions{}}, false); !errors.As(err, &conflict) || conflict.Transactions[0] != "the ledger's own events" {
		t.Errorf("%v", err)
	}
	if done, err := r.sync(b, gitstore.LedgerOptions{Pages: page.Versions{}}, true); err != nil || done.Sent != 0 || done.SetAside == "" {
		t.Errorf("%+v %v", done, err)
	}
	r.sound(2)
}

// key is a key for signing commits, and the list that knows it.
func key(seed byte) (sign func([]byte) (string, error), allowed string) {
	k := teststand.Ed25519(seed)
	return func(raw []byte) (string, error) { return k.Sign("git", raw), nil }, "ledger@example.org namespaces=\"git\" " + k.Public + "\n"
}

// TestSigned: every commit has a signature that git verify-commit finds good,
// those made again on another tip included.
func TestSigned(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	r, _ := newRemote(t, true)
	sign, allowed := key(1)
	signed := gitstore.LedgerOptions{Pages: page.Versions{}, Sign: sign}
	a, b := r.clone(), r.clone()
	for i, w := range []work{a, b} {
		l, err := w.open().Ledger(gitstore.LedgerRef, signed)
		fatal(t, err)
		advance(t, l, fmt.Sprint("tx", i), "1")
	}
	if _, err := r.sync(a, signed, false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.sync(b, gitstore.LedgerOptions{Pages: page.Versions{}}, false); !errors.Is(err, fault.Refused) {
		t.Errorf("made again without a key: %v", err)
	}
	if _, err := r.sync(b, signed, false); err != nil {
		t.Fatal(err)
	}
	partial := r.share(r.clone(), signed)
	advance(t, partial, "tx9", "1")
	r.sound(3)
	// T53: what somebody without the key put in between does not leave signed.
	if _, err := r.sync(a, signed, false); err != nil {
		t.Fatal(err)
	}
	advance(t, a.Open(), "forged", "1")
	advance(t, partial, "tx9", "2")
	done, err := r.sync(a, signed, false)
	if err != nil || done.Replayed != 1 {
		t.Fatalf("%+v %v", done, err)
	}
	if out, err := a.try("cat-file", "commit", done.Tip); err != nil || strings.Contains(out, "gpgsig") {
		t.Errorf("signed: %s", out)
	}
	other, _ := key(2)
	l, err := b.open().Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}, Sign: other})
	fatal(t, err)
	advance(t, l, "another key", "1")
	if _, err := r.sync(b, signed, false); !errors.Is(err, fault.Refused) {
		t.Errorf("another's signature was replaced: %v", err)
	}
	file := filepath.Join(t.TempDir(), "allowed")
	fatal(t, os.WriteFile(file, []byte(allowed), 0o666))
	bare := work{t, r.repo.Dir}
	for _, commit := range strings.Fields(bare.git("rev-list", gitstore.LedgerRef+"~1")) {
		bare.git("-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+file, "verify-commit", commit)
	}
}

// TestSyncPages: a clone and a remote with pages of different versions that have the same records
// already, as after a sync that was cut off between the two ends, are joined and not in conflict.
func TestSyncPages(t *testing.T) {
	entries := lives(t, storetest.Whole, storetest.Whole)
	for _, sides := range [][2]page.Versions{{nil, storetest.NextPages()}, {storetest.NextPages(), nil}} {
		r, _ := newRemote(t, true)
		w := r.clone()
		if _, err := ledgerAt(t, w.dir, sides[1]...).Append(t.Context(), "", entries...); err != nil {
			t.Fatal(err)
		}
		if _, err := ledgerAt(t, r.repo.Dir, sides[0]...).Append(t.Context(), "", entries[:len(entries)-1]...); err != nil {
			t.Fatal(err)
		}
		done, err := r.sync(w, gitstore.LedgerOptions{Pages: page.Versions{}}, false)
		if err != nil || done.Sent != 1 {
			t.Fatalf("%v %+v", err, done)
		}
		if report, err := auditOf(t, w.dir, "", nil); err != nil || !report.OK {
			t.Errorf("%v %+v", err, report.Findings)
		}
	}
}
