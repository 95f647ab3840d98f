package approval

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
)

// The kinds of statement, which are those of a decision's source.
const (
	KindReview        = "review"
	KindReviewComment = "review_comment"
	KindIssueComment  = "issue_comment"
)

// The states of a review that matter here (GitHub's REST API, "Reviews").
const (
	ReviewApproved         = "APPROVED"
	ReviewChangesRequested = "CHANGES_REQUESTED"
	ReviewDismissed        = "DISMISSED"
)

// A Statement is one review or comment of a pull request, as the forge told it.
type Statement struct {
	Kind      string       `json:"kind"`
	ID        string       `json:"id"` // the forge's number
	URL       string       `json:"url"`
	Author    ledger.Actor `json:"author"` // Kind "user" for a human account, else "bot"; ID is the account's number
	Body      string       `json:"body"`
	Earlier   []string     `json:"earlier,omitempty"` // the texts that it had before, oldest first
	Edited    bool         `json:"edited"`
	Gone      bool         `json:"gone,omitempty"`     // an event told it, and the forge has it no more
	Untold    bool         `json:"untold,omitempty"`   // the forge does not tell what it said when it was posted
	App       string       `json:"app,omitempty"`      // the app that posted it for its author
	Email     bool         `json:"email,omitempty"`    // it came by e-mail
	Hidden    bool         `json:"hidden,omitempty"`   // somebody hid ("minimized") it
	State     string       `json:"state,omitempty"`    // of a review
	Commit    string       `json:"commit,omitempty"`   // that a review, or a comment of one, was made on
	ReplyTo   string       `json:"reply_to,omitempty"` // the id of the first comment of a review comment's thread
	CreatedAt string       `json:"created_at"`         // RFC 3339
}

// Access is what an account may do in a repository. Permission is one of
// policy.Permission's words, custom roles reduced to the one they are based on,
// "none" for an account that is no collaborator; Role is the forge's own word.
type Access struct {
	Permission string `json:"permission"`
	Role       string `json:"role"`
}

// Reasons of Void that are told in other words of an approval that was recorded.
const (
	VoidGone   = "is gone"
	VoidEdited = "edited after posting"
)

// Void says why an approval in a statement's present text cannot count, or with native in the
// state of a review, whatever it says; "" if it may. That the text of a review was edited
// changes nothing about its state.
func (s Statement) Void(native bool) string {
	_, err := ledger.ParseTime(s.CreatedAt)
	switch {
	case s.Gone:
		return VoidGone
	case !native && s.Changed():
		return VoidEdited
	case s.State == ReviewDismissed:
		return "was dismissed"
	case s.Hidden:
		return "is hidden"
	case !native && s.Untold:
		return "is not told as it was posted: the same line in a review counts, or signed"
	case err != nil:
		return "its time cannot be read"
	case s.App != "": // not by its author's own hand
		return "posted through the app " + ledger.OneLine(s.App, 60)
	case s.Email:
		return "sent by e-mail"
	}
	return ""
}

// Changed reports whether a statement ever had another text than it has.
func (s Statement) Changed() bool {
	return s.Edited || slices.ContainsFunc(s.Earlier, func(text string) bool { return text != s.Body })
}

// Wordless reports whether a statement is a green review, or one that was, whose
// state speaks for it: its text is no command that names a patch, nor anything
// that looks like one, or like a signature. A bare /approve means there what the state means.
func (s Statement) Wordless() bool {
	if s.Kind != KindReview || s.State != ReviewApproved && s.State != ReviewDismissed {
		return false
	}
	command, ok := ParseCommand(s.Body)
	return !LooksLike(s.Body) && !HasMark(s.Body) || ok && command == (Command{Verb: VerbApprove})
}

// KindStatement is the kind of the artifact that a recorded decision was read
// from.
const KindStatement = "statement"

// A StatementDoc is that artifact: the statement, what
// its author may do by the forge's word, which of its texts says what, and that.
type StatementDoc struct {
	Schema    string    `json:"schema"`
	Statement Statement `json:"statement"`
	Access    Access    `json:"access"`
	Text      string    `json:"text"`
	Command   Command   `json:"command"`
	Native    bool      `json:"native,omitempty"`
}

// checkEvidence tells what is wrong with the evidence of a decision, the nth
// event of the log, and returns it; there is none if it was taken by the command line.
func checkEvidence(dir fs.FS, log *ledger.Log, n int, d *ledger.ApprovalDecision) (*StatementDoc, error) {
	if !isStatement(d.Source) {
		return nil, nil
	}
	a := storedAt(log.Payloads()[:n], KindStatement, d.Source.Evidence)
	if a == nil {
		return nil, errors.New("the statement that the decision was read from is not recorded")
	}
	var doc StatementDoc
	if err := ReadArtifact(dir, a, &doc, &doc.Schema); err != nil {
		return nil, err
	}
	if !a.Redacted && canon.Sum([]byte(doc.Text)) != d.Source.BodySHA256 {
		return &doc, errors.New("the text of its statement does not hash to body_sha256")
	}
	return &doc, doc.check(d, log.Request(d.ApprovalRequestID).Kind)
}

// isStatement reports whether a decision was read from a statement of a pull request.
func isStatement(s ledger.Source) bool {
	return slices.Contains([]string{KindReview, KindReviewComment, KindIssueComment}, s.Kind)
}

// check holds a decision on a request of some kind to the statement that it was
// read from. That a thread was the request's, and of which commit a green review
// was, only a reading of the pull request could tell.
func (doc StatementDoc) check(d *ledger.ApprovalDecision, kind string) error {
	s, from := doc.Statement, d.Source
	decision, _ := doc.Command.Decision()
	switch {
	case s.Kind != from.Kind || s.ID != from.ID || s.URL != from.URL || s.Author != from.Author || s.CreatedAt != from.CreatedAt:
		return errors.New("its statement is another one, or somebody else's")
	case doc.Access.Permission != from.Permission:
		return errors.New("its author had another permission")
	case decision != d.Decision || doc.Command.Fingerprint != d.Fingerprint:
		return errors.New("its statement decides something else")
	case (doc.Command.RequestKind() == policy.KindBreakGlass) != (kind == policy.KindBreakGlass):
		return errors.New("it answers a request of another kind")
	case !doc.says():
		return errors.New("its statement does not say so")
	}
	if decision != ledger.Approve {
		return nil
	}
	if why := s.Void(doc.Native); why != "" {
		return fmt.Errorf("its statement cannot count: %s", why)
	}
	return nil
}

// says reports whether the text, which has to be one of the statement's, reads as
// the command. An approval is in the present text.
func (doc StatementDoc) says() bool {
	s := doc.Statement
	if doc.Native {
		return s.Wordless() && doc.Command == Command{Verb: VerbApprove, Fingerprint: doc.Command.Fingerprint} && isOf(policy.KindFileChange, doc.Command.Fingerprint)
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
