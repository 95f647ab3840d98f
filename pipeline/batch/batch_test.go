package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/result"
	"github.com/countersign-dev/countersign/pipeline/storetest"
	"github.com/countersign-dev/countersign/pipeline/workspace"
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
		b := &Batch{snap: ledger.Snapshot{Tip: "tip"}}
		var all []*appending
		for i, files := range c.files {
			e := ledger.Entry{Files: map[string][]byte{}}
			for _, name := range files[1:] {
				e.Files[name] = nil
			}
			all = append(all, &appending{member: &member{Batch: b, index: i, patch: patchID(files[0])}, tip: "tip", entries: []ledger.Entry{e}})
		}
		chosen, entries := b.together(all)
		var got []int
		for _, a := range chosen {
			got = append(got, a.member.index)
		}
		if !slices.Equal(got, c.want) || len(entries) != len(c.want) {
			t.Errorf("%s: %v of %d entries, want %v", c.name, got, len(entries), c.want)
		}
		for _, a := range all {
			if !slices.Contains(got, a.member.index) && !errors.Is(a.err, ledger.ErrMoved) {
				t.Errorf("%s: %d is not sent to look again: %v", c.name, a.member.index, a.err)
			}
		}
	}
	late := &Batch{snap: ledger.Snapshot{Tip: "tip"}}
	if chosen, _ := late.together([]*appending{{member: &member{}, tip: "another"}}); len(chosen) > 0 {
		t.Error("what was made on another tip is appended")
	}
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

// TestCall: an older transaction that may still want a file goes first, and one
// that has had its turn, or takes none, keeps nobody.
func TestCall(t *testing.T) {
	for _, c := range []struct {
		name  string
		older member
		want  bool
	}{
		{"the same file, not asked yet", member{files: []string{"a"}}, false},
		{"the same file, asked as well", member{files: []string{"a"}, asked: &turn{ready: make(chan struct{})}}, false},
		{"the same file, over", member{files: []string{"a"}, over: true}, true},
		{"another file", member{files: []string{"b"}}, true},
	} {
		for _, target := range []string{"", "refs/heads/x"} {
			old, young := c.older, member{files: []string{"a"}, asked: &turn{target: target, ready: make(chan struct{})}}
			if old.asked != nil {
				old.asked = &turn{target: target, ready: make(chan struct{})}
			}
			b := &Batch{runner: &pipeline.Runner{Store: &storetest.Memory{}}, all: []*member{&old, &young}}
			b.call(t.Context())
			if young.over != c.want {
				t.Errorf("%s, to %q: %v, want %v", c.name, target, young.over, c.want)
			}
		}
	}
}

// A brittleTree refuses every write that one file is part of.
type brittleTree struct {
	pipeline.Worktree
	bad, message string
	writes       int
}

func (b *brittleTree) Write(files []patch.Change) []result.Operation {
	b.writes++
	ops := workspace.Predict(files)
	i := slices.IndexFunc(files, func(f patch.Change) bool { return f.Path == b.bad })
	for n := range ops {
		if i >= 0 {
			ops[n].Status = result.StatusSkipped
		}
		if n == i {
			ops[n].Status, ops[n].Error = result.StatusError, b.message
		}
	}
	return ops
}

// TestWrite: a file that cannot be written is its transaction's failure alone.
func TestWrite(t *testing.T) {
	change := func(names ...string) *writing {
		w := &writing{}
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
		{"c", workspace.Mismatch, 3, []bool{false, true, false}},
	} {
		disk := &brittleTree{bad: c.bad, message: c.message}
		all := []*writing{change("a", "b"), change("c", "d"), change("e")}
		(&tree{Worktree: disk}).write(all)
		for i, w := range all {
			failed := slices.ContainsFunc(w.ops, func(o result.Operation) bool { return o.Status != result.StatusSuccess })
			if failed != c.failed[i] || len(w.ops) != len(w.files) || w.ops[0].Path != w.files[0].Path {
				t.Errorf("%s %s: %d has %v", c.bad, c.message, i, w.ops)
			}
		}
		if disk.writes != c.writes {
			t.Errorf("%s %s: %d writes, want %d", c.bad, c.message, disk.writes, c.writes)
		}
	}
}

// TestFresh: what was judged is written although somebody else works on and on;
// an approval that it rests on may end meanwhile.
func TestFresh(t *testing.T) {
	defer func(was time.Duration) { fresh = was }(fresh)
	fresh = time.Millisecond
	txs := []ledger.Transaction{{TransactionID: id(1)}, {TransactionID: id(2)}}
	store, written := &storetest.Memory{}, make(chan struct{})
	b := New(&pipeline.Runner{Store: store}, 2)
	err := b.Run(t.Context(), txs, func(ctx context.Context, r *pipeline.Runner, tx ledger.Transaction) {
		if tx.TransactionID == id(2) {
			<-written
			return
		}
		defer close(written)
		snap, err := r.Store.Snapshot(ctx)
		if err == nil {
			_, err = r.Store.Append(ctx, snap.Tip, ledger.Entry{Message: "x", Files: map[string][]byte{"transactions/x": nil}})
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil || len(store.Entries()) != 1 {
		t.Errorf("%d entries, %v", len(store.Entries()), err)
	}
}

// A busyTree is locked by another process until somebody lets it go.
type busyTree struct {
	pipeline.Worktree
	asked, free chan struct{}
}

func (b *busyTree) Lock(context.Context) (func(), error) {
	close(b.asked)
	<-b.free
	return func() {}, nil
}

// TestFreshBesideALock: a member that waits for the working tree keeps nobody
// from writing the ledger.
func TestFreshBesideALock(t *testing.T) {
	defer func(was time.Duration) { fresh = was }(fresh)
	fresh = time.Millisecond
	disk := &busyTree{asked: make(chan struct{}), free: make(chan struct{})}
	b := New(&pipeline.Runner{Store: &storetest.Memory{}, Worktree: disk}, 2)
	err := b.Run(t.Context(), []ledger.Transaction{{TransactionID: id(1)}, {TransactionID: id(2)}}, func(ctx context.Context, r *pipeline.Runner, tx ledger.Transaction) {
		if tx.TransactionID == id(2) {
			unlock, err := r.Worktree.Lock(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			unlock()
			return
		}
		<-disk.asked
		defer close(disk.free)
		snap, err := r.Store.Snapshot(ctx)
		if err == nil {
			_, err = r.Store.Append(ctx, snap.Tip, ledger.Entry{Message: "x", Files: map[string][]byte{"transactions/x": nil}})
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// TestPanic: a panic while a round is closed is not kept from anybody.
func TestPanic(t *testing.T) {
	b := &Batch{shared: &parts{}}
	m := &member{Batch: b}
	b.all, b.members = []*member{m}, 1
	for range 2 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			m.await(t.Context(), nil, func() { panic("while entering") })
		}()
	}
}

func id(n int) string { return fmt.Sprintf("tx_%026d", n) }
