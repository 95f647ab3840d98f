package signed

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/sshsig"
)

// A Subject is what a decision must be about: the transaction with its repository and
// pull request as the ledger has them, and the hash of the risks that are to be shown
// for it.
type Subject struct {
	Repository    *ledger.Repository
	PullRequest   int
	TransactionID string
	BaseCommit    string
	PatchID       string
	Shown         string
}

// Keys say whose signatures count: the list of the trusted base, and whether a
// security key has to have made them, and to have verified the person.
type Keys struct {
	Allowed  sshsig.Allowed
	Hardware bool
	PIN      bool
}

// ahead is how far the clock of who signs may be ahead.
const ahead = 5 * time.Minute

// Verify says how a signature is the decision of somebody about a subject, or why it
// is not. Names are those that the list may have for this person; at is when the
// decision is recorded, at which the key must be valid as well as when it was made.
func Verify(s Signature, about Subject, keys Keys, names []string, at time.Time) (sshsig.Proof, error) {
	if err := s.Statement.Check(); err != nil {
		return sshsig.Proof{}, fmt.Errorf("the statement is not of its form: %w", err)
	}
	if err := s.Statement.isAbout(about); err != nil {
		return sshsig.Proof{}, err
	}
	decided, err := time.Parse(time.RFC3339, s.Statement.DecidedAt)
	if err != nil {
		return sshsig.Proof{}, err
	}
	if decided.After(at.Add(ahead)) {
		return sshsig.Proof{}, fmt.Errorf("it was decided at %s, which is still to come", s.Statement.DecidedAt)
	}
	proof, err := keys.Allowed.Prove(Namespace, s.Statement.Bytes(), s.Armored, names, decided, at)
	switch {
	case err != nil:
		return sshsig.Proof{}, err
	case (keys.Hardware || keys.PIN) && !proof.Hardware:
		return sshsig.Proof{}, fmt.Errorf("%s is not a security key, which the Policy asks for (approvals.hardware)", proof.Fingerprint)
	case keys.PIN && !proof.Verified:
		return sshsig.Proof{}, fmt.Errorf("the security key %s did not verify the person, which the Policy asks for (approvals.pin)", proof.Fingerprint)
	}
	return proof, nil
}

// isAbout compares a statement with what it must be about. What the subject itself
// does not tell is no match for anything.
func (s Statement) isAbout(about Subject) error {
	sameRepository := s.Repository == nil && about.Repository == nil
	if s.Repository != nil && about.Repository != nil { // a name can be another's by now, a number cannot
		sameRepository = s.Repository.ID == about.Repository.ID
	}
	switch {
	case about.TransactionID == "" || about.BaseCommit == "" || about.PatchID == "" || about.Shown == "":
		return errors.New("nobody can tell what it should be about")
	case !sameRepository:
		return errors.New("it was signed for another repository")
	case s.PullRequest != about.PullRequest:
		return fmt.Errorf("it was signed for another pull request than %d", about.PullRequest)
	case s.TransactionID != about.TransactionID:
		return fmt.Errorf("it was signed for another transaction than %s", about.TransactionID)
	case s.BaseCommit != about.BaseCommit:
		return errors.New("it was signed for another base")
	case s.Shown != about.Shown:
		return errors.New("its signer was shown other risks than this change has")
	}
	for _, f := range s.Fingerprints {
		if !slices.Contains([]string{"", "secret:", "protected:"}, strings.TrimSuffix(f, "patchset:"+about.PatchID)) {
			return fmt.Errorf("it was signed for another patch than %s", about.PatchID)
		}
	}
	return nil
}
