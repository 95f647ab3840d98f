package report

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/explain"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/audit"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// unproven is what to say of a ledger that nothing but itself vouches for.
const unproven = `Nothing was known of this ledger here before. That it is sound proves that it agrees with itself,
not that it is the one that was kept: whoever can write to the ref can make all of it anew. What
shows that is a tip from another place (--known-tip, --tip-file), signatures (--allowed-signers) or
witnesses (--witnesses).
This tip is remembered now, and the next audit here notices.
`

// Audit is what an audit of the ledger on ref found, findings first. first says
// that nothing was known of this ledger before, signatures that they were
// verified.
func Audit(r audit.Result, ref string, first, signatures bool, s Style) string {
	var b strings.Builder
	list := func(findings []history.Finding, count int) {
		for _, f := range findings {
			where := f.Path
			if f.Commit != "" {
				where = strings.TrimSuffix(f.Commit[:12]+" "+f.Path, " ")
			}
			fmt.Fprintf(&b, "%-8s %s: %s\n", f.RuleID, where, f.Message)
		}
		if more := count - len(findings); more > 0 {
			fmt.Fprintf(&b, "… and %s more\n", Counted(more, "finding"))
		}
	}
	list(r.Findings, r.Count)
	list(r.Pages.Findings, r.Pages.Count)
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "%-8s %.12s %s: %s\n", "note", n.Commit, n.Path, n.Message)
	}
	scope := "from the first"
	if r.From != "" {
		scope = fmt.Sprintf("after %.12s, which was trusted", r.From)
	}
	verdict := s.Bold("sound")
	switch {
	case !r.Complete:
		verdict = s.Red("not all here, and so not verified")
	case !r.OK:
		verdict = s.Red("not sound")
	case !r.Pages.OK:
		verdict += ", but " + s.Red("pages in it differ from the record")
	}
	fmt.Fprintf(&b, "%s %.12s is %s: %s %s, %s\n", ref, r.Tip, verdict, Counted(r.Commits, "commit"), scope, Counted(r.Transactions, "transaction"))
	b.WriteString(pages(r.Pages))
	switch {
	case signatures && r.OK:
		b.WriteString("signed: all of them, by allowed signers\n")
	case signatures:
	case r.Signed == 0:
		b.WriteString("signed: none of them\n")
	default:
		fmt.Fprintf(&b, "signed: %d of %d, not verified (--allowed-signers FILE)\n", r.Signed, r.Commits)
	}
	b.WriteString(decisions(r.Decisions))
	if r.OK && !signatures && first && r.Witnessed == nil {
		b.WriteString(unproven)
	}
	if r.Witnessed != nil {
		b.WriteString(witnessed(*r.Witnessed))
	}
	return b.String()
}

// pages says what was found of the pages in a ledger; "" for nothing.
func pages(p audit.Pages) (text string) {
	if !p.OK {
		text = "pages: " + Counted(p.Count, "finding") + " (L23). What a page says and the record does not, nobody proposed, approved or did\n"
	}
	if p.NotChecked > 0 {
		text += "pages not checked: " + Counted(p.NotChecked, "page") + " written by a newer countersign. What they say proves nothing here\n"
	}
	return text
}

// Branch is what accounts for the commits of a branch: those that nothing does first.
func Branch(r explain.Branch, s Style) string {
	var b strings.Builder
	since := "from the first"
	if r.Since != "" {
		since = fmt.Sprintf("since %.12s", r.Since)
	}
	verdict := "all explained"
	if n := len(r.Unexplained); n > 0 {
		verdict = s.Red(fmt.Sprintf("%d unexplained", n))
	}
	fmt.Fprintf(&b, "%s: %s %s, %s\n", Clean(r.Name), Counted(r.Commits, "commit"), since, verdict)
	for _, u := range r.Unexplained {
		fmt.Fprintf(&b, "  %s %.12s %s: %s\n", s.Red("unexplained"), u.Commit, Clean(u.Subject), Clean(u.Reason))
		for _, l := range u.Lines {
			fmt.Fprintf(&b, "    %s\n", lines(l))
		}
	}
	for _, e := range r.Explained {
		fmt.Fprintf(&b, "  explained %.12s %s: %s\n", e.Commit, Clean(e.Subject), accounts(e))
	}
	return b.String()
}

// accounts says in words what accounts for a commit, and how strong that is.
func accounts(e explain.Explained) string {
	switch e.By {
	case explain.ByMerge:
		return "a merge of explained commits"
	case explain.ByBot:
		return "signed by the bot " + Clean(e.Signer)
	case explain.ByEmpty:
		return "changes no file"
	}
	text := map[explain.By]string{explain.ByTransaction: "transaction ", explain.ByPullRequest: "approved pull request, "}[e.By] + e.Transaction
	if n := len(e.With); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	if e.PartOf != "" {
		text += ", as part of " + part(e.PartOf)
	}
	text += ", " + e.Strength.Words()
	if e.Late != "" {
		text += "; late: " + Clean(e.Late)
	}
	return text
}

// part is a commit, or a range, of which another is a part.
func part(of string) string {
	from, to, isRange := strings.Cut(of, "..")
	if !isRange {
		return fmt.Sprintf("%.12s", from)
	}
	return fmt.Sprintf("%.12s..%.12s", from, to)
}

