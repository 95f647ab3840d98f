package pipeline_test

import (
	"testing"

	"github.com/countersign-dev/countersign/pipeline"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/teststand"
)

// TestT72OnePersonOneVote: a person with several keys, accounts or addresses has one
// vote, as far as the list of keys tells that they are one.
func TestT72OnePersonOneVote(t *testing.T) {
	const again, mayBe = "counted already", ""
	atHome := ledger.Actor{Kind: "user", ID: "local:ada@example.org", Login: "Ada"}
	mallory := teststand.Ed25519(9)
	for name, c := range map[string]struct {
		lines []string
		said  func(v votes)
		want  string // of the second vote: why it does not count, "" where it does
	}{
		"two people": {[]string{"ada " + adaKey.Public, "bob " + bobKey.Public},
			func(v votes) { v.comments(adaThere, &adaKey); v.comments(bobThere, &bobKey) }, mayBe},
		"one key on two lines": {[]string{"ada " + adaKey.Public, "bob " + adaKey.Public},
			func(v votes) { v.comments(adaThere, &adaKey); v.comments(bobThere, &adaKey) }, again},
		"a login with two keys": {[]string{"ada " + adaKey.Public, "ada " + bobKey.Public},
			func(v votes) { v.comments(adaThere, &adaKey); v.comments(adaThere, &bobKey) }, again},
		"two logins of a line, one with a key of its own": {[]string{"ada,bob " + adaKey.Public, "github:bob " + bobKey.Public},
			func(v votes) { v.comments(adaThere, &adaKey); v.comments(bobThere, &bobKey) }, again},
		"the other way around": {[]string{"bob " + bobKey.Public, "ada,bob " + adaKey.Public},
			func(v votes) { v.comments(bobThere, &bobKey); v.comments(adaThere, &adaKey) }, again},
		"by a third line": {[]string{"ada " + adaKey.Public, "bob " + bobKey.Public, "ada,bob " + mallory.Public},
			func(v votes) { v.comments(adaThere, &adaKey); v.comments(bobThere, &bobKey) }, again},
		"by a third line's key": {[]string{"ada " + adaKey.Public, "bob " + bobKey.Public, "ada " + mallory.Public, "bob " + mallory.Public},
			func(v votes) { v.comments(adaThere, &adaKey); v.comments(bobThere, &bobKey) }, again},
		"one of them without a signature": {[]string{"ada,bob " + adaKey.Public},
			func(v votes) { v.comments(adaThere, &adaKey); v.comments(bobThere, nil) }, again},
		"an account and an address of a line": {[]string{"ada,ada@example.org " + adaKey.Public},
			func(v votes) { v.comments(adaThere, nil); v.decides(atHome, nil) }, again},
		"an address and an account, each with its key": {[]string{"ada,ada@example.org " + adaKey.Public, "github:ada " + bobKey.Public},
			func(v votes) { v.decides(atHome, &adaKey); v.comments(adaThere, &bobKey) }, again},
		"an address that a pattern admits": {[]string{"*@example.org " + adaKey.Public, "ada,Ada@Example.org " + bobKey.Public},
			func(v votes) { v.decides(atHome, &adaKey); v.comments(adaThere, &bobKey) }, again},
		"an account and another's address": {[]string{"bob,bob@example.org " + bobKey.Public, "ada@example.org " + adaKey.Public},
			func(v votes) { v.comments(bobThere, &bobKey); v.decides(atHome, &adaKey) }, mayBe},
		"a line that cannot be read, of neither": {[]string{"ada " + adaKey.Public, "eve ssh-ed25519", "bob " + bobKey.Public},
			func(v votes) { v.comments(adaThere, &adaKey); v.comments(bobThere, &bobKey) }, mayBe},
		"a line that cannot be read, of both": {[]string{"ada " + adaKey.Public, "bob " + bobKey.Public, `"ada,github:bob ` + mallory.Public},
			func(v votes) { v.comments(adaThere, &adaKey); v.comments(bobThere, &bobKey) }, again},
		"a line that cannot be read, of the second": {[]string{"ada " + adaKey.Public, "bob " + bobKey.Public, "Bob ssh-ed25519"},
			func(v votes) { v.comments(adaThere, &adaKey); v.comments(bobThere, &bobKey) }, again},
		"a line that cannot be read, of the first": {[]string{"ada " + adaKey.Public, "bob " + bobKey.Public, "\ufeffada ssh-ed25519"},
			func(v votes) { v.comments(adaThere, &adaKey); v.comments(bobThere, &bobKey) }, again},
		"no line that can be read": {[]string{"ada,bob ssh-ed25519"},
			func(v votes) { v.comments(adaThere, nil); v.comments(bobThere, nil) }, again},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(newWorld(t))
			h.w.lists(c.lines...)
			h.w.policy.Approvals.Signed, h.w.policy.Approvals.Required, h.w.policy.Approvals.Local = policy.SignedToo, 2, policy.LocalAlways
			tx, fingerprint := h.propose()
			h.gate(tx)
			v := votes{h, tx, fingerprint, new(error)}
			c.said(v)
			state := approval.Pending
			if c.want == mayBe {
				state = approval.Approved
			}
			if *v.refused != nil {
				if state == approval.Approved {
					t.Error(*v.refused)
				}
				h.want(tx, state, "")
				return
			}
			g := h.want(tx, state, c.want)
			if state == approval.Pending {
				return
			}
			h.apply(g)
			h.w.verifies(tx)
		})
	}
}

