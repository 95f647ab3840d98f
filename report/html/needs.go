package html

import (
	"cmp"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/state"
	"github.com/countersign-dev/countersign/report/view"
)

// requirements are who approved which bytes, how much each answer proves and what is missing: what the
// page is opened for.
func (s *sheet) requirements() {
	title := map[bool]string{true: "Who approved which bytes", false: "What the record says of decisions"}[s.t.Sound()]
	s.Put("<section aria-labelledby=\"who\">\n<h2 id=\"who\">{}</h2>\n", title)
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
	s.Put("<div><p><strong>{}</strong>", view.Upper(r.What))
	for i, path := range r.Paths[:min(len(r.Paths), maxPathsNamed)] {
		s.Put("{}{}", map[bool]string{true: " ", false: ", "}[i == 0], Code(path))
	}
	if more := len(r.Paths) - maxPathsNamed; more > 0 {
		s.Put(" and {} more", more)
	}
	switch {
	case len(r.Answers) == 0:
		s.Markup(": nobody yet")
	case !r.Met() || r.Required > 1:
		s.Put(": {} of {}", r.Approved, r.Required)
	}
	s.PutIf(r.From != "", ", by {}", r.From)
	s.PutIf(r.Signed, " (only signed answers count)")
	s.Markup("</p>\n")
	for _, a := range r.Answers {
		s.answer(a)
	}
	s.Markup("</div></li>\n")
}

const maxPathsNamed = 5

// answer is who answered when, with what words, and how much that proves.
func (s *sheet) answer(a view.Answer) {
	said := ""
	if a.Said != "" {
		said = ", “" + ledger.OneLine(a.Said, 200) + "”"
	}
	s.Put("<p>{}{} <span class=\"faint\">{}</span></p>\n", s.person(a.By), said, When(a.At))
	s.Put("<p class=\"proof\">{} <a href=\"#decision-{}\">evidence</a></p>\n", a.Proof, a.Number+1)
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
		s.Put("<li class=\"uncounted\"><span class=\"mark\" role=\"img\" aria-label=\"not counted\">✗</span><div><p><strong>{}</strong>: {}</p>\n", what, a.Why)
	}
	s.answer(a)
	s.Markup("</div></li>\n")
}

// untold is the decisions of a record that does not tell whether they count.
func (s *sheet) untold() {
	if s.t.Sound() {
		s.Put("<p>Whether a decision counted cannot be told: {}</p>\n", cmp.Or(s.t.noPolicy, "the record does not tell"))
	} else {
		s.Markup("<p>The record does not verify, so no decision counts.</p>\n")
	}
	s.Markup("<ul>\n")
	for i, d := range all[*ledger.ApprovalDecision](s.t) {
		s.Put("<li>{}</li>\n", s.decided(d, i+1))
	}
	s.Markup("</ul>\n")
}

// theseBytes is the number that whoever decides names.
func (s *sheet) theseBytes() {
	s.Put("<p class=\"faint\">These bytes: SHA-256 {}", sum(s.t.PatchID))
	s.PutIf(s.t.patch != nil && s.t.proposal.PatchRedactedSHA256 == "", " · {} bytes", len(s.t.patch))
	s.Markup(" · <a href=\"#verify\">how to check</a></p>\n")
}

// answering is how whoever may decide answers.
func (s *sheet) answering() {
	if s.t.PullRequest > 0 {
		s.Put("<p>To answer: as the request on {} says.</p>\n", s.pull())
		return
	}
	for _, step := range s.t.view.Next[:min(len(s.t.view.Next), 1)] {
		to := map[bool]string{true: "answer", false: "go on"}[s.t.State == state.Waits]
		s.Put("<p>To {}: {} in a clone {}. Whether earlier answers still stand is asked again before anything is applied.</p>\n", to, Code("countersign "+strings.Join(step.Command, " ")), step.For)
	}
}

// sum is a hash, of which the beginning is shown.
func sum(hex string) *Body {
	if !isLongHex(hex) {
		return Code(cmp.Or(hex, "none"))
	}
	return Part(`<code title="{}">{}…</code>`, hex, hex[:shownDigits])
}

// isLongHex reports whether a text is a hash, of which the beginning is shown; what is none stands as it is.
func isLongHex(text string) bool { return len(text) > shownDigits && canon.IsHex(text, len(text)) }

const shownDigits = 12
