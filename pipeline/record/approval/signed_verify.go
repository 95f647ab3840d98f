package approval

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// A Subject is what a decision must be about: the transaction with its repository and
// pull request as the ledger has them, the hash of the risks that are to be shown
// for it, who had proposed the bytes and asked for them until it was recorded, and the Policy that
// asks for it. Of Policies the first is the one that it is recorded under; the others say the same, and
// are those that asked for it before.
type Subject struct {
	Repository    *ledger.Repository
	PullRequest   int
	TransactionID string
	BaseCommit    string
	PatchID       string
	Shown         string
	Proposers     []ledger.Actor
	RequestedBy   []ledger.Requester
	Policies      []ledger.PolicyRef
	Began         time.Time // when the transaction was recorded: nothing on it is older
}

// Keys say whose signatures count: the list of the trusted base, whether the keys that
// the forge has for an account belong to it, and whether a security key has to have made
// them, and to have verified the person. With an Err, which says why there is no list,
// nobody's do.
type Keys struct {
	Allowed  sshsig.Allowed
	Listed   sshsig.Allowed // what of it is the list's: who is one person is said there
	Err      error
	Forge    bool
	Hardware bool
	PIN      bool
	Passkeys string // the origin of the page that passkeys are asked by; "" takes none of them
}

// A Registered key is one that an account at the forge has to sign with, as
// authorized_keys has it, and since when.
type Registered struct {
	Key   string
	Since time.Time
}

// With adds the keys that accounts, by their login, had registered at some time, as lines
// of the list: for this account, these decisions, and from when they were registered. Of
// a key that the list has it says everything itself, so a list with a line that cannot be
// read takes none of them. What is no key is none.
func (k Keys) With(registered map[string][]Registered, at time.Time) Keys {
	list := k.Allowed
	if list.Unread() != nil {
		return k
	}
	for _, login := range slices.Sorted(maps.Keys(registered)) {
		for _, r := range registered[login][:min(len(registered[login]), mostRegistered)] {
			fields := strings.Fields(r.Key)
			if !k.Forge || !loginRule().MatchString(login) || len(fields) < 2 || r.Since.IsZero() || r.Since.After(at) || list.Lists(r.Key) {
				continue
			}
			line := fmt.Sprintf(`github:%s namespaces="%s",valid-after="%s" %s %s`, login, Namespace, r.Since.UTC().Format("20060102150405Z"), fields[0], fields[1])
			if one, err := sshsig.ParseAllowedSigners([]byte(line)); err == nil {
				k.Allowed = k.Allowed.With(one)
			}
		}
	}
	return k
}

// mostRegistered is how many keys of an account are looked at.
const mostRegistered = 100

// loginRule is what GitHub's logins of people are made of, in which nothing has a
// meaning in a list of keys.
var loginRule = canon.Regexp(`^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,99})$`)

var registeredLine = canon.Regexp(`^github:(\S+) namespaces="` + regexp.QuoteMeta(Namespace) + `",valid-after="([0-9]{14}Z)" (\S+ \S+)$`)

// IsRegistered reports whether a line is one that With would have added for a key of an
// account that it had at some time. That the forge had it, the line alone does not tell.
func (k Keys) IsRegistered(line string, at time.Time) bool {
	part := registeredLine().FindStringSubmatch(line)
	if part == nil || k.Allowed.HasLine(line) {
		return false
	}
	since, err := time.Parse("20060102150405Z", part[2])
	return err == nil && k.With(map[string][]Registered{part[1]: {{Key: part[3], Since: since}}}, at).Allowed.HasLine(line)
}

// ahead is how far the clock of who signs may be ahead.
const ahead = 5 * time.Minute

// Verify is Prove for keys of the sort that is asked for.
func Verify(s Signature, about Subject, keys Keys, from ledger.Source, at time.Time) (sshsig.Proof, error) {
	proof, err := Prove(s, about, keys, from, at)
	if err == nil {
		err = keys.Take(proof)
	}
	if err != nil {
		return sshsig.Proof{}, err
	}
	return proof, nil
}

