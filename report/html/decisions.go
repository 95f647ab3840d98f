package html

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

func itoa(n int) string { return strconv.Itoa(n) }

// judged are the decisions, each with how it was judged, nil where that cannot be told.
func (s *sheet) judged() (list []*ledger.ApprovalDecision, judged []*approval.Judged, told bool) {
	list = all[*ledger.ApprovalDecision](s.t)
	judged = make([]*approval.Judged, len(list))
	told = s.t.Sound() && s.t.noPolicy == "" && len(s.t.verdict.Decisions) == len(list)
	for i := range list {
		if told {
			judged[i] = &s.t.verdict.Decisions[i]
		}
	}
	return list, judged, told
}

// bytes says who approved which bytes: what the page is opened for.
func (s *sheet) bytes() {
	list, judged, told := s.judged()
	title := "Who approved which bytes"
	if !s.t.Sound() {
		title = "What the record says of decisions"
	}
	s.Markup("<section>\n<h2 id=\"who\">").Text(title).Markup("</h2>\n<p>")
	s.Text("The bytes are the ")
	if s.o.Redact || s.t.patch == nil || s.t.proposal.PatchRedactedSHA256 != "" {
		s.Text("diff")
	} else {
		s.Link("#diff", "diff below")
		s.Textf(", %d in all,", len(s.t.patch))
	}
	s.Text(" with the SHA-256 ").Code(cmp.Or(s.t.PatchID, "none")).Text(". Who decides names this number.").Markup("</p>\n")
	s.stand(len(list), told)
	if len(list) == 0 {
		s.Markup("</section>\n")
		return
	}
	s.wide(title, "Who", "Decided", "When (UTC)", "Counts", "Evidence")
	for i, d := range list {
		s.row(func() { s.person(d.Source.Author) }, func() { s.approvedOf(d) }, func() { s.when(d.Source.CreatedAt) }, func() { s.counts(d, judged[i]) },
			func() { s.Link("#decision-"+itoa(i+1), "decision "+itoa(i+1)) })
	}
	s.endWide()
	s.Markup("</section>\n")
}

// approvedOf is what a decision says of which bytes.
func (s *sheet) approvedOf(d *ledger.ApprovalDecision) {
	verb := map[bool]string{true: "approved ", false: "denied "}[d.Decision == ledger.Approve]
	if !s.t.Sound() {
		verb = "recorded as: " + string(d.Decision) + " "
	}
	s.Text(verb + policy.InWords(s.kindOf(d)))
	if of := ledger.FingerprintPatch(d.Fingerprint); of != s.t.PatchID {
		s.Text(", of other bytes: ").Code(cmp.Or(of, d.Fingerprint))
	}
}

// counts says whether a decision counted; j is nil where that cannot be told.
func (s *sheet) counts(d *ledger.ApprovalDecision, j *approval.Judged) {
	switch {
	case j == nil && !s.t.Sound():
		s.Text("no: the record does not verify")
	case j == nil:
		s.Text("cannot be told")
	case j.Counted:
		s.Text("yes")
	default:
		s.Text("no: " + j.Why())
	}
}

// stand says how things stand with so many decisions.
func (s *sheet) stand(decisions int, told bool) {
	switch {
	case told:
		s.Markup("<p>By the ").Link("#policy", "Policy").Text(": " + policy.Plain(s.t.verdict.Reason)).Text(".")
		if !s.settled() {
			s.Text(" That is what the record tells. Whether comments still stand, and who is in a team, is asked again before anything is applied.")
		}
		s.Markup("</p>\n")
	case s.t.Sound() && len(s.t.events) > 0:
		s.Markup("<p>Whether a decision counted cannot be told: ").Text(cmp.Or(s.t.noPolicy, "the record does not tell")).Markup("</p>\n")
	case decisions > 0:
		s.Markup("<p>The record does not verify, so no decision counts.</p>\n")
	}
	if decisions == 0 {
		s.Markup("<p>Nobody has decided.</p>\n")
	}
}

// decisions has each decision with its evidence, and why it counted or did not.
func (s *sheet) decisions() {
	list, judged, told := s.judged()
	if len(list) == 0 {
		return
	}
	s.Markup("<section>\n<h2 id=\"decisions\">Each decision, with its evidence</h2>\n")
	if told {
		s.needs()
	}
	for i, d := range list {
		s.decision(i+1, d, judged[i])
	}
	s.Markup("</section>\n")
}

