package pipeline_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// greet is a change of greet.txt, which fix changes as well.
func greet(line string) string {
	return "diff --git a/greet.txt b/greet.txt\n--- a/greet.txt\n+++ b/greet.txt\n@@ -1,3 +1,3 @@\n one\n-hello\n+" + line + "\n three\n"
}

// offers proposes a change for the pull request, by somebody.
func (h *hub) offers(r *pipeline.Runner, diff string, by *ledger.Actor) review.Reviewed {
	h.w.Helper()
	return h.offered(r, diff, func(in *input.Change) { in.Proposer = by })
}

// offered proposes a change for the pull request with what else is to be said of it.
func (h *hub) offered(r *pipeline.Runner, diff string, edit func(*input.Change)) review.Reviewed {
	h.w.Helper()
	in, err := pull.ChangeFor(h.w.Context(), r, h.w.input(diff), 7)
	fatal(h.w, err)
	edit(&in)
	done, err := review.Run(h.w.Context(), r, in, false)
	fatal(h.w, err)
	return done
}

// TestSuperseded: the open proposal of some of the same files ends when its
// proposer makes the next one, and both records say so.
func TestSuperseded(t *testing.T) {
	h := newHub(newWorld(t))
	tx, _ := h.propose()
	h.gate(tx)
	next := h.offers(h.runner(), greet("goodbye"), nil)
	if !slices.Equal(next.Supersedes, []string{tx}) || next.Known {
		t.Fatalf("%+v", next)
	}
	h.w.sound(tx, ledger.Superseded)
	h.w.sound(next.ID, ledger.Proposed)
	if got := h.w.log(next.ID).Transaction().Pointers.Proposal.Supersedes; !slices.Equal(got, []string{tx}) {
		t.Errorf("the new one says %v", got)
	}
	ends := ledger.Of[*ledger.StatusChange](h.w.log(tx))
	if why := ends[len(ends)-1].Reason; !strings.Contains(why, next.ID) {
		t.Errorf("the old one says %q", why)
	}
	// The same bytes are the same transaction, and supersede nothing.
	if again := h.offers(h.runner(), greet("goodbye"), nil); again.ID != next.ID || !again.Known || again.Supersedes != nil {
		t.Errorf("again: %+v", again)
	}
}

// TestNotSuperseded: what is somebody else's, of other files, of another pull
// request or of none, or applied, is left alone.
func TestNotSuperseded(t *testing.T) {
	rename := "diff --git a/old.txt b/moved.txt\nsimilarity index 100%\nrename from old.txt\nrename to moved.txt\n"
	other := "diff --git a/other.txt b/other.txt\n--- a/other.txt\n+++ b/other.txt\n@@ -1 +1 @@\n-other\n+another\n"
	for name, c := range map[string]struct {
		first, second string
		by            *ledger.Actor
		ends          bool
	}{
		"another file":         {first: greet("a"), second: other},
		"the same file":        {first: greet("a"), second: greet("b"), ends: true},
		"one of two files":     {first: greet("a") + other, second: other, ends: true},
		"a renamed file":       {first: rename, second: "diff --git a/old.txt b/old.txt\n--- a/old.txt\n+++ b/old.txt\n@@ -1 +1 @@\n-old\n+older\n", ends: true},
		"what it is called":    {first: rename, second: "diff --git a/moved.txt b/moved.txt\nnew file mode 100644\n--- /dev/null\n+++ b/moved.txt\n@@ -0,0 +1 @@\n+m\n", ends: true},
		"below a file":         {first: "diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n", second: "diff --git a/new/a b/new/a\nnew file mode 100644\n--- /dev/null\n+++ b/new/a\n@@ -0,0 +1 @@\n+n\n"},
		"another person":       {first: greet("a"), second: greet("b"), by: &eveThere},
		"another bot":          {first: greet("a"), second: greet("b"), by: &ledger.Actor{Kind: "bot", ID: "1", Login: botThere.Login}},
		"a bot with a user id": {first: greet("a"), second: greet("b"), by: &ledger.Actor{Kind: "user", ID: botThere.ID, Login: botThere.Login}},
		"another login":        {first: greet("a"), second: greet("b"), by: &ledger.Actor{Kind: "bot", ID: botThere.ID, Login: "renamed"}, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(newWorld(t))
			old := h.offers(h.runner(), c.first, nil)
			done := h.offers(h.runner(), c.second, c.by)
			if got := h.w.log(old.ID).Transaction().Status == ledger.Superseded; got != c.ends || got != (len(done.Supersedes) == 1) {
				t.Errorf("superseded: %v, %v; want %v", got, done.Supersedes, c.ends)
			}
		})
	}
	t.Run("another pull request", func(t *testing.T) {
		h := newHub(newWorld(t))
		old := h.offers(h.runner(), greet("a"), nil)
		h.pull.Number = 8
		h.offers(h.runner(), greet("b"), nil)
		h.w.sound(old.ID, ledger.Proposed)
	})
	t.Run("another repository", func(t *testing.T) {
		h := newHub(newWorld(t))
		old := h.offers(h.runner(), greet("a"), nil)
		h.pull.Repository.ID = "200"
		h.offers(h.runner(), greet("b"), nil)
		h.w.sound(old.ID, ledger.Proposed)
	})
	t.Run("its own diff", func(t *testing.T) {
		h := newHub(newWorld(t))
		h.pull.Author = botThere
		before := h.offers(h.runner(), greet("a"), nil)
		own := h.ownDiff()
		h.w.sound(before.ID, ledger.Proposed)
		h.w.repo.commit(base)
		h.refs.tips["refs/heads/topic"] = id(len(h.w.repo.trees))
		after := h.offers(h.runner(), greet("b"), nil)
		h.w.sound(own.ID, ledger.Proposed)
		h.w.sound(before.ID, ledger.Superseded)
		h.w.sound(after.ID, ledger.Proposed)
	})
	t.Run("being applied, and applied", func(t *testing.T) {
		h := newHub(newWorld(t))
		old := h.offers(h.runner(), greet("a"), nil)
		h.says(adaThere, "/approve patchset:"+old.PatchID)
		g := h.gate(old.ID)
		h.refs.before = func() { h.offers(h.runner(), greet("b"), nil) } // once apply/start is recorded
		h.apply(g)
		h.refs.before = nil
		h.w.sound(old.ID, ledger.Applied)
		h.refs.tips["refs/heads/topic"] = id(1) // and pushed over
		h.offers(h.runner(), greet("c"), nil)
		h.w.sound(old.ID, ledger.Applied)
	})
	t.Run("a dry run", func(t *testing.T) {
		h := newHub(newWorld(t))
		old := h.offers(h.runner(), greet("a"), nil)
		in, err := pull.ChangeFor(t.Context(), h.runner(), h.w.input(greet("b")), 7)
		fatal(t, err)
		tip := h.w.tip()
		done, err := review.Run(t.Context(), h.runner(), in, true)
		if err != nil || !slices.Equal(done.Supersedes, []string{old.ID}) || h.w.tip() != tip {
			t.Errorf("%+v %v", done, err)
		}
	})
}

