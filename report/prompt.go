package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/risk"
	"github.com/countersign-dev/countersign/report/template"
	"github.com/countersign-dev/countersign/report/view"
)

// A Prompt is what a person at a terminal is shown of a patch, and then asked. The
// Report is without secrets; Protected are the paths of the patch with the rules of
// the Policy that they meet, Commands run before it is applied. Decider is the person,
// who Signs the answer or does not; NotAsked says why some approvals of theirs would not
// count. Columns and Rows are the screen's.
type Prompt struct {
	Report
	Protected     []risk.Explained
	Commands      []string
	Decider       ledger.Actor
	Signs         bool
	Parts         bool // whether a part of it can be taken
	NotAsked      []string
	First         bool // whether the person is told what a decision in a shell proves, as once in each clone
	Columns, Rows int
}

// Page is all that there is to read before the question: who wants what, and every
// kind of risk, on the first screen; then the diff as Diff shows it; then the risks
// that the first screen had no room for.
func (p Prompt) Page(diff []byte, s Style) string {
	masks := masked(diff)
	head := p.head(masks, s)
	room := p.Rows - 1 - strings.Count(Fold(head, p.Columns), "\n") // a pager has a line of its own
	risks, all := Risks(p.list(), p.Columns, max(1, room), s), Risks(p.list(), p.Columns, 0, s)
	var b strings.Builder
	b.WriteString(head + risks)
	if text := p.claimLines(math.MaxInt); text != "" {
		b.WriteString("\n" + s.paint(bold, view.ClaimsHead) + "\n" + text + "\n")
	}
	b.WriteString(Diff(diff, s))
	if masks != "" {
		fmt.Fprintf(&b, "%s\n", s.paint(bold, "The diff above is"+strings.TrimPrefix(masks, ",")))
	}
	b.WriteString(Renamed(diff, s))
	if all != risks {
		b.WriteString(s.paint(bold, "All risks:") + "\n" + all)
	}
	return Fold(b.String(), p.Columns)
}

func (p Prompt) head(masks string, s Style) string {
	about := p.about()
	if p.Summary != "" {
		about = Quoted(cut(p.Summary, 120))
	}
	named := []proof{{"found", p.found()}, {"author", p.author()}, {"proposed too by", view.Joined(p.further(), ", ", from)}}
	return p.told("head", s, template.Funcs{
		"about": func() string { return about }, "by": func() string { return cut(Clean(p.Proposer.Login), 24) }, "fit": func(text string) string { return cut(text, p.Columns) },
		"named": func() []proof { return slices.DeleteFunc(named, func(one proof) bool { return one.Text == "" }) },
		"answered": template.Raw(func(a answerLine) string {
			return cut(strings.TrimSuffix(Style{Zone: s.Zone}.fill("answer", a), "\n"), p.Columns)
		}),
		"masks": func() string { return masks }, "risks": func() int { return p.list().Count() },
	})
}

// Standing is what there is to know before the first question: what runs, what is not
// asked, and whose decision it is going to be. One that is signed is that of the key.
func (p Prompt) Standing() string {
	return Fold(Style{}.fill("standing", p), p.Columns)
}

// Seen says how many lines of all were seen at most, in a pager that was left; "" where all were.
func Seen(seen, all int) string {
	if seen == all {
		return ""
	}
	return fmt.Sprintf("At most %d of %d lines seen.\n", seen, all)
}

// WhyDeny asks for the reason of a denial.
const WhyDeny = "Deny for good: nobody can apply these bytes again here. Why? (empty: do not deny) > "

// TakePiece asks whether a piece of a patch is taken.
func TakePiece(number, of int) string {
	return fmt.Sprintf("Take this (%d of %d)? [y]es [n]o [a]ll from here in this file [d]one with this file, take no more of it [q]uit: ", number, of)
}

// NoPart says why nothing is proposed of the pieces that were taken: none of them, or all.
func NoPart(taken int) string {
	if taken == 0 {
		return "Nothing is taken.\n"
	}
	return "That is all of it.\n"
}

// ProposePart asks whether the pieces that were taken are proposed.
func ProposePart(taken, of int) string {
	return fmt.Sprintf("Propose these %d of %d pieces in its place, and be asked about them? You are one of their proposers then. [y/N] ", taken, of)
}

// maxReasons is how many commands, or reasons, stand above a question.
const maxReasons = 12

// An approvalAsked is one kind of approval that is asked for, with what it is needed for.
type approvalAsked struct {
	Title   string
	Reasons []string
	More    int
}

