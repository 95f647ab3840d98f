package forge

import (
	"cmp"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// KeptStatements is how many statements a transaction has before no further one is kept
// that does not count: anybody may write comments.
const KeptStatements = 20

// Doc is the artifact of what was said, by somebody with this access.
// Of earlier texts it keeps the one that counts: there may be a thousand.
func (s Remark) Doc(a approval.Access) approval.StatementDoc {
	s.Earlier = nil
	if s.Text != s.Body {
		s.Earlier = []string{s.Text}
	}
	return approval.StatementDoc{
		Schema: approval.Schema(approval.KindStatement), Statement: s.Statement, Access: a, Text: s.Text, Command: s.Command, Native: s.Native,
	}
}

// Source is where the decision was read, as the ledger records it: of an author
// with this access, with the StatementDoc at the path evidence. What names no
// commit itself was said of head.
func (s Remark) Source(a approval.Access, head, evidence string) ledger.Source {
	return ledger.Source{
		Kind: s.Kind, ID: s.ID, URL: s.URL, Author: s.Author, Permission: a.Permission, Commit: cmp.Or(s.Commit, head),
		BodySHA256: canon.Sum([]byte(s.Text)), CreatedAt: s.CreatedAt, Evidence: evidence,
	}
}

// Recorded reports whether the log has this decision of this statement.
func (s Remark) Recorded(log *ledger.Log) bool {
	decision, _ := s.Command.Decision()
	return slices.ContainsFunc(ledger.Of[*ledger.ApprovalDecision](log), func(d *ledger.ApprovalDecision) bool {
		return s.from(d.Source) && d.Decision == decision && d.Fingerprint == s.Command.Fingerprint
	})
}

func (s Remark) from(source ledger.Source) bool { return s.Kind == source.Kind && s.ID == source.ID }

// Stands says why a recorded approval stands no more in this reading, "" if its
// statement still says the same and may count. What its author may do now is
// for the caller to ask.
func (c Transcript) Stands(d ledger.ApprovalDecision) string { return c.stands(c.Said(), d) }

func (c Transcript) stands(said []Remark, d ledger.ApprovalDecision) string {
	for _, s := range said {
		if !s.from(d.Source) || s.Command.Verb != approval.VerbApprove {
			continue
		}
		switch {
		case s.Command.Signed && s.Command.Fingerprint != d.Fingerprint:
			continue // it may say several things
		case s.Command.Fingerprint != "" && s.Command.Fingerprint != d.Fingerprint: // "" has a Void
			return "its comment says something else now"
		case s.Author.ID != d.Source.Author.ID:
			return "its comment has another author now"
		case d.Source.Signature != nil && !strings.EqualFold(s.Author.Login, d.Source.Author.Login):
			return "its author has another login than the one that the key was looked up by; sign again"
		case d.Source.Signature != nil && s.CreatedAt != d.Source.CreatedAt:
			return "its comment was made at another time than is recorded"
		case s.Void == approval.VoidEdited, s.Void == "" && !s.Native && canon.Sum([]byte(s.Text)) != d.Source.BodySHA256:
			return "its comment was edited"
		case s.Void == approval.VoidGone:
			return "its comment is gone"
		}
		return s.Void
	}
	// It approves no more: either it is there with another text, or not at all.
	for _, s := range c.Statements {
		if s.Kind == d.Source.Kind && s.ID == d.Source.ID && !s.Gone {
			return "its comment was edited"
		}
	}
	return "its comment is gone"
}

// MayDeny says why somebody's denial is not heard, "" if it is: those with the
// permission that the Policy asks of an approver may deny, and the pull request's
// author always may. Nothing else is asked, as the worst of a denial is that
// nothing happens: that of a bot, of the proposer or through an app is heard too.
func MayDeny(p policy.Policy, a approval.Access, who, author ledger.Actor) string {
	if who.ID != "" && who.ID == author.ID {
		return ""
	}
	return approval.Refused(p, a)
}

// buried reports whether a line below the first is a command that names the patch.
func (c Transcript) buried(body string) bool {
	if strings.Contains(body, "<!-- countersign:") {
		return false // a report of ours, with the lines to copy
	}
	for line := range strings.Lines(body) {
		if command, ok := approval.ParseCommand(line); ok && c.names(command) {
			return true
		}
	}
	return false
}

// void says why a command cannot count, and fills in what its place names.
func (c Transcript) void(said *Remark) string {
	command := &said.Command
	if command.Fingerprint == "" {
		if why := c.unbound(said.Statement); why != "" {
			return why
		}
		command.Fingerprint, command.Kind = policy.Fingerprint(cmp.Or(command.Kind, policy.KindFileChange), c.PatchID), ""
	}
	switch {
	case !c.names(*command):
		return "names another patch"
	case command.BreakGlass && command.Fingerprint != policy.Fingerprint(policy.KindBreakGlass, c.PatchID):
		return "breaks no glass: it names only a part of what is asked for"
	case said.State == approval.ReviewChangesRequested: // two answers that contradict each other
		return "its review asks for changes"
	case c.GateOnly && c.takenBack(said.Statement):
		return "taken back by a later review"
	case !c.GateOnly && c.before(said.Statement): // gate-only has no effect that could have been undone
		return "is from before this was proposed"
	}
	return said.Statement.Void(false)
}

func (c Transcript) before(s approval.Statement) bool { return at(s).Before(c.Since) }

// inThread reports whether a statement replies to a comment that we posted, be
// that as it was or not.
func (c Transcript) inThread(s approval.Statement) bool {
	return s.Kind == approval.KindReviewComment && s.ReplyTo != "" && c.ours(approval.Statement{Kind: approval.KindReviewComment, ID: s.ReplyTo})
}

// unbound says why a statement names no patch by its place, "" if it does (T17).
func (c Transcript) unbound(s approval.Statement) string {
	if !c.inThread(s) {
		if line, _, _ := strings.Cut(s.Body, "\n"); strings.Contains(line, "patchset:") {
			return "is not an exact command"
		}
		return "is not in the thread of the request"
	}
	for _, first := range c.Statements {
		if first.Kind == approval.KindReviewComment && first.ID == s.ReplyTo && c.asPosted(first) {
			return ""
		}
	}
	return "the request it answers was changed after it was posted"
}

func (c Transcript) asPosted(s approval.Statement) bool {
	sum := canon.Sum([]byte(s.Body))
	return !s.Changed() && !s.Gone && slices.ContainsFunc(c.Posted, func(p Posted) bool {
		return p.Kind == s.Kind && p.ID == s.ID && p.BodySHA256 == sum
	})
}

// native judges a wordless review, where the pull request's own diff is the
// patch. That its text was edited changes nothing: the state cannot be.
func (c Transcript) native(said Remark) Remark {
	s := said.Statement
	said.Native = true
	said.Command = approval.Command{Verb: approval.VerbApprove, Fingerprint: policy.Fingerprint(policy.KindFileChange, c.PatchID)}
	switch why := s.Void(true); {
	case why != "":
		said.Void = why
	case !c.Heads[s.Commit]:
		said.Void = "is of another commit"
	case c.takenBack(s):
		said.Void = "taken back by a later review"
	case c.before(s): // of another base the same commit has another diff
		said.Void = "is from before this was proposed"
	}
	return said
}

// takenBack reports whether the author of a statement later asked for changes, or
// had a later review dismissed. The statements are in order.
func (c Transcript) takenBack(s approval.Statement) bool {
	at := slices.IndexFunc(c.Statements, func(o approval.Statement) bool { return o.Kind == s.Kind && o.ID == s.ID })
	return slices.ContainsFunc(c.Statements[at+1:], func(o approval.Statement) bool {
		return o.Kind == approval.KindReview && approval.Same(o.Author, s.Author) && (o.State == approval.ReviewChangesRequested || o.State == approval.ReviewDismissed)
	})
}
