package report

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// A Prompt is what a person at a terminal is shown of a patch, and then asked. The
// Report is without secrets; Protected are the paths of the patch with the rules of
// the Policy that they meet, Decider is the person. Columns and Rows are the screen's.
type Prompt struct {
	Report
	Protected     []policy.Explained
	Decider       ledger.Actor
	Columns, Rows int
}

// Page is all that there is to read before the question: who wants what, and every
// kind of risk, on the first screen; then the diff as Diff shows it; then the risks
// that the first screen had no room for.
func (p Prompt) Page(diff []byte, s Style) string {
	head := p.head(s)
	room := p.Rows - 1 - strings.Count(Fold(head, p.Columns), "\n") // a pager has a line of its own
	risks, all := Risks(p.list(), p.Columns, max(1, room), s), Risks(p.list(), p.Columns, 0, s)
	var b strings.Builder
	b.WriteString(head + risks + "\n" + Diff(diff, s))
	fmt.Fprintf(&b, "\n%s\n", s.paint(bold, "End of "+p.Fingerprint))
	if all != risks {
		b.WriteString(s.paint(bold, "All risks:") + "\n" + all)
	}
	return Fold(b.String(), p.Columns)
}

func (p Prompt) head(s Style) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", s.paint(bold, cut(cmp.Or(Clean(p.Summary), "(no summary)"), p.Columns)))
	fmt.Fprintf(&b, "%s, proposed by %s on %.12s\n", p.TransactionID, cut(Clean(p.Proposer.Login), 24), p.BaseCommit)
	fmt.Fprintf(&b, "%s\n%s\n%s\n", p.Fingerprint, p.filesLine(), Clean(p.Verdict.Reason))
	for _, d := range p.Verdict.Decisions[:min(len(p.Verdict.Decisions), 3)] {
		counted := "counted"
		if !d.Counted {
			counted = "not counted: " + Clean(d.Reason)
		}
		fmt.Fprintf(&b, "%s\n", cut(fmt.Sprintf("  %s by %s (%s)", Clean(string(d.Decision)), Clean(d.Author.Login), counted), p.Columns))
	}
	if n := len(p.Verdict.Decisions); n > 3 {
		fmt.Fprintf(&b, "  and %s more\n", plural(n-3, "decision"))
	}
	if text := Drift(p.Verdict.Drift); text != "" {
		fmt.Fprintf(&b, "what else has changed: %s\n", text)
	}
	title := "Risks, the most dangerous first:"
	if p.list().Count() == 0 {
		title = "Risks: none that a reader of the diff would overlook."
	}
	return b.String() + s.paint(bold, title) + "\n"
}

// Standing says whose decision it is going to be, and what that proves; one that is
// signed is that of the key.
func (p Prompt) Standing(signs bool) string {
	if signs {
		return "\nWhat you answer is signed with your own SSH key.\n"
	}
	return Fold(fmt.Sprintf("\nYou decide as %s (%s).\n"+
		"A local decision proves that somebody with this shell took it, and no more:\n"+
		"a Policy that wants a person's own key has approvals.signed (docs/decisions.md).\n", Clean(p.Decider.Login), Clean(p.Decider.ID)), p.Columns)
}

// maxReasons is how many reasons stand above a question; the page has them all.
const maxReasons = 12

// Question asks about approvals of these kinds with one answer, below what they are
// needed for; of no kind it asks whether the patch is to be denied.
func (p Prompt) Question(kinds []string, s Style) string {
	var b strings.Builder
	for _, kind := range kinds {
		reasons := p.reasons(kind)
		fmt.Fprintf(&b, "\n%s\n", s.paint(bold, kindTitles[kind]+": "+p.counts(kind)))
		for _, reason := range reasons[:min(len(reasons), maxReasons)] {
			fmt.Fprintf(&b, "  %s\n", reason)
		}
		if n := len(reasons) - maxReasons; n > 0 {
			fmt.Fprintf(&b, "  and %d more, which are among the risks above\n", n)
		}
	}
	question := "Deny exactly these bytes for good? [y]es, else later:"
	switch {
	case len(kinds) == 1:
		question = kindQuestions[kinds[0]] + " [y]es, [d]eny for good, else later:"
	case len(kinds) > 1:
		question = "Approve all of this? [y]es, [d]eny for good, else later:"
	}
	return Fold(b.String()+s.paint(bold, question)+" ", p.Columns)
}

var (
	kindTitles = map[string]string{
		policy.KindFileChange: "patchset, the change itself",
		policy.KindSecret:     "secret, what looks like one in what the patch adds",
		policy.KindProtected:  "protected, paths that the Policy protects",
	}
	kindQuestions = map[string]string{
		policy.KindFileChange: "Approve exactly these bytes?",
		policy.KindSecret:     "Approve that these secrets are added?",
		policy.KindProtected:  "Approve that these protected paths change?",
	}
)

// counts are how many approvals of a kind there are, of how many.
func (p Prompt) counts(kind string) string {
	var out []string
	for _, n := range p.Verdict.Needs {
		if n.Kind == kind {
			out = append(out, fmt.Sprintf("%d of %d", n.Approved, n.Required))
		}
	}
	return strings.Join(out, " and ") + " approvals"
}

// reasons are what an approval of a kind is needed for: a secret's file, line and
// rule, a protected path's rule and glob, and whom it asks.
func (p Prompt) reasons(kind string) []string {
	var out []string
	if kind == policy.KindProtected {
		for _, e := range p.Protected {
			for _, met := range e.Rules {
				reason := fmt.Sprintf("%s (%s %s", Clean(e.Path), met.Rule, Clean(met.Glob))
				if who := (policy.Need{Users: met.Users, Teams: met.Teams, Owners: met.Owners}).People(); who != "" {
					reason += ", by " + Clean(who)
				}
				out = append(out, reason+")")
			}
		}
		return out
	}
	for _, one := range Reasons(p.list(), kind) {
		out = append(out, riskText(one))
	}
	return out
}

// Fold breaks lines that are wider than a screen. Every row that goes on with a line
// begins with an ellipsis, so that no foreign text stands where a row of this program
// begins. Text is what this package made: colours are the only escapes in it.
func Fold(text string, columns int) string {
	const mark, reset = "… ", "\x1b[0m"
	var b strings.Builder
	colour, at := "", 0
	for len(text) > 0 {
		if end := strings.IndexByte(text, 'm') + 1; strings.HasPrefix(text, "\x1b[") && end > 0 {
			if colour = text[:end]; colour == reset {
				colour = ""
			}
			b.WriteString(text[:end])
			text = text[end:]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		wide := columnsOf(r, at)
		switch {
		case r == '\n':
			at, wide = 0, 0
		case at+wide > columns && at > 2:
			if colour != "" {
				b.WriteString(reset)
			}
			b.WriteString("\n" + mark + colour)
			at = 2
			wide = columnsOf(r, at)
		}
		b.WriteString(text[:size])
		at += wide
		text = text[size:]
	}
	return b.String()
}

// columnsOf is how many columns of a screen a character takes at most.
func columnsOf(r rune, at int) int {
	switch {
	case r == '\t':
		return 8 - at%8
	case r < 0x1100, r >= 0x2000 && r < 0x2300: // dashes, arrows and signs
		return 1
	}
	return 2 // or one: then a line is folded early
}
