package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// again proposes fix once more.
func (w *world) again(who ledger.Actor, edit func(*input.Change)) review.Reviewed {
	w.Helper()
	in := w.input(fix)
	if edit != nil {
		edit(&in)
	}
	out := w.reviews(who, in)
	return out
}

func inForm(format string) func(*input.Change) { return func(in *input.Change) { in.Format = format } }

// provenances are those of a transaction.
func (w *world) provenances(tx string) []ledger.Provenance {
	w.Helper()
	dir := w.directory(tx)
	log := w.log(tx)
	all, err := lookup.Provenances(dir, log)
	fatal(w, err)
	return all
}

// TestT64Again: the same change on the same base is the same transaction. Each further proposal that says something new is recorded,
// and nothing of the first changes.
func TestT64Again(t *testing.T) {
	w := newWorld(t)
	first := w.review()
	before := w.log(first.ID)
	author := &ledger.Author{Name: "Eve", Email: "eve@example.org", Date: "2026-01-01T00:00:00Z"}
	trace := func(text string) func(*input.Change) {
		return func(in *input.Change) { in.Trace = []any{map[string]any{"tool": "shell", "input": text}} }
	}
	for _, c := range []struct {
		name string
		who  ledger.Actor
		edit func(*input.Change)
		want review.Again
	}{
		{"the same", bot, nil, review.AgainNothing},
		{"another summary", bot, func(in *input.Change) { in.Summary = "x" }, review.AgainNothing},
		{"another format", bot, inForm("codex"), review.AgainRecorded},
		{"which is the same again", bot, inForm("codex"), review.AgainNothing},
		{"another proposer", ada, nil, review.AgainRecorded},
		{"with another login", ledger.Actor{Kind: ada.Kind, ID: ada.ID, Login: "A"}, nil, review.AgainNothing},
		{"other bytes", ada, func(in *input.Change) { in.Raw = append(in.Raw, '\n') }, review.AgainRecorded},
		{"through something else", ada, func(in *input.Change) { in.Via = input.ViaRPC }, review.AgainRecorded},
		{"an author", ada, func(in *input.Change) { in.Author = author }, review.AgainRecorded},
		{"a message", ada, func(in *input.Change) { in.Messages = []string{"a\n\nb\n\nLink: x"} }, review.AgainRecorded},
		{"that message", ada, func(in *input.Change) { in.Messages = []string{"a\n\n\nb\n\nLink: x\n"} }, review.AgainNothing},
		{"a trace", ada, trace("ls"), review.AgainRecorded},
		{"that trace", ada, trace("ls"), review.AgainNothing},
		{"another trace", ada, trace("rm"), review.AgainRecorded},
	} {
		tip := w.tip()
		out := w.again(c.who, c.edit)
		if out.ID != first.ID || !out.Known || out.Again != c.want || (w.tip() == tip) != (c.want == review.AgainNothing) {
			t.Errorf("%s: %+v", c.name, out.Again)
		}
	}
	w.sound(first.ID, ledger.Proposed)
	after := w.log(first.ID)
	if !strings.HasPrefix(string(after.Bytes()), string(before.Bytes())) {
		t.Fatal("the record of the first is another one")
	}
	was, is := before.Transaction(), after.Transaction()
	was.UpdatedAt, was.Pointers.LatestArtifact = is.UpdatedAt, is.Pointers.LatestArtifact
	if a, b := mustLine(t, was), mustLine(t, is); a != b {
		t.Errorf("it is another transaction now:\n%s%s", a, b)
	}
	all := w.provenances(first.ID)
	if len(all) != 9 || all[0].Proposer != bot || lookup.Form(all[1].Input) != "codex" || all[2].Proposer != ada || lookup.Form(all[4].Input) != "patch over json-rpc" ||
		*all[5].Author != *author || all[6].Message != "a\n\nb" || all[7].Trace == "" || all[7].Trace == all[8].Trace {
		t.Errorf("%+v", all)
	}
	// Nothing but what is decided on goes on: a dry run, and what is applied, denied or over.
	dry, err := review.Run(t.Context(), w.as(bob), w.input(fix), true)
	if err != nil || dry.Again != review.AgainNothing || len(w.provenances(first.ID)) != 9 {
		t.Errorf("%+v %v", dry, err)
	}
	w.gate(first.ID)
	w.says(bob, ledger.Approve, first.ID)
	if out := w.again(bob, nil); out.Again != review.AgainRecorded {
		t.Errorf("approved: %+v", out)
	}
	g := w.gate(first.ID)
	if g.Verdict.State != approval.Approved { // who proposes after they approved takes nothing back
		t.Errorf("%+v", g.Verdict)
	}
	w.apply(g)
	tip := w.tip()
	if out := w.again(ada, inForm("late")); out.Again != review.AgainNothing || out.ID != first.ID || w.tip() != tip {
		t.Errorf("applied: %+v", out)
	}
	w.sound(first.ID, ledger.Applied)
}

