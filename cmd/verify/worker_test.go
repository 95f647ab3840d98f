package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/cmd/verify"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/page"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/storetest"
)

func TestMain(m *testing.M) {
	remove := storetest.FilesInMemory(os.Getenv, os.Setenv)
	code := m.Run()
	remove()
	os.Exit(code)
}

// sound is a ledger as a bundle, its tip, and what the repository's own audit says.
func sound(t *testing.T) (raw []byte, tip string, says audit.Result) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	repo, err := gitstore.Open(dir)
	check(t, err)
	l, err := repo.Ledger(gitstore.LedgerRef, gitstore.LedgerOptions{Pages: page.Versions{}})
	check(t, err)
	entries, err := storetest.Lives(storetest.Mixed(18)...)
	check(t, err)
	tip, err = l.Append(t.Context(), "", entries...)
	check(t, err)
	var out bytes.Buffer
	check(t, l.WriteBundle(t.Context(), tip, false, &out))
	h, err := l.History(t.Context(), gitstore.HistoryOptions{})
	check(t, err)
	says, err = page.Audit(h, audit.Options{Tip: tip}, nil)
	check(t, err)
	return out.Bytes(), tip, says
}

type result = audit.Result

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// asked is what a worker says in the end, and how often it said how far it was.
type asked struct {
	main.Worker
	messages []main.Message
}

func (a *asked) ask(t *testing.T, r main.Request) main.Message {
	t.Helper()
	a.messages = nil
	a.Post = func(m main.Message) { a.messages = append(a.messages, m) }
	a.Do(&r)
	last := a.messages[len(a.messages)-1]
	for _, m := range a.messages[:len(a.messages)-1] {
		if m.Kind == "progress" && (m.Total == 0 || m.Done > m.Total) {
			t.Errorf("%s: %d of %d", m.What, m.Done, m.Total)
		}
		if m.Kind != "progress" {
			t.Errorf("%s before the answer %s", m.Kind, last.Kind)
		}
	}
	return last
}

// TestT78Worker: a worker says of a bundle what the repository's audit says, to the
// byte; of each cheat that it is one, and of anything else an error, never a verdict.
func TestT78Worker(t *testing.T) {
	raw, tip, says := sound(t)
	want, err := json.Marshal(says)
	check(t, err)
	var w asked
	if m := w.ask(t, main.Request{Kind: "cheat", How: "patch"}); m.Kind != "error" || !strings.Contains(m.Error, "audit one first") {
		t.Errorf("a cheat before an audit: %+v", m)
	}
	audit := func(known string) {
		t.Helper()
		m := w.ask(t, main.Request{Kind: "audit", Bundle: bytes.NewReader(raw), Size: int64(len(raw)), Tip: known})
		if m.Kind != "result" || string(m.Result) != string(want) || len(w.messages) < 3 {
			t.Errorf("%d messages, at last %s %s %s", len(w.messages), m.Kind, m.Error, m.Result)
		}
	}
	audit("")
	audit(tip)
	var ready []main.Message
	(&main.Worker{Post: func(m main.Message) { ready = append(ready, m) }}).Ready()
	for _, way := range ready[0].Ways {
		m := w.ask(t, main.Request{Kind: "cheat", How: way.How})
		var r result
		if m.Kind != "result" || json.Unmarshal(m.Result, &r) != nil || r.OK || m.Changed == "" {
			t.Errorf("%s: %s %s %s", way.How, m.Kind, m.Error, m.Result)
		}
		byRules := func(f history.Finding) bool { return f.RuleID != "L14" } // that of a known tip
		if slices.ContainsFunc(r.Findings, byRules) == way.OnlyKnown {
			t.Errorf("%s: %+v", way.How, r.Findings)
		}
	}
	if m := w.ask(t, main.Request{Kind: "cheat", How: "none"}); m.Kind != "error" {
		t.Errorf("a way that is none: %+v", m)
	}
	audit(tip) // the honest ledger is as it was
	dir := t.TempDir()
	for _, args := range []string{"init -q -b main", "-c user.name=a -c user.email=a@example.org commit -q --allow-empty -m x", "tag v1", "bundle create -q code main", "bundle create -q tagged main v1"} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, strings.Fields(args)...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for file, holds := range map[string]string{"code": "refs/heads/main", "tagged": "refs/heads/main, refs/tags/v1"} {
		code, err := os.ReadFile(filepath.Join(dir, file))
		check(t, err)
		m := w.ask(t, main.Request{Kind: "audit", Bundle: bytes.NewReader(code), Size: int64(len(code))})
		if m.Kind != "error" || m.Error != "this bundle holds "+holds+" and no ledger; nothing was checked" {
			t.Errorf("a bundle of code: %+v", m)
		}
	}
	for name, r := range map[string]main.Request{
		"no kind":           {},
		"another kind":      {Kind: "verdict"},
		"no bundle":         {Kind: "audit"},
		"not a bundle":      {Kind: "audit", Bundle: bytes.NewReader([]byte("PK\x03\x04")), Size: int64(len([]byte("PK\x03\x04")))},
		"cut short":         {Kind: "audit", Bundle: bytes.NewReader(raw[:len(raw)-1]), Size: int64(len(raw[:len(raw)-1]))},
		"a short tip":       {Kind: "audit", Bundle: bytes.NewReader(raw), Size: int64(len(raw)), Tip: tip[:12]},
		"a tip of zeros":    {Kind: "audit", Bundle: bytes.NewReader(raw), Size: int64(len(raw)), Tip: strings.Repeat("0", 40)},
		"signers of no use": {Kind: "audit", Bundle: bytes.NewReader(raw), Size: int64(len(raw)), Signers: "ada"},
	} {
		if m := w.ask(t, r); m.Kind != "error" || m.Error == "" || m.Result != nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if m := w.ask(t, main.Request{Kind: "cheat", How: "patch"}); m.Kind != "error" {
		t.Errorf("a cheat after a bundle that could not be audited: %+v", m)
	}
}
