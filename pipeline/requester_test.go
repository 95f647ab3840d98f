package pipeline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/review"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

var requesterAlone = []policy.Part{policy.Requesting}

// TestT10Requester: whoever asked the bot for a change is not the only one to approve it, whether they asked for it here, again
// or in another transaction; the record tells it again, and nothing that comes later takes an approval back.
func TestT10Requester(t *testing.T) {
	for name, ask := range map[string]func(*hub) (tx, fingerprint string){
		"first": func(h *hub) (string, string) { return h.proposeFor(asksFor(adaThere, ledger.AskedBySender)) },
		"again": func(h *hub) (string, string) {
			h.propose()
			return h.proposeFor(asksFor(adaThere, ledger.AskedByRunTrigger))
		},
		"by name": func(h *hub) (string, string) {
			return h.proposeFor(func(in *input.Change) { in.RequestedBy = []ledger.Requester{input.Named("Ada", ledger.AskedByFlag)} })
		},
		"elsewhere": func(h *hub) (string, string) {
			r, in := h.runner(), h.w.input(fix)
			in.RequestedBy = []ledger.Requester{{Actor: adaThere, Source: ledger.AskedBySender}}
			if _, err := review.Run(t.Context(), r, in, false); err != nil {
				t.Fatal(err)
			}
			return h.propose()
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(newWorld(t))
			h.w.policy.Approvals.Independent = requesterAlone
			tx, fingerprint := ask(h)
			h.gate(tx)
			h.says(adaThere, "/approve "+fingerprint)
			h.want(tx, approval.Pending, "asked for by the approver, and somebody else must approve it too (approvals.independent)")
			h.says(bobThere, "/approve "+fingerprint)
			h.want(tx, approval.Approved, "")
			h.proposeFor(asksFor(bobThere, ledger.AskedByMCP)) // afterwards
			g := h.want(tx, approval.Approved, "")
			h.apply(g)
			h.w.sound(tx, ledger.Applied)
			h.w.verifies(tx)
			dir := h.w.directory(tx)
			log := h.w.log(tx)
			is, why, err := evidence.Independent(new(approval.Policies), dir, log)
			if err != nil || is != evidence.No || !strings.Contains(why, "asked for it") { // bob asked for it in the end
				t.Errorf("%s %s %v", is, why, err)
			}
			two := h.w.policy
			two.Approvals.Required = 2
			if c := explain.SimulateTransaction(h.w.ledger().Tree, new(approval.Policies), tx, two); c.Then != approval.Approved || c.Now == approval.Approved {
				t.Errorf("%+v", c)
			}
		})
	}
}

// TestT10RequesterNamedByStranger: whoever proposes the same bytes in a transaction of their own keeps nobody from approving them here
// by naming them, nor makes them unsignable; whom the proposer of this one names there, and whom a forge tells of, counts.
func TestT10RequesterNamedByStranger(t *testing.T) {
	for name, c := range map[string]struct {
		by     ledger.Actor
		source string
		want   approval.State
	}{
		"a stranger's word":        {bobThere, ledger.AskedByFlag, approval.Approved},
		"the same proposer's word": {botThere, ledger.AskedByFlag, approval.Pending},
		"a forge's":                {bobThere, ledger.AskedByRunActor, approval.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(newWorld(t))
			h.w.policy.Approvals.Independent = requesterAlone
			r, in := h.runner(), h.w.input(fix)
			r.Actor = c.by
			in.RequestedBy = []ledger.Requester{input.Named("ada", c.source)}
			if _, err := review.Run(t.Context(), r, in, false); err != nil {
				t.Fatal(err)
			}
			tx, fingerprint := h.propose()
			h.says(adaThere, "/approve "+fingerprint)
			h.want(tx, c.want, "")
			h.want(tx, c.want, "") // also once the record names who proposed it there
			h.w.verifies(tx)
		})
	}
}

// TestT10RequesterSimulated: what a Policy that asks for independence would have made of a change that it did not judge.
func TestT10RequesterSimulated(t *testing.T) {
	h := newHub(newWorld(t))
	tx, fingerprint := h.proposeFor(asksFor(adaThere, ledger.AskedBySender))
	h.gate(tx)
	h.says(adaThere, "/approve "+fingerprint)
	h.apply(h.want(tx, approval.Approved, ""))
	p := h.w.policy
	p.Approvals.Independent = requesterAlone
	if c := explain.SimulateTransaction(h.w.ledger().Tree, new(approval.Policies), tx, p); c.Then != approval.Approved || c.Now != approval.Pending {
		t.Errorf("%+v", c)
	}
	p.Approvals.Independent = []policy.Part{policy.Proposing}
	if c := explain.SimulateTransaction(h.w.ledger().Tree, new(approval.Policies), tx, p); c.Now != approval.Approved {
		t.Errorf("%+v", c)
	}
}

