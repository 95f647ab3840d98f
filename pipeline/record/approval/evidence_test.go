package approval_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/secret"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// TestEvidence: rule L18. Each row records what was said and then has the
// statement, the decision or the event say something else.
func TestEvidence(t *testing.T) {
	type doc = approval.StatementDoc
	type said = ledger.ApprovalDecision
	plain := talk(comment("/approve " + own))
	glass := talk(comment("/approve --break-glass " + own + " down"))
	bare := talk(first(), comment("/approve", reply("7")))
	short := talk(first(), comment("/approve protected", reply("7")))
	green := gateOnly(comment("Nice!", review("APPROVED", "head")))
	retold := talk(comment("/approve "+own, edited("/deny "+own+" no")))
	for _, c := range []struct {
		name string
		talk forge.Transcript
		edit func(*doc, *said)
		want string
	}{
		{name: "a command", talk: plain},
		{name: "in the thread", talk: bare},
		{name: "in an emergency", talk: glass},
		{name: "a green review", talk: green},
		{name: "a green review whose text was edited", talk: gateOnly(comment("Nice!", review("APPROVED", "head"), edited("Nice")))},
		{name: "a denial", talk: talk(comment("/deny secret:" + own + " no"))},
		{name: "a denial that was edited", talk: retold},
		{name: "a denial that is gone", talk: talk(comment("/deny "+own, gone, byApp))},

		{name: "the text", talk: plain, edit: func(d *doc, _ *said) { d.Text += " " }, want: "does not hash"},
		{name: "the hash", talk: plain, edit: func(_ *doc, s *said) { s.Source.BodySHA256 = canon.Sum(nil) }, want: "does not hash"},
		{name: "no evidence", talk: plain, edit: func(_ *doc, s *said) { s.Source.Evidence = "" }, want: "is not recorded"},
		{name: "another artifact", talk: plain, edit: func(_ *doc, s *said) { s.Source.Evidence = ledger.ArtifactFile(canon.Hex(nil)) }, want: "is not recorded"},
		{name: "the schema", talk: plain, edit: func(d *doc, _ *said) { d.Schema = "x" }, want: "unknown schema"},
		{name: "T10 the author", talk: plain, edit: func(_ *doc, s *said) { s.Source.Author = people["bob"] }, want: "somebody else's"},
		{name: "T10 the author's kind", talk: plain, edit: func(d *doc, _ *said) { d.Statement.Author.Kind = "bot" }, want: "somebody else's"},
		{name: "the time", talk: plain, edit: func(_ *doc, s *said) { s.Source.CreatedAt = "2026-01-05T11:00:01Z" }, want: "is another one"},
		{name: "the number", talk: plain, edit: func(_ *doc, s *said) { s.Source.ID = "21" }, want: "is another one"},
		{name: "the address", talk: plain, edit: func(_ *doc, s *said) { s.Source.URL = "" }, want: "is another one"},
		{name: "the kind of source", talk: plain, edit: func(_ *doc, s *said) { s.Source.Kind = "review" }, want: "is another one"},
		{name: "T08 the permission", talk: plain, edit: func(_ *doc, s *said) { s.Source.Permission = "admin" }, want: "another permission"},
		{name: "a denial told as an approval", talk: talk(comment("/deny " + own)), edit: func(_ *doc, s *said) { s.Decision = ledger.Approve }, want: "decides something else"},
		{name: "and the command with it", talk: talk(comment("/deny " + own)), edit: func(d *doc, s *said) { s.Decision, d.Command.Verb = ledger.Approve, "approve" }, want: "does not say so"},
		{name: "the fingerprint", talk: plain, edit: func(_ *doc, s *said) { s.Fingerprint = "secret:" + own }, want: "decides something else"},
		{name: "and the command with it", talk: plain, edit: func(d *doc, s *said) { s.Fingerprint, d.Command.Fingerprint = "secret:"+own, "secret:"+own }, want: "does not say so"},
		{name: "another text than the statement's", talk: plain, edit: func(d *doc, _ *said) { d.Statement.Body = "Nice!" }, want: "does not say so"},
		{name: "an approval in an earlier text", talk: plain, edit: func(d *doc, _ *said) { d.Statement.Body, d.Statement.Earlier = "Nice!", []string{d.Text} }, want: "does not say so"},
		{name: "T01 edited", talk: plain, edit: func(d *doc, _ *said) { d.Statement.Edited = true }, want: "cannot count: edited after posting"},
		{name: "T65 an app", talk: plain, edit: func(d *doc, _ *said) { d.Statement.App = "helper" }, want: "cannot count: posted through the app helper"},
		{name: "T65 e-mail", talk: green, edit: func(d *doc, _ *said) { d.Statement.Email = true }, want: "cannot count: sent by e-mail"},
		{name: "green and dismissed", talk: green, edit: func(d *doc, _ *said) { d.Statement.State = "DISMISSED" }, want: "cannot count: was dismissed"},
		{name: "not green", talk: green, edit: func(d *doc, _ *said) { d.Statement.State = "COMMENTED" }, want: "does not say so"},
		{name: "green, of a secret", talk: green, edit: func(d *doc, s *said) { s.Fingerprint, d.Command.Fingerprint = "secret:"+own, "secret:"+own }, want: "does not say so"},
		{name: "green, in an emergency", talk: green, edit: func(d *doc, _ *said) { d.Command.BreakGlass = true }, want: "of another kind"},
		{name: "green and a command", talk: green, edit: func(d *doc, s *said) {
			d.Statement.Body, d.Text = "/deny "+own, "/deny "+own
			s.Source.BodySHA256 = canon.Sum([]byte(d.Text))
		}, want: "does not say so"},
		{name: "a bare one out of a thread", talk: bare, edit: func(d *doc, _ *said) { d.Statement.ReplyTo = "" }, want: "does not say so"},
		{name: "T97 a short one", talk: short},
		{name: "T97 out of a thread", talk: short, edit: func(d *doc, _ *said) { d.Statement.ReplyTo = "" }, want: "does not say so"},
		{name: "T97 in a comment", talk: short, edit: func(d *doc, s *said) { d.Statement.Kind, s.Source.Kind = "issue_comment", "issue_comment" }, want: "does not say so"},
		{name: "T97 told as the change's", talk: short, edit: func(d *doc, s *said) { s.Fingerprint, d.Command.Fingerprint = own, own }, want: "does not say so"},
		{name: "T97 told as a secret's", talk: short, edit: func(d *doc, s *said) { s.Fingerprint, d.Command.Fingerprint = "secret:"+own, "secret:"+own }, want: "does not say so"},
		{name: "a bare one of a secret", talk: bare, edit: func(d *doc, s *said) { s.Fingerprint, d.Command.Fingerprint = "secret:"+own, "secret:"+own }, want: "does not say so"},
		{name: "no emergency", talk: glass, edit: func(d *doc, _ *said) { d.Command.BreakGlass = false }, want: "of another kind"},
		{name: "an emergency after all", talk: plain, edit: func(d *doc, _ *said) { d.Command.BreakGlass = true }, want: "of another kind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newPull(t, "version: 1", ledger.Proposal{})
			s := c.talk.Said()[0]
			decision, _ := s.Command.Decision()
			a := approval.Access{Permission: "write", Role: "write"}
			d := s.Doc(a)
			recorded := said{Decision: decision, Fingerprint: s.Command.Fingerprint, Reason: s.Command.Reason, Source: s.Source(a, "head", "?")}
			if c.edit != nil {
				c.edit(&d, &recorded)
			}
			if file := x.artifact(approval.KindStatement, d); recorded.Source.Evidence == "?" {
				recorded.Source.Evidence = file
			}
			x.decide(s.Command.RequestKind(), recorded)
			x.want(c.want)
			if c.want != "" && !strings.HasPrefix(x.found(), "L18 ") {
				t.Error(x.found())
			}
		})
	}
}

