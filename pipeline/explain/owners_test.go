package explain_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// TestT20OwnersOfTheCommitBefore: whose approval a file needs is what CODEOWNERS says in the
// commit before the one that is judged, also where the Policy itself is as it was.
func TestT20OwnersOfTheCommitBefore(t *testing.T) {
	t.Parallel()
	tree := files{".github/countersign.yml": "version: 1\nprotected:\n  - {paths: [/f], owners: true}\n", "CODEOWNERS": "/f @cyd\n", "f": "1\n"}
	moved := tree.with("CODEOWNERS", "/f @eve\n")
	begin := func(seed uint64) (w *stages, root string, approved func(tip, name string, after files, by ledger.Actor) (merge func() string)) {
		w = newStages(t, seed)
		put := func(commit string) string {
			w.refs["refs/heads/main"], w.policyAt = commit, commit
			return commit
		}
		return w, put(w.commit("root", tree)), func(tip, name string, after files, by ledger.Actor) func() string {
			pull := w.opens(ada, tip, w.commit(name+"'s head", after, tip), "main")
			id, err := w.proposes(bea, tip, after, pull)
			w.check(err)
			w.names[id] = "of " + name
			w.check(w.comments(by, "/approve", id, pull))
			return func() string {
				commit := put(w.commit(name, after, tip))
				w.check(w.ends(id, pull, commit, ""))
				return commit
			}
		}
	}

	w, root, approved := begin(1)
	tip := approved(root, "owners", moved, cyd)()
	tip = approved(tip, "change", moved.with("f", "2\n"), eve)()
	if told := w.judge(w.options(), root, tip); len(told) != 2 || told[1] != "change: pull_request of change" {
		t.Errorf("approved by its owner: %q", told)
	}

	for _, hand := range []bool{false, true} {
		w, root, approved = begin(2)
		approved(root, "change", tree.with("f", "2\n"), cyd) // and not merged yet
		if hand {
			tip = w.commit("owners", moved, root)
		} else {
			tip = approved(root, "owners", moved, cyd)()
		}
		tip = w.commit("change", moved.with("f", "2\n"), tip)
		if told := w.judge(w.options(), root, tip); len(told) != 2 || !strings.HasPrefix(told[1], "change: NOT") || !strings.Contains(told[1], "CODEOWNERS") {
			t.Errorf("approved by one who is its owner no more: %q", told)
		}
	}
}
