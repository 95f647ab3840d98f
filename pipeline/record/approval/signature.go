package approval

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// The kinds of the artifacts of a decision that was signed: the SignedDecision, byte
// for byte as it was signed, a SignatureDoc and a KeyDoc.
const (
	KindDecision  = "decision"
	KindSignature = "signature"
	KindKey       = "key"
)

// A SignatureDoc is the artifact of an SSH signature, as
// ssh-keygen writes it.
type SignatureDoc struct {
	Schema  string `json:"schema"`
	Armored string `json:"armored"`
}

// A KeyDoc is the artifact of the line of the allowed signers that
// listed the key when the decision was recorded.
type KeyDoc struct {
	Schema string `json:"schema"`
	Line   string `json:"line"`
}

// ReadKeys reads whose signatures count from the tree that a Policy was read from.
// Where there is no list that can be read, the Err of what it returns says why.
func ReadKeys(tree fs.FS, p policy.Policy) Keys {
	raw, err := p.ReadKeys(tree)
	if err != nil {
		return Keys{Err: err}
	}
	allowed, err := sshsig.ParseAllowedSigners(raw)
	if err != nil {
		return Keys{Listed: allowed, Err: fmt.Errorf("approvals.keys: %s: %w", p.Approvals.Keys, err)}
	}
	return Keys{Allowed: allowed, Listed: allowed, Forge: p.Approvals.ForgeKeys, Hardware: p.Approvals.Hardware, PIN: p.Approvals.PIN, Passkeys: p.Approvals.Passkeys}
}

// Shown is the hash of the risks that are recorded with a transaction, which a signed
// decision on it names, "" where there are none.
func Shown(log *ledger.Log) string {
	risks := log.Artifacts(ledger.KindRisks)
	if len(risks) != 1 {
		return ""
	}
	return risks[0].StoredSHA256
}

// A Party tells who proposed a patch and who asked for it, by the paths of the artifacts that say so.
type Party struct {
	Proposers  map[string][]ledger.Actor
	Requesters map[string][]ledger.Requester
}

// ReadParty reads it from a transaction's directory.
func ReadParty(dir fs.FS, log *ledger.Log) Party {
	return Party{ledger.Proposers(dir, log), ledger.Requesters(dir, log)}
}

// SubjectOf is what a signed decision on a transaction must be about: by the events before it, which are all
// where it is not recorded yet. It is an error where the transaction says too little for one.
func SubjectOf(log *ledger.Log, party Party, d ledger.ApprovalDecision) (Subject, error) {
	p := log.Transaction().Pointers.Proposal
	if p == nil {
		return Subject{}, errors.New("nothing is proposed")
	}
	about := Subject{
		Repository: p.Repository, PullRequest: p.PullRequest, TransactionID: log.Meta().TransactionID, BaseCommit: log.Meta().BaseCommit,
		PatchID: p.PatchID, Shown: Shown(log),
		Proposers: []ledger.Actor{log.Meta().Proposer}, RequestedBy: append([]ledger.Requester{}, p.RequestedBy...), Policies: []ledger.PolicyRef{d.Policy},
	}
	for _, event := range log.Payloads()[:recordedAt(log, d)] {
		switch event := event.(type) {
		case *ledger.ApprovalRequest:
			if event.Policy.SHA256 == d.Policy.SHA256 {
				about.Policies = append(about.Policies, event.Policy)
			}
		case *ledger.ArtifactStored:
			if event.Kind != ledger.KindAgain && event.Kind != ledger.KindElsewhere {
				continue
			}
			by, told := party.Requesters[event.Path]
			if !told || len(party.Proposers[event.Path]) == 0 {
				return about, fmt.Errorf("%s cannot be read, which says who proposed it too", event.Path)
			}
			about.Proposers, about.RequestedBy = append(about.Proposers, party.Proposers[event.Path]...), append(about.RequestedBy, by...)
		}
	}
	slices.SortFunc(about.Proposers, ledger.CompareActors)
	about.Proposers, about.RequestedBy = slices.Compact(about.Proposers), append([]ledger.Requester{}, ledger.SortRequesters(about.RequestedBy)...)
	var err error
	if about.Began, err = log.Time(0); err != nil {
		return about, err
	}
	if about.Shown == "" {
		return about, errors.New("no risks are recorded with the transaction, so that nobody can sign what was shown: review the change again")
	}
	return about, nil
}

// IsOf says why a signature is not that of a decision which answers a request of some
// kind, nil if it is.
func IsOf(s SignedDecision, d ledger.ApprovalDecision, kind string) error {
	want := d.Decision
	if kind == policy.KindBreakGlass && want == ledger.Approve {
		want = BreakGlass
	}
	switch {
	case s.Decision != want:
		return fmt.Errorf("it was signed to %s, and not to %s", s.Decision, want)
	case !slices.Contains(s.Fingerprints, d.Fingerprint):
		return fmt.Errorf("it was not signed for %s", d.Fingerprint)
	case s.Reason != d.Reason:
		return errors.New("it was signed with another reason")
	}
	return nil
}

// recordedAt is the place of a decision among the events: behind all where it is not recorded yet.
func recordedAt(log *ledger.Log, d ledger.ApprovalDecision) int {
	i := slices.IndexFunc(log.Payloads(), func(p ledger.Payload) bool {
		same, is := p.(*ledger.ApprovalDecision)
		return is && same.ApprovalRequestID == d.ApprovalRequestID
	})
	if i < 0 {
		return len(log.Payloads())
	}
	return i
}

// DecidedIn is when a decision was recorded: the time of its event.
func DecidedIn(log *ledger.Log, d ledger.ApprovalDecision) (time.Time, error) {
	i := recordedAt(log, d)
	if i == len(log.Payloads()) {
		return time.Time{}, errors.New("the decision is not recorded")
	}
	return log.Time(i)
}