// TestSupersededAtOnce: nobody ever sees one half of it, and two who propose at
// the same time end with one open proposal.
func TestSupersededAtOnce(t *testing.T) {
	h := newHub(newWorld(t))
	first := h.offers(h.runner(), greet("a"), nil)
	appends := &countingStore{Store: h.w.store}
	r := h.runner()
	r.Store = appends
	second := h.offers(r, greet("b"), nil)
	if appends.entries != 2 || appends.calls != 1 {
		t.Errorf("%d entries in %d appends, want 2 in 1", appends.entries, appends.calls)
	}
	r = h.runner() // somebody else is faster
	var third review.Reviewed
	r.Store = &countingStore{Store: h.w.store, before: func() { third = h.offers(h.runner(), greet("c"), nil) }}
	last := h.offers(r, greet("d"), nil)
	if !slices.Equal(last.Supersedes, []string{third.ID}) {
		t.Errorf("%+v, want %s", last, third.ID)
	}
	for _, tx := range []string{first.ID, second.ID, third.ID} {
		h.w.sound(tx, ledger.Superseded)
	}
}

// countingStore counts appends, and runs before ahead of the first one.
type countingStore struct {
	writing.Store
	calls, entries int
	before         func()
}

func (s *countingStore) Append(ctx context.Context, tip string, entries ...writing.Entry) (string, error) {
	if do := s.before; do != nil {
		s.before = nil
		do()
	}
	done, err := s.Store.Append(ctx, tip, entries...)
	if err == nil {
		s.calls, s.entries = s.calls+1, s.entries+len(entries)
	}
	return done, err
}

// TestApprovalStaysBehind: an approval is of the patch that it names, and of one
// transaction.
func TestApprovalStaysBehind(t *testing.T) {
	h := newHub(newWorld(t))
	old := h.offers(h.runner(), greet("a"), nil)
	h.says(adaThere, "/approve patchset:"+old.PatchID)
	h.want(old.ID, approval.Approved, "")
	next := h.offers(h.runner(), greet("b"), nil)
	h.says(bobThere, "/approve patchset:"+old.PatchID)
	g := h.want(next.ID, approval.Pending, "names another patch")
	var pending *pipeline.PendingError
	if _, err := h.runner().Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.As(err, &pending) {
		t.Errorf("%v", err)
	}
	var superseded *pipeline.SupersededError
	g, err := h.runner().History(t.Context(), h.w.ledger(), old.ID)
	fatal(t, err)
	if _, err := h.runner().Apply(t.Context(), g, pipeline.ApplyOptions{}); !errors.As(err, &superseded) || h.refs.tips["refs/heads/topic"] != id(1) {
		t.Errorf("%v", err)
	}
	h.says(adaThere, "/approve patchset:"+next.PatchID)
	h.want(next.ID, approval.Approved, "")
}

// TestApprovalStaysBehindTheSameBytes: also where one second saw both
// transactions and the approval, and the bytes are the same.
func TestApprovalStaysBehindTheSameBytes(t *testing.T) {
	w := newWorld(t)
	h := newHub(w)
	second := time.Date(2026, 1, 5, 0, 0, 9, 0, time.UTC)
	at := func(fraction time.Duration) *pipeline.Runner {
		r := h.runner()
		r.Now = func() time.Time { return second.Add(fraction * time.Millisecond) }
		return r
	}
	readOnly := at(100)
	readOnly.Sandbox = policy.ReadOnly
	old := h.offers(readOnly, greet("a"), nil)
	said := h.says(adaThere, "/approve patchset:"+old.PatchID)
	said.CreatedAt = second.Format(time.RFC3339)
	next := h.offers(at(900), greet("a"), nil)
	if next.ID == old.ID || next.PatchID != old.PatchID || !slices.Equal(next.Supersedes, []string{old.ID}) {
		t.Fatalf("%+v", next)
	}
	h.want(next.ID, approval.Pending, "is from before this was proposed")
	h.says(adaThere, "/approve patchset:"+old.PatchID).CreatedAt = second.Add(time.Second).Format(time.RFC3339)
	h.want(next.ID, approval.Approved, "")
}
