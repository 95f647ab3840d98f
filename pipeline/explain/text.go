package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/escape"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// The most bytes that commits with why take in an issue's text and in a comment, and
// commits without: a forge takes 65,536 characters, and the mark can have 27,000.
const (
	maxBody    = 25_000
	maxComment = 12_000
	maxPlain   = 6_000
	maxReviews = 4_000 // what the exceptions that wait for a review take
)

// maxWatchPaths is how many files are named of a commit.
const maxWatchPaths = 5

func (a Watch) title() string {
	branch := ledger.OneLine(a.Clean(a.Branch), 100)
	switch {
	case a.Found == nil:
		return "countersign: " + branch + " could not be audited"
	case len(a.Found.Unexplained) == 0:
		return "countersign: exceptions of " + branch + " to review"
	}
	return "countersign: commits of " + branch + " that nothing accounts for"
}

// branch is its name in a sentence.
func (a Watch) branch() string { return escape.Name(a.Clean(a.Branch)) }

// body is the text of the issue behind its mark.
func (a Watch) body(now mark) string {
	var b strings.Builder
	if a.Found == nil {
		b.WriteString(a.failed() + "\n")
		if len(now.ids) > 0 {
			fmt.Fprintf(&b, "\nBefore that, nothing accounted for %s of it:\n\n", ledger.Plural(len(now.ids), "commit", "commits"))
			b.WriteString(a.ids(now.ids))
		}
	} else if n := len(a.Found.Unexplained); n > 0 {
		fmt.Fprintf(&b, "Nothing accounts for **%s** of %s: no transaction, no approved pull request and no rule of the Policy.\n\n", ledger.Plural(n, "commit", "commits"), a.branch())
		b.WriteString(a.list(a.Found.Unexplained, maxBody))
		b.WriteString("\nWhoever knows what one is about can propose the same change and have it approved, or take it back. " + a.leaveOut() + "\n")
	}
	if len(now.gone) > 0 {
		b.WriteString("\n" + a.goneText(now.gone))
	}
	if a.Found != nil {
		b.WriteString(a.reviews())
	}
	fmt.Fprintf(&b, "\n%s says all of it. This text is written anew by each run; comments stay.\n", escape.Code(a.Command))
	return b.String()
}

// reviews are the exceptions that wait for a review. GitHub shows a caution in red.
func (a Watch) reviews() string {
	open, overdue := Unreviewed(a.Found.Exceptions)
	if len(open) == 0 {
		return ""
	}
	var b strings.Builder
	if overdue > 0 {
		fmt.Fprintf(&b, "\n> [!CAUTION]\n> **%s overdue for review.**\n", ledger.Plural(overdue, "exception is", "exceptions are"))
	}
	b.WriteString("\nSomebody who had no part in it reviews each of these, with `countersign dispose`, or with a comment here: `/dispose COMMIT accepted` (or `fixed`, `revoked`), and the reason in the lines below.\n\n")
	for i, e := range open {
		one := fmt.Sprintf("- %s, %s: %s, due by %.10s", a.link(e.Commit, e.Commit), a.quoted(e.Subject), escape.Code(strings.Join(e.Codes, " ")), e.DueBy)
		if e.State == Overdue {
			one += ", **overdue**"
		}
		if b.Len()+len(one) > maxReviews {
			fmt.Fprintf(&b, "- and %d more\n", len(open)-i)
			break
		}
		b.WriteString(one + "\n")
	}
	return b.String()
}

func (a Watch) leaveOut() string {
	return "To leave out commits that were looked at, name the last of them in the workflow (`since:`)."
}

func (a Watch) failed() string {
	return fmt.Sprintf("**%s could not be audited**, so whether anything accounts for its commits is not known: %s", a.branch(), escape.Words(a.Clean(ledger.OneLine(a.Failure, 1000))))
}

func (a Watch) explained() string {
	text := fmt.Sprintf("Something accounts for each commit of %s now: %s", a.branch(), ledger.Plural(a.Found.Commits, "commit", "commits"))
	if a.Found.Since != "" {
		text += " since " + a.commit(a.Found.Since)
	}
	return text + ".\n"
}

// goneText tells of commits that the branch had.
func (a Watch) goneText(gone []string) string {
	return fmt.Sprintf("Nothing accounted for %s of %s that the audit **does not find any more**: the branch or the ledger was rewritten. Look at what became of them, then close this issue.\n\n",
		ledger.Plural(len(gone), "commit", "commits"), a.branch()) + a.ids(gone)
}

// more is a comment on what an issue has not told of yet.
func (a Watch) more(fresh mark) string {
	var b strings.Builder
	if n := len(fresh.ids); n > 0 {
		fmt.Fprintf(&b, "Nothing accounts for %s more of %s:\n\n", ledger.Plural(n, "commit", "commits"), a.branch())
		var list []Unexplained
		for _, u := range a.Found.Unexplained {
			if slices.Contains(fresh.ids, u.Commit) {
				list = append(list, u)
			}
		}
		b.WriteString(a.list(list, maxComment))
	}
	if len(fresh.gone) > 0 {
		b.WriteString("\n" + a.goneText(fresh.gone))
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// ids are commits without a word about them.
func (a Watch) ids(ids []string) string {
	var b strings.Builder
	for i, id := range ids {
		if b.Len() > maxPlain {
			fmt.Fprintf(&b, "- and %d more\n", len(ids)-i)
			break
		}
		b.WriteString("- " + a.commit(id) + "\n")
	}
	return b.String()
}

// commit is a commit's id, as a link where it has a page.
func (a Watch) commit(id string) string { return a.link(id, fmt.Sprintf("%.12s", id)) }

// link is a commit by a text, its id or a part of that.
func (a Watch) link(id, text string) string {
	if page := a.Page(id); page != "" {
		return escape.Link(text, page)
	}
	return escape.Code(text)
}

// list tells of commits, each with why and its files, in so many bytes at most.
func (a Watch) list(all []Unexplained, limit int) string {
	var b strings.Builder
	for i, u := range all {
		one := fmt.Sprintf("- %s, %s\n  - Why: %s\n", a.commit(u.Commit), a.quoted(u.Subject), escape.Prose(escape.ShortenTo(a.Clean(u.Reason), 400)))
		var names []string
		for _, path := range u.Paths[:min(len(u.Paths), maxWatchPaths)] {
			names = append(names, escape.Code(escape.ShortenTo(a.Clean(path), 120)))
		}
		if n := len(u.Paths) - len(names) + u.MorePaths; n > 0 && len(names) > 0 {
			names = append(names, fmt.Sprintf("%d more", n))
		}
		if len(names) > 0 {
			one += "  - Files: " + strings.Join(names, ", ") + "\n"
		}
		if b.Len()+len(one) > limit {
			fmt.Fprintf(&b, "- and %d more\n", len(all)-i)
			break
		}
		b.WriteString(one)
	}
	return b.String()
}

// quoted is what the author of a commit calls it.
func (a Watch) quoted(subject string) string {
	if subject == "" {
		return "without a subject"
	}
	return "“" + escape.Prose(escape.ShortenTo(a.Clean(subject), 120)) + "”"
}
