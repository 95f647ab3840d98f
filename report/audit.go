package report

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/audit"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
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
	for _, f := range r.Findings {
		where := f.Path
		if f.Commit != "" {
			where = strings.TrimSuffix(f.Commit[:12]+" "+f.Path, " ")
		}
		fmt.Fprintf(&b, "%-8s %s: %s\n", f.RuleID, where, f.Message)
	}
	if more := r.Count - len(r.Findings); more > 0 {
		fmt.Fprintf(&b, "… and %s more\n", Counted(more, "finding"))
	}
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
	}
	fmt.Fprintf(&b, "%s %.12s is %s: %s %s, %s\n", ref, r.Tip, verdict, Counted(r.Commits, "commit"), scope, Counted(r.Transactions, "transaction"))
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
	if r.Branch != nil {
		fmt.Fprintf(&b, "%s: %d of %s since %.12s made by no transaction\n",
			Clean(r.Branch.Name), len(r.Branch.Unexplained), Counted(r.Branch.Commits, "commit"), r.Branch.Since)
		for _, u := range r.Branch.Unexplained {
			fmt.Fprintf(&b, "  %.12s %s (%s)\n", u.Commit, Clean(u.Subject), u.Reason)
		}
	}
	return b.String()
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

// decisions says what vouches for the keys of signed decisions.
func decisions(d audit.SignedDecisions) string {
	if d.Count == 0 {
		return ""
	}
	text := fmt.Sprintf("%s: the signatures hold by the keys recorded with them\n", Counted(d.Count, "signed decision"))
	if d.Listed > 0 {
		text += fmt.Sprintf("  %d by a key that the commit of the recorded Policy lists\n", d.Listed)
	}
	if d.Registered > 0 {
		text += fmt.Sprintf("  %d by a key that the forge had for the account, according to the record alone\n", d.Registered)
	}
	if other := d.Count - d.Listed - d.Registered - d.Unknown; other > 0 {
		text += fmt.Sprintf("  %d by a key that the Policy's commit does not list, or lists differently (L22)\n", other)
	}
	if d.Unknown > 0 {
		text += fmt.Sprintf("  %d whose Policy commit is not in this repository: it cannot be said here whose keys these were\n", d.Unknown)
	}
	return text
}

// Explanation is what the ledger says of one change to the code.
func Explanation(e audit.Explanation) string {
	var b strings.Builder
	verdict := "explained"
	if !e.Explained {
		verdict = "made by no transaction: " + Clean(e.Reason)
	}
	fmt.Fprintf(&b, "%.12s..%.12s is %s\n", e.From, e.Commit, verdict)
	if e.PatchID != "" {
		fmt.Fprintf(&b, "patch %s\n", e.PatchID)
	}
	for _, c := range e.Transactions {
		fmt.Fprintf(&b, "%s %s: %s\n  proposed by %s", c.TransactionID, c.Status, Clean(c.Why), Clean(c.Proposer.Login))
		if c.PullRequest > 0 {
			fmt.Fprintf(&b, " in pull request %d of %s", c.PullRequest, Clean(c.Repository))
		}
		fmt.Fprintf(&b, ", on %.12s\n", c.BaseCommit)
		for _, d := range c.Decisions {
			said := map[ledger.Decision]string{ledger.Approve: "approved", ledger.Deny: "denied"}[d.Decision]
			fmt.Fprintf(&b, "  %s (%s) by %s at %s, %s", said, policy.InWords(d.Kind), Clean(d.Author.Login), d.CreatedAt, d.Source)
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