// TestT10RequesterInShell: also in a shell, where the Policy says so, and on what is proposed anew in its place.
func TestT10RequesterInShell(t *testing.T) {
	w := newWorld(t)
	w.policy.Approvals.Independent = []policy.Part{policy.Proposing, policy.Requesting}
	in := w.input(fix)
	in.RequestedBy = []ledger.Requester{{Actor: ada, Source: ledger.AskedByRPC}}
	out := w.reviews(bot, in)
	w.gate(out.ID)
	refused := func(tx string, who ledger.Actor, why string) {
		t.Helper()
		_, err := w.as(who).Decide(t.Context(), tx, pipeline.Ruling{Kind: "local", Decision: ledger.Approve, All: true})
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", who.Login, err)
		}
	}
	refused(out.ID, ada, "asked for by the approver")
	refused(out.ID, bot, "not a human account")
	w.repo.commit(map[string]string{"greet.txt": "one\nhello\nthree\nfour\n", "old.txt": "old\n", "other.txt": "other\n"})
	w.write(map[string]string{"greet.txt": "one\nhello\nthree\nfour\n"})
	anew, _, err := review.Anew(t.Context(), w.as(bob), out.ID, false)
	fatal(t, err)
	w.gate(anew.ID)
	refused(anew.ID, ada, "asked for by the approver")
	refused(anew.ID, bob, "its author is the proposer")
	if g := w.says(ledger.Actor{Kind: "user", ID: "local:eve@localhost", Login: "Eve"}, ledger.Approve, anew.ID); g.Verdict.State != approval.Approved {
		t.Errorf("%+v", g.Verdict)
	}
}

// TestAgainRequester: somebody new who asked is recorded also where no further proposal is taken any more; nobody is
// recorded twice; and what the record has of them cannot be told otherwise later.
func TestAgainRequester(t *testing.T) {
	w := newWorld(t)
	first := w.review()
	for i := range ledger.MaxAgain {
		w.again(bot, inForm(fmt.Sprint("form", i)))
	}
	if out := w.again(bot, inForm("more")); out.Again != review.AgainFull {
		t.Errorf("%+v", out.Again)
	}
	for want, who := range map[review.Again]ledger.Actor{review.AgainRecorded: ada} {
		if out := w.again(bot, asksFor(who, ledger.AskedByFlag)); out.Again != want {
			t.Errorf("%+v", out.Again)
		}
	}
	if out := w.again(bot, func(in *input.Change) { asksFor(ada, ledger.AskedByFlag)(in); in.Format = "other" }); out.Again != review.AgainFull {
		t.Errorf("%+v", out.Again)
	}
	w.sound(first.ID, ledger.Proposed)
	w.verifies(first.ID)
	all := w.provenances(first.ID)
	if last := all[len(all)-1]; !slices.Equal(last.RequestedBy, []ledger.Requester{{Actor: ada, Source: ledger.AskedByFlag}}) {
		t.Errorf("%+v", last)
	}
	log := w.log(first.ID)
	item, _ := writing.FileChange(log)
	meta := *item.Item.Metadata
	meta.RequestedBy = []ledger.Requester{input.Named("eve", ledger.AskedByFlag)}
	item.Item.Metadata = &meta
	if err := log.Append(w.time(), &item); err == nil || !strings.Contains(err.Error(), "who asked for the change") {
		t.Error(err)
	}
}

// TestT10NamesBounded: a proposer in a loop that names ever other people does not let the ledger grow for ever. It is refused,
// and nobody else is: who proposed it too, and whom the forge tells of, is recorded.
func TestT10NamesBounded(t *testing.T) {
	w := newWorld(t)
	first := w.review()
	name := func(i int, source string) func(*input.Change) {
		return asksFor(ledger.Actor{Kind: "user", Login: fmt.Sprint("name-", i)}, source)
	}
	for i := range ledger.MaxNamed {
		if out := w.again(bot, name(i, ledger.AskedByFlag)); out.Again != review.AgainRecorded {
			t.Fatalf("%d: %+v", i, out.Again)
		}
	}
	in := w.input(fix)
	name(ledger.MaxNamed, ledger.AskedByFlag)(&in)
	if _, err := review.Run(t.Context(), w.as(bot), in, false); err == nil || !strings.Contains(err.Error(), "only names somebody else") {
		t.Errorf("refused: %v", err)
	}
	if n := len(w.provenances(first.ID)); n != 1+ledger.MaxNamed {
		t.Errorf("%d are recorded", n)
	}
	if out := w.again(bot, name(ledger.MaxNamed+1, ledger.AskedBySender)); out.Again != review.AgainRecorded {
		t.Errorf("the forge tells: %+v", out.Again)
	}
	if out := w.again(ada, name(ledger.MaxNamed+2, ledger.AskedByFlag)); out.Again != review.AgainRecorded {
		t.Errorf("another proposer: %+v", out.Again)
	}
	w.sound(first.ID, ledger.Proposed)
}
