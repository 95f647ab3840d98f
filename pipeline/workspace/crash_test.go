package workspace

import (
	"os"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/effect"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
)

const powerCut = "power cut"

// crash runs a Write that dies before its nth change to the disk, and tells
// whether it got that far.
func crash(tree *Tree, cs []patch.Change, n int) (died bool) {
	tree.workers = 1 // in this goroutine, and always in the same order
	tree.step = func() {
		if n--; n < 0 {
			panic(powerCut)
		}
	}
	defer func() {
		why := recover()
		if died = why == powerCut; why != nil && !died {
			panic(why)
		}
	}()
	tree.Write(cs)
	return false
}

// steps are where the writes of a row die: at each third change to the disk, and with COUNTERSIGN_LONG at each.
func steps(row int) (first, each int) {
	if os.Getenv("COUNTERSIGN_LONG") != "" {
		return 0, 1
	}
	return row % 3, 3
}

// TestT41Crash: a write that is cut off anywhere leaves each file old or new,
// and the next write finishes it and clears what the first left behind.
func TestT41Crash(t *testing.T) {
	for i, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			cs := changes(c.before, c.after)
			first, each := steps(i)
			for n, died := first, true; died; n += each {
				dir, state := t.TempDir(), t.TempDir()
				c.before.plus(c.other).put(t, dir)
				died = crash(openWith(t, dir, state), cs, n)
				tree := openWith(t, dir, state)
				oldOrNew(t, tree, cs)
				crash(openWith(t, dir, state), cs, n%6) // it dies once more
				oldOrNew(t, tree, cs)
				if got := outcome(tree.Write(cs)); got != ledger.OutcomeSuccess {
					t.Errorf("after %d steps: %s", n, got)
				}
				inspect(t, tree, cs, effect.After)
				same(t, dir, c.after.plus(c.other))
				nothingNoted(t, state)
			}
		})
	}
}

// TestT41Abandoned: the change that was cut off is never taken up again, and
// whatever is applied next clears what it left behind.
func TestT41Abandoned(t *testing.T) {
	for i, c := range rows {
		cs := changes(c.before, c.after)
		first, each := steps(i)
		for n, died := first, true; died; n += each {
			dir, state := t.TempDir(), t.TempDir()
			c.before.plus(c.other).put(t, dir)
			died = crash(openWith(t, dir, state), cs, n)
			tree := openWith(t, dir, state)
			unlock, err := tree.Lock(t.Context())
			if err != nil {
				t.Fatalf("%s, after %d steps: %v", c.name, n, err)
			}
			unlock()
			oldOrNew(t, tree, cs)
			for name, content := range get(t, dir) {
				if known := c.before.plus(c.other).plus(c.after); known[name] == "" && content != "" && content != "/" {
					t.Errorf("%s, after %d steps: %s is left", c.name, n, name)
				}
			}
			fatal(t, os.Remove(state+"/apply.lock"))
			nothingNoted(t, state)
		}
	}
}

func oldOrNew(t *testing.T, tree *Tree, cs []patch.Change) {
	t.Helper()
	states, err := tree.Inspect(cs)
	fatal(t, err)
	for i, s := range states {
		if s == effect.Other {
			t.Errorf("%s is neither old nor new", cs[i].Path)
		}
	}
}

func nothingNoted(t *testing.T, state string) {
	t.Helper()
	left, err := os.ReadDir(state)
	if err != nil || len(left) > 0 {
		t.Errorf("the state directory holds %v (%v)", left, err)
	}
}
