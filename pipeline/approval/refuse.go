package approval

import (
	"strings"
	"time"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
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
	}
	if why := c.refuseSource(s); why != "" {
		return why
	}
	if !isLocal(s) {
		if why := c.stands(d); why != "" {
			return why
		}
	}
	if c.Policy.Approvals.SameHead && (c.Head == "" || s.Commit != c.Head) {
		return "was made on another commit"
	}
	return c.refuseAge(s)
}

func (c Case) stands(d ledger.ApprovalDecision) string {
	if c.Stands == nil {
		return "its comment was not read again"
	}
	return c.Stands(d)
}

func isLocal(s ledger.Source) bool { return s.Kind == "local" || s.Kind == "rpc" }

// refuseSource: decisions of the command line and of RPC count where the Policy
// says so, those of the forge with the permission that the forge told.
func (c Case) refuseSource(s ledger.Source) string {
	switch s.Kind {
	case "local", "rpc":
		if !c.Policy.Approvals.Local.Counts(c.PullRequest) {
			return "the Policy does not allow local decisions"
		}
		return ""
	case KindReview, KindReviewComment, KindIssueComment:
		return Refused(c.Policy, Access{Permission: s.Permission})
	}
	return "its source is of no known kind"
}

// refuseAge: an approval is too old once max_age has passed. One from the
// future has no age; a minute is left for clocks that differ (T56).
func (c Case) refuseAge(s ledger.Source) string {
	most := time.Duration(c.Policy.Approvals.MaxAge)
	if most == 0 {
		return ""
	}
	said, err := time.Parse(time.RFC3339, s.CreatedAt)
	switch age := c.Now.Sub(said); {
	case err != nil, age < -time.Minute: // so is everything, without a Now
		return "its age cannot be told"
	case age > most:
		return "expired"
	}
	return ""
}

// refuseFor says why an approval does not count for one need: the proposer's
// own, but for the local and the solo maintainer's, and never for a secret (T46).
func (c Case) refuseFor(n policy.Need, s ledger.Source) string {
	own := c.wrote(s.Author)
	switch {
	case n.Kind == policy.KindSecret && c.Policy.Secrets.Mode == policy.Refuse:
		return "the Policy refuses secrets"
	case n.Kind == policy.KindSecret && own:
		return "its author is the proposer, who cannot excuse a secret"
	case own && !isLocal(s) && !c.Policy.Approvals.AllowAuthor:
		return "its author is the proposer"
	}
	return ""
}

// wrote reports whether the change is somebody's own. The id is the person (T11);
// only where there is none the login has to do.
func (c Case) wrote(who ledger.Actor) bool {
	if same(who, c.Log.Meta().Proposer) {
		return true
	}
	for _, author := range c.Authors {
		if same(who, author) {
			return true
		}
	}
	return false
}

func same(a, b ledger.Actor) bool {
	if a.ID != "" && b.ID != "" {
		return a.ID == b.ID
	}
	return a.Login != "" && strings.EqualFold(a.Login, b.Login)
}