// ReadSignature reads from the record what a decision was signed with, and the line of
// the key. The artifacts must have been stored before the decision.
func ReadSignature(dir fs.FS, log *ledger.Log, d ledger.ApprovalDecision) (s Signature, line string, err error) {
	named := d.Source.Signature
	if named == nil {
		return s, "", errors.New("it has none")
	}
	var (
		armored SignatureDoc
		key     KeyDoc
	)
	before := log.Payloads()[:recordedAt(log, d)]
	for _, part := range [][2]string{{KindDecision, named.Statement}, {KindSignature, named.Signature}, {KindKey, named.Key}} {
		if storedAt(before, part[0], part[1]) == nil {
			return s, "", fmt.Errorf("its %s is not recorded before it", part[0])
		}
	}
	raw, err := fs.ReadFile(dir, named.Statement)
	if err == nil {
		s.Statement, err = ParseDecision(raw)
	}
	if err == nil {
		err = ReadArtifact(dir, storedAt(before, KindSignature, named.Signature), &armored, &armored.Schema)
	}
	if err == nil {
		err = ReadArtifact(dir, storedAt(before, KindKey, named.Key), &key, &key.Schema)
	}
	s.Armored = armored.Armored
	return s, key.Line, err
}

// A proof is what a recorded signature proves by the recorded line of its key, or why it is none.
type proof struct {
	signature Signature
	sshsig.Proof
	err error
}

// Proof holds the recorded signature of a decision to the recorded line.
func (r *Record) Proof(d ledger.ApprovalDecision) (Signature, sshsig.Proof, error) {
	known, ok := r.proofs[d.ApprovalRequestID]
	if !ok {
		if known.signature, known.Proof, known.err = r.prove(d); known.err != nil {
			known = proof{err: known.err}
		}
		r.proofs[d.ApprovalRequestID] = known
	}
	return known.signature, known.Proof, known.err
}

func (r *Record) prove(d ledger.ApprovalDecision) (signature Signature, proof sshsig.Proof, err error) {
	signature, line, err := ReadSignature(r.Dir, r.Log, d)
	if err != nil {
		return signature, proof, err
	}
	about, err := SubjectOf(r.Log, ReadParty(r.Dir, r.Log), d)
	if err != nil {
		return signature, proof, err
	}
	at, err := DecidedIn(r.Log, d)
	if err != nil {
		return signature, proof, err
	}
	allowed, err := sshsig.ParseAllowedSigners([]byte(line))
	if err != nil || strings.Contains(line, "\n") {
		return signature, proof, errors.New("the line of its key is not one of a list of keys")
	}
	proof, err = Prove(signature, about, Keys{Allowed: allowed}, d.Source, at)
	if err == nil {
		err = IsOf(signature.Statement, d, r.Log.Request(d.ApprovalRequestID).Kind)
	}
	named := d.Source.Signature
	if err == nil && (proof.Fingerprint != named.KeyFingerprint || proof.Principal != named.Principal) {
		err = errors.New("it names another key, or another principal, than the line of its key")
	}
	return signature, proof, err
}

// People is Case.People of a transaction's directory: by a list, which may be
// empty, and by the lines that its record has, so that a verdict from the record alone
// tells no two people apart whom this one does not.
func People(dir fs.FS, log *ledger.Log, list sshsig.Allowed) func(names ...string) []string {
	lists := sync.OnceValue(func() []sshsig.Allowed {
		all := []sshsig.Allowed{list}
		for _, a := range log.Artifacts(KindKey) {
			var key KeyDoc
			_ = ReadArtifact(dir, a, &key, &key.Schema) // no decision counts by what is wrong, but whom it joins are one
			if allowed, err := sshsig.ParseAllowedSigners([]byte(key.Line)); err == nil {
				all = append(all, allowed)
			}
		}
		return all
	})
	return func(names ...string) []string { return sshsig.Person(names, lists()...) }
}

// Signed is Case.Signed by the record, under a Policy.
func (r *Record) Signed(p policy.Policy) func(ledger.ApprovalDecision) (time.Time, error) {
	return func(d ledger.ApprovalDecision) (time.Time, error) {
		signature, proof, err := r.Proof(d)
		if err == nil {
			err = (Keys{Hardware: p.Approvals.Hardware, PIN: p.Approvals.PIN, Passkeys: p.Approvals.Passkeys}).Take(proof)
		}
		if err != nil {
			return time.Time{}, err
		}
		return time.Parse(time.RFC3339, signature.Statement.DecidedAt)
	}
}

// checkSignature tells what is wrong with the signature of a decision, nil if it has none and
// needs none. Of a pull request it must be the one in the text of its evidence, which
// may be nil.
func (r *Record) checkSignature(d *ledger.ApprovalDecision, evidence *StatementDoc) error {
	var posted Signature
	isPosted := false
	if evidence != nil {
		var err error
		posted, _, err = ParseSigned(evidence.Text)
		isPosted = err == nil
	}
	if d.Source.Signature == nil {
		if isPosted && d.Decision == ledger.Approve {
			return errors.New("what was posted is signed, but its signature is not recorded")
		}
		return nil
	}
	signature, _, err := r.Proof(*d)
	if err != nil {
		return err
	}
	if IsForge(d.Source) && (!isPosted || posted.String() != signature.String()) {
		return errors.New("what was posted has another signature, or none")
	}
	p, _, err := r.Policy(d.Policy)
	if err != nil {
		return err
	}
	if p.Approvals.Signing() == policy.SignedOff {
		return errors.New("the Policy took none (approvals.signed)")
	}
	_, err = r.Signed(p)(*d)
	return err
}