// witnessed says what witnesses vouch for, and each of them.
func witnessed(w audit.Witnessed) string {
	text := fmt.Sprintf("witnessed as %s: ", Clean(w.Origin))
	switch {
	case w.Covered == 0:
		text += "no commit\n"
	case w.Newer == 0:
		text += fmt.Sprintf("%s, all there are\n", Counted(int(w.Covered), "commit"))
	default:
		text += fmt.Sprintf("%s, up to %.12s; %s not yet\n", Counted(int(w.Covered), "commit"), w.Commit, Counted(int(w.Newer), "newer one"))
	}
	for _, one := range w.Witnesses {
		text += "  " + Clean(one.Name) + ": "
		if one.Commits == 0 {
			text += "nothing"
		} else {
			text += fmt.Sprintf("%s, at %s", Counted(int(one.Commits), "commit"), one.At)
		}
		if one.Asked != "" {
			text += "; asked now: " + Clean(one.Asked)
		}
		text += "\n"
	}
	for _, why := range w.Ignored {
		text += "  not counted: " + Clean(why) + "\n"
	}
	return text
}

// lines says which lines of a file are meant.
func lines(l explain.Lines) string {
	switch {
	case l.From == 0:
		return Clean(l.Path)
	case l.To < l.From:
		return fmt.Sprintf("%s: lines are missing before line %d", Clean(l.Path), l.From)
	case l.To == l.From:
		return fmt.Sprintf("%s: line %d", Clean(l.Path), l.From)
	}
	return fmt.Sprintf("%s: lines %d to %d", Clean(l.Path), l.From, l.To)
}

// decisions says what vouches for the keys of signed decisions.
func decisions(d audit.SignedDecisions) string {
	if d.Count == 0 {
		return ""
	}
	text := fmt.Sprintf("%s: the signatures hold by the keys recorded with them\n", Counted(d.Count, "signed decision"))
	for _, of := range []struct {
		n    int
		what string
	}{
		{d.Listed, "by a key that the commit of the recorded Policy lists"},
		{d.Registered, "by a key that the forge had for the account, according to the record alone"},
		{d.Count - d.Listed - d.Registered - d.Unknown, "by a key that the Policy's commit does not list, or lists differently (L22)"},
		{d.Unknown, "whose Policy commit is not in this repository: it cannot be said here whose keys these were"},
	} {
		if of.n > 0 {
			text += fmt.Sprintf("  %d %s\n", of.n, of.what)
		}
	}
	return text
}

// uncovered lists the first lines that no approved patch accounts for.
func uncovered(e explain.Explanation) string {
	if len(e.Uncovered) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("not covered by an approved patch:\n")
	shown := e.Uncovered[:min(len(e.Uncovered), 20)]
	for _, l := range shown {
		fmt.Fprintf(&b, "  %s\n", lines(l))
	}
	more(&b, len(e.Uncovered)+e.More, len(shown))
	return b.String()
}

// Explanation is what accounts for one change to the code.
func Explanation(e explain.Explanation) string {
	var b strings.Builder
	verdict := "explained"
	switch {
	case !e.Explained:
		verdict = "unexplained: " + Clean(e.Reason)
	case e.By == explain.ByMerge || e.By == explain.ByBot || e.By == explain.ByEmpty:
		verdict = "explained: " + accounts(explain.Explained{By: e.By, Signer: "that the Policy lists"})
	case e.PartOf != "":
		verdict = "explained as part of " + part(e.PartOf)
	case e.Result == explain.Replay:
		verdict = "explained: it is exactly what these patches make of the files before it"
	}
	fmt.Fprintf(&b, "%.12s..%.12s is %s\n", e.From, e.Commit, verdict)
	if e.Strength != "" {
		fmt.Fprintf(&b, "approved %s; once: %s\n", e.Strength.Words(), e.Once)
	}
	if e.Late != "" {
		fmt.Fprintf(&b, "late: %s\n", Clean(e.Late))
	}
	if e.PatchID != "" {
		fmt.Fprintf(&b, "patch %s\n", e.PatchID)
	}
	fmt.Fprintf(&b, "tree %s\n", e.Tree)
	b.WriteString(uncovered(e))
	for _, c := range e.Transactions {
		fmt.Fprintf(&b, "%s: %s\n  proposed by %s", c.TransactionID, Clean(c.Why), Clean(c.Proposer.Login))
		if c.PullRequest > 0 {
			fmt.Fprintf(&b, " in pull request %d of %s", c.PullRequest, Clean(c.Repository))
		}
		fmt.Fprintf(&b, ", on %.12s\n", c.BaseCommit)
		for _, d := range c.Decisions {
			said := map[ledger.Decision]string{ledger.Approve: "approved", ledger.Deny: "denied"}[d.Decision]
			fmt.Fprintf(&b, "  %s (%s) by %s at %s, %s", said, plain.InWords(d.Kind), Clean(d.Author.Login), d.CreatedAt, d.Source)
			if d.URL != "" {
				fmt.Fprintf(&b, " %s", Clean(d.URL))
			}
			if d.Reason != "" {
				fmt.Fprintf(&b, ": %s", Clean(d.Reason))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