func mustLine(t *testing.T, doc any) string {
	t.Helper()
	line, err := canon.Line(doc)
	fatal(t, err)
	return string(line)
}

// TestAgainBounded: a bot in a loop does not let the ledger grow for ever.
func TestAgainBounded(t *testing.T) {
	w := newWorld(t)
	first := w.review()
	for i := range ledger.MaxAgain + 5 {
		out := w.again(bot, inForm(fmt.Sprint("form ", i)))
		if want := i < ledger.MaxAgain; (out.Again == review.AgainRecorded) != want || (out.Again == review.AgainFull) == want {
			t.Fatalf("%d: %+v", i, out.Again)
		}
	}
	if n := len(w.provenances(first.ID)); n != 1+ledger.MaxAgain {
		t.Errorf("%d are recorded", n)
	}
	w.sound(first.ID, ledger.Proposed)
}

// TestT10AgainBounded: the bound keeps nobody who proposed it too out of the record, and so from approving.
func TestT10AgainBounded(t *testing.T) {
	h := newHub(newWorld(t))
	tx, fingerprint := h.propose()
	for i := range ledger.MaxAgain + 1 {
		h.proposedIn(fmt.Sprint("form ", i), botThere)
	}
	h.proposedIn("codex", adaThere)
	h.proposedIn("git", adaThere)
	if n := len(h.w.provenances(tx)); n != 1+ledger.MaxAgain+1 {
		t.Errorf("%d are recorded", n)
	}
	h.says(adaThere, "/approve "+fingerprint)
	h.want(tx, approval.Pending, "its author is the proposer")
	h.w.sound(tx, ledger.Awaiting)
}

// proposedIn proposes fix for the pull request in a format.
func (h *hub) proposedIn(format string, who ledger.Actor) {
	h.w.Helper()
	h.proposeFor(func(in *input.Change) { in.Proposer, in.Format = &who, format })
}

// TestAgainAtOnce: proposals at the same time are all recorded, each once.
func TestAgainAtOnce(t *testing.T) {
	w := newWorld(t)
	var group sync.WaitGroup
	var mu sync.Mutex
	runners := make([]*pipeline.Runner, 8)
	for i := range runners {
		runners[i] = w.as(ledger.Actor{Kind: "bot", ID: fmt.Sprint(i / 2), Login: "b"})
		runners[i].Entropy = rand.NewChaCha8([32]byte{byte(i)})
		runners[i].Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return w.now()
		}
	}
	ids := make([]string, len(runners))
	for i, r := range runners {
		group.Go(func() {
			out, err := review.Run(t.Context(), r, w.input(fix), false)
			if err != nil {
				t.Error(err)
			}
			ids[i] = out.ID
		})
	}
	group.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("several transactions: %v", ids)
		}
	}
	if n := len(w.provenances(ids[0])); n != 4 {
		t.Errorf("%d are recorded", n)
	}
	w.sound(ids[0], ledger.Proposed)
}

