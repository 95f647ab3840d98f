package approval

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/ledger"
)

// An Independence is whether people who had no part in a change approved it.
type Independence string

// The three. UnknownIndependence never stands for Independent.
const (
	Independent         Independence = "yes"
	NotIndependent      Independence = "no"
	UnknownIndependence Independence = "unknown"
)

// Independence decides again, from the record alone, whether all that a change needed was
// approved by people who neither proposed it, first or later, nor wrote it, nor are known to have asked for it. It goes by no
// flag of the record and by no leave of the Policy: allow_author, and a decision in the
// proposer's own shell, count for nothing here. why says what it rests on, or what is
// missing.
//
// It is UnknownIndependence where the record does not tell: who proposed or decided is known from a shell
// alone; who wrote a pull request's commits is not recorded in full, or they were others
// when it was merged; a text of the change (its author, a Co-authored-by) names who
// approved; or the change is not recorded as applied or merged.
//
// The error is that of reading the record.
func (ps *Policies) Independence(dir fs.FS, log *ledger.Log) (is Independence, why string, err error) {
	event, ref, done := log.DecidedAt()
	if !done {
		return UnknownIndependence, "that it was applied or merged is not on record", nil
	}
	end, ref := decidedAt(dir, log, event, ref)
	c, err := ps.caseBefore(&signatures{dir: dir, log: log}, event, end, ref)
	if err != nil {
		return UnknownIndependence, "", err
	}
	is, why = c.independence()
	tx := log.Transaction()
	if is != Independent || !tx.GateOnly() {
		return is, why, nil
	}
	p := tx.Pointers.Proposal
	s, err := lastStanding(dir, log.Payloads()[:event])
	switch {
	case err != nil:
		return UnknownIndependence, "", err
	case !p.AuthorsComplete:
		return UnknownIndependence, "the record does not say that every commit of the pull request is of an account", nil
	case s.HeadCommit != p.HeadCommit:
		return UnknownIndependence, "the pull request had other commits when it was merged, and who wrote these is not recorded", nil
	}
	return is, why, nil
}

// independence decides the case more strictly step by step: the last that is still approved
// tells how much is known.
func (c Case) independence() (Independence, string) {
	c.ask(c.Log.Transaction().RequestedBy())
	for _, a := range ledger.Of[*ledger.ArtifactStored](c.Log) {
		if a.Kind == ledger.KindAgain || a.Kind == ledger.KindElsewhere { // also who did so after having approved it
			who := c.Proposers[a.Path]
			if len(who) == 0 {
				who = []ledger.Actor{{}} // somebody, and nobody knows who
			}
			c.Authors = append(slices.Clip(c.Authors), who...)
			c.ask(c.Requesters[a.Path])
		}
	}
	c.othersOnly = true
	switch v := c.Decide(); {
	case v.State == Denied:
		return NotIndependent, v.Reason
	case v.State != Approved:
		who := "who proposed it"
		if len(c.asked) > 0 {
			who += " or asked for it"
		}
		return NotIndependent, "without the approvals of " + who + ": " + v.Reason
	case v.BreakGlass:
		return NotIndependent, "the ordinary approvals were missing: " + v.Reason
	}
	told := func(a ledger.Actor) bool { return a.ID != "" && !a.Redacted() && !strings.HasPrefix(a.ID, "local:") }
	if !told(c.Log.Meta().Proposer) || slices.ContainsFunc(c.Authors, func(a ledger.Actor) bool { return !told(a) }) {
		return UnknownIndependence, "a shell alone tells who proposed it"
	}
	if c.unasked {
		return UnknownIndependence, "who asked for it cannot be told: it was taken out of the record as if it were a secret"
	}
	c.provedOnly = true
	if c.Decide().State != Approved {
		return UnknownIndependence, "a shell alone tells who approved it"
	}
	if c.claimed = claimedAuthors(c.Log.Transaction().Pointers.Proposal); c.Decide().State != Approved {
		return UnknownIndependence, "the change itself names who approved it as one of its authors"
	}
	return Independent, "approved by others than who proposed it"
}

// claimedAuthors are those whom the texts of a change name as its authors, under each name that an
// approver may go by. Nobody has verified them: they can only count against an approval.
func claimedAuthors(p *ledger.Proposal) (out []ledger.Actor) {
	if p == nil {
		return nil
	}
	add := func(name, address string) {
		account, host, _ := strings.Cut(strings.ToLower(address), "@")
		out = append(out, ledger.Actor{Login: name}, ledger.Actor{ID: "local:" + strings.ToLower(address)}, ledger.Actor{Login: account})
		if number, login, is := strings.Cut(account, "+"); is && strings.HasPrefix(host, "users.noreply.") {
			out = append(out, ledger.Actor{ID: number, Login: login}, ledger.Actor{Login: login})
		}
	}
	if p.Author != nil {
		add(p.Author.Name, p.Author.Email)
	}
	for _, line := range p.Declared {
		_, who, _ := strings.Cut(line, ":")
		who = strings.TrimSpace(who)
		name, address, named := strings.Cut(strings.TrimSuffix(who, ">"), "<") // as Git writes a person
		switch {
		case named:
			add(strings.Trim(name, " \""), strings.TrimSpace(address))
		case strings.Contains(who, "@"):
			add("", who)
		default:
			add(who, "")
		}
	}
	return out
}
