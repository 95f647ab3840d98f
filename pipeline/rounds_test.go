package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/redact"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// patchID is a patch_id that begins with a letter.
func patchID(letter string) string { return strings.Repeat(letter, 64) }

// TestTogether: no entry is appended that was judged without something that one
// before it changes.
func TestTogether(t *testing.T) {
	own := func(n int) string {
		return fmt.Sprintf("%s/2026/11/22/aa/tx_%d/events.jsonl", ledger.TransactionsDir, n)
	}
	denial := func(letter string) string { return ledger.DeniedDir(patchID(letter)) + "/fileChange.json" }
	for _, c := range []struct {
		name  string
		files [][]string // of each member's entry; its patch is the letter before
		want  []int
	}{
		{"each its own", [][]string{{"a", own(0)}, {"b", own(1)}, {"a", own(2)}}, []int{0, 1, 2}},
		{"a denial of another patch", [][]string{{"a", own(0), denial("a")}, {"b", own(1)}}, []int{0, 1}},
		{"a denial of the same patch", [][]string{{"a", own(0), denial("a")}, {"a", own(1)}, {"b", own(2)}}, []int{0, 2}},
		{"the same, denied later", [][]string{{"a", own(0)}, {"a", own(1), denial("a")}}, []int{0, 1}},
		{"a denial under another patch", [][]string{{"a", own(0), denial("b")}, {"b", own(1)}}, []int{0}},
		{"something else", [][]string{{"a", own(0), "proposed/aa/x.json"}, {"b", own(1)}}, []int{0}},
		{"not quite a denial", [][]string{{"a", own(0), "denied/x.json"}, {"b", own(1)}}, []int{0}},
	} {
		store := &countedTip{}
		b := &rounds{runner: &Runner{Store: store}, snap: writing.Snapshot{Tip: store.tip()}}
		var all []*appending
		for i, files := range c.files {
			e := writing.Entry{Files: map[string][]byte{}}
			for _, name := range files[1:] {
				e.Files[name] = nil
			}
			all = append(all, &appending{entries: []writing.Entry{e}})
			b.all = append(b.all, &participant{rounds: b, index: i, patch: patchID(files[0]), asks: all[i]})
		}
		b.append(t.Context())
		var got []int
		for i, a := range all {
			if a.err == nil {
				got = append(got, i)
			}
			if !slices.Contains(c.want, i) && !errors.Is(a.err, writing.ErrMoved) {
				t.Errorf("%s: %d is not sent to look again: %v", c.name, i, a.err)
			}
		}
		if !slices.Equal(got, c.want) || len(store.entries) != len(c.want) {
			t.Errorf("%s: %v of %d entries, want %v", c.name, got, len(store.entries), c.want)
		}
	}
	late := &participant{rounds: &rounds{snap: writing.Snapshot{Tip: "tip"}}}
	if _, err := late.Append(t.Context(), "another"); !errors.Is(err, writing.ErrMoved) {
		t.Errorf("what was made on another tip is appended: %v", err)
	}
}

// A countedTip is a ledger whose tip is the number of its entries, and whose tree
// nobody reads.
type countedTip struct{ entries []writing.Entry }

func (c *countedTip) tip() string { return fmt.Sprint(len(c.entries)) }

func (c *countedTip) Snapshot(ctx context.Context, _ ...string) (writing.Snapshot, error) {
	return c.At(ctx, c.tip())
}

func (c *countedTip) At(_ context.Context, tip string) (writing.Snapshot, error) {
	return writing.Snapshot{Tip: tip}, nil
}

func (c *countedTip) Append(_ context.Context, tip string, entries ...writing.Entry) (string, error) {
	if tip != c.tip() {
		return "", writing.ErrMoved
	}
	c.entries = append(c.entries, entries...)
	return c.tip(), nil
}