// TestEvidenceOfAnotherRequest: an approval is not one that breaks the glass
// because it answers a request for that.
func TestEvidenceOfAnotherRequest(t *testing.T) {
	a := approval.Access{Permission: "write"}
	for line, kind := range map[string]string{"/approve " + own: "break_glass", "/approve --break-glass " + own + " down": "fileChange"} {
		x := newPull(t, "version: 1", ledger.Proposal{})
		s := talk(comment(line)).Said()[0]
		evidence := x.artifact(approval.KindStatement, s.Doc(a))
		x.decide(kind, ledger.ApprovalDecision{Decision: ledger.Approve, Fingerprint: own, Reason: "down", Source: s.Source(a, "", evidence)})
		x.want("L18 it answers a request of another kind")
	}
}

// TestEvidenceComesFirst: a statement that is recorded after its decision, and
// one that cannot be read.
func TestEvidenceComesFirst(t *testing.T) {
	a := approval.Access{Permission: "write"}
	s := talk(comment("/approve " + own)).Said()[0]
	doc := s.Doc(a)
	line, _ := canon.Line(doc)
	file := ledger.ArtifactFile(canon.Hex(line))
	d := ledger.ApprovalDecision{Decision: ledger.Approve, Fingerprint: own, Source: s.Source(a, "", file)}

	x := newPull(t, "version: 1", ledger.Proposal{})
	x.decide("fileChange", d)
	x.artifact(approval.KindStatement, doc)
	x.want("L18 the statement that the decision was read from is not recorded")

	x = newPull(t, "version: 1", ledger.Proposal{})
	x.artifact(approval.KindStatement, doc)
	x.decide("fileChange", d)
	x.want("")
	delete(x.dir, file)
	x.want("L18 " + file)

	x = newPull(t, "version: 1", ledger.Proposal{})
	x.artifact("proposal", doc)
	x.decide("fileChange", d)
	x.want("L18 the statement that the decision was read from is not recorded")
}

