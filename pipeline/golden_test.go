package pipeline_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

var update = flag.Bool("update", false, "write testdata/lives.txt anew")

// lives are whole transactions of every kind. Clock and entropy are inputs, and
// the clock stands still within a stage, so that the ledger that comes of them
// is exact, commit for commit.
var lives = []struct {
	name string
	live func(w *world)
}{
	{"run", func(w *world) {
		g := w.approved()
		w.apply(g)
		w.validate(g.Transaction().TransactionID)
	}},
	{"denied", func(w *world) {
		tx := w.review().ID
		w.gate(tx)
		w.says(bob, ledger.Deny, tx)
	}},
	{"protected", func(w *world) {
		w.policy.Protected = []policy.Rule{{Paths: []string{"greet.txt"}, Required: 1}}
		tx := w.proposed(fix)
		w.decides(bob, pipeline.Ruling{Decision: ledger.Approve, Fingerprints: []string{"protected"}, Kind: "local"}, tx)
		w.apply(w.gate(tx))
		w.validate(tx)
	}},
	{"secret", func(w *world) {
		diff, _ := leak()
		tx := w.proposed(diff)
		w.decides(bob, pipeline.Ruling{Decision: ledger.Approve, Fingerprints: []string{"secret"}, Kind: "local"}, tx)
		r, err := w.as(bot).Give(w.Context(), w.ledger(), tx, []byte(diff))
		fatal(w, err)
		g, err := r.Gate(w.Context(), tx)
		if err == nil {
			_, err = r.Apply(w.Context(), g, pipeline.ApplyOptions{})
		}
		fatal(w, err)
		w.validate(tx)
	}},
	{"branch", func(w *world) {
		_, run, g := w.onBranch()
		if _, err := run.Apply(w.Context(), g, toBranch); err != nil {
			w.Fatal(err)
		}
		if _, err := run.Validate(w.Context(), g.Transaction().TransactionID); err != nil {
			w.Fatal(err)
		}
	}},
	{"pull request", func(w *world) {
		h := newHub(w)
		tx, fingerprint := h.propose()
		h.gate(tx)
		h.says(eveThere, "/approve "+fingerprint)
		h.says(adaThere, "/approve "+fingerprint)
		if _, err := h.runner().Apply(w.Context(), h.gate(tx), pipeline.ApplyOptions{}); err != nil {
			w.Fatal(err)
		}
		if _, err := h.runner().Validate(w.Context(), tx); err != nil {
			w.Fatal(err)
		}
	}},
	{"superseded", func(w *world) {
		h := newHub(w)
		tx, _ := h.propose()
		h.gate(tx)
		h.offers(h.runner(), greet("goodbye"), nil)
	}},
	{"base changed", func(w *world) {
		g := w.approved()
		w.repo.commit(map[string]string{"greet.txt": "another\n", "old.txt": "old\n"})
		var superseded *pipeline.SupersededError
		if _, err := w.as(bot).Apply(w.Context(), g, pipeline.ApplyOptions{}); !errors.As(err, &superseded) {
			w.Fatal(err)
		}
	}},
	{"cut off and resumed", func(w *world) {
		g := w.approved()
		run := w.as(bot)
		run.Store = &lastStore{w.store, 2}
		if _, err := run.Apply(w.Context(), g, pipeline.ApplyOptions{}); !errors.Is(err, errDisk) {
			w.Fatal(err)
		}
		tx := g.Transaction().TransactionID
		w.apply(w.gate(tx))
		w.validate(tx)
	}},
	{"interrupted", func(w *world) {
		tx := w.review().ID
		if _, err := w.as(ada).Interrupt(w.Context(), tx, "not now"); err != nil {
			w.Fatal(err)
		}
	}},
}

// TestGoldenLives holds the commits of whole lives to testdata/lives.txt. They
// change only with the format of the ledger, and a commit that changes them says
// how; go test -run GoldenLives -update writes them anew.
func TestGoldenLives(t *testing.T) {
	var got strings.Builder
	for _, life := range lives {
		w := newWorld(t)
		w.still = true
		life.live(w)
		fmt.Fprintf(&got, "%s\n%s\n", life.name, w.commits())
	}
	if *update {
		fatal(t, os.WriteFile("testdata/lives.txt", []byte(got.String()), 0o666))
	}
	want, err := os.ReadFile("testdata/lives.txt")
	fatal(t, err)
	if got.String() != string(want) {
		t.Errorf("testdata/lives.txt differs:\n%s", got.String())
	}
}

// commits are the ledger's entries as commits of a Git repository, a line each.
func (w *world) commits() string {
	w.Helper()
	repo, err := gitstore.Init(w.TempDir())
	fatal(w, err)
	store, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	fatal(w, err)
	var out strings.Builder
	tip := ""
	for _, e := range w.store.Entries() {
		if tip, err = store.Append(w.Context(), tip, e); err != nil {
			w.Fatal(err)
		}
		subject, _, _ := strings.Cut(e.Message, "\n")
		fmt.Fprintf(&out, "%s %s\n", tip, subject)
	}
	return out.String()
}

func (w *world) validate(tx string) {
	w.Helper()
	if v, err := w.as(bot).Validate(w.Context(), tx); err != nil || !v.Completed {
		w.Fatalf("%+v %v", v, err)
	}
}

func (w *world) decides(who ledger.Actor, ruling pipeline.Ruling, tx string) {
	w.Helper()
	if _, err := w.as(who).Decide(w.Context(), tx, ruling); err != nil {
		w.Fatal(err)
	}
}
