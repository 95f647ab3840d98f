package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// crowd is a world with n approved transactions, every third of which wants the
// file of the one before.
func crowd(t *testing.T, n int) (*world, []ledger.Transaction) {
	w := newWorld(t)
	var all []ledger.Transaction
	texts := map[string]string{}
	for i := range n {
		texts[fmt.Sprintf("d%d/f%d.txt", i%3, i)] = "old\n"
	}
	w.repo.commit(texts)
	w.write(texts)
	for i := range n {
		of := i
		if i%3 == 2 {
			of--
		}
		name := fmt.Sprintf("d%d/f%d.txt", of%3, of)
		made, err := review.Run(t.Context(), w.as(bot), w.input(fmt.Sprintf(
			"diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-old\n+new %[2]d\n", name, i)), false)
		fatal(t, err)
		g := w.says(ada, ledger.Approve, made.ID)
		all = append(all, g.Transaction())
	}
	return w, all
}

// beside is a Runner whose clock may be read by several, and whose store and
// working tree are watched.
func (w *world) beside(store writing.Store, tree *witness) *pipeline.Runner {
	r, start := w.as(bot), w.now()
	tree.Tree = r.Worktree
	r.Now, r.Store, r.Worktree = func() time.Time { return start }, store, tree
	return r
}

// witness is a working tree that sees what is written without an apply on record.
type witness struct {
	effect.Tree
	w      *world
	all    []ledger.Transaction
	locked int
}

func (s *witness) Lock(ctx context.Context) (func(), error) {
	unlock, err := s.Tree.Lock(ctx)
	if err != nil {
		return nil, err
	}
	s.locked++
	return func() { s.locked--; unlock() }, nil
}

func (s *witness) Write(files []patch.Change) []ledger.Operation {
	if s.locked != 1 {
		s.w.Errorf("written, and locked %d times", s.locked)
	}
	seen := map[string]bool{}
	for _, f := range files {
		if seen[f.Path] {
			s.w.Errorf("%s is written twice at once", f.Path)
		}
		seen[f.Path] = true
		if !slices.ContainsFunc(s.all, func(tx ledger.Transaction) bool {
			log, err := lookup.Read(s.w.ledger().Tree, tx.TransactionID)
			if err != nil {
				return false
			}
			start, open := log.OpenApply()
			return open && slices.Contains(start.Files, f.Path)
		}) {
			s.w.Errorf("%s is written, and no apply is on record", f.Path)
		}
	}
	return s.Tree.Write(files)
}

// hostile is a ledger that does something at the nth append.
type hostile struct {
	writing.Store
	n  int
	at func(n int) (before, after error)
}

func (h *hostile) Append(ctx context.Context, tip string, entries ...writing.Entry) (string, error) {
	h.n++
	before, after := h.at(h.n)
	if before != nil {
		return "", before
	}
	next, err := h.Store.Append(ctx, tip, entries...)
	if err == nil && after != nil {
		return "", after
	}
	return next, err
}

func (h *hostile) Snapshot(ctx context.Context, paths ...string) (writing.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return writing.Snapshot{}, err
	}
	return h.Store.Snapshot(ctx, paths...)
}

// TestBatchHostile: whatever an append meets, and wherever a run is
// cancelled, every transaction is told once, nothing is written without an apply
// on record, the working tree is unlocked, and the next run ends what was begun.
func TestBatchHostile(t *testing.T) {
	const n = 6
	lost := errors.New("the line is dead")
	for name, fault := range map[string]func(w *world, tx string, cancel func()) (before, after error){
		"fails before": func(*world, string, func()) (error, error) { return lost, nil },
		"fails after":  func(*world, string, func()) (error, error) { return nil, lost },
		"cancelled":    func(_ *world, _ string, cancel func()) (error, error) { cancel(); return nil, nil },
		"denied": func(w *world, tx string, _ func()) (error, error) {
			_, _ = w.as(bob).Decide(w.Context(), tx, pipeline.Ruling{Decision: ledger.Deny, Kind: "local"}) // or it is too late
			return nil, nil
		},
	} {
		for at := 1; at <= 3; at++ {
			t.Run(fmt.Sprintf("%s at %d", name, at), func(t *testing.T) {
				t.Parallel()
				w, all := crowd(t, n)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				seen := &witness{w: w, all: all}
				store := &hostile{Store: w.store, at: func(k int) (error, error) {
					if k != at {
						return nil, nil
					}
					return fault(w, all[0].TransactionID, cancel)
				}}
				told := make([]int, n)
				to := pipeline.Ahead{Until: pipeline.StageValidate}
				err := pipeline.AdvanceAll(ctx, w.beside(store, seen), all, to, 2, func(i int, _ pipeline.Outcome, _ error) { told[i]++ })
				if err != nil || slices.ContainsFunc(told, func(k int) bool { return k != 1 }) || seen.locked != 0 {
					t.Errorf("told %v, locked %d times: %v", told, seen.locked, err)
				}
				fatal(t, pipeline.AdvanceAll(t.Context(), w.beside(w.store, seen), all, to, 2, func(int, pipeline.Outcome, error) {}))
				for i, tx := range all {
					log := w.log(tx.TransactionID)
					got := log.Transaction().Status
					w.sound(tx.TransactionID, got)
					rival := i%3 > 0 // of which one has the file
					if got != ledger.Completed && !rival && !(i == 0 && name == "denied") {
						t.Errorf("%d is %s", i, got)
					}
				}
			})
		}
	}
}