// TestPlaces: who may be where at the same time.
func TestPlaces(t *testing.T) {
	type at struct {
		target string
		files  []string
	}
	for _, c := range []struct {
		a, b at
		both bool
	}{
		{at{"", []string{"a"}}, at{"", []string{"b"}}, true},
		{at{"", []string{"a"}}, at{"", []string{"b", "a"}}, false},
		{at{"", []string{"a"}}, at{"", []string{"a/b"}}, false},
		{at{"", []string{"a/b/c"}}, at{"", []string{"a"}}, false},
		{at{"", []string{"a/b"}}, at{"", []string{"a/c"}}, true},
		{at{"refs/heads/x", []string{"a"}}, at{"refs/heads/x", []string{"b"}}, false},
		{at{"refs/heads/x", []string{"a"}}, at{"refs/heads/y", []string{"a"}}, true},
		{at{"refs/heads/x", []string{"a"}}, at{"", []string{"a"}}, true},
	} {
		var p places
		p.take(c.a.target, c.a.files, 1)
		if got := p.free(c.b.target, c.b.files); got != c.both {
			t.Errorf("%v beside %v: %v, want %v", c.b, c.a, got, c.both)
		}
		p.take(c.a.target, c.a.files, -1)
		if !p.free(c.a.target, c.a.files) || !p.free(c.b.target, c.b.files) {
			t.Errorf("%v is still taken after %v has gone", c.b, c.a)
		}
	}
}

// TestGiveTurns: an older transaction that may still want a file goes first, and
// one that has had its turn, or takes none, keeps nobody.
func TestGiveTurns(t *testing.T) {
	for _, c := range []struct {
		name  string
		older participant
		asks  bool
		want  bool
	}{
		{"the same file, not asked yet", participant{files: []string{"a"}}, false, false},
		{"the same file, asked as well", participant{files: []string{"a"}}, true, false},
		{"the same file, over", participant{files: []string{"a"}, over: true}, false, true},
		{"another file", participant{files: []string{"b"}}, false, true},
	} {
		for _, target := range []string{"", "refs/heads/x"} {
			b := &rounds{runner: &Runner{Store: &countedTip{}}, tree: treeLock{unlock: func() {}}}
			old, young := c.older, participant{rounds: b, files: []string{"a"}, asks: &turn{target: target}}
			old.rounds = b
			if c.asks {
				old.asks = &turn{target: target}
			}
			b.all = []*participant{&old, &young}
			b.giveTurns(t.Context())
			if young.over != c.want || (young.asks == nil) != c.want {
				t.Errorf("%s, to %q: %v, want %v", c.name, target, young.over, c.want)
			}
		}
	}
}

// A brittleTree refuses every write that one file is part of.
type brittleTree struct {
	effect.Tree
	bad, message string
	writes       int
}

func (b *brittleTree) Write(files []patch.Change) []ledger.Operation {
	b.writes++
	ops := effect.Predict(files)
	i := slices.IndexFunc(files, func(f patch.Change) bool { return f.Path == b.bad })
	for n := range ops {
		if i >= 0 {
			ops[n].Status = ledger.StatusSkipped
		}
		if n == i {
			ops[n].Status, ops[n].Error = ledger.StatusError, b.message
		}
	}
	return ops
}

// TestWrite: a file that cannot be written is its transaction's failure alone.
func TestWrite(t *testing.T) {
	change := func(names ...string) *filesWrite {
		w := &filesWrite{}
		for _, name := range names {
			w.files = append(w.files, patch.Change{Path: name, After: &patch.File{Mode: patch.Regular}})
		}
		return w
	}
	for _, c := range []struct {
		bad, message string
		writes       int
		failed       []bool
	}{
		{"", "", 1, []bool{false, false, false}},
		{"c", "cannot write", 4, []bool{false, true, false}},
		{"c", effect.Mismatch, 3, []bool{false, true, false}},
	} {
		disk := &brittleTree{bad: c.bad, message: c.message}
		all := []*filesWrite{change("a", "b"), change("c", "d"), change("e")}
		b := &rounds{runner: &Runner{Worktree: disk}}
		for _, w := range all {
			b.all = append(b.all, &participant{rounds: b, asks: w})
		}
		b.write()
		for i, w := range all {
			failed := slices.ContainsFunc(w.ops, func(o ledger.Operation) bool { return o.Status != ledger.StatusSuccess })
			if failed != c.failed[i] || len(w.ops) != len(w.files) || w.ops[0].Path != w.files[0].Path {
				t.Errorf("%s %s: %d has %v", c.bad, c.message, i, w.ops)
			}
		}
		if disk.writes != c.writes {
			t.Errorf("%s %s: %d writes, want %d", c.bad, c.message, disk.writes, c.writes)
		}
	}
}

// record appends an entry of a transaction's own.
func record(t *testing.T, r *Runner) {
	snap, err := r.Store.Snapshot(t.Context())
	if err == nil {
		_, err = r.Store.Append(t.Context(), snap.Tip, writing.Entry{Message: "x", Files: map[string][]byte{"transactions/x": nil}})
	}
	if err != nil {
		t.Error(err)
	}
}

