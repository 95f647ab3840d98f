package storetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A Ledger is one ledger under test. Each Open gives another handle on it, as
// another process has; a handle is for one goroutine.
type Ledger interface{ Open() writing.Store }

// StoreSuite checks what a writing.Store promises. newLedger makes an empty
// ledger.
func StoreSuite(t *testing.T, newLedger func(t *testing.T) Ledger) {
	for name, test := range map[string]func(*testing.T, Ledger){
		"an empty ledger":             empty,
		"the first append":            firstAppend,
		"an append keeps the rest":    keepsTheRest,
		"T52 the wrong tip":           wrongTip,
		"a snapshot does not change":  immutable,
		"any tree shape":              anyShape,
		"T52 goroutines lose nothing": func(t *testing.T, l Ledger) { Writers(t, l, 4, 3) },
	} {
		t.Run(name, func(t *testing.T) { test(t, newLedger(t)) })
	}
}

// Append adds an entry that edit makes of the newest tree, as often as it takes.
func Append(s writing.Store, edit func(tree fs.FS) (map[string][]byte, error)) (tip string, err error) {
	for range 10_000 {
		snap, err := s.Snapshot(context.Background())
		if err != nil {
			return "", err
		}
		files, err := edit(snap.Tree)
		if err != nil {
			return "", err
		}
		tip, err := s.Append(context.Background(), snap.Tip, entry(files))
		if !errors.Is(err, writing.ErrMoved) {
			return tip, err
		}
	}
	return "", errors.New("never got a turn")
}

func entry(files map[string][]byte) writing.Entry {
	return writing.Entry{Message: "test: entry\n", When: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), Files: files}
}

// AppendLine adds a line to the file "lines" and makes the file "by/<line>".
func AppendLine(s writing.Store, line string) error {
	_, err := Append(s, func(tree fs.FS) (map[string][]byte, error) {
		lines, err := fs.ReadFile(tree, "lines")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return map[string][]byte{"lines": fmt.Appendf(lines, "%s\n", line), "by/" + line: nil}, nil
	})
	return err
}

// CheckLines fails the test unless exactly these lines were appended.
func CheckLines(t *testing.T, s writing.Store, want []string) {
	t.Helper()
	tree := snapshot(t, s).Tree
	raw, err := fs.ReadFile(tree, "lines")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(string(raw))
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%d lines, want %d: %v", len(got), len(want), got)
	}
	files, err := fs.ReadDir(tree, "by")
	if err != nil || len(files) != len(want) {
		t.Errorf("%d files, want %d (%v)", len(files), len(want), err)
	}
}

func snapshot(t *testing.T, s writing.Store) writing.Snapshot {
	t.Helper()
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func add(t *testing.T, s writing.Store, name, data string) string {
	t.Helper()
	tip, err := Append(s, func(fs.FS) (map[string][]byte, error) { return map[string][]byte{name: []byte(data)}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return tip
}

func check(t *testing.T, tree fs.FS, name, want string) {
	t.Helper()
	if got, err := fs.ReadFile(tree, name); err != nil || string(got) != want {
		t.Errorf("%s is %q (%v), want %q", name, got, err, want)
	}
}

func empty(t *testing.T, l Ledger) {
	snap := snapshot(t, l.Open())
	files, err := fs.ReadDir(snap.Tree, ".")
	if snap.Tip != "" || err != nil || len(files) > 0 {
		t.Errorf("tip %q, files %v (%v)", snap.Tip, files, err)
	}
	if _, err := fs.ReadFile(snap.Tree, "x/y"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of an empty ledger: %v", err)
	}
	if ids, err := lookup.IDs(snap.Tree); err != nil || len(ids) > 0 {
		t.Errorf("transactions %v (%v)", ids, err)
	}
}

func firstAppend(t *testing.T, l Ledger) {
	s := l.Open()
	tip := add(t, s, "a/b", "1")
	for _, s := range []writing.Store{s, l.Open()} {
		snap := snapshot(t, s)
		if snap.Tip != tip || tip == "" {
			t.Errorf("tip %q, want %q", snap.Tip, tip)
		}
		check(t, snap.Tree, "a/b", "1")
	}
}

func keepsTheRest(t *testing.T, l Ledger) {
	s := l.Open()
	one := add(t, s, "a/b/c", "1")
	two := add(t, s, "a/b/d", "2")
	three := add(t, l.Open(), "a/b/c", "3")
	if one == two || two == three {
		t.Errorf("tips %s %s %s", one, two, three)
	}
	tree := snapshot(t, s).Tree
	check(t, tree, "a/b/c", "3")
	check(t, tree, "a/b/d", "2")
}

func wrongTip(t *testing.T, l Ledger) {
	s := l.Open()
	unknown := strings.Repeat("12", 20)
	if _, err := s.Append(t.Context(), unknown, entry(map[string][]byte{"x": nil})); !errors.Is(err, writing.ErrMoved) {
		t.Errorf("on a tip in an empty ledger: %v", err)
	}
	if tip := snapshot(t, s).Tip; tip != "" {
		t.Errorf("the ledger is at %s", tip)
	}
	old := add(t, s, "a", "1")
	now := add(t, s, "a", "2")
	for _, tip := range []string{"", old, unknown} {
		if _, err := s.Append(t.Context(), tip, entry(map[string][]byte{"a": []byte("3"), "x": nil})); !errors.Is(err, writing.ErrMoved) {
			t.Errorf("on %q: %v", tip, err)
		}
		snap := snapshot(t, l.Open())
		if snap.Tip != now {
			t.Errorf("the ledger went from %s to %s", now, snap.Tip)
		}
		check(t, snap.Tree, "a", "2")
		if _, err := fs.Stat(snap.Tree, "x"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a file of a refused entry: %v", err)
		}
	}
}

func immutable(t *testing.T, l Ledger) {
	s := l.Open()
	add(t, s, "a/b", "1")
	snap := snapshot(t, s)
	data := []byte("2")
	if _, err := Append(s, func(fs.FS) (map[string][]byte, error) {
		return map[string][]byte{"a/b": data, "a/c": nil}, nil
	}); err != nil {
		t.Fatal(err)
	}
	data[0] = 'x'
	check(t, snapshot(t, s).Tree, "a/b", "2")
	check(t, snap.Tree, "a/b", "1")
	if files, err := fs.ReadDir(snap.Tree, "a"); err != nil || len(files) != 1 {
		t.Errorf("an old snapshot lists %v (%v)", files, err)
	}
}

// anyShape has names whose order differs between a tree of names and one of
// paths, an empty file, and bytes that are no text.
func anyShape(t *testing.T, l Ledger) {
	s := l.Open()
	names := []string{"a-b", "a.b", "a/b", "a0", "A", "a/b-/c", "a/b./c", "z/ü", "README.md"}
	for i, name := range names {
		add(t, s, name, strings.Repeat("\x00\xff\n", i))
	}
	tree := snapshot(t, l.Open()).Tree
	for i, name := range names {
		check(t, tree, name, strings.Repeat("\x00\xff\n", i))
	}
	if err := fstest.TestFS(tree, names...); err != nil {
		t.Error(err)
	}
}

// Writers has several append some lines each at the same time, and fails the test unless all are there.
func Writers(t *testing.T, l Ledger, writers, each int) {
	var want []string
	var done sync.WaitGroup
	for w := range writers {
		s := l.Open()
		for n := range each {
			want = append(want, fmt.Sprintf("%d-%d", w, n))
		}
		done.Go(func() {
			for n := range each {
				if err := AppendLine(s, fmt.Sprintf("%d-%d", w, n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	CheckLines(t, l.Open(), want)
}
