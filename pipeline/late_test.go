package pipeline_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// late has what was superseded heard once more.
func (h *hub) late(r *pipeline.Runner) []string {
	h.w.Helper()
	denied, _, err := pull.RecordLateDenials(h.w.Context(), r, h.pull.Repository, 7)
	fatal(h.w, err)
	return denied
}

// refuses fails the test unless a patch is refused, on this pull request and on
// another one.
func (h *hub) refuses(diff string) {
	h.w.Helper()
	for _, number := range []int{7, 8} {
		h.pull.Number = number
		in, err := pull.ChangeFor(h.w.Context(), h.runner(), h.w.input(diff), number)
		fatal(h.w, err)
		var denied *pipeline.DeniedError
		if _, err := review.Run(h.w.Context(), h.runner(), in, false); !errors.As(err, &denied) {
			h.w.Errorf("proposed again on %d: %v", number, err)
		}
	}
	h.pull.Number = 7
}

// TestDenialOfSuperseded: a denial of a patch whose place another one has taken
// sticks, whether it was said before or after, and whatever becomes of it.
func TestDenialOfSuperseded(t *testing.T) {
	for name, say := range map[string]func(h *hub, tx, old string) func(r *pipeline.Runner){
		"after": func(h *hub, _, old string) func(*pipeline.Runner) {
			h.offers(h.runner(), greet("b"), nil)
			h.says(bobThere, "/deny "+old+" no")
			return nil
		},
		"before, and nobody looked": func(h *hub, _, old string) func(*pipeline.Runner) {
			h.says(bobThere, "/deny "+old)
			h.offers(h.runner(), greet("b"), nil)
			return nil
		},
		"of the secret in it": func(h *hub, _, old string) func(*pipeline.Runner) {
			h.offers(h.runner(), greet("b"), nil)
			h.says(bobThere, "/deny secret:"+old)
			return nil
		},
		"in the thread of the old one": func(h *hub, _, _ string) func(*pipeline.Runner) {
			h.offers(h.runner(), greet("b"), nil)
			reply := h.says(adaThere, "/deny not like that")
			reply.Kind, reply.ReplyTo = approval.KindReviewComment, "900"
			return nil
		},
		"edited away": func(h *hub, _, old string) func(*pipeline.Runner) {
			h.offers(h.runner(), greet("b"), nil)
			said := h.says(adaThere, "never mind")
			said.Earlier, said.Edited = []string{"/deny " + old}, true
			return nil
		},
		"deleted, and an event tells": func(h *hub, _, old string) func(*pipeline.Runner) {
			h.offers(h.runner(), greet("b"), nil)
			gone := *h.says(adaThere, "/deny "+old)
			h.said = nil
			return func(r *pipeline.Runner) { r.WitnessedOn, r.Witnessed = 7, []approval.Statement{gone} }
		},
		"after a push took the base away": func(h *hub, tx, old string) func(*pipeline.Runner) {
			h.says(bobThere, "/approve "+old)
			g := h.gate(tx)
			h.w.repo.commit(map[string]string{"greet.txt": "pushed\n"})
			h.refs.tips["refs/heads/topic"] = id(2)
			if _, err := h.runner().Apply(h.w.Context(), g, pipeline.ApplyOptions{}); err == nil {
				h.w.Fatal("it was applied")
			}
			h.refs.tips["refs/heads/topic"] = id(1)
			h.says(adaThere, "/deny "+old)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(newWorld(t))
			h.offers(h.runner(), greet("first"), nil)
			old := h.offers(h.runner(), greet("a"), nil) // itself in the place of another one
			asked := forge.Posted{Kind: approval.KindReviewComment, ID: "900", URL: "https://forge.example/r/900", BodySHA256: "sha256:" + strings.Repeat("0", 64)}
			if _, err := h.runner().Note(t.Context(), old.ID, []forge.Posted{asked}); err != nil {
				t.Fatal(err)
			}
			r := h.runner()
			if witness := say(h, old.ID, "patchset:"+old.PatchID); witness != nil {
				witness(r)
			}
			denied := h.late(r)
			if len(denied) != 1 {
				t.Fatalf("recorded as denied: %v", denied)
			}
			h.w.sound(old.ID, ledger.Superseded)
			h.w.sound(denied[0], ledger.Denied)
			h.heldTo(denied[0])
			if posted, err := forge.ReadPosted(h.w.ledger().Tree, h.w.log(denied[0])); err != nil || !slices.Equal(posted, []forge.Posted{asked}) {
				t.Errorf("asked with %v (%v), want %v", posted, err, asked)
			}
			if p := h.w.log(denied[0]).Transaction().Pointers.Proposal; p.Supersedes != nil || p.PatchID != old.PatchID {
				t.Errorf("entered as %+v", p)
			}
			if again := h.late(h.runner()); again != nil {
				t.Errorf("recorded once more: %v", again)
			}
			h.said = nil
			h.refuses(greet("a"))
		})
	}
}

