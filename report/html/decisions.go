package html

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/report/view"
)

// decisions has each decision with its evidence, and why it counted or did not.
func (s *sheet) decisions() {
	list := all[*ledger.ApprovalDecision](s.t)
	if len(list) == 0 {
		return
	}
	s.Markup("<section>\n<h2 id=\"decisions\">Each decision, with its evidence</h2>\n")
	for i, d := range list {
		s.Put("<article class=\"decision\" id=\"decision-{}\">\n<h3>Decision {}: {}</h3>\n", i+1, i+1, s.said(d))
		if s.t.told {
			class, says := map[bool]string{true: "good", false: "bad"}[d.Decision == ledger.Approve], "Counted"
			if j := s.t.verdict.Decisions[i]; !j.Counted {
				class, says = "over", "Not counted: "+plain.Why(j)
			}
			s.Put("<p class=\"{}\"><strong>{}</strong></p>\n", class, says)
		}
		s.PutIf(d.Reason != "", "<blockquote><p>{}</p></blockquote>\n", d.Reason)
		s.evidence(d.Source, d.Fingerprint)
		s.Markup("</article>\n")
	}
	s.Markup("</section>\n")
}

// evidence is where a decision was read, and what the forge said of its author.
func (s *sheet) evidence(from ledger.Source, fingerprint string) {
	s.Markup("<dl>\n")
	s.Fact("Said", When(from.CreatedAt))
	where := Part("{}", view.Where(from.Kind))
	where.PutIf(from.URL != "", ": {}", s.web(from.URL))
	s.Fact("Where", where)
	s.Fact("Account", Part("{} {}, id {}", from.Author.Kind, Code(from.Author.Login), Code(from.Author.ID)))
	if from.Permission != "" {
		s.Fact("Permission", from.Permission)
	}
	s.Fact("Names", Code(fingerprint))
	if from.Commit != "" {
		s.Fact("Made on", s.commit(from.Commit))
	}
	if doc, ok := aside[approval.StatementDoc](s.t, from.Evidence); ok {
		s.Fact("Edited", map[bool]string{true: "yes, after it was posted", false: "no"}[doc.Statement.Edited || len(doc.Statement.Earlier) > 0])
		if doc.Text != "" {
			s.Fact("Words", new(Body).Markup("<pre>").Lines(cut(doc.Text)).Markup("</pre>"))
		}
	}
	if sig := from.Signature; sig != nil {
		s.Fact("Signed", Part("with the key {}, listed as {}", Code(sig.KeyFingerprint), Code(sig.Principal)))
	}
	if from.Evidence != "" {
		s.Fact("Evidence", Code(from.Evidence))
	}
	s.Markup("</dl>\n")
}

// Fact adds a row of a list of facts.
func (b *Body) Fact(name string, value any) {
	b.Put("<div><dt>{}</dt><dd>{}</dd></div>\n", name, value)
}

// maxShown bounds a foreign text on the page, in bytes.
const maxShown = 64 << 10

func cut(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return text[:maxShown] + fmt.Sprintf("\n… %d more bytes: see the record", len(text)-maxShown)
}
