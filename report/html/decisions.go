package html

import (
	"fmt"
	"strconv"

	"github.com/countersign-dev/countersign/pipeline/approval"
	"github.com/countersign-dev/countersign/pipeline/ledger"
)

func itoa(n int) string { return strconv.Itoa(n) }

// decisions has each decision with its evidence, and why it counted or did not.
func (s *sheet) decisions() {
	list := all[*ledger.ApprovalDecision](s.t)
	if len(list) == 0 {
		return
	}
	s.Markup("<section>\n<h2 id=\"decisions\">Each decision, with its evidence</h2>\n")
	for i, d := range list {
		var judged *approval.Judged
		if s.t.told {
			judged = &s.t.verdict.Decisions[i]
		}
		s.decision(i+1, d, judged)
	}
	s.Markup("</section>\n")
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
	s.Text(ledger.Where(from.Kind))
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