// heldTo fails the test unless the decisions of a transaction have their
// evidence.
func (h *hub) heldTo(tx string) {
	h.w.Helper()
	dir := h.w.directory(tx)
	for _, v := range new(approval.Policies).Record(dir, h.w.log(tx)).Redo() {
		h.w.Errorf("the record: %+v", v)
	}
}

// TestNoDenialOfSuperseded: who may not deny is not heard, and what cannot be
// read is not taken for silence.
func TestNoDenialOfSuperseded(t *testing.T) {
	h := newHub(newWorld(t))
	old := h.offers(h.runner(), greet("a"), nil)
	h.offers(h.runner(), greet("b"), nil)
	h.says(eveThere, "/deny patchset:"+old.PatchID)
	h.says(adaThere, "> /deny patchset:"+old.PatchID)
	h.says(adaThere, "/approve patchset:"+old.PatchID)
	if denied := h.late(h.runner()); denied != nil {
		t.Errorf("recorded as denied: %v", denied)
	}
	tip := h.w.tip()
	h.says(adaThere, "/deny patchset:"+old.PatchID)
	for _, method := range []string{"PullRequest", "Statements", "Access"} {
		h.before = func(now string) {
			h.broken = nil
			if now == method {
				h.broken = errors.New("status 502")
			}
		}
		var reading *forge.ReadingError
		if denied, _, err := pull.RecordLateDenials(t.Context(), h.runner(), h.pull.Repository, 7); !errors.As(err, &reading) || denied != nil || h.w.tip() != tip {
			t.Errorf("%s: %v %v", method, denied, err)
		}
	}
	h.before, h.broken = nil, nil
	if denied := h.late(h.runner()); len(denied) != 1 {
		t.Errorf("recorded as denied: %v", denied)
	}
}

// TestDenialOfSupersededSecret: what is stored of the patch stays without its
// secret.
func TestDenialOfSupersededSecret(t *testing.T) {
	h := newHub(newWorld(t))
	token := "ghp_" + "R4nd0mTok3nR4nd0mTok3nR4nd0mTok3n12ab"
	old := h.offers(h.runner(), greet("token = \""+token+"\""), nil)
	h.offers(h.runner(), greet("b"), nil)
	h.says(adaThere, "/deny patchset:"+old.PatchID)
	denied := h.late(h.runner())
	if len(denied) != 1 {
		t.Fatalf("recorded as denied: %v", denied)
	}
	h.w.sound(denied[0], ledger.Denied)
	dir := h.w.directory(denied[0])
	if raw, err := fs.ReadFile(dir, ledger.PatchFile(old.PatchID)); err != nil || strings.Contains(string(raw), token) || !strings.Contains(string(raw), "<REDACTED:") {
		t.Errorf("%s %v", raw, err)
	}
	h.refuses(greet("token = \"" + token + "\""))
}

// TestEnterDeniedOpen: the denial of an open transaction is the gate's to record.
func TestEnterDeniedOpen(t *testing.T) {
	h := newHub(newWorld(t))
	open := h.offers(h.runner(), greet("a"), nil)
	h.says(adaThere, "/deny patchset:"+open.PatchID)
	r, tip := h.runner(), h.w.tip()
	id, _, err := r.EnterDenied(t.Context(), h.w.log(open.ID).Transaction(), r.Reader(), func(fs.FS, *ledger.Log) (*writing.Stage, error) {
		return nil, errors.New("proposed once more")
	})
	if id != "" || err != nil || h.w.tip() != tip {
		t.Errorf("%s %v", id, err)
	}
}
