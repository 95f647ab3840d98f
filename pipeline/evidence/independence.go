package evidence

import (
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// An Independence is whether people who had no part in a change approved it.
type Independence string

// The three. Untold never stands for Yes.
const (
	Yes    Independence = "yes"
	No     Independence = "no"
	Untold Independence = "unknown"
)

// Independent decides again, from the record alone, whether all that a change needed was
// approved by people who neither proposed it, first or later, nor wrote it, nor are known to have asked for it. It goes by no
// flag of the record and by no leave of the Policy: allow_author, and a decision in the
// proposer's own shell, count for nothing here. why says what it rests on, or what is
// missing.
//
// It is Untold where the record does not tell: who proposed or decided is known from a shell
// alone; who wrote a pull request's commits is not recorded in full, or they were others
// when it was merged; a text of the change (its author, a Co-authored-by) names who
// approved; or the change is not recorded as applied or merged.
//
// The error is that of reading the record.
func Independent(ps *approval.Policies, dir fs.FS, log *ledger.Log) (is Independence, why string, err error) {
	event, ref, done := explain.DecidedAt(dir, log)
	if !done {
		return Untold, "that it was applied or merged is not on record", nil
	}
	c, err := ps.Record(dir, log).Before(event, ref)
	if err != nil {
		return Untold, "", err
	}
	is, why = independent(c)
	tx := log.Transaction()
	if is != Yes || !tx.GateOnly() {
		return is, why, nil
	}
	p := tx.Pointers.Proposal
	s, err := approval.LastStanding(dir, log.Payloads()[:event])
	switch {
	case err != nil:
		return Untold, "", err
	case !p.AuthorsComplete:
		return Untold, "the record does not say that every commit of the pull request is of an account", nil
	case s.HeadCommit != p.HeadCommit:
		return Untold, "the pull request had other commits when it was merged, and who wrote these is not recorded", nil
	}
	return is, why, nil
}

// independent decides the case more strictly step by step: the last that is still approved
// tells how much is known.
func independent(c approval.Case) (Independence, string) {
	asked, unasked := slices.Clone(c.Log.Transaction().RequestedBy()), false
	for _, a := range ledger.Of[*ledger.ArtifactStored](c.Log) {
		if a.Kind == ledger.KindAgain || a.Kind == ledger.KindElsewhere { // also who did so after having approved it
			who := c.Proposers[a.Path]
			if len(who) == 0 {
				who = []ledger.Actor{{}} // somebody, and nobody knows who
			}
			c.Authors = append(slices.Clip(c.Authors), who...)
			asked = append(asked, c.Requesters[a.Path]...)
		}
	}
	for _, r := range asked {
		unasked = unasked || approval.Unnamed(r.Actor)
	}
	strict := c
	decide := func(refused func(ledger.Source) bool) approval.Verdict {
		before := strict.Passes
		strict.Passes = func(d ledger.ApprovalDecision) string {
			if before != nil && before(d) != "" || refused(d.Source) {
				return "is not independent"
			}
			return ""
		}
		return strict.Decide()
	}
	v := decide(func(s ledger.Source) bool {
		return c.Wrote(s) || slices.ContainsFunc(asked, func(r ledger.Requester) bool { return c.Is(s, r.Actor) })
	})
	switch {
	case v.State == approval.Denied:
		return No, v.Reason
	case v.State != approval.Approved:
		who := "who proposed it"
		if len(asked) > 0 {
			who += " or asked for it"
		}
		return No, "without the approvals of " + who + ": " + v.Reason
	case v.BreakGlass:
		return No, "the ordinary approvals were missing: " + v.Reason
	}
	told := func(a ledger.Actor) bool { return a.ID != "" && !a.Redacted() && !strings.HasPrefix(a.ID, "local:") }
	if !told(c.Log.Meta().Proposer) || slices.ContainsFunc(c.Authors, func(a ledger.Actor) bool { return !told(a) }) {
		return Untold, "a shell alone tells who proposed it"
	}
	if unasked {
		return Untold, "who asked for it cannot be told: it was taken out of the record as if it were a secret"
	}
	lacks := func(v approval.Verdict) bool { return v.State != approval.Approved || v.BreakGlass }
	shell := func(s ledger.Source) bool { return !approval.IsForge(s) && s.Signature == nil }
	if lacks(decide(shell)) {
		return Untold, "a shell alone tells who approved it"
	}
	claimed := claimedAuthors(c.Log.Transaction().Pointers.Proposal)
	names := func(s ledger.Source) bool {
		return slices.ContainsFunc(claimed, func(a ledger.Actor) bool { return c.Is(s, a) })
	}
	if lacks(decide(names)) {
		return Untold, "the change itself names who approved it as one of its authors"
	}
	return Yes, "approved by others than who proposed it"
}

// claimedAuthors are those whom the texts of a change name as its authors, under each name that an
// approver may go by. Nobody has verified them: they can only count against an approval.
func claimedAuthors(p *ledger.Proposal) (out []ledger.Actor) {
	if p == nil {
		return nil
	}
	if p.Author != nil {
		out = named(p.Author.Name, p.Author.Email)
	}
	for _, line := range p.Declared {
		_, who, _ := strings.Cut(line, ":")
		out = append(out, claimedBy(who)...)
	}
	return out
}

// claimedBy are the names of a person as Git writes one, or by an address or a name alone.
func claimedBy(who string) []ledger.Actor {
	who = strings.TrimSpace(who)
	name, rest, both := strings.Cut(who, "<")
	address, _, _ := strings.Cut(rest, ">")
	switch {
	case both:
		return named(strings.Trim(name, " \""), strings.TrimSpace(address))
	case strings.Contains(who, "@"):
		return named("", who)
	}
	return named(who, "")
}

// named are the names that an approver may go by who has this name and this address.
func named(name, address string) []ledger.Actor {
	account, host, _ := strings.Cut(strings.ToLower(address), "@")
	out := []ledger.Actor{{Login: name}, {ID: "local:" + strings.ToLower(address)}, {Login: account}}
	if number, login, is := strings.Cut(account, "+"); is && strings.HasPrefix(host, "users.noreply.") {
		out = append(out, ledger.Actor{ID: number, Login: login}, ledger.Actor{Login: login})
	}
	return out
}
