package approval_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/pipeline/evidence"
	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/input"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// applied is a transaction of pull request 12 that was applied on what was said.
func applied(t *testing.T, policy string, proposed ledger.Proposal, said forge.Transcript, edit func(*approval.Standing), before ...func(*pull)) *pull {
	t.Helper()
	x := newPull(t, policy, proposed)
	x.hear(said, "write")
	for _, also := range before {
		also(x)
	}
	s := x.stand(said, "write")
	s.Policy = x.ref
	if edit != nil {
		edit(&s)
	}
	x.artifact(approval.KindStanding, s)
	return x
}

func (x *pull) done() *pull {
	x.begin()
	start, _ := x.log.OpenApply()
	x.event(&ledger.ApplyComplete{TransactionID: pullTx, ApplyID: start.ApplyID, Success: true, Outcome: "SUCCESS"})
	return x
}

func (x *pull) merged() *pull {
	for _, p := range []ledger.Payload{
		&ledger.StatusChange{TransactionID: pullTx, From: ledger.Created, To: ledger.InProgress}, &ledger.StatusChange{TransactionID: pullTx, From: ledger.InProgress, To: ledger.Proposed},
		&ledger.ValidateStart{TransactionID: pullTx, ValidateID: "v"}, &ledger.ValidateComplete{TransactionID: pullTx, ValidateID: "v", Success: true},
		&ledger.StatusChange{TransactionID: pullTx, From: ledger.Proposed, To: ledger.Completed},
	} {
		x.event(p)
	}
	return x
}

