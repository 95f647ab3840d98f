package pipeline_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// asksFor has somebody ask for what is proposed.
func asksFor(who ledger.Actor, source string) func(*input.Change) {
	return func(in *input.Change) {
		in.RequestedBy = append(in.RequestedBy, ledger.Requester{Actor: who, Source: source})
	}
}

// proposeFor proposes for the hub's pull request what somebody asked for.
func (h *hub) proposeFor(edit func(*input.Change)) (tx, fingerprint string) {
	h.w.Helper()
	out := h.offered(h.runner(), fix, edit)
	return out.ID, "patchset:" + out.PatchID
}

// TestT73Party: a signature tells who had proposed the bytes and who had asked for them when they were shown, in this
// transaction and in others. Where somebody comes in between, it is signed again; who comes in later takes nothing back.
func TestT73Party(t *testing.T) {
	for name, c := range map[string]struct {
		before, between func(*hub)
		proposers       []ledger.Actor
		asked           []string // by login and source
		want            string   // why the signature is not taken
	}{
		"alone":                             {proposers: []ledger.Actor{botThere}, asked: []string{"carol actions.sender"}},
		"with another transaction":          {before: func(h *hub) { h.proposedElsewhere(bobThere) }, proposers: []ledger.Actor{botThere, bobThere}, asked: []string{"carol actions.sender"}},
		"proposed again":                    {before: func(h *hub) { h.proposedIn("codex", bobThere) }, proposers: []ledger.Actor{botThere, bobThere}, asked: []string{"carol actions.sender"}},
		"asked for again":                   {before: func(h *hub) { h.proposeFor(asksFor(bobThere, ledger.AskedByMCP)) }, proposers: []ledger.Actor{botThere}, asked: []string{"bob mcp", "carol actions.sender"}},
		"proposed again in between":         {between: func(h *hub) { h.proposedIn("codex", bobThere) }, proposers: []ledger.Actor{botThere}, asked: []string{"carol actions.sender"}, want: "others as who proposed this: sign again"},
		"asked for again in between":        {between: func(h *hub) { h.proposeFor(asksFor(bobThere, ledger.AskedByMCP)) }, proposers: []ledger.Actor{botThere}, asked: []string{"carol actions.sender"}, want: "others as who asked for this: sign again"},
		"proposed elsewhere in between":     {between: func(h *hub) { h.proposedElsewhere(bobThere) }, proposers: []ledger.Actor{botThere}, asked: []string{"carol actions.sender"}, want: "others as who proposed this: sign again"},
		"the commit of the Policy moves on": {between: func(h *hub) { h.w.repo.commit(map[string]string{"greet.txt": "one\nhello\nthree\n", "x": "x\n"}) }, proposers: []ledger.Actor{botThere}, asked: []string{"carol actions.sender"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(newWorld(t))
			h.w.lists("ada " + adaKey.Public)
			tx, fingerprint := h.proposeFor(asksFor(ledger.Actor{Kind: "user", ID: "9", Login: "carol"}, ledger.AskedBySender))
			if c.before != nil {
				c.before(h)
			}
			h.gate(tx)
			s := h.w.statement(tx, fingerprint)
			var asked []string
			for _, r := range s.RequestedBy {
				asked = append(asked, r.Actor.Login+" "+r.Source)
			}
			if !slices.Equal(s.Proposers, c.proposers) || !slices.Equal(asked, c.asked) {
				t.Errorf("%+v, %v", s.Proposers, asked)
			}
			if c.between != nil {
				c.between(h)
			}
			h.says(adaThere, approval.SignedLine(adaKey.Signs(s)))
			if c.want != "" {
				h.want(tx, approval.Pending, c.want)
				h.says(adaThere, approval.SignedLine(adaKey.Signs(h.w.statement(tx, fingerprint))))
			}
			h.want(tx, approval.Approved, "")
			h.proposedIn("blocks", ledger.Actor{Kind: "user", ID: "12", Login: "dan"})
			h.proposeFor(asksFor(ledger.Actor{Kind: "user", ID: "13", Login: "erin"}, ledger.AskedByFlag))
			h.w.policy.Limits.Files++
			g := h.want(tx, approval.Approved, "")
			h.apply(g)
			h.w.verifies(tx)
		})
	}
}

// TestT73LocalParty: in a clone it is the same.
func TestT73LocalParty(t *testing.T) {
	w := newWorld(t)
	w.lists("ada@localhost " + adaKey.Public)
	first := w.review()
	s := w.statement(first.ID, "patchset:"+first.PatchID)
	decide := func() error {
		signature := adaKey.Signs(s)
		_, err := w.as(ledger.Actor{Kind: "user", ID: "local:ada@localhost", Login: "Ada"}).Decide(t.Context(), first.ID, pipeline.Ruling{Kind: "local", Signature: &signature})
		return err
	}
	w.again(bob, nil)
	if err := decide(); err == nil || !strings.Contains(err.Error(), "others as who proposed this: sign again") {
		t.Error(err)
	}
	s = w.statement(first.ID, "patchset:"+first.PatchID)
	w.policy.Approvals.MaxAge = policy.Duration(1 << 40)
	if err := decide(); err == nil || !strings.Contains(err.Error(), "another Policy than the one that asks for it now: sign again") {
		t.Error(err)
	}
	s = w.statement(first.ID, "patchset:"+first.PatchID)
	if err := decide(); err != nil {
		t.Error(err)
	}
	w.verifies(first.ID)
	w.sound(first.ID, ledger.Proposed)
}