// votes are those on the transaction of a pull request.
type votes struct {
	*hub
	tx, fingerprint string
	refused         *error
}

// comments has somebody approve on the pull request, signed with a key unless that is
// nil.
func (v votes) comments(who ledger.Actor, key *teststand.Signer) {
	line := "/approve " + v.fingerprint
	if key != nil {
		line = approval.SignedLine(key.Signs(v.w.statement(v.tx, v.fingerprint)))
	}
	v.says(who, line)
	v.gate(v.tx)
}

// decides has somebody approve in a clone, and keeps why that was not recorded.
func (v votes) decides(who ledger.Actor, key *teststand.Signer) {
	r := v.runner()
	r.Decider = who
	ruling := pipeline.Ruling{Decision: ledger.Approve, Kind: "local"}
	if key != nil {
		made := key.Signs(v.w.statement(v.tx, v.fingerprint))
		ruling.Signature = &made
	}
	_, *v.refused = r.Decide(v.w.Context(), v.tx, ruling)
}

// TestT72SelfApproval: whose name or key is listed with the proposer's is the proposer.
func TestT72SelfApproval(t *testing.T) {
	const own = "its author is the proposer"
	for name, c := range map[string]struct {
		lines []string
		said  func(v votes)
		want  string
	}{
		"another login of the line": {[]string{"bob,ada " + adaKey.Public}, func(v votes) { v.comments(adaThere, &adaKey) }, own},
		"without a signature":       {[]string{"bob,ada " + adaKey.Public}, func(v votes) { v.comments(adaThere, nil) }, own},
		"the key under two names":   {[]string{"ada " + adaKey.Public, "bob " + adaKey.Public}, func(v votes) { v.comments(adaThere, &adaKey) }, own},
		"in a clone": {[]string{"bob,bob@example.org " + bobKey.Public}, func(v votes) {
			v.decides(ledger.Actor{Kind: "user", ID: "local:bob@example.org", Login: "Bob"}, &bobKey)
		}, own},
		"the author on a line that cannot be read":    {[]string{"bob ssh-ed25519", "ada " + adaKey.Public}, func(v votes) { v.comments(adaThere, &adaKey) }, own},
		"somebody else on a line that cannot be read": {[]string{"eve ssh-ed25519", "ada " + adaKey.Public}, func(v votes) { v.comments(adaThere, &adaKey) }, ""},
		"somebody else": {[]string{"bob " + bobKey.Public, "ada " + adaKey.Public}, func(v votes) { v.comments(adaThere, &adaKey) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(newWorld(t)) // bob is the author
			h.w.lists(c.lines...)
			h.w.policy.Approvals.Signed, h.w.policy.Approvals.Local = policy.SignedToo, policy.LocalAlways
			done := h.ownDiff()
			h.gate(done.ID)
			v := votes{h, done.ID, "patchset:" + done.PatchID, new(error)}
			c.said(v)
			switch {
			case c.want == "":
				h.want(done.ID, approval.Approved, "")
			case *v.refused != nil:
				h.want(done.ID, approval.Pending, "")
			default:
				h.want(done.ID, approval.Pending, c.want)
			}
		})
	}
}