// T79 Independence is decided again, more strictly than any Policy, and unknown where the
// record does not tell.
func TestT79Independence(t *testing.T) {
	ada := talk(comment("/approve " + own))
	of := func(a ...ledger.Actor) ledger.Proposal { return ledger.Proposal{Authors: a} }
	merge := func(p ledger.Proposal, complete bool, edit func(*approval.Standing)) func(t *testing.T) *pull {
		return func(t *testing.T) *pull {
			p.Kind, p.HeadCommit, p.AuthorsComplete = ledger.KindPullRequest, "head", complete
			return applied(t, "version: 1", p, ada, edit).merged()
		}
	}
	apply := func(policy string, p ledger.Proposal, before ...func(*pull)) func(t *testing.T) *pull {
		return func(t *testing.T) *pull { return applied(t, policy, p, ada, nil, before...).done() }
	}
	again := func(who ledger.Actor) func(*pull) {
		return func(x *pull) {
			x.artifact(ledger.KindAgain, ledger.Provenance{Schema: ledger.AgainSchema, Proposer: who, PatchID: thePatch, Input: ledger.Input{Kind: "patch"}})
		}
	}
	local := func(policy, who string) func(t *testing.T) *pull {
		return func(t *testing.T) *pull {
			x := newPull(t, policy, ledger.Proposal{})
			x.decide("fileChange", spoken(t, who+" local")[0])
			x.artifact(approval.KindStanding, forge.StandingAt(x.now, 12, "head"))
			return x.done()
		}
	}
	for name, c := range map[string]struct {
		make func(t *testing.T) *pull
		want evidence.Independence
		why  string
	}{
		"another approved":        {apply("version: 1", ledger.Proposal{}), evidence.Yes, "by others"},
		"one of two":              {apply("approvals: {required: 2}", ledger.Proposal{}), evidence.No, "1 of 2"},
		"asked for it":            {apply("version: 1", ledger.Proposal{RequestedBy: []ledger.Requester{{Actor: people["ada"], Source: ledger.AskedBySender}}}), evidence.No, "or asked for it"},
		"another asked for it":    {apply("version: 1", ledger.Proposal{RequestedBy: []ledger.Requester{{Actor: people["bob"], Source: ledger.AskedBySender}}}), evidence.Yes, "by others"},
		"asked for it by name":    {apply("version: 1", ledger.Proposal{RequestedBy: []ledger.Requester{input.Named("ADA", ledger.AskedByFlag)}}), evidence.No, "or asked for it"},
		"who asked was taken out": {apply("version: 1", ledger.Proposal{RequestedBy: []ledger.Requester{input.Named("<REDACTED:x>", ledger.AskedByFlag)}}), evidence.Untold, "who asked for it"},
		"asked for it again": {apply("version: 1", ledger.Proposal{}, func(x *pull) {
			x.artifact(ledger.KindAgain, ledger.Provenance{
				Schema: ledger.AgainSchema, Proposer: agent, PatchID: thePatch, Input: ledger.Input{Kind: "patch"}, RequestedBy: []ledger.Requester{input.Named("ada", ledger.AskedByMCP)},
			})
		}), evidence.No, "or asked for it"},
		"wrote it, which is allowed": {apply("approvals: {allow_author: true}", of(people["ada"])), evidence.No, "without the approvals of who proposed it"},
		"proposed it too, before": {func(t *testing.T) *pull {
			x := newPull(t, "approvals: {allow_author: true}", ledger.Proposal{})
			again(people["ada"])(x)
			x.hear(ada, "write")
			x.artifact(approval.KindStanding, x.stand(ada, "write"))
			return x.done()
		}, evidence.No, "0 of 1"},
		"proposed it too, afterwards": {apply("version: 1", ledger.Proposal{}, again(people["ada"])), evidence.No, "0 of 1"},
		"somebody else proposed it":   {apply("version: 1", ledger.Proposal{}, again(people["eve"])), evidence.Yes, ""},
		"a shell proposed it too":     {apply("version: 1", ledger.Proposal{}, again(people["home"])), evidence.Untold, "a shell alone tells who proposed it"},
		"who else cannot be read":     {apply("version: 1", ledger.Proposal{}, again(people["eve"]), func(x *pull) { delete(x.dir, x.log.Artifacts(ledger.KindAgain)[0].Path) }), evidence.Untold, "who proposed it"},
		"a shell approved it":         {local("approvals: {local: true}", "ada"), evidence.Untold, "who approved it"},
		"a shell approved it, and the glass was broken too": {func(t *testing.T) *pull {
			return applied(t, "approvals: {local: true, break_glass: [ada]}", ledger.Proposal{}, talk(comment("/approve --break-glass "+own+" the site is down")), nil,
				func(x *pull) { x.decide("fileChange", spoken(t, "bob local")[0]) }).done()
		}, evidence.Untold, "who approved it"},
		"named as its author":          {apply("version: 1", ledger.Proposal{Kind: "patch", Author: &ledger.Author{Name: "ADA", Email: "x@example.org", Date: "2026-01-05T12:00:00Z"}}), evidence.Untold, "names who approved"},
		"named by a forge's address":   {apply("version: 1", ledger.Proposal{Kind: "patch", Author: &ledger.Author{Name: "x", Email: "1+old@users.noreply.github.com", Date: "2026-01-05T12:00:00Z"}}), evidence.Untold, "names who approved"},
		"declared":                     {apply("version: 1", ledger.Proposal{Declared: []string{"Co-authored-by: Ada <ada@example.org>"}}), evidence.Untold, "names who approved"},
		"declared without an address":  {apply("version: 1", ledger.Proposal{Declared: []string{"Co-authored-by: ada"}}), evidence.Untold, "names who approved"},
		"somebody else declared":       {apply("version: 1", ledger.Proposal{Declared: []string{"Co-authored-by: Eve <eve@example.org>"}}), evidence.Yes, ""},
		"merged":                       {merge(of(people["eve"]), true, nil), evidence.Yes, ""},
		"merged, no authors":           {merge(ledger.Proposal{}, true, nil), evidence.Yes, ""},
		"merged, commits of nobody":    {merge(of(people["eve"]), false, nil), evidence.Untold, "every commit"},
		"merged at another head":       {merge(of(people["eve"]), true, func(s *approval.Standing) { s.HeadCommit = "new" }), evidence.Untold, "other commits"},
		"merged, wrote a commit of it": {merge(of(people["eve"], people["ada"]), true, nil), evidence.No, "0 of 1"},
		"not applied":                  {func(t *testing.T) *pull { return applied(t, "version: 1", ledger.Proposal{}, ada, nil) }, evidence.Untold, "not on record"},
	} {
		t.Run(name, func(t *testing.T) {
			x := c.make(t)
			got, why, err := evidence.Independent(new(approval.Policies), x.dir, x.log)
			if err != nil || got != c.want || !strings.Contains(why, c.why) {
				t.Errorf("%s: %s, %v; want %s: %s", got, why, err, c.want, c.why)
			}
		})
	}
	glass := applied(t, "approvals: {required: 3, break_glass: [ada]}", ledger.Proposal{}, talk(comment("/approve --break-glass "+own+" the site is down")), nil)
	glass.begin(ledger.Approved{Kind: "break_glass", Fingerprint: own, Required: 1})
	start, _ := glass.log.OpenApply()
	glass.event(&ledger.ApplyComplete{TransactionID: pullTx, ApplyID: start.ApplyID, Success: true, Outcome: "SUCCESS"})
	if got, why, err := evidence.Independent(new(approval.Policies), glass.dir, glass.log); err != nil || got != evidence.No || !strings.Contains(why, "ordinary approvals were missing") {
		t.Errorf("break glass: %s, %s, %v", got, why, err)
	}
	x := applied(t, "version: 1", ledger.Proposal{}, ada, nil).done()
	for _, a := range x.log.Artifacts(approval.KindStanding) {
		delete(x.dir, a.Path)
	}
	if got, _, err := evidence.Independent(new(approval.Policies), x.dir, x.log); err == nil || got != evidence.Untold {
		t.Errorf("without its standing: %s, %v", got, err)
	}
}