// needs is a table of what the Policy asked for and what there was.
func (s *sheet) needs() {
	s.wide("What was asked for", "Approval of", "Which a decision names as", "Needed", "Counted")
	for _, n := range s.t.verdict.Needs {
		s.row(func() { s.Text(policy.InWords(n.Kind) + map[bool]string{true: ", signed"}[n.Signed]) }, func() { s.Code(n.Fingerprint) },
			func() { s.Text(itoa(n.Required)) }, func() { s.Text(itoa(n.Approved)) })
	}
	s.endWide()
}

// settled reports whether the verdict is of a change that was applied or merged.
func (s *sheet) settled() bool {
	switch s.t.Status {
	case ledger.Applied, ledger.Completed, ledger.Denied:
		return true
	}
	return s.t.result != nil
}

// decision is one decision; j is nil where it is not judged.
func (s *sheet) decision(n int, d *ledger.ApprovalDecision, j *approval.Judged) {
	s.Markup("<article class=\"decision\"").Attribute("id", "decision-"+itoa(n)).Markup(">\n<h3>").Textf("Decision %d: ", n)
	s.said(d)
	s.Markup("</h3>\n")
	if j != nil {
		class, says := "over", "Not counted: "+j.Why()
		if j.Counted {
			class, says = map[bool]string{true: "good", false: "bad"}[d.Decision == ledger.Approve], "Counted"
		}
		s.Markup("<p").Attribute("class", class).Markup("><strong>").Text(says).Markup("</strong></p>\n")
	}
	if d.Reason != "" {
		s.Markup("<blockquote><p>").Text(d.Reason).Markup("</p></blockquote>\n")
	}
	s.evidence(d)
	s.Markup("</article>\n")
}

// evidence is where a decision was read, and what the forge said of its author.
func (s *sheet) evidence(d *ledger.ApprovalDecision) {
	s.Markup("<dl>\n")
	s.fact("Said", func() { s.when(d.Source.CreatedAt) })
	s.fact("Where", func() { s.source(d.Source) })
	s.fact("Account", func() {
		s.Text(d.Source.Author.Kind + " ").Code(d.Source.Author.Login).Text(", id ").Code(d.Source.Author.ID)
	})
	if d.Source.Permission != "" {
		s.fact("Permission", func() { s.Text(d.Source.Permission) })
	}
	s.fact("Names", func() { s.Code(d.Fingerprint) })
	if d.Source.Commit != "" {
		s.fact("Made on", func() { s.commit(d.Source.Commit) })
	}
	if doc, ok := aside[approval.StatementDoc](s.t, d.Source.Evidence); ok {
		s.fact("Edited", func() {
			s.Text(map[bool]string{true: "yes, after it was posted", false: "no"}[doc.Statement.Edited || len(doc.Statement.Earlier) > 0])
		})
		if doc.Text != "" {
			s.fact("Words", func() { s.Markup("<pre>").Lines(cut(doc.Text)).Markup("</pre>") })
		}
	}
	if sig := d.Source.Signature; sig != nil {
		s.fact("Signed", func() {
			s.Text("with the key ").Code(sig.KeyFingerprint).Text(", listed as ").Code(sig.Principal)
		})
	}
	if d.Source.Evidence != "" {
		s.fact("Evidence", func() { s.Code(d.Source.Evidence) })
	}
	s.Markup("</dl>\n")
}

func (s *sheet) source(from ledger.Source) {
	where := map[string]string{
		"local": "on the command line", approval.KindReview: "in a review", approval.KindReviewComment: "in a comment of a review",
		approval.KindIssueComment: "in a comment",
	}[from.Kind]
	s.Text(cmp.Or(where, from.Kind))
	if from.URL != "" {
		s.Text(": ")
		s.web(from.URL)
	}
}

// fact is a row of a list of facts.
func (s *sheet) fact(name constant, value func()) {
	s.Markup("<div><dt>").Markup(name).Markup("</dt><dd>")
	value()
	s.Markup("</dd></div>\n")
}

// maxShown bounds a foreign text on the page, in bytes.
const maxShown = 64 << 10

func cut(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return text[:maxShown] + fmt.Sprintf("\n… %d more bytes: see the record", len(text)-maxShown)
}