// A command is one that runs until something has happened.
type command func()

func (c command) Run(context.Context, redact.Finder, policy.Sandbox, fs.FS, []policy.Check) ([]checks.Execution, error) {
	c()
	return nil, nil
}

// TestFresh: what was judged is written although the commands of somebody else
// runRounds on and on; an approval that it rests on may end meanwhile.
func TestFresh(t *testing.T) {
	defer func(was time.Duration) { fresh = was }(fresh)
	fresh = time.Millisecond
	txs := []ledger.Transaction{{TransactionID: id(1)}, {TransactionID: id(2)}}
	store, written := &countedTip{}, make(chan struct{})
	r := &Runner{Store: store, Commands: command(func() { <-written })}
	err := sideBySide(t.Context(), r, txs, 2, func(p *participant) func() {
		r := p.own()
		if p.index == 1 {
			_, err := r.Commands.Run(t.Context(), nil, "", nil, nil)
			record(t, r) // on what the ledger has become
			return func() {
				if err != nil {
					t.Error(err)
				}
			}
		}
		defer close(written)
		record(t, r)
		return func() {}
	})
	if err != nil || len(store.entries) != 2 {
		t.Errorf("%d entries, %v", len(store.entries), err)
	}
}

// A busyTree is locked by another process until somebody lets it go.
type busyTree struct {
	effect.Tree
	asked, free chan struct{}
	locked      int
}

func (b *busyTree) Lock(context.Context) (func(), error) {
	close(b.asked)
	<-b.free
	b.locked++
	return func() { b.locked-- }, nil
}

// TestFreshBesideALock: a transaction that waits for the working tree keeps
// nobody from writing the ledger.
func TestFreshBesideALock(t *testing.T) {
	defer func(was time.Duration) { fresh = was }(fresh)
	fresh = time.Millisecond
	disk := &busyTree{asked: make(chan struct{}), free: make(chan struct{})}
	store := &countedTip{}
	r := &Runner{Store: store, Worktree: disk}
	err := sideBySide(t.Context(), r, []ledger.Transaction{{TransactionID: id(1)}, {TransactionID: id(2)}}, 2, func(p *participant) func() {
		r := p.own()
		if p.index == 1 {
			unlock, err := p.place(t.Context(), effect.Worktree)
			if err != nil || disk.locked != 1 || len(store.entries) != 2 {
				t.Errorf("locked %d times beside %d entries: %v", disk.locked, len(store.entries), err)
				return func() {}
			}
			unlock()
			return func() {}
		}
		record(t, r) // in the round in which the other asks
		<-disk.asked
		defer close(disk.free)
		record(t, r)
		return func() {}
	})
	if err != nil || disk.locked != 0 {
		t.Errorf("locked %d times: %v", disk.locked, err)
	}
}

// TestLockFails: a working tree that cannot be locked is the failure of each that
// wants to write there, and of nobody else.
func TestLockFails(t *testing.T) {
	r := &Runner{Store: &countedTip{}, Worktree: &lockedOut{}}
	txs := []ledger.Transaction{{TransactionID: id(1)}, {TransactionID: id(2)}, {TransactionID: id(3)}}
	err := sideBySide(t.Context(), r, txs, 2, func(p *participant) func() {
		target := []string{effect.Worktree, "refs/heads/x", effect.Worktree}[p.index]
		leave, err := p.place(t.Context(), target)
		if (err == nil) != (target != effect.Worktree) {
			t.Errorf("%s: %v", target, err)
		}
		if err == nil {
			leave()
		}
		return func() {}
	})
	if err != nil {
		t.Error(err)
	}
}

type lockedOut struct{ effect.Tree }

func (*lockedOut) Lock(context.Context) (func(), error) { return nil, errors.New("no lock here") }

// A brokenStore panics when it is written.
type brokenStore struct{ countedTip }

func (*brokenStore) Append(context.Context, string, ...writing.Entry) (string, error) {
	panic("while appending")
}

// TestPanic: a panic while a round is closed is not kept from anybody.
func TestPanic(t *testing.T) {
	r := &Runner{Store: &brokenStore{}}
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	_ = sideBySide(t.Context(), r, []ledger.Transaction{{TransactionID: id(1)}}, 1, func(p *participant) func() {
		record(t, p.own())
		return func() {}
	})
}

func id(n int) string { return fmt.Sprintf("tx_%026d", n) }
