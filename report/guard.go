package report

import (
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/forge"
	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/state"
)

// GuardName is the name of the check run that branch protection can require.
const GuardName = "countersign"

// A Guard is the sum of the gate-only transactions of one head commit. It is a
// success only if there is one, each is approved, nothing went wrong, and no
// other pull request would ride on it.
type Guard struct {
	HeadCommit   string
	Transactions []Report // each with its Verdict
	Siblings     []Sibling
	Denied       []string // denials elsewhere of what the commit does, plain text
	Errors       []string // what could not be read or told, plain text
	Dedicated    bool     // the token is an App's that does nothing else
}

// A Sibling is another open pull request to a gated base that has the same head
// commit and is not approved (T16).
type Sibling struct {
	PullRequest int
	Base        string
	Reason      string
}

// CheckRun is failure on any error or denial, action_required while anything is
// pending, else success. That of a denial links to its record.
func (g Guard) CheckRun() forge.Check {
	conclusion, say := g.conclude()
	broken, standing := Comment{Transactions: g.Transactions}.broken(), g.standing()
	p := newPage(MaxCheckText)
	p.write(broken)
	p.write("### Countersign: " + words(say) + "\n\n")
	p.list(list{"", points("Error", g.Errors), maxNames, "error", ""})
	p.list(list{"", points("Denied", g.Denied), maxNames, "denial", ""})
	const head = "These pull requests have the same head commit and are not approved. Merging one of them would merge these bytes without an answer:\n\n"
	p.list(list{head, each(g.Siblings, func(s Sibling) string {
		return fmt.Sprintf("- pull request %d to %s: %s\n", s.PullRequest, name(s.Base), words(plain.Reason(s.Reason)))
	}), maxNames, "pull request", ""})
	// The denied and the pending come first.
	order := []approval.State{approval.Approved, approval.Pending, "", approval.Denied}
	worse := func(a, b Report) int { return slices.Index(order, b.state()) - slices.Index(order, a.state()) }
	p.list(list{"", each(slices.SortedStableFunc(slices.Values(g.Transactions), worse), func(r Report) string {
		return fmt.Sprintf("Pull request %d, transaction %s: **%s**.\n\n%s%s", r.PullRequest, r.linked(), r.says(words, ""), r.risks(p.left/len(g.Transactions), Links{}), r.asks(Links{}, false)+r.effect())
	}), 50, "transaction", ""})
	p.write("Head commit: " + name(g.HeadCommit) + "\n\n")
	p.write(standing)
	c := forge.Check{Name: GuardName, Status: CheckCompleted, Conclusion: conclusion, Title: say, Summary: p.String(), Text: standing}
	if denied := g.denied(); denied != nil {
		c.DetailsURL = denied.Record
	}
	if broken != "" {
		c.Title = "BREAK-GLASS: " + c.Title
	}
	return c
}

// conclude is the conclusion and its sentence. What is no known state is an error.
func (g Guard) conclude() (conclusion, say string) {
	count := map[approval.State]int{}
	for _, r := range g.Transactions {
		count[r.state()]++
	}
	switch {
	case len(g.Errors) > 0:
		return CheckFailure, "not everything could be read, so nothing counts as approved"
	case len(g.Denied) > 0 || count[approval.Denied] > 0:
		if denied := g.denied(); denied != nil {
			return CheckFailure, ledger.OneLine(Clean(denied.Verdict.Reason), 200)
		}
		return CheckFailure, "denied"
	case len(g.Transactions) == 0:
		return CheckFailure, "nothing was put to people for approval"
	case count[""] > 0:
		return CheckFailure, "a transaction has no verdict"
	case count[approval.Pending] > 0:
		for _, r := range g.Transactions {
			if r.state() == approval.Pending && r.needed() != "" {
				return CheckActionRequired, "waiting: " + r.needed()
			}
		}
		return CheckActionRequired, string(state.Waits)
	case len(g.Siblings) > 0:
		return CheckActionRequired, "withheld, another pull request has the same head and is not approved"
	}
	return CheckSuccess, "approved"
}

// denied is the first transaction that is, nil if none is.
func (g Guard) denied() *Report {
	i := slices.IndexFunc(g.Transactions, func(r Report) bool { return r.state() == approval.Denied })
	if i < 0 {
		return nil
	}
	return &g.Transactions[i]
}

// state is the Verdict's, "" where there is none that is known.
func (r Report) state() approval.State {
	if at := r.verdict().State; slices.Contains([]approval.State{approval.Approved, approval.Pending, approval.Denied}, at) {
		return at
	}
	return ""
}

// standing says what this check is worth (T60, T67).
func (g Guard) standing() string {
	if g.Dedicated {
		return "An App of your own writes this check. Branch protection can name that App as the expected source.\n"
	}
	return "**Advisory:** any workflow of this repository can get the token that writes this check, and so can forge it. " +
		"The signed ledger is the truth. To make the check binding, use the token of an App of your own, and name that App as the expected source in branch protection.\n"
}
