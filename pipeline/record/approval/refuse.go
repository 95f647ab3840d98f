package approval

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/record/sshsig"
)

// refuse says why an approval counts for no need at all, "" if it may: its
// author is no known human, it was not said where or with the permission that
// the Policy asks for, it is not there any more, or it is out of date.
func (c Case) refuse(d ledger.ApprovalDecision) string {
	s := d.Source
	switch {
	case s.Author.ID == "":
		return "has no author"
	case s.Author.Kind != "user":
		return "its author is not a human account"
	case c.Policy.IsBot(s.Author.ID, s.Author.Login):
		return "the Policy lists its author under bots"
	case c.untold:
		return "who proposed the change cannot be told"
	case c.unasked && slices.Contains(c.Policy.Approvals.Independent, policy.Requesting):
		return "who asked for the change cannot be told"
	}
	if c.Passes != nil {
		if why := c.Passes(d); why != "" {
			return why
		}
	}
	switch {
	case !IsForge(s):
		if !c.Policy.Approvals.Local.Counts(c.PullRequest) {
			return "the Policy does not allow local decisions"
		}
	case !isStatement(s):
		return "its source is of no known kind"
	default:
		if why := Refused(c.Policy, Access{Permission: s.Permission}); why != "" {
			return why
		}
		if c.Stands == nil {
			return "its comment was not read again"
		}
		if why := c.Stands(d); why != "" {
			return why
		}
	}
	if s.Signature != nil {
		if _, err := c.signature(d); err != nil {
			return "its signature does not count: " + ledger.OneLine(err.Error(), 300)
		}
	}
	if c.Policy.Approvals.SameHead && (c.Head == "" || MadeOn(c.Log, d) != c.Head) {
		return "was made on another commit"
	}
	if why := c.drifted(d); why != "" {
		return why
	}
	most := time.Duration(c.Policy.Approvals.MaxAge)
	if most == 0 {
		return ""
	}
	// One from the future has no age; a minute is left for clocks that differ (T56).
	at, err := c.madeAt(d)
	switch age := c.Now.Sub(at); {
	case err != nil, age < -time.Minute: // so is everything, without a Now
		return "its age cannot be told"
	case age > most:
		return "expired"
	}
	return ""
}

// madeAt is when an approval was made. Whoever has a signed one can post it again: it is of the time that it was signed for.
func (c Case) madeAt(d ledger.ApprovalDecision) (time.Time, error) {
	at, err := ledger.ParseTime(d.Source.CreatedAt)
	if err != nil || d.Source.Signature == nil {
		return at, err
	}
	signedAt, err := c.signature(d)
	if signedAt.Before(at) {
		at = signedAt
	}
	return at, err
}

// knew reports whether an approval, at its place in the log, was recorded after the event that a need is behind, 0 of none, and not made before it.
func (c Case) knew(d ledger.ApprovalDecision, at, behind int) bool {
	if behind == 0 || behind >= at {
		return behind == 0
	}
	told, untold := c.Log.Time(behind)
	made, unknown := c.madeAt(d)
	return untold == nil && unknown == nil && !made.Before(told)
}

// signature verifies an approval's signature, and tells when it was made.
func (c Case) signature(d ledger.ApprovalDecision) (time.Time, error) {
	switch {
	case c.Policy.Approvals.Signing() == policy.SignedOff:
		return time.Time{}, errors.New("the Policy takes none (approvals.signed)")
	case c.Signed == nil:
		return time.Time{}, errors.New("it was not verified")
	}
	return c.Signed(d)
}

// MadeOn is the commit that an approval is of. Whoever has a signed one can post it
// again, so that it is of the commit which was the head, or HEAD, at the review.
func MadeOn(log *ledger.Log, d ledger.ApprovalDecision) string {
	if d.Source.Signature == nil {
		return d.Source.Commit
	}
	if p := log.Transaction().Pointers.Proposal; p != nil && p.HeadCommit != "" {
		return p.HeadCommit
	}
	return log.Meta().BaseCommit
}

// refuseFor says why an approval does not count for one need: the proposer's
// own, but for the local and the solo maintainer's, and never for a secret (T46).
func (c Case) refuseFor(n policy.Need, s ledger.Source) string {
	own, proposer := c.Wrote(s), c.Log.Meta().Proposer
	said := "its author is the proposer"
	if own && slices.ContainsFunc(c.elsewhere, func(a ledger.Actor) bool { return c.Is(s, a) }) && !c.Is(s, proposer) {
		said = "its author proposed the same change in another transaction"
	}
	// An agent has the identity of the shell.
	proposedHere := !IsForge(s) && (Same(s.Author, proposer) || strings.HasPrefix(proposer.ID, "local:"))
	switch {
	case n.Kind == policy.KindSecret && c.Policy.Secrets.Mode == policy.Refuse:
		return "the Policy refuses secrets"
	case n.Kind == policy.KindSecret && own:
		return said + ", who cannot excuse a secret"
	case own && !proposedHere && !c.Policy.Approvals.AllowAuthor:
		return said
	case n.Signed && s.Signature == nil:
		return c.unsigned(s)
	}
	return ""
}