// Question asks about approvals of these kinds with one answer, below what they are
// needed for; of no kind it asks whether the patch is to be denied.
func (p Prompt) Question(kinds []string, s Style) string {
	var asked []approvalAsked
	for _, kind := range kinds {
		one := approvalAsked{}
		if kind != policy.KindFileChange || len(kinds) > 1 {
			one.Title = kindWords[kind].title + ": " + p.counts(kind)
		}
		one.Reasons, one.More = p.reasons(kind)
		one.More += max(0, len(one.Reasons)-maxReasons)
		asked = append(asked, one)
	}
	answers := " [y]es [l]ook again [d]eny [Enter] later:"
	if p.Parts {
		answers = " [y]es [p]art [l]ook again [d]eny [Enter] later:"
	}
	question := fmt.Sprintf("Deny these bytes (%.12s) for good? [y]es [l]ook again [Enter] later:", p.PatchID)
	switch {
	case len(kinds) == 1 && kinds[0] == policy.KindFileChange:
		question = fmt.Sprintf("Approve these bytes (%.12s)?", p.PatchID) + answers
	case len(kinds) == 1:
		question = kindWords[kinds[0]].question + answers
	case len(kinds) > 1:
		question = fmt.Sprintf("Approve all of this (%.12s)?", p.PatchID) + answers
	}
	return Fold(s.fill("asked", asked)+s.paint(bold, question)+" ", p.Columns)
}

// kindWords are what each kind of approval is about, and how it alone is asked for.
var kindWords = map[string]struct{ title, question string }{
	policy.KindFileChange: {title: "The change itself"},
	policy.KindSecret:     {"What looks like a secret in what the patch adds", "Approve that these secrets are added?"},
	policy.KindProtected:  {"Paths that the Policy protects", "Approve that these protected paths change?"},
}

// counts are how many approvals of a kind there are, of how many.
func (p Prompt) counts(kind string) string {
	var out []string
	for _, n := range p.Verdict.Needs {
		if n.Kind == kind {
			out = append(out, fmt.Sprintf("%d of %d %sapprovals", n.Approved, n.Required, map[bool]string{true: "signed "}[n.Signed]))
		}
	}
	return strings.Join(out, " and ")
}

// reasons are what an approval of a kind is needed for: a secret's file, line and
// rule, a protected path's rule and glob, and whom it asks; and how many more the list
// of risks leaves out.
func (p Prompt) reasons(kind string) (out []string, more int) {
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
		return out, 0
	}
	if kind == policy.KindSecret {
		for _, one := range p.list().Risks {
			if one.Kind == risk.Secret || one.Kind == risk.Unlisted {
				out = append(out, riskText(one))
			}
		}
		more = p.list().More[risk.Secret]
	}
	return out, more
}

// Quoted is somebody's words in quotation marks that they cannot end, "" for none. It is
// safe to show on a terminal.
func Quoted(text string) string {
	if text == "" {
		return ""
	}
	return `"` + unquoted(Clean(text)) + `"`
}

// unquoted is a text that can stand between quotation marks.
func unquoted(text string) string {
	return strings.NewReplacer(`"`, "'", "“", "'", "”", "'", "„", "'", "‟", "'", "″", "'", "＂", "'").Replace(text)
}

// masked says in how many places of a diff a mask stands for a secret, "" where in none.
func masked(diff []byte) string {
	n := len(mask().FindAll(diff, -1))
	if n == 0 {
		return ""
	}
	return ", masked in " + Counted(n, "place")
}

// mask is what package secret puts where a secret was.
var mask = canon.Regexp(`<REDACTED:[a-z0-9-]+>`)

// reasonOf is a verdict's reason for people. What somebody said to deny stays as it is.
func reasonOf(v *approval.Verdict) string {
	if v.State == approval.Denied {
		return v.Reason
	}
	return plain.Reason(v.Reason)
}

// Fold breaks lines that are wider than a screen, between words where there are some. Every
// row that goes on with a line begins with an ellipsis, so that no foreign text stands where a
// row of this program begins. Text is what this package made: colours are the only escapes in it.
func Fold(text string, columns int) string {
	const mark, reset = "… ", "\x1b[0m"
	out := make([]byte, 0, len(text))
	type place struct {
		byte, column int
		colour       string
	}
	var now, gap place // gap is behind the row's last blank
	broken := func(at place) (next string) {
		if at.colour != "" {
			next = reset
		}
		return next + "\n" + mark + at.colour
	}
	for len(text) > 0 {
		if end := strings.IndexByte(text, 'm') + 1; strings.HasPrefix(text, "\x1b[") && end > 0 {
			if now.colour = text[:end]; now.colour == reset {
				now.colour = ""
			}
			out, text = append(out, text[:end]...), text[end:]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		wide := columnsOf(r, now.column)
		switch {
		case r == '\n':
			now.column, wide, gap = 0, 0, place{}
		case now.column+wide > columns && now.column > 2:
			now.byte = len(out)
			if r == ' ' || gap.column <= columns/2 {
				gap = now
			}
			out = slices.Insert(out, gap.byte, []byte(broken(gap))...)
			if now.column, gap = 2+now.column-gap.column, (place{}); r == ' ' {
				text = text[size:]
				continue
			}
			wide = columnsOf(r, now.column)
		}
		out, text = append(out, text[:size]...), text[size:]
		if now.column += wide; r == ' ' {
			gap = place{len(out), now.column, now.colour}
		}
	}
	return string(out)
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
