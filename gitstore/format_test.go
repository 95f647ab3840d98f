package gitstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/gitstore"
)

// TestOtherFormat: what is a whole ID in a repository of the other object format names nothing, also where a branch
// is named so, or where it is the beginning of an ID (T95).
func TestOtherFormat(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Setenv("GIT_DEFAULT_HASH", format)
			w := newWork(t, map[string]string{"a": "1\n"})
			tip := w.git("rev-parse", "HEAD")
			odd := (tip + tip)[:64]
			if format == "sha256" {
				odd = tip[:40]
			}
			w.git("update-ref", "refs/heads/"+strings.Repeat("c", len(odd)), "HEAD")
			r := w.open()
			for _, name := range []string{odd, strings.Repeat("c", len(odd))} {
				if id, err := r.Commit(t.Context(), name); !errors.Is(err, gitstore.ErrNoCommit) {
					t.Errorf("%s is the commit %s, %v", name, id, err)
				}
				if has, err := r.Descends(t.Context(), tip, name); has {
					t.Errorf("%s descends from %s: %t, %v", tip, name, has, err)
				}
				if base, err := r.MergeBase(t.Context(), name, tip); base != "" || err == nil {
					t.Errorf("the merge base with %s is %q, %v", name, base, err)
				}
				if root, err := r.Root(t.Context(), name); root != "" || err == nil {
					t.Errorf("the root of %s is %q, %v", name, root, err)
				}
				if _, err := r.Tree(t.Context(), name); err == nil {
					t.Errorf("%s has a tree", name)
				}
			}
		})
	}
}
