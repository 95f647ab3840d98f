package approval

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

func readArtifact(dir fs.FS, a *ledger.ArtifactStored, doc any) error {
	raw, err := fs.ReadFile(dir, a.Path)
	if err == nil {
		err = canon.Unmarshal(raw, doc)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", a.Path, err)
	}
	return nil
}

// checkEvidence tells what is wrong with the evidence of a decision, the nth
// event of the log, nil if it was taken by the command line and has none.
func checkEvidence(dir fs.FS, log *ledger.Log, n int, d *ledger.ApprovalDecision) error {
	if !slices.Contains([]string{KindReview, KindReviewComment, KindIssueComment}, d.Source.Kind) {
		return nil
	}
	for _, p := range log.Payloads()[:n] {
		a, ok := p.(*ledger.ArtifactStored)
		if !ok || a.Kind != KindStatement || a.Path != d.Source.Evidence {
			continue
		}
		var doc StatementDoc
		if err := readArtifact(dir, a, &doc); err != nil {
			return err
		}
		if !a.Redacted && canon.Sum([]byte(doc.Text)) != d.Source.BodySHA256 {
			return errors.New("the text of its statement does not hash to body_sha256")
		}
		return doc.check(d, log.Request(d.ApprovalRequestID).Kind)
	}
	return errors.New("the statement that the decision was read from is not recorded")
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
	case decision == ledger.Approve && said.worthless() != "":
		return fmt.Errorf("its statement cannot count: %s", said.worthless())
	}
	return nil
}

// says reports whether the text, which has to be one of the statement's, reads as
// the command. An approval is in the present text.
func (doc StatementDoc) says() bool {
	s := doc.Statement
	if doc.Native {
		return wordless(s) && doc.Command == Command{Verb: VerbApprove, Fingerprint: doc.Command.Fingerprint} && isPlain(doc.Command.Fingerprint)
	}
	command, ok := ParseCommand(doc.Text)
	if bare := command.Fingerprint == ""; bare && s.Kind == KindReviewComment && s.ReplyTo != "" && isPlain(doc.Command.Fingerprint) {
		command.Fingerprint = doc.Command.Fingerprint
	}
	known := doc.Text == s.Body || command.Verb == VerbDeny && slices.Contains(s.Earlier, doc.Text)
	command.Reason = doc.Command.Reason // which may have had a secret in it
	return ok && known && command == doc.Command
}

// isPlain reports whether a fingerprint is of the kind that names the change alone.
func isPlain(fingerprint string) bool {
	return fingerprint == policy.Fingerprint(policy.KindFileChange, ledger.FingerprintPatch(fingerprint))
}

// worthless says why an approval's statement cannot count by itself.
func (s Said) worthless() string {
	if s.Native {
		return s.voidState()
	}
	return s.void()
}