// TestT10ProposedToo: whoever proposed the same bytes before they approved approves their own change, on a forge. Of
// local decisions in one's own repository that makes no difference, but for a secret.
func TestT10ProposedToo(t *testing.T) {
	h := newHub(newWorld(t))
	tx, fingerprint := h.propose()
	h.proposedIn("codex", adaThere)
	h.says(adaThere, "/approve "+fingerprint)
	h.want(tx, approval.Pending, "its author is the proposer")
	h.says(bobThere, "/approve "+fingerprint)
	h.want(tx, approval.Approved, "")
	h.proposedIn("codex", bobThere) // who cannot take it back that way, nor can anybody for them
	g := h.want(tx, approval.Approved, "")
	h.apply(g)
	h.w.sound(tx, ledger.Applied)
	if _, found, err := approval.CheckRecord(h.w.ledger().Tree, tx); err != nil || len(found) > 0 {
		t.Errorf("%v %v", found, err)
	}

	// Whose proposal it is cannot be told: no approval after it counts.
	log := h.w.log(tx)
	p := log.Transaction().Pointers.Proposal
	c := approval.Case{
		Policy: h.w.policy, Needs: h.w.policy.Needs(p.TargetFiles, false), Log: log, PullRequest: true, Head: p.HeadCommit, Now: h.w.time(),
		Stands: func(ledger.ApprovalDecision) string { return "" },
	}
	if v := c.Decide(); v.State != approval.Pending || !strings.Contains(v.Decisions[0].Reason, "who proposed") {
		t.Errorf("%+v", v)
	}
	dir := h.w.directory(tx)
	c.Party = approval.ReadParty(dir, log)
	if v := c.Decide(); v.State != approval.Approved {
		t.Errorf("%+v", v)
	}
}

// TestT46ProposedToo: nobody excuses a secret that they proposed too.
func TestT46ProposedToo(t *testing.T) {
	w := newWorld(t)
	secretly := strings.Replace(fix, "+new\n", "+"+strings.Join([]string{"AK", "IA", "QYLPMN5HFIQR7XYA"}, "")+"\n", 1)
	in := func() input.Change { return w.input(secretly) }
	agent, human := ledger.Actor{Kind: "user", ID: "local:bob@example.org", Login: "Bob"}, ledger.Actor{Kind: "user", ID: "local:ada@example.org", Login: "Ada"}
	done := w.reviews(agent, in())
	if out, err := review.Run(t.Context(), w.as(human), in(), false); err != nil || out.Again != review.AgainRecorded {
		t.Fatalf("%+v %v", out, err)
	}
	all := w.provenances(done.ID)
	if len(all) != 2 || all[1].Input.SHA256 != "" { // T49
		t.Fatalf("%+v", all)
	}
	w.gate(done.ID)
	r, err := w.as(human).Decide(t.Context(), done.ID, pipeline.Ruling{Decision: ledger.Approve, Fingerprints: []string{"secret"}, Kind: "local"})
	told := fmt.Sprint(r.Verdict, r.Uncounted, err)
	if r.Verdict.State == approval.Approved || !strings.Contains(told, "cannot excuse a secret") {
		t.Errorf("%s", told)
	}
}

// TestL24: what is recorded of further proposals is held to be that.
func TestL24(t *testing.T) {
	for name, edit := range map[string]func(*ledger.Provenance){
		"":                   func(*ledger.Provenance) {},
		"another schema":     func(p *ledger.Provenance) { p.Schema = ledger.ProposalSchema },
		"another patch":      func(p *ledger.Provenance) { p.PatchID = strings.Repeat("ab", 32) },
		"nobody":             func(p *ledger.Provenance) { p.Proposer.ID = "" },
		"of no kind":         func(p *ledger.Provenance) { p.Input.Kind = "" },
		"an author of lines": func(p *ledger.Provenance) { p.Author = &ledger.Author{Name: "a\nb"} },
		"a control":          func(p *ledger.Provenance) { p.Message = "a\x1b" },
		"a trailer of ours":  func(p *ledger.Provenance) { p.Declared = []string{"approved-by: x"} },
		"no artifact":        func(p *ledger.Provenance) { p.Trace = "../x" },
		"hashes":             func(p *ledger.Provenance) { p.BaseSHA256 = map[string]*string{"a": nil} },
	} {
		if got := entered(t, ledger.Proposed, 1, edit); (got == "") != (name == "") || got != "" && !strings.HasPrefix(got, "L24: ") {
			t.Errorf("%s: %s", name, got)
		}
	}
	keep := func(*ledger.Provenance) {}
	if got := entered(t, ledger.Awaiting, 1, keep); got != "" {
		t.Error(got)
	}
	if got := entered(t, ledger.Applied, 1, keep); !strings.HasPrefix(got, "L24: ") {
		t.Errorf("applied: %s", got)
	}
	if got := entered(t, ledger.Proposed, ledger.MaxAgain+1, keep); !strings.HasPrefix(got, "L24: ") {
		t.Errorf("too many: %s", got)
	}
}

