package gitstore

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/audit"
)

// TestT51T53T54T55T59T77Tampering: each tamperer takes the history of a sound and signed
// ledger, changes something in it, and makes every later commit again. The audit has to
// tell, by its rules where the tamperer did not make good what hangs together, and by the
// remembered tip or the missing signature where they did. Each does it once, in a small
// ledger; COUNTERSIGN_TAMPER=n is for one in n of the ways of each, in one that has a place for all, and 1 in one of 200
// transactions.
func TestT51T53T54T55T59T77Tampering(t *testing.T) {
	lives, part := 27, 0 // one of each kind
	if n, err := strconv.Atoi(os.Getenv("COUNTERSIGN_TAMPER")); err == nil {
		lives, part = 54, max(1, n)
	}
	if part == 1 {
		lives = 180
	}
	s := newSoundLedgerOf(t, lives)
	clean, err := s.forge(s.steps, len(s.steps), nil)
	fatal(t, err)
	if c, err := clean.audit(); err != nil || !c.found.OK || c.pages || c.memory {
		t.Fatalf("the sound ledger: %v %+v", err, c)
	}
	seen := newWitnessed(t, s)
	if caught, err := seen.catches(clean, clean.tip); err != nil || caught {
		t.Fatalf("the sound ledger: its witnesses say no: %v", err)
	}
	var table []*row
	var done sync.WaitGroup
	limit := make(chan bool, 2)
	var tips sync.Map
	var different, unchanged atomic.Int64
	start := time.Now()
	only := os.Getenv("COUNTERSIGN_TAMPER_ONLY")
	for _, k := range slices.Concat(tamperers, forgers) {
		if !strings.Contains(k.name, only) {
			continue
		}
		r := &row{kind: k, rules: map[string]int{}}
		table = append(table, r)
		forger := k.forges()
		n := 1
		if part > 0 {
			n = max(1, k.times/part)
		}
		for i := range n {
			limit <- true
			done.Go(func() {
				defer func() { <-limit }()
				f, what, err := s.tamper(k, i)
				if part == 0 && err != nil && strings.HasSuffix(err.Error(), "could not") {
					return // such a small ledger has no place for it
				}
				if err != nil {
					t.Error(err)
					return
				}
				c, err := f.audit()
				if err != nil {
					t.Errorf("%s (%s): %v", k.name, what, err)
					return
				}
				if _, twice := tips.LoadOrStore(fmt.Sprint(f.tip, f.hidden, k.name, what), true); !twice {
					different.Add(1)
				}
				if f.tip == s.commits[len(s.commits)-1] && f.hidden.IsZero() && f.distort == nil {
					unchanged.Add(1)
					if c.rules || c.pages || c.signature || c.memory {
						t.Errorf("%s (%s) changed nothing: %+v", k.name, what, c.all())
					}
					return
				}
				if c.witnesses, err = seen.catches(f, f.tip); err != nil {
					t.Errorf("%s (%s): %v", k.name, what, err)
				}
				r.note(c)
				switch {
				case strings.HasPrefix(findings[k.name], "^L23") && c.rules:
					t.Errorf("%s (%s) makes the record unsound: %+v", k.name, what, c.found.Findings)
				case forger && c.pages:
					t.Errorf("%s (%s) has pages that differ: %+v", k.name, what, c.found.Pages.Findings)
				case !forger && !c.rules && !c.pages:
					t.Errorf("%s (%s) passes the rules", k.name, what)
				case !c.has(findings[k.name]) && len(c.found.Findings) < audit.MaxFindings:
					t.Errorf("%s (%s): want %s, not %+v", k.name, what, findings[k.name], c.all()[:min(4, len(c.all()))])
				case forger && !c.witnesses && !strings.HasPrefix(k.name, "an approval added at the tip"):
					t.Errorf("%s (%s) passes who has never seen the ledger, and has two of three witnesses", k.name, what)
				case !c.rules && !c.memory && !c.signature:
					t.Errorf("%s (%s) passes", k.name, what)
				}
			})
		}
	}
	done.Wait()
	t.Logf("%d mutations, %d different, %d of them changed nothing, %.1f s\n%s", total(table), different.Load(), unchanged.Load(), time.Since(start).Seconds(), tableText(table))
	least := map[int]int64{0: int64(len(table)) * 9 / 10, 1: 2000}[part]
	if only == "" && different.Load() < least {
		t.Errorf("%d different mutations, and not %d", different.Load(), least)
	}
}

// row is what became of the mutations of one kind.
type row struct {
	kind
	mu                       sync.Mutex
	n                        int
	byRules, byMemory, bySig int
	byWitnesses              int
	rules                    map[string]int
}

func (r *row) note(c caught) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	seen := map[string]bool{}
	for _, f := range c.all() {
		if f.RuleID != "L13" && !seen[f.RuleID] {
			seen[f.RuleID] = true
			r.rules[f.RuleID]++
		}
	}
	for n, is := range map[*int]bool{&r.byRules: c.rules || c.pages, &r.byMemory: c.memory, &r.bySig: c.signature, &r.byWitnesses: c.witnesses} {
		if is {
			*n++
		}
	}
}

func total(table []*row) (n int) {
	for _, r := range table {
		n += r.n
	}
	return n
}

// tableText is the table that docs/security.md sums up.
func tableText(table []*row) string {
	var b strings.Builder
	b.WriteString("| what was done | tried | by the rules | by the remembered tip | by signatures | by two of three witnesses |\n|---|---:|---|---|---|---|\n")
	part := func(n, of int) string {
		switch n {
		case 0:
			return "no"
		case of:
			return "all"
		}
		return fmt.Sprint(n)
	}
	for _, r := range table {
		rules := part(r.byRules, r.n)
		if r.byRules > 0 {
			often := slices.SortedFunc(maps.Keys(r.rules), func(x, y string) int {
				if d := r.rules[y] - r.rules[x]; d != 0 {
					return d
				}
				return strings.Compare(x, y)
			})
			rules += ": " + strings.Join(often[:min(3, len(often))], " ")
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s |\n", r.name, r.n, rules, part(r.byMemory, r.n), part(r.bySig, r.n), part(r.byWitnesses, r.n))
	}
	return b.String()
}
