package explain

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A Difference is what a Policy that is not in force would have changed of what is
// past: of recorded transactions, and of pull requests that have none.
//
// A record does not tell all that a Policy can ask. What it does not tell is never taken
// for granted: the verdict is unknown wherever it depends on that.
type Difference string

// The differences. AsksMore and AsksLess are of approvals, whether or not the recorded
// ones suffice: the verdicts say that.
const (
	NoDifference      Difference = "none"
	Blocked           Difference = "blocked"      // refused whoever approves, or denied
	AsksMore          Difference = "asks_more"    // of more people, or of others, or signed
	AsksLess          Difference = "asks_less"    // of fewer people
	LetsThrough       Difference = "lets_through" // what was not approved would have been
	DifferenceUnknown Difference = "unknown"      // it depends on what is not recorded
)

// Differences has the differences in the order in which they are told.
var Differences = []Difference{Blocked, AsksMore, LetsThrough, AsksLess, DifferenceUnknown, NoDifference}

// The states of a verdict beside those of approval. Refused is of a change that the
// Policy does not take, whoever approves it; Merged of a pull request that was merged
// without a transaction.
const (
	Refused approval.State = "refused"
	Merged  approval.State = "merged"
)

// A Case is one transaction, or one merged pull request without one, by two Policies.
// Now is UnknownVerdict where that depends on what is not known; then AtBest is the verdict with
// all of that in favour of the change, "" where it is known. PolicySHA256 is the Policy's that was in force. What a case has not is "" or 0.
type Case struct {
	TransactionID string         `json:"transaction_id"`
	PullRequest   int            `json:"pull_request"`
	Summary       string         `json:"summary"`
	At            string         `json:"at"` // of the verdict of then, RFC 3339
	Then          approval.State `json:"then"`
	Now           approval.State `json:"now"`
	AtBest        approval.State `json:"at_best"`
	Difference    Difference     `json:"difference"`
	Why           []string       `json:"why"`
	PolicySHA256  string         `json:"policy_sha256"`
}

// SimulateTransaction replays one transaction of a ledger's tree by another Policy. The Policies
// are those that many calls share. What cannot be read, or does not verify, is unknown.
func SimulateTransaction(tree fs.FS, ps *approval.Policies, id string, p policy.Policy) Case {
	log, found, err := approval.CheckRecord(tree, id)
	c := Case{TransactionID: id, Then: UnknownVerdict, Now: UnknownVerdict, AtBest: UnknownVerdict, Difference: DifferenceUnknown, Why: []string{}}
	switch {
	case err == nil && len(found) > 0:
		err = fmt.Errorf("its record does not verify: %w", canon.ErrorOf(found))
	case err == nil && log == nil:
		err = lookup.ErrNotFound
	}
	if log != nil {
		tx := log.Transaction()
		c.Summary, c.At, c.PullRequest = ledger.OneLine(tx.Notes, 200), tx.CreatedAt, tx.PullRequest()
	}
	if err == nil {
		err = c.replay(tree, ps, log, p)
	}
	if err != nil {
		c.Why = append(c.Why, ledger.OneLine(err.Error(), 300))
	}
	return c
}

func (c *Case) replay(tree fs.FS, ps *approval.Policies, log *ledger.Log, p policy.Policy) error {
	tx := log.Transaction()
	dir, err := fs.Sub(tree, ledger.Dir(c.TransactionID))
	if err != nil {
		return err
	}
	denials, err := ledger.Denials(tree, tx.PatchID())
	if err != nil {
		return err
	}
	r, err := Rejudge(ps, dir, log, denials, p)
	if err != nil {
		return err
	}
	asked, err := askedWhenReviewed(ps, dir, log)
	if err != nil {
		return err
	}
	c.At, c.PolicySHA256 = ledger.FormatTime(r.At), r.Policy.Sum()
	change := proposedIn(dir, log)
	blocked, untold := change.refused(p, asked, r.Policy)
	said, err := approval.Advised(dir, log, r.events)
	needs := func(p policy.Policy) []policy.Need {
		return p.Needs(tx.Pointers.Proposal.TargetFiles, tx.Pointers.Proposal.ContainsSecrets, said...)
	}
	c.settle(r, needs(r.Policy), needs(p), blocked, untold)
	return err
}

// askedWhenReviewed is the Policy by which a change was taken in.
func askedWhenReviewed(ps *approval.Policies, dir fs.FS, log *ledger.Log) (policy.Policy, error) {
	ref := ledger.PolicyRef{Commit: log.Meta().PolicyCommit, SHA256: log.Transaction().Pointers.Proposal.PolicySHA256}
	p, _, err := ps.Recorded(dir, log, ref)
	return p, err
}