// TestT47Redacted: a command is no secret, and one that has a secret in its
// reason is told without it and is evidence still.
func TestT47Redacted(t *testing.T) {
	a := approval.Access{Permission: "write", Role: "write"}
	clean := func(doc approval.StatementDoc) (approval.StatementDoc, bool) {
		raw, err := canon.Marshal(doc)
		fatal(t, err)
		out, err := secret.Default().JSON(raw, writing.IsTyped)
		var back approval.StatementDoc
		if err != nil || canon.Unmarshal(out, &back) != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return back, string(out) != string(raw)
	}
	for _, c := range exact {
		if c.want.Fingerprint == "" {
			continue
		}
		said := talk(comment(c.body, func(s *approval.Statement) { s.Earlier = []string{s.Body} })).Said()[0]
		if doc, changed := clean(said.Doc(a)); changed {
			t.Errorf("%q is redacted: %+v", c.body, doc)
		}
	}
	said := talk(comment("/deny " + own + " ghp_" + "0aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA" + " is in it")).Said()[0]
	doc, changed := clean(said.Doc(a))
	if !changed || strings.Contains(doc.Text, "ghp_") {
		t.Fatalf("a token is left: %+v", doc)
	}
	x := newPull(t, "version: 1", ledger.Proposal{})
	line, _ := canon.Line(doc)
	file := x.artifact(approval.KindStatement, doc)
	d := ledger.ApprovalDecision{Decision: ledger.Deny, Fingerprint: own, Source: said.Source(a, "", file)}
	x.decide("fileChange", d)
	x.want("L18 the text of its statement does not hash")

	x = newPull(t, "version: 1", ledger.Proposal{})
	x.dir[file] = &fstest.MapFile{Data: line}
	x.event(&ledger.ArtifactStored{TransactionID: pullTx, ArtifactID: canon.Hex(line), Kind: approval.KindStatement, Path: file, StoredSHA256: canon.Sum(line), Redacted: true})
	x.decide("fileChange", d)
	x.want("")
}
