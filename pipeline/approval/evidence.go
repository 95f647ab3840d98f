package approval

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// KindStatement is the kind of the artifact that a recorded decision was read
// from.
const KindStatement = "statement"

// KeptStatements is how many statements a transaction has before no further one is kept
// that does not count: anybody may write comments.
const KeptStatements = 20

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

// Decision is what a command decides. It is false for what only looks
// like a command.
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
		if isOf(kind, s.Command.Fingerprint) {
			return kind
		}
	}
	return policy.KindFileChange
}

// Source is where the decision was read, as the ledger records it: of an author
// with this access, with the StatementDoc at the path evidence. What names no
// commit itself was said of head.
func (s Said) Source(a Access, head, evidence string) ledger.Source {
	return ledger.Source{
		Kind: s.Kind, ID: s.ID, URL: s.URL, Author: s.Author, Permission: a.Permission, Commit: cmp.Or(s.Commit, head),
		BodySHA256: canon.Sum([]byte(s.Text)), CreatedAt: s.CreatedAt, Evidence: evidence,
	}
}

// Recorded reports whether the log has this decision of this statement.
func (s Said) Recorded(log *ledger.Log) bool {
	decision, _ := s.Decision()
	return slices.ContainsFunc(ledger.Of[*ledger.ApprovalDecision](log), func(d *ledger.ApprovalDecision) bool {
		return s.from(d.Source) && d.Decision == decision && d.Fingerprint == s.Command.Fingerprint
	})
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
		case s.Void == voidEdited, s.Void == "" && !s.Native && canon.Sum([]byte(s.Text)) != d.Source.BodySHA256:
			return "its comment was edited"
		case s.Void == voidGone:
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

// checkEvidence tells what is wrong with the evidence of a decision, the nth
// event of the log, and returns it; there is none if it was taken by the command line.
func checkEvidence(dir fs.FS, log *ledger.Log, n int, d *ledger.ApprovalDecision) (*StatementDoc, error) {
	if !slices.Contains([]string{KindReview, KindReviewComment, KindIssueComment}, d.Source.Kind) {
		return nil, nil
	}
	for _, p := range log.Payloads()[:n] {
		a, ok := p.(*ledger.ArtifactStored)
		if !ok || a.Kind != KindStatement || a.Path != d.Source.Evidence {
			continue
		}
		var doc StatementDoc
		if err := readArtifact(dir, a, &doc); err != nil {
			return nil, err
		}
		if !a.Redacted && canon.Sum([]byte(doc.Text)) != d.Source.BodySHA256 {
			return &doc, errors.New("the text of its statement does not hash to body_sha256")
		}
		return &doc, doc.check(d, log.Request(d.ApprovalRequestID).Kind)
	}
	return nil, errors.New("the statement that the decision was read from is not recorded")
}

// check holds a decision on a request of some kind to the statement that it was
// read from. That a thread was the request's, and of which commit a green review
// was, only a reading of the pull request could tell.
func (doc StatementDoc) check(d *ledger.ApprovalDecision, kind string) error {
	s, from := doc.Statement, d.Source
	said := Said{Statement: s, Command: doc.Command, Text: doc.Text, Native: doc.Native}
	decision, _ := said.Decision()
	switch {
	case doc.Schema != statementSchema:
		return errors.New("its statement is of an unknown schema")
	case !said.from(from) || s.URL != from.URL || s.Author != from.Author || s.CreatedAt != from.CreatedAt:
		return errors.New("its statement is another one, or somebody else's")
	case doc.Access.Permission != from.Permission:
		return errors.New("its author had another permission")
	case decision != d.Decision || doc.Command.Fingerprint != d.Fingerprint:
		return errors.New("its statement decides something else")
	case (said.RequestKind() == policy.KindBreakGlass) != (kind == policy.KindBreakGlass):
		return errors.New("it answers a request of another kind")
	case !doc.says():
		return errors.New("its statement does not say so")
	}
	if decision != ledger.Approve {
		return nil
	}
	worthless := s.void()
	if doc.Native {
		worthless = s.voidState()
	}
	if worthless != "" {
		return fmt.Errorf("its statement cannot count: %s", worthless)
	}
	return nil
}

// says reports whether the text, which has to be one of the statement's, reads as
// the command. An approval is in the present text.
func (doc StatementDoc) says() bool {
	s := doc.Statement
	if doc.Native {
		return wordless(s) && doc.Command == Command{Verb: VerbApprove, Fingerprint: doc.Command.Fingerprint} && isOf(policy.KindFileChange, doc.Command.Fingerprint)
	}
	command, ok := ParseCommand(doc.Text)
	if _, all, err := ParseSigned(doc.Text); err == nil && slices.Contains(all, doc.Command) {
		command = doc.Command
	}
	if command.Verb == VerbDeny {
		command.Signed = doc.Command.Signed // which needs no signature
	}
	if bare := command.Fingerprint == ""; bare && s.Kind == KindReviewComment && s.ReplyTo != "" && isOf(cmp.Or(command.Kind, policy.KindFileChange), doc.Command.Fingerprint) {
		command.Fingerprint, command.Kind = doc.Command.Fingerprint, ""
	}
	known := doc.Text == s.Body || command.Verb == VerbDeny && slices.Contains(s.Earlier, doc.Text)
	command.Reason = doc.Command.Reason // which may have had a secret in it
	return ok && known && command == doc.Command
}

// isOf reports whether a fingerprint is of a kind.
func isOf(kind, fingerprint string) bool {
	return fingerprint == policy.Fingerprint(kind, ledger.FingerprintPatch(fingerprint))
}