// settle compares two verdicts, and what the two Policies need of the change. Blocked says
// why the other Policy takes it from nobody, untold what is not known beside approvals.
func (c *Case) settle(r Rejudged, needed, needs []policy.Need, blocked, untold []string) {
	c.Then, c.Now, c.AtBest = r.Then.State, r.State(), ""
	more, less := compareNeeds(needed, needs)
	var why []string
	switch {
	case len(blocked) > 0:
		c.Now, why = Refused, blocked
	case c.Now == UnknownVerdict:
		c.AtBest, why = r.Best.State, slices.Concat(more, less, notKnown(r.Untold))
	case c.Now == approval.Approved && len(untold) > 0:
		c.Now, c.AtBest, why = UnknownVerdict, approval.Approved, slices.Concat(more, less, notKnown(untold))
	default:
		why = slices.Concat(more, less)
		if c.Now != c.Then {
			why = append(why, reasons(r.Best)...) // what holds even so
		}
	}
	c.Difference = difference(c.Then, c.Now, len(more) > 0, len(less) > 0)
	if c.Difference == NoDifference {
		return
	}
	for _, w := range why {
		c.Why = append(c.Why, ledger.OneLine(w, 300))
	}
}

// notKnown are reasons of a verdict that is unknown.
func notKnown(what []string) []string {
	out := make([]string, 0, len(what))
	for _, w := range what {
		out = append(out, "not known: "+w)
	}
	return out
}

// reasons are why a verdict is what it is: what it lacks, and which approvals do not count.
func reasons(v approval.Verdict) []string {
	out := []string{plain.Reason(v.Reason)}
	for _, d := range v.Decisions {
		if !d.Counted {
			out = append(out, fmt.Sprintf("the approval of %s: %s", cmp.Or(d.Author.Login, d.Author.ID, "nobody"), d.Reason))
		}
	}
	return out
}

// difference is that between two verdicts, with what is asked beyond or beside.
func difference(then, now approval.State, more, less bool) Difference {
	through := func(s approval.State) bool { return s == approval.Approved || s == Merged }
	stopped := func(s approval.State) bool { return s == approval.Denied || s == Refused }
	switch {
	case now == UnknownVerdict || then == UnknownVerdict:
		return DifferenceUnknown
	case stopped(now) && !stopped(then):
		return Blocked
	case through(now) && !through(then):
		return LetsThrough
	case through(then) && !through(now), more && !stopped(now):
		return AsksMore
	case less && !stopped(now):
		return AsksLess
	case stopped(then) && !stopped(now):
		return AsksLess
	}
	return NoDifference
}

// compareNeeds says what some needs ask for beyond others, and what less, in words.
func compareNeeds(then, now []policy.Need) (more, less []string) {
	for _, n := range now {
		var was policy.Need
		for _, o := range then {
			if sameAsked(n, o) {
				was = o
			}
		}
		switch {
		case n.Required > was.Required:
			more = append(more, "asks for "+inWords(n)+instead(was))
		case n.Required < was.Required:
			less = append(less, "asks for "+inWords(n)+instead(was))
		case n.Signed && !was.Signed:
			more = append(more, "asks for "+inWords(n)+", where signatures were not needed")
		case !n.Signed && was.Signed:
			less = append(less, "asks for no signature on "+plain.InWords(n.Kind))
		case n.Owners && beyond(n.Paths, was.Paths):
			more = append(more, "asks for "+inWords(n)+", of more files")
		}
	}
	for _, o := range then {
		if !slices.ContainsFunc(now, func(n policy.Need) bool { return sameAsked(n, o) }) {
			less = append(less, "does not ask for "+inWords(o))
		}
	}
	return more, less
}

// sameAsked reports whether two needs ask the same people about the same.
func sameAsked(a, b policy.Need) bool {
	return a.Kind == b.Kind && a.Owners == b.Owners && slices.Equal(a.Users, b.Users) && slices.Equal(a.Teams, b.Teams)
}

func beyond(these, those []string) bool {
	return slices.ContainsFunc(these, func(p string) bool { return !slices.Contains(those, p) })
}

// namedPaths is how many paths a reason names.
const namedPaths = 3

func inWords(n policy.Need) string {
	signed, by, on := "", "", ""
	if n.Signed {
		signed = "signed "
	}
	if n.Names() {
		by = " by " + n.People()
	}
	if len(n.Paths) > 0 {
		on = " (" + strings.Join(n.Paths[:min(namedPaths, len(n.Paths))], ", ")
		if len(n.Paths) > namedPaths {
			on += fmt.Sprintf(" and %d more", len(n.Paths)-namedPaths)
		}
		on += ", by " + strings.Join(n.Rules, ", ") + ")"
	}
	return fmt.Sprintf("%s of %s%s%s", ledger.Plural(n.Required, signed+"approval", signed+"approvals"), plain.InWords(n.Kind), by, on)
}

func instead(was policy.Need) string {
	if was.Required == 0 {
		return ""
	}
	return fmt.Sprintf(" instead of %d", was.Required)
}