// Prove says how a signature is the decision of somebody about a subject, or why it
// is not. From is where the decision came from; at is when it is recorded. The key must
// be valid then, when the decision was made, and when it was posted on a forge. Whether it
// may be one of its sort, such as a passkey, [Keys.Take] says.
func Prove(s Signature, about Subject, keys Keys, from ledger.Source, at time.Time) (sshsig.Proof, error) {
	if keys.Err != nil {
		return sshsig.Proof{}, keys.Err
	}
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
	begins := about.Began.Add(-ahead)
	err = first([]broken{
		{decided.After(at.Add(ahead)), "it was decided at " + s.Statement.DecidedAt + ", which is still to come"},
		{decided.Before(begins) || at.Before(begins), "it was decided at " + s.Statement.DecidedAt + ", before the change was proposed"},
	})
	if err != nil {
		return sshsig.Proof{}, err
	}
	valid := []time.Time{at}
	if IsForge(from) {
		posted, err := ledger.ParseTime(from.CreatedAt)
		if err != nil {
			return sshsig.Proof{}, fmt.Errorf("nobody can tell when it was posted: %w", err)
		}
		valid = append(valid, posted)
	}
	proof, err := keys.Allowed.Prove(Namespace, s.Statement.Bytes(), s.Armored, names(from), decided, valid...)
	if keys.Forge && errors.Is(err, sshsig.ErrUnknownKey) {
		err = fmt.Errorf("%w, and which the forge had not registered for the account when the change was proposed", err)
	}
	return proof, err
}

// Take says why a key that made a good signature is not of the sort that is asked for.
func (k Keys) Take(proof sshsig.Proof) error {
	_, host, _ := strings.Cut(k.Passkeys, "://")
	host, _, _ = strings.Cut(host, ":")
	switch {
	case proof.Origin != "" && k.Passkeys == "":
		return fmt.Errorf("%s is a passkey, and the Policy takes none (approvals.passkeys)", proof.Fingerprint)
	case proof.Origin != "" && (proof.Origin != k.Passkeys || proof.Host != host):
		return fmt.Errorf("the passkey %s of %q was asked on %q, and the Policy takes those that %s asks (approvals.passkeys)", proof.Fingerprint, proof.Host, proof.Origin, k.Passkeys)
	case k.Hardware && !proof.Hardware:
		return fmt.Errorf("%s is not a security key, which the Policy asks for (approvals.hardware)", proof.Fingerprint)
	case k.PIN && !proof.Verified:
		return fmt.Errorf("the security key %s did not verify the person, which the Policy asks for (approvals.pin)", proof.Fingerprint)
	}
	return nil
}

// names are those that a list of keys may have for who decided: the login of an
// account, or the e-mail address of the Git identity of a clone.
func names(from ledger.Source) []string {
	mail := strings.TrimPrefix(from.Author.ID, "local:")
	switch {
	case IsForge(from) && from.Author.Login != "":
		return []string{from.Author.Login, "github:" + from.Author.Login}
	case !IsForge(from) && strings.Contains(mail, "@"):
		return []string{mail}
	}
	return nil
}

// IsForge reports whether a decision was read from a pull request.
func IsForge(from ledger.Source) bool { return from.Kind != "local" && from.Kind != "rpc" }

// isAbout compares a statement with what it must be about. What the subject itself
// does not tell is no match for anything.
func (s SignedDecision) isAbout(about Subject) error {
	sameRepository := s.Repository == nil && about.Repository == nil
	if s.Repository != nil && about.Repository != nil {
		sameRepository = *s.Repository == *about.Repository
	}
	if about.TransactionID == "" || about.BaseCommit == "" || about.PatchID == "" || about.Shown == "" || about.Began.IsZero() ||
		len(about.Proposers) == 0 || about.RequestedBy == nil || len(about.Policies) == 0 || about.Policies[0] == (ledger.PolicyRef{}) {
		return errors.New("nobody can tell what it should be about")
	}
	return first([]broken{
		{!sameRepository, "it was signed for another repository"},
		{s.PullRequest != about.PullRequest, fmt.Sprintf("it was signed for another pull request than %d", about.PullRequest)},
		{s.TransactionID != about.TransactionID, "it was signed for another transaction than " + about.TransactionID},
		{s.BaseCommit != about.BaseCommit, "it was signed for another base"},
		{s.Shown != about.Shown, "its signer was shown other risks than this change has"},
		{!slices.Equal(s.Proposers, about.Proposers), "its signer was shown others as who proposed this: sign again"},
		{!slices.Equal(s.RequestedBy, about.RequestedBy), "its signer was shown others as who asked for this: sign again"},
		{s.Policy.SHA256 != about.Policies[0].SHA256, "it was signed under another Policy than the one that asks for it now: sign again"},
		{!slices.Contains(about.Policies, s.Policy), fmt.Sprintf("it names commit %.12s for the Policy, from which nobody was asked: sign again", s.Policy.Commit)},
		{!s.isOf(about.PatchID), "it was signed for another patch than " + about.PatchID},
	})
}
