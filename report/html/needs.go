package html

import (
	"cmp"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/report/view"
)

// banner is why the change stands as it does.
func (s *sheet) banner() {
	b := s.t.view.Banner
	s.Markup("<div").Attribute("class", "verdict "+s.t.Class()).Markup("><p><strong>").Text(b.Title).Markup("</strong></p>")
	if b.Detail != "" {
		s.Markup("<p>").Text(b.Detail).Markup("</p>")
	}
	s.Markup("</div>\n")
}

// requirements are who approved which bytes, how much each answer proves and what is missing: what the
// page is opened for.
func (s *sheet) requirements() {
	s.Markup("<section aria-labelledby=\"who\">\n<h2 id=\"who\">").Text(map[bool]string{true: "Who approved which bytes", false: "What the record says of decisions"}[s.t.Sound()])
	s.Markup("</h2>\n")
	defer s.Markup("</section>\n")
	if !s.t.told {
		s.untold()
		s.theseBytes()
		return
	}
	s.Markup("<ul class=\"needs\">\n")
	for _, r := range s.t.view.Requirements {
		s.requirement(r)
	}
	for _, a := range s.t.view.Others {
		s.other(a)
	}
	s.Markup("</ul>\n")
	s.theseBytes()
	if s.t.Waits {
		s.answering()
	}
}

// requirement is one approval that is needed, and who gave it.
func (s *sheet) requirement(r view.Requirement) {
	if r.Met() {
		s.Markup("<li class=\"met\"><span class=\"mark\" role=\"img\" aria-label=\"met\">✓</span>")
	} else {
		s.Markup("<li class=\"open\"><span class=\"mark\" role=\"img\" aria-label=\"missing\">○</span>")
	}
	s.Markup("<div><p><strong>").Text(view.Upper(r.What)).Markup("</strong>")
	for i, path := range r.Paths[:min(len(r.Paths), maxPathsNamed)] {
		s.Text(map[bool]string{true: " ", false: ", "}[i == 0]).Code(path)
	}
	if more := len(r.Paths) - maxPathsNamed; more > 0 {
		s.Textf(" and %d more", more)
	}
	switch {
	case len(r.Answers) == 0:
		s.Text(": nobody yet")
	case !r.Met() || r.Required > 1:
		s.Textf(": %d of %d", r.Approved, r.Required)
	}
	if r.From != "" {
		s.Text(", by " + r.From)
	}
	if r.Signed {
		s.Text(" (only signed answers count)")
	}
	s.Markup("</p>\n")
	for _, a := range r.Answers {
		s.answer(a)
	}
	s.Markup("</div></li>\n")
}

const maxPathsNamed = 5

// answer is who answered when, with what words, and how much that proves.
func (s *sheet) answer(a view.Answer) {
	s.Markup("<p>")
	s.person(a.By)
	if a.Said != "" {
		s.Text(", “" + ledger.OneLine(a.Said, 200) + "”")
	}
	s.Markup(" <span class=\"faint\">")
	s.when(a.At)
	s.Markup("</span></p>\n<p class=\"proof\">").Text(a.Proof+" ").Link("#decision-"+itoa(a.Number+1), "evidence").Markup("</p>\n")
}

// other is a decision that met nothing: a denial, or one that does not count.
func (s *sheet) other(a view.Answer) {
	if a.Counts && a.Denies {
		s.Markup("<li class=\"denied\"><span class=\"mark\" role=\"img\" aria-label=\"denied\">✗</span><div><p><strong>Denied for good</strong></p>\n")
	} else {
		what := map[bool]string{true: "Denial that does not count", false: "Approval that does not count"}[a.Denies]
		if a.Counts { // beside a broken glass
			what, a.Why = "Approval", "it was not enough"
		}
		s.Markup("<li class=\"uncounted\"><span class=\"mark\" role=\"img\" aria-label=\"not counted\">✗</span><div><p><strong>").Text(what).Markup("</strong>").Text(": " + a.Why).Markup("</p>\n")
	}
	s.answer(a)
	s.Markup("</div></li>\n")
}

// untold is the decisions of a record that does not tell whether they count.
func (s *sheet) untold() {
	switch {
	case !s.t.Sound():
		s.Markup("<p>The record does not verify, so no decision counts.</p>\n")
	default:
		s.Markup("<p>Whether a decision counted cannot be told: ").Text(cmp.Or(s.t.noPolicy, "the record does not tell")).Markup("</p>\n")
	}
	s.Markup("<ul>\n")
	for i, d := range all[*ledger.ApprovalDecision](s.t) {
		s.Markup("<li>")
		s.decided(d, i+1)
		s.Markup("</li>\n")
	}
	s.Markup("</ul>\n")
}

// theseBytes is the number that whoever decides names.
func (s *sheet) theseBytes() {
	s.Markup("<p class=\"faint\">These bytes: SHA-256 ")
	s.sum(s.t.PatchID)
	if s.t.patch != nil && s.t.proposal.PatchRedactedSHA256 == "" {
		s.Textf(" · %d bytes", len(s.t.patch))
	}
	s.Text(" · ").Link("#verify", "how to check").Markup("</p>\n")
}

// answering is how whoever may decide answers.
func (s *sheet) answering() {
	s.Markup("<p>To answer: ")
	if s.t.PullRequest > 0 {
		s.Text("as the request on ")
		s.pull()
		s.Text(" says.")
	} else {
		words := []string{"countersign approve", s.t.ID[max(0, len(s.t.ID)-7):]}
		if open := s.t.view.Open(); len(open) > 0 {
			words = append(words, open[0].Flags()...)
		}
		s.Code(strings.Join(words, " "))
		s.Text(" in a clone shows it and asks. Whether earlier answers still stand is asked again before anything is applied.")
	}
	s.Markup("</p>\n")
}

// sum is a hash, of which the beginning is shown.
func (s *sheet) sum(hex string) {
	if !isLongHex(hex) {
		s.Code(cmp.Or(hex, "none"))
		return
	}
	s.Markup("<code").Attribute("title", hex).Markup(">").Text(hex[:shownDigits] + "…").Markup("</code>")
}

// isLongHex reports whether a text is a hash, of which the beginning is shown; what is none stands as it is.
func isLongHex(text string) bool { return len(text) > shownDigits && hexadecimal(text, len(text)) }

const shownDigits = 12
