package cheat_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/gitstore/bundle"
	"github.com/countersign-dev/countersign/gitstore/object"
	"github.com/countersign-dev/countersign/gitstore/verdict"
	"github.com/countersign-dev/countersign/gitstore/verdict/cheat"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

// sound is a ledger of some lives, as a bundle.
func sound(t *testing.T, lives ...storetest.Life) (*bundle.Bundle, bundle.Ref) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	repo, err := gitstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := storetest.Lives(lives...)
	if err != nil {
		t.Fatal(err)
	}
	tip, err := l.Append(t.Context(), "", entries...)
	if err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	if err := l.WriteBundle(t.Context(), tip, false, &raw); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Read(bytes.NewReader(raw.Bytes()), int64(len(raw.Bytes())), bundle.Limits{Held: 1 << 28, Made: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := b.Ref("")
	if err != nil {
		t.Fatal(err)
	}
	return b, ref
}

func rules(r audit.Result) string {
	var ids []string
	for _, f := range r.Findings {
		if !slices.Contains(ids, f.RuleID) {
			ids = append(ids, f.RuleID)
		}
	}
	return strings.Join(ids, " ")
}

// TestT78Cheats: each way to cheat is caught by who knows the tip, and by the rules
// alone where its way says so; the honest ledger stays sound.
func TestT78Cheats(t *testing.T) {
	b, ref := sound(t, storetest.Mixed(18)...)
	for _, w := range cheat.Ways() {
		altered, err := cheat.Alter(b, ref.ID, w.How)
		if err != nil {
			t.Errorf("%s: %v", w.How, err)
			continue
		}
		now := bundle.Ref{Name: ref.Name, ID: altered.Tip}
		known, err1 := verdict.OfObjects(altered, now, verdict.Question{Tip: ref.ID.String()})
		alone, err2 := verdict.OfObjects(altered, now, verdict.Question{})
		if err1 != nil || err2 != nil {
			t.Fatal(w.How, err1, err2)
		}
		if known.OK || altered.Tip != ref.ID && !strings.Contains(rules(known), "L14") {
			t.Errorf("%s is not caught by a known tip: %s", w.How, rules(known))
		}
		if alone.OK && !w.OnlyKnown {
			t.Errorf("%s is not caught by the rules", w.How)
		}
		if altered.Changed == "" || alone.Commits == 0 {
			t.Errorf("%s: %q, %d commits", w.How, altered.Changed, alone.Commits)
		}
		t.Logf("%s: %s\n\talone: %s", w.How, altered.Changed, rules(alone))
	}
	if r, err := verdict.OfBundle(b, verdict.Question{Tip: ref.ID.String()}); err != nil || !r.OK {
		t.Errorf("the honest ledger afterwards: %s %v", rules(r), err)
	}
}

// TestCannot: a ledger without what a way needs says so.
func TestCannot(t *testing.T) {
	b, ref := sound(t, storetest.Whole)
	var cannot *cheat.CannotError
	for _, how := range []string{"none"} {
		if _, err := cheat.Alter(b, ref.ID, how); !errors.As(err, &cannot) {
			t.Errorf("%s: %v", how, err)
		}
	}
	for _, how := range []string{"patch", "rewind"} {
		if _, err := cheat.Alter(b, ref.ID, how); err != nil {
			t.Errorf("%s: %v", how, err)
		}
	}
	if _, err := cheat.Alter(b, object.ParseID("12"), "patch"); err == nil {
		t.Error("a tip that is not there was altered")
	}
}

func TestMain(m *testing.M) {
	remove := storetest.FilesInMemory(os.Getenv, os.Setenv)
	code := m.Run()
	remove()
	os.Exit(code)
}
