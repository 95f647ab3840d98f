package pipeline_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// proposedElsewhere proposes fix in a transaction of no pull request.
func (h *hub) proposedElsewhere(who ledger.Actor) string {
	h.w.Helper()
	r := h.runner()
	r.Actor = who
	out, err := review.Run(h.w.Context(), r, h.w.input(fix), false)
	fatal(h.w, err)
	return out.ID
}

// elsewhere are those whom a record names as proposers in other transactions.
func (w *world) elsewhere(tx string) (all []ledger.Actor) {
	w.Helper()
	log := w.log(tx)
	dir := w.directory(tx)
	for _, a := range log.Artifacts(ledger.KindElsewhere) {
		all = append(all, ledger.Proposers(dir, log)[a.Path]...)
	}
	return all
}

// TestT10ProposedElsewhere: whoever proposed the same bytes in another transaction of the ledger, before they approved,
// approves their own change. What the record of the one transaction says of it is what every later reader decides by.
func TestT10ProposedElsewhere(t *testing.T) {
	h := newHub(newWorld(t))
	other := h.proposedElsewhere(adaThere)
	tx, fingerprint := h.propose()
	if tx == other {
		t.Fatal("it is one transaction")
	}
	h.want(tx, approval.Pending, "") // nobody has said anything, and nothing is recorded of others
	if who := h.w.elsewhere(tx); who != nil {
		t.Errorf("%+v", who)
	}
	h.says(adaThere, "/approve "+fingerprint)
	h.want(tx, approval.Pending, "its author proposed the same change in another transaction")
	h.says(bobThere, "/approve "+fingerprint)
	h.want(tx, approval.Approved, "")
	h.w.repo.commit(map[string]string{"greet.txt": "one\nhello\nthree\n", "old.txt": "old\n"})
	h.proposedElsewhere(bobThere) // afterwards: that takes nothing back
	g := h.want(tx, approval.Approved, "")
	if who := h.w.elsewhere(tx); len(who) != 1 || who[0] != adaThere {
		t.Errorf("%+v", who)
	}
	h.apply(g)
	h.w.sound(tx, ledger.Applied)
	tree := h.w.ledger().Tree
	log, found, err := approval.CheckRecord(tree, tx)
	if err != nil || len(found) > 0 {
		t.Fatalf("%v %v", found, err)
	}
	dir, err := fs.Sub(tree, ledger.Dir(tx))
	fatal(t, err)
	var policies approval.Policies
	if v, _, _, err := explain.AsRecorded(policies.Record(dir, log)); err != nil || v.State != approval.Approved {
		t.Errorf("%+v %v", v, err)
	}
	if is, why, err := evidence.Independent(&policies, dir, log); err != nil || is != evidence.Yes {
		t.Errorf("%s %s %v", is, why, err)
	}
	if c := explain.SimulateTransaction(tree, &policies, tx, h.w.policy); c.Then != approval.Approved || c.Now != approval.Approved || c.Difference != explain.NoDifference {
		t.Errorf("%+v", c)
	}
	page, err := fs.ReadFile(dir, ledger.ReadmeFile)
	if err != nil || !strings.Contains(string(page), "| proposed elsewhere | by `ada`") || !strings.Contains(string(page), other) {
		t.Errorf("%v\n%s", err, page)
	}

	// The same words by who proposed it elsewhere make no approved record: not of a page, not of an audit.
	c := approval.Case{
		Policy: h.w.policy, Needs: h.w.policy.Needs(nil, false), Log: log, PullRequest: true, Now: h.w.time(), Stands: func(ledger.ApprovalDecision) string { return "" },
		Party: approval.Party{Proposers: map[string][]ledger.Actor{log.Artifacts(ledger.KindElsewhere)[0].Path: {bobThere}}},
	}
	if v := c.Decide(); v.State != approval.Pending {
		t.Errorf("%+v", v)
	}
	c.Proposers = nil // and where that cannot be read, no approval counts
	if v := c.Decide(); v.State != approval.Pending || !strings.Contains(v.Decisions[0].Reason, "who proposed") {
		t.Errorf("%+v", v)
	}
}

