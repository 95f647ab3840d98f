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

// decisions has each decision with its evidence, and why it counted or did not.
func (s *sheet) decisions() {
	s.Markup("<section aria-labelledby=\"decisions\">\n<h2 id=\"decisions\">Who decided</h2>\n")
	list := all[*ledger.ApprovalDecision](s.t)
	if len(list) == 0 {
		s.Markup("<p>Nobody has decided.</p>\n")
	}
	judged := s.t.Sound() && s.t.noPolicy == "" && len(s.t.verdict.Decisions) == len(list)
	switch {
	case judged:
		s.needs()
	case s.t.Sound() && len(s.t.events) > 0:
		s.Markup("<p>Whether a decision counted cannot be told: ").Text(cmp.Or(s.t.noPolicy, "the record does not tell")).Markup("</p>\n")
	case len(list) > 0:
		s.Markup("<p>The record does not verify, so no decision counts.</p>\n")
	}
	for i, d := range list {
		var j *approval.Judged
		if judged {
			j = &s.t.verdict.Decisions[i]
		}
		s.decision(i+1, d, j)
	}
	s.Markup("</section>\n")
}

// needs says what the Policy asked for and what there was, as a table.
func (s *sheet) needs() {
	s.Markup("<p>By the Policy below: ").Text(policy.Plain(s.t.verdict.Reason)).Markup(".")
	if !s.settled() {
		s.Text(" That is what the record tells. Whether comments still stand, and who is in a team, is asked again before anything is applied.")
	}
	s.Markup("</p>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"What was asked for\">\n<table>\n<thead><tr><th scope=\"col\">Approval of</th><th scope=\"col\">Fingerprint</th><th scope=\"col\">Needed</th><th scope=\"col\">Counted</th></tr></thead>\n<tbody>\n")
	for _, n := range s.t.verdict.Needs {
		s.Markup("<tr><td>").Text(policy.InWords(n.Kind))
		if n.Signed {
			s.Text(", signed")
		}
		s.Markup("</td><td>").Code(n.Fingerprint).Markup("</td><td>").Text(itoa(n.Required)).Markup("</td><td>").Text(itoa(n.Approved)).Markup("</td></tr>\n")
	}
	s.Markup("</tbody>\n</table>\n</div>\n")
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
	s.fact("About", func() { s.Code(d.Fingerprint) })
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