// entered is what the check of a record finds in one with so many further proposals, entered in a status.
func entered(t *testing.T, in ledger.Status, n int, edit func(*ledger.Provenance)) string {
	t.Helper()
	w := newWorld(t)
	tx := w.review().ID
	doc := w.provenances(tx)[0]
	doc.Schema, doc.BaseSHA256, doc.AfterSHA256 = ledger.AgainSchema, nil, nil
	edit(&doc)
	snap := w.ledger()
	log, err := lookup.Read(snap.Tree, tx)
	fatal(t, err)
	s := writing.NewStage(log, w.now(), w.as(bot).Secrets)
	if in == ledger.Applied {
		s.Event(&ledger.ApplyStart{TransactionID: tx, ApplyID: "apply_1"})
		s.Event(&ledger.ApplyComplete{TransactionID: tx, ApplyID: "apply_1", Success: true})
	}
	if in != ledger.Proposed {
		s.Status(in, "x")
	}
	for i := range n {
		doc.Tool = fmt.Sprint("test ", i)
		s.Artifact(ledger.KindAgain, doc)
	}
	entry, err := s.Entry(writing.Title{Stage: "review", Outcome: ledger.OutcomeAgain, Subject: "x"}, false)
	if err == nil {
		_, err = w.store.Append(t.Context(), snap.Tip, *entry)
	}
	fatal(t, err)
	dir := w.directory(tx)
	_, found := ledger.ReadOwn(dir, tx)
	for _, v := range found {
		return v.RuleID + ": " + v.Message
	}
	return ""
}

// TestT10ReviewAgain: all who proposed the old patch, in whichever transaction, are recorded with the new one at once,
// so that none of them can approve it, however far the command got.
func TestT10ReviewAgain(t *testing.T) {
	w := newWorld(t)
	eve := ledger.Actor{Kind: "user", ID: "eve@example.org", Login: "Eve"}
	frank := ledger.Actor{Kind: "user", ID: "frank@example.org", Login: "Frank"}
	elsewhere := w.as(eve)
	elsewhere.Sandbox = policy.ReadOnly
	if _, err := review.Run(t.Context(), elsewhere, w.input(fix), false); err != nil {
		t.Fatal(err)
	}
	old := w.review()
	w.again(ada, nil)
	w.repo.commit(map[string]string{"greet.txt": "one\nhello\nthree\nfour\n", "old.txt": "old\n", "other.txt": "other\n"})
	w.write(map[string]string{"greet.txt": "one\nhello\nthree\nfour\n"})

	var new review.Reviewed
	for i, who := range []ledger.Actor{bob, frank} { // the second finds the transaction of the first
		r := w.as(who)
		r.Store = &lastStore{w.store, 2} // the first append is the last
		var err error
		if new, _, err = review.Anew(t.Context(), r, old.ID, false); err != nil || new.ID == old.ID || new.Known != (i > 0) {
			t.Fatalf("%s, known %v: %v", new.ID, new.Known, err)
		}
	}
	var by []ledger.Actor
	for _, p := range w.provenances(new.ID) {
		by = append(by, p.Proposer)
	}
	if want := []ledger.Actor{bot, ada, eve, bob, frank}; !slices.Equal(by, want) {
		t.Errorf("proposed by %v", by)
	}
	w.sound(new.ID, ledger.Proposed)
	w.sound(old.ID, ledger.Superseded)
}
