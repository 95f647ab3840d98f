package pipeline

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// Statement is what somebody signs who decides on the transaction as it is here, at a
// time. The fingerprints are in full, as those of the Verdict's needs; the decision may
// be approval.BreakGlass. It is an error where the transaction cannot take a signed
// decision.
func (g Judgement) Statement(decision ledger.Decision, fingerprints []string, reason string, at time.Time) (approval.SignedDecision, error) {
	about, err := approval.SubjectOf(g.log, g.party(), ledger.ApprovalDecision{Policy: g.asking()})
	if err != nil {
		return approval.SignedDecision{}, err
	}
	return ToSign(g.Ledger.Tree, g.log, about, decision, fingerprints, reason, at)
}

// asking is the Policy that asks for a decision now: as the last request names it that was made under it, since the
// commit that it is read from moves on where it stays the same.
func (g Judgement) asking() ledger.PolicyRef {
	now := g.rules.ref()
	for _, q := range ledger.Of[*ledger.ApprovalRequest](g.log) {
		if q.Policy.SHA256 == now.SHA256 {
			now = q.Policy
		}
	}
	return now
}

// party is who proposed the patch and who asked for it, as the record has it and this stage adds to it.
func (g Judgement) party() approval.Party {
	p := approval.ReadParty(g.dir(), g.log)
	for path, doc := range g.elsewhere {
		p.Proposers[path], p.Requesters[path] = doc.Proposers(), doc.Requesters()
	}
	return p
}

// dir is the directory of the transaction.
func (g Judgement) dir() fs.FS {
	dir, err := fs.Sub(g.Ledger.Tree, ledger.Dir(g.Transaction().TransactionID))
	if err != nil {
		panic("pipeline: a transaction that was read has no directory: " + err.Error())
	}
	return dir
}

// CheckBytes is an error unless what the ledger shows of the patch is all of it, or the
// very bytes are at hand and are what was shown: a text without secrets is held to
// nothing but its own record. *RedactedError says that they are not at hand.
func (g Judgement) CheckBytes(ctx context.Context) error {
	tx := g.Transaction()
	if tx.Pointers.Proposal.PatchRedactedSHA256 == "" {
		_, err := g.Diff()
		return err
	}
	set, err := g.patch.On(ctx, g.Ledger.Tree, tx, tx.Pointers.Proposal.BaseCommit)
	if err == nil {
		_, err = ComparePatch(tx, set, g.secrets)
	}
	return err
}

// Keys say whose signatures count for the transaction, by the rules of the Verdict.
func (g Judgement) Keys() approval.Keys { return g.rules.Keys }

// A proven signature is good, for the decision that it is recorded with.
type proven struct {
	signature approval.Signature
	proof     sshsig.Proof
}

// prove verifies the signature of a decision on a request of some kind, which a stage
// is about to record.
func (r *Runner) prove(s *writing.Stage, g Judgement, signature approval.Signature, d ledger.ApprovalDecision, kind string) (*proven, error) {
	if g.rules.Policy.Approvals.Signing() == policy.SignedOff {
		return nil, errors.New("the Policy takes none (approvals.signed)")
	}
	d.Policy = g.rules.ref()
	about, err := approval.SubjectOf(g.log, g.party(), d)
	if err != nil {
		return nil, err
	}
	if err := approval.IsOf(signature.Statement, d, kind); err != nil { // rule L21 would refuse the record
		return nil, err
	}
	proof, err := approval.Verify(signature, about, g.rules.Keys, d.Source, s.Now())
	if err != nil {
		return nil, err
	}
	p := &proven{signature, proof}
	for _, doc := range p.artifacts() {
		raw, err := canon.Marshal(doc)
		if err != nil {
			return nil, err
		}
		kept, err := r.Secrets.JSON(raw, writing.IsTyped)
		if err != nil || !bytes.Equal(kept, raw) {
			return nil, errors.New("what was signed, or the line of the key, has what looks like a secret in it, which the ledger does not keep: sign again without it")
		}
	}
	return p, nil
}

// artifacts are what the ledger keeps of a signature: statement, signature and the
// line of the key.
func (p *proven) artifacts() [3]any {
	return [3]any{p.signature.Statement, forge.SignatureDoc(p.signature), forge.KeyDoc(p.proof.Line)}
}

// store records a signature, and returns what a decision says of it. Nil is none.
func (g *Judgement) store(s *writing.Stage, p *proven) *ledger.Signature {
	if p == nil {
		return nil
	}
	docs := p.artifacts()
	named := ledger.Signature{
		Statement: s.Artifact(approval.KindDecision, docs[0]), Signature: s.Artifact(approval.KindSignature, docs[1]),
		Key: s.Artifact(approval.KindKey, docs[2]), Principal: p.proof.Principal, KeyFingerprint: p.proof.Fingerprint,
	}
	g.signatures = maps.Clone(g.signatures)
	if g.signatures == nil {
		g.signatures = map[ledger.Signature]approval.Signature{}
	}
	g.signatures[named] = p.signature
	return &named
}

// signedAt verifies the signature of a recorded approval, by the keys that the rules
// name now: those who can write the ledger can put any key into it. That it is of this
// decision was seen before, by prove or by rule L21. A verdict that is history goes by
// the record.
func (g Judgement) signedAt(d ledger.ApprovalDecision) (time.Time, error) {
	if g.history {
		return new(approval.Policies).Record(g.dir(), g.log).Signed(g.rules.Policy)(d)
	}
	signature, fresh := g.signatures[*d.Source.Signature]
	if !fresh {
		var err error
		if signature, _, err = approval.ReadSignature(g.dir(), g.log, d); err != nil {
			return time.Time{}, err
		}
	}
	about, err := approval.SubjectOf(g.log, g.party(), d)
	if err != nil {
		return time.Time{}, err
	}
	at, err := approval.DecidedIn(g.log, d)
	if err != nil {
		return time.Time{}, err
	}
	if _, err := approval.Verify(signature, about, g.rules.Keys, d.Source, at); err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339, signature.Statement.DecidedAt)
}

// ToSign is the statement of a decision about a subject, which is a transaction's: with all who proposed and asked, wherever in
// the ledger. It is an error where it would be none.
func ToSign(tree fs.FS, log *ledger.Log, about approval.Subject, decision ledger.Decision, fingerprints []string, reason string, at time.Time) (s approval.SignedDecision, err error) {
	about.Proposers, about.RequestedBy, err = lookup.Everybody(tree, log)
	if err != nil {
		return s, err
	}
	slices.SortFunc(about.Proposers, ledger.CompareActors)
	s = approval.SignedDecision{
		Schema: approval.DecisionSchema, Repository: about.Repository, PullRequest: about.PullRequest, TransactionID: about.TransactionID,
		BaseCommit: about.BaseCommit, Decision: decision, Fingerprints: slices.Compact(slices.Sorted(slices.Values(fingerprints))),
		Reason: ledger.OneLine(reason, 500), DecidedAt: at.UTC().Format(time.RFC3339), Shown: about.Shown,
		Proposers: slices.Compact(about.Proposers), RequestedBy: append([]ledger.Requester{}, about.RequestedBy...), Policy: about.Policies[0],
	}
	return s, s.Check()
}
