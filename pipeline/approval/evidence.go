package approval

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// KindStatement is the kind of the artifact that a recorded decision was read
// from.
const KindStatement = "statement"

const statementSchema = "countersign/statement/1"

// A StatementDoc is that artifact, countersign/statement/1: the statement, what
// its author may do by the forge's word, which of its texts says what, and that.
type StatementDoc struct {
	Schema    string    `json:"schema"`
	Statement Statement `json:"statement"`
	Access    Access    `json:"access"`
	Text      string    `json:"text"`
	Command   Command   `json:"command"`
	Native    bool      `json:"native,omitempty"`
}

// NewStatementDoc is the artifact of what was said, by somebody with this access.
// Of earlier texts it keeps the one that counts: there may be a thousand.
func NewStatementDoc(s Said, a Access) StatementDoc {
	s.Earlier = nil
	if s.Text != s.Body {
		s.Earlier = []string{s.Text}
	}
	return StatementDoc{statementSchema, s.Statement, a, s.Text, s.Command, s.Native}
}

// Decision is what a command decides. It is false for one that decides nothing:
// a withdrawal, or what only looks like a command.
func (s Said) Decision() (ledger.Decision, bool) {
	switch s.Command.Verb {
	case VerbApprove:
		return ledger.Approve, true
	case VerbDeny:
		return ledger.Deny, true
	}
	return "", false
}

// RequestKind is the kind of the request that a command about the patch answers.
func (s Said) RequestKind() string {
	if s.Command.BreakGlass {
		return policy.KindBreakGlass
	}
	for _, kind := range []string{policy.KindSecret, policy.KindProtected} {
		if s.Command.Fingerprint == policy.Fingerprint(kind, ledger.FingerprintPatch(s.Command.Fingerprint)) {
			return kind
		}
	}
	return policy.KindFileChange
}

// Source is where the decision was read, as the ledger records it: of an author
// with this access, with the StatementDoc at the path evidence. What names no
// commit itself was said of head.
func (s Said) Source(a Access, head, evidence string) ledger.Source {
	commit := s.Commit
	if commit == "" {
		commit = head
	}
	return ledger.Source{
		Kind: s.Kind, ID: s.ID, URL: s.URL, Author: s.Author, Permission: a.Permission, Commit: commit,
		BodySHA256: canon.Sum([]byte(s.Text)), CreatedAt: s.CreatedAt, Evidence: evidence,
	}
}

// Recorded reports whether the log has this decision of this statement.
func (s Said) Recorded(log *ledger.Log) bool {
	decision, _ := s.Decision()
	for _, d := range ledger.Of[*ledger.ApprovalDecision](log) {
		if s.from(d.Source) && d.Decision == decision && d.Fingerprint == s.Command.Fingerprint {
			return true
		}
	}
	return false
}

func (s Said) from(source ledger.Source) bool { return s.Kind == source.Kind && s.ID == source.ID }

// Stands says why a recorded approval stands no more in this reading, "" if its
// statement still says the same and may count. What its author may do now is
// for the caller to ask.
func (c Conversation) Stands(d ledger.ApprovalDecision) string {
	for _, s := range c.Said() {
		if !s.from(d.Source) || s.Command.Verb != VerbApprove {
			continue
		}
		switch {
		case s.Command.Fingerprint != "" && s.Command.Fingerprint != d.Fingerprint: // "" has a Void
			return "its comment says something else now"
		case s.Author.ID != d.Source.Author.ID:
			return "its comment has another author now"
		case s.Void == "" && !s.Native && canon.Sum([]byte(s.Text)) != d.Source.BodySHA256:
			return "its comment was edited"
		case s.Void == voidEdited:
			return "its comment was edited"
		case s.Void == voidGone:
			return "its comment is gone"
		}
		return s.Void
	}
	return c.vanished(d.Source)
}

// vanished says what became of a statement that approves no more.
func (c Conversation) vanished(source ledger.Source) string {
	for _, s := range c.Statements {
		if s.Kind == source.Kind && s.ID == source.ID && !s.Gone {
			return "its comment was edited"
		}
	}
	return "its comment is gone"
}

// MayDeny says why somebody's denial is not heard, "" if it is: those with the
// permission that the Policy asks of an approver may deny, and the pull request's
// author always may. Nothing else is asked, as the worst of a denial is that
// nothing happens: that of a bot, of the proposer or through an app is heard too.
func MayDeny(p policy.Policy, a Access, who, author ledger.Actor) string {
	if who.ID != "" && who.ID == author.ID {
		return ""
	}
	return Refused(p, a)
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
