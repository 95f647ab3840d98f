package forge

import (
	"context"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// A Conversation is what was said on a pull request about one transaction, and
// what those who said it may do.
type Conversation struct {
	Transcript
	said []Remark
	*reading
}

// Said is Transcript.Said, which was read once.
func (c *Conversation) Said() []Remark { return c.said }

// Stands is Transcript.Stands.
func (c *Conversation) Stands(d ledger.ApprovalDecision) string { return c.stands(c.said, d) }

// Pull is the pull request as it was read.
func (c *Conversation) Pull() PullRequest { return c.pull }

// Authors are those who wrote a change beside its proposer, by its record and, of the
// pull request's own diff, by the pull request as it is: whoever can write the ledger
// can name a head of which nothing tells the committers. Nil adds nobody.
func (c *Conversation) Authors(p *ledger.Proposal) []ledger.Actor {
	if c == nil || !c.GateOnly {
		return p.Authors
	}
	return slices.Concat(p.Authors, c.pull.Committers)
}

// TeamsUnread reports whether a team was asked about that the forge does not show.
func (c *Conversation) TeamsUnread() bool { return c.unread }

// Access asks what an account may do, once.
func (c *Conversation) Access(ctx context.Context, who ledger.Actor) (approval.Access, error) {
	if a, known := c.access[who.ID]; known || who.ID == "" {
		return a, nil
	}
	a, err := c.forge.Access(ctx, who)
	if err != nil {
		return a, &ReadingError{c.pull.Number, err}
	}
	c.access[who.ID] = a
	return a, nil
}

// Known is what an account may do, as far as that was asked.
func (c *Conversation) Known(who ledger.Actor) approval.Access { return c.access[who.ID] }

// AskAboutVoters asks again what those may do whose approvals are recorded, under
// the login that they have now.
func (c *Conversation) AskAboutVoters(ctx context.Context, log *ledger.Log) error {
	for _, d := range approvals(log) {
		who := d.Source.Author
		for _, s := range c.Statements {
			if s.Author.ID == who.ID && !s.Gone {
				who = s.Author
				break
			}
		}
		if _, err := c.Access(ctx, who); err != nil {
			return err
		}
	}
	return nil
}

// Keys adds those that the forge has for everybody who may approve under a Policy, and
// signed an approval of a transaction, as they were when it began: who has an account for
// a while adds none to approve what lies there.
func (c *Conversation) Keys(ctx context.Context, p policy.Policy, keys approval.Keys, log *ledger.Log) (approval.Keys, error) {
	if !keys.Forge {
		return keys, nil
	}
	began, err := log.Time(0)
	if err != nil {
		return keys, err
	}
	registered := map[string][]approval.Registered{}
	for _, said := range c.Said() {
		who := said.Author
		if decision, _ := said.Command.Decision(); !said.Command.Signed || said.Void != "" || decision != ledger.Approve || who.Kind != "user" || who.ID == "" {
			continue
		}
		access, err := c.Access(ctx, who)
		if err != nil {
			return keys, err
		}
		if approval.Refused(p, access) != "" {
			continue
		}
		if _, asked := c.keys[who.ID]; !asked {
			if c.keys[who.ID], err = c.forge.SigningKeys(ctx, who); err != nil {
				return keys, &ReadingError{c.pull.Number, err}
			}
		}
		registered[who.Login] = c.keys[who.ID]
	}
	return keys.With(registered, began), nil
}

// approvals are the recorded ones that were given on the pull request.
func approvals(log *ledger.Log) []ledger.ApprovalDecision {
	var out []ledger.ApprovalDecision
	for _, d := range ledger.Of[*ledger.ApprovalDecision](log) {
		if d.Decision == ledger.Approve && d.Source.Evidence != "" {
			out = append(out, *d)
		}
	}
	return out
}

// WhyNoDenial says why somebody's denial does not count, "" if it does. A pull
// request's author may always deny what others propose for it; who proposed it
// themselves closes the pull request. A denial is for ever and everywhere, and
// anybody can open a pull request with somebody else's bytes.
func (c *Conversation) WhyNoDenial(p policy.Policy, proposer, who ledger.Actor) string {
	author := c.pull.Author
	if author.ID == proposer.ID {
		author = ledger.Actor{}
	}
	return MayDeny(p, c.Known(who), who, author)
}

// Ask lets a case ask whether approvals stand, and who is in a team or owns a
// path by the CODEOWNERS of a commit.
func (c *Conversation) Ask(ctx context.Context, about approval.Case, commit string) approval.Case {
	about.Stands = func(d ledger.ApprovalDecision) string {
		if why := c.Stands(d); why != "" {
			return why
		}
		return approval.Refused(about.Policy, c.Known(d.Source.Author))
	}
	about.Teams = func(team string, who ledger.Actor) (bool, error) { return c.team(ctx, team, who) }
	about.Owners = func(path string, who ledger.Actor) (bool, error) { return c.owns(ctx, commit, path, who) }
	return about
}

// Standing is what was read at a time, as the record keeps it: what became of the
// recorded approvals, and what the forge answered about people.
func (c *Conversation) Standing(at time.Time, by ledger.PolicyRef, log *ledger.Log) approval.Standing {
	doc := StandingAt(at, c.pull.Number, c.pull.Head.Commit)
	doc.Policy = by
	for _, d := range approvals(log) {
		doc.Decisions = append(doc.Decisions, Stood(d, c.Stands(d), c.Known(d.Source.Author)))
	}
	for q, yes := range c.members {
		if yes {
			AddID(doc.Teams, q.of, q.id)
		}
	}
	for q, yes := range c.owners {
		if yes {
			AddID(doc.Owners, q.of, q.id)
		}
	}
	return doc
}