// TestT10ProposedElsewhereToo: a further proposal in another transaction counts as its first does, and of a closed one.
func TestT10ProposedElsewhereToo(t *testing.T) {
	h := newHub(newWorld(t))
	other := h.proposedElsewhere(botThere)
	h.proposedElsewhere(adaThere)
	if _, err := h.runner().Interrupt(t.Context(), other, "x"); err != nil {
		t.Fatal(err)
	}
	tx, fingerprint := h.propose()
	h.says(adaThere, "/approve "+fingerprint)
	h.want(tx, approval.Pending, "its author proposed the same change in another transaction")
	h.want(tx, approval.Pending, "its author proposed the same change in another transaction")
	if who := h.w.elsewhere(tx); len(who) != 1 || who[0] != adaThere { // the bot is the proposer here, and who is named is not named twice
		t.Errorf("%+v", who)
	}
	h.w.policy.Approvals.AllowAuthor = true // as the Policy may say of any proposer
	h.want(tx, approval.Approved, "")
	h.w.sound(tx, ledger.Proposed)
}

// TestT46ProposedElsewhere: nobody excuses a secret that they proposed in another transaction, not in their own shell either.
func TestT46ProposedElsewhere(t *testing.T) {
	w := newWorld(t)
	secretly := strings.Replace(fix, "+new\n", "+"+strings.Join([]string{"AK", "IA", "QYLPMN5HFIQR7XYA"}, "")+"\n", 1)
	agent, human := ledger.Actor{Kind: "user", ID: "local:bob@example.org", Login: "Bob"}, ledger.Actor{Kind: "user", ID: "local:ada@example.org", Login: "Ada"}
	if _, err := review.Run(t.Context(), w.as(human), w.input(secretly), false); err != nil {
		t.Fatal(err)
	}
	w.repo.commit(base)
	on := w.input(secretly)
	on.Base, _ = w.repo.Head(t.Context())
	done := w.reviews(agent, on)
	g := w.gate(done.ID)
	ruling := pipeline.Ruling{Decision: ledger.Approve, Fingerprints: []string{"secret"}, Kind: "local"}
	about, err := w.as(human).Named(g, ruling)
	fatal(t, err)
	if why, err := w.as(human).WhyNot(t.Context(), g, about[0], ruling); err != nil || !strings.Contains(why, "in another transaction, who cannot excuse a secret") {
		t.Errorf("%q %v", why, err)
	}
	r, err := w.as(human).Decide(t.Context(), done.ID, ruling)
	if told := fmt.Sprint(r.Verdict, r.Uncounted, err); r.Verdict.State == approval.Approved || !strings.Contains(told, "in another transaction, who cannot excuse a secret") {
		t.Errorf("%s", told)
	}
	w.says(human, ledger.Approve, done.ID) // of the change itself, in the proposer's own shell, as ever
	w.sound(done.ID, ledger.Awaiting)
}