// unsigned says why an approval without a signature does not count, and how to sign.
func (c Case) unsigned(s ledger.Source) string {
	tx := c.Log.Transaction()
	command := "countersign approve " + tx.TransactionID + " --sign"
	if IsForge(s) {
		command = fmt.Sprintf("countersign sign --pr %d", tx.PullRequest())
	}
	return "is not signed, which the Policy asks for: " + command
}

// Wrote reports whether the change is somebody's own. The id is the person (T11);
// only where there is none the login has to do. Who is listed with the same key, or
// beside the same name, is one person.
func (c Case) Wrote(s ledger.Source) bool {
	all := slices.Concat([]ledger.Actor{c.Log.Meta().Proposer}, c.Authors, c.elsewhere)
	return slices.ContainsFunc(all, func(a ledger.Actor) bool { return c.Is(s, a) })
}

// part says why an approval is not enough alone, "" if it may be: its author had a part in the change that the Policy
// names under approvals.independent.
func (c Case) part(s ledger.Source) string {
	const alone = " by the approver, and somebody else must approve it too (approvals.independent)"
	switch names := func(p policy.Part) bool { return slices.Contains(c.Policy.Approvals.Independent, p) }; {
	case names(policy.Proposing) && c.Wrote(s):
		return "proposed" + alone
	case names(policy.Requesting) && c.askedFor(s):
		return "asked for" + alone
	}
	return ""
}

// ask adds people who asked for the change.
func (c *Case) ask(all []ledger.Requester) {
	for _, r := range all {
		c.asked = append(slices.Clip(c.asked), r.Actor)
		c.unasked = c.unasked || Unnamed(r.Actor)
	}
}

// Unnamed reports whether a person's name was taken out of the record as if it were a secret.
func Unnamed(a ledger.Actor) bool { return a.Redacted() || strings.Contains(a.Login, "<REDACTED:") }

// askedFor reports whether the author of an approval is one of them.
func (c Case) askedFor(s ledger.Source) bool {
	return slices.ContainsFunc(c.asked, func(a ledger.Actor) bool { return c.Is(s, a) })
}

// Is reports whether the author of an approval is somebody. The names of both are asked
// for: of two people, the list may tell the one apart from nobody.
func (c Case) Is(s ledger.Source, a ledger.Actor) bool {
	return Same(s.Author, a) || c.People != nil &&
		(slices.Contains(c.names(s.Author, s.Signature), ListedAs(a)) || slices.Contains(c.names(a, nil), ListedAs(s.Author)))
}

// names are all that the lists of keys have for the author of an approval, and the key
// that signed it, if one did.
func (c Case) names(who ledger.Actor, by *ledger.Signature) []string {
	var names []string
	if name := ListedAs(who); name != "" && c.People != nil {
		names = append(names, name)
	}
	if by != nil {
		names = append(names, by.KeyFingerprint)
	}
	if c.People == nil {
		return names
	}
	return c.People(names...)
}

// ListedAs is the name that a list of keys may have for somebody: the login of an
// account, or the address of a Git identity.
func ListedAs(who ledger.Actor) string {
	if mail, local := strings.CutPrefix(who.ID, "local:"); local && strings.Contains(mail, "@") {
		return sshsig.Name(mail)
	} else if local {
		return ""
	}
	return sshsig.Name(who.Login)
}

// Same reports whether two are one: by id where both have one, else by login.
func Same(a, b ledger.Actor) bool {
	if a.ID != "" && b.ID != "" {
		return a.ID == b.ID
	}
	return a.Login != "" && strings.EqualFold(a.Login, b.Login)
}

// breakGlass judges an approval that is to break the glass: in an emergency one of
// those whom the Policy lists approves alone, with a reason. It is nobody's vote
// for anything else, and the proposer's own as well, unless there is a secret.
func (c Case) breakGlass(d ledger.ApprovalDecision, tallies []*tally) (bool, string) {
	who := d.Source.Author
	secret := slices.ContainsFunc(tallies, func(t *tally) bool { return t.need.Kind == policy.KindSecret })
	switch {
	case d.Fingerprint != policy.Fingerprint(policy.KindBreakGlass, c.Log.Transaction().PatchID()):
		return false, "names another patch"
	case d.Reason == "":
		return false, "breaks the glass without a reason"
	case !c.Policy.BreaksGlass(who.ID, who.Login):
		return false, "the Policy does not list its author under break_glass"
	case secret && c.Wrote(d.Source):
		return false, "its author is the proposer, who cannot break the glass for a secret"
	case d.Source.Signature == nil && slices.ContainsFunc(tallies, func(t *tally) bool { return t.need.Signed }):
		return false, c.unsigned(d.Source)
	}
	if why := c.refuse(d); why != "" {
		return false, why
	}
	return true, "approved by breaking the glass"
}

// Refused says why an access is too little to decide, "" if it is enough.
func Refused(p policy.Policy, a Access) string {
	least := p.Approvals.Permission
	if policy.Permission(a.Permission).AtLeast(least) {
		return ""
	}
	has := ledger.OneLine(a.Permission, 20)
	if has == "" || has == "none" {
		has = "no"
	}
	return fmt.Sprintf("has %s permission, %s needed", has, least)
}