// TestL24Elsewhere: what is recorded of other transactions is held to be that.
func TestL24Elsewhere(t *testing.T) {
	for name, edit := range map[string]func(*ledger.Elsewhere){
		"":                    func(*ledger.Elsewhere) {},
		"another schema":      func(e *ledger.Elsewhere) { e.Schema = ledger.AgainSchema },
		"another patch":       func(e *ledger.Elsewhere) { e.PatchID = strings.Repeat("ab", 32) },
		"nobody":              func(e *ledger.Elsewhere) { e.Proposals = nil },
		"by nobody":           func(e *ledger.Elsewhere) { e.Proposals[0].Proposer.ID = "" },
		"of no kind":          func(e *ledger.Elsewhere) { e.Proposals[0].Proposer.Kind = "" },
		"in no transaction":   func(e *ledger.Elsewhere) { e.Proposals[0].TransactionID = "../x" },
		"in the same one":     func(e *ledger.Elsewhere) { e.Proposals[0].TransactionID = "here" },
		"one of two is wrong": func(e *ledger.Elsewhere) { e.Proposals = append(e.Proposals, ledger.ProposedIn{}) },
	} {
		w := newWorld(t)
		tx := w.review()
		log := w.log(tx.ID)
		doc := ledger.Elsewhere{Schema: ledger.ElsewhereSchema, PatchID: tx.PatchID, Proposals: []ledger.ProposedIn{{Proposer: ada, TransactionID: "tx_01KE5W5200041061050R3GG28A"}}}
		edit(&doc)
		if name == "in the same one" {
			doc.Proposals[0].TransactionID = tx.ID
		}
		s := writing.NewStage(log, w.now(), w.as(bot).Secrets)
		s.Artifact(ledger.KindElsewhere, doc)
		entry, err := s.Entry(writing.Title{Stage: "gate", Outcome: "pending", Subject: "x"}, false)
		if err == nil {
			_, err = w.store.Append(t.Context(), w.tip(), *entry)
		}
		fatal(t, err)
		dir := w.directory(tx.ID)
		_, found := ledger.ReadOwn(dir, tx.ID)
		if name == "" && len(found) > 0 || name != "" && (len(found) != 1 || found[0].RuleID != "L24") {
			t.Errorf("%s: %+v", name, found)
		}
		if named := ledger.Proposers(dir, log); (len(named) > 0) != (name == "") { // and names nobody then, so that no approval counts
			t.Errorf("%s: %+v", name, named)
		}
	}
}

// TestT10ProposedElsewhereAtOnce: one gate hears several people, of a patch that somebody proposed elsewhere: that keeps
// nobody else's approval out.
func TestT10ProposedElsewhereAtOnce(t *testing.T) {
	h := newHub(newWorld(t))
	h.w.policy.Approvals.Required = 2
	h.access["eve"] = "write"
	h.proposedElsewhere(adaThere)
	tx, fingerprint := h.propose()
	for _, who := range []ledger.Actor{adaThere, bobThere, eveThere} {
		h.says(who, "/approve "+fingerprint)
	}
	h.want(tx, approval.Approved, "its author proposed the same change in another transaction")
	if who := h.w.elsewhere(tx); len(who) != 1 || who[0] != adaThere {
		t.Errorf("%+v", who)
	}
	h.w.sound(tx, ledger.Proposed)
}

// askedStore notes which paths a ledger was asked for.
type askedStore struct {
	writing.Store
	paths []string
}

func (a *askedStore) Snapshot(ctx context.Context, paths ...string) (writing.Snapshot, error) {
	a.paths = append(a.paths, paths...)
	return a.Store.Snapshot(ctx, paths...)
}

// TestT10ElsewhereAsked: an approval asks for the transactions of its patch by name, so that a ledger which is elsewhere
// gives them at once; and where there are no others, for nothing more.
func TestT10ElsewhereAsked(t *testing.T) {
	h := newHub(newWorld(t))
	tx, fingerprint := h.propose()
	h.says(bobThere, "/approve "+fingerprint)
	gate := func() []string {
		s := &askedStore{Store: h.w.store}
		r := h.runner()
		r.Store = s
		if _, err := r.Gate(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		return s.paths
	}
	if paths := gate(); slices.Contains(paths, ledger.ProposedDir(ledger.FingerprintPatch(fingerprint))) {
		t.Errorf("asked for %v", paths)
	}
	h.w.repo.commit(map[string]string{"greet.txt": "one\nhello\nthree\n", "old.txt": "old\n"})
	other := h.proposedElsewhere(adaThere)
	h.says(adaThere, "/approve "+fingerprint)
	paths := gate()
	for _, want := range []string{ledger.Dir(other), ledger.ProposedDir(ledger.FingerprintPatch(fingerprint))} {
		if !slices.Contains(paths, want) {
			t.Errorf("asked for %v, not for %s", paths, want)
		}
	}
}
