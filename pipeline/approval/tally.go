package approval

import (
	"fmt"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
)

// A tally is the votes for one need. Where code owners are asked, each path has
// its own count, as each has its own owners.
type tally struct {
	need        policy.Need
	fingerprint string
	voted       map[string]bool // by id
	votes       []int           // for each path; one count where owners are not asked
}

func newTally(n policy.Need, fingerprint string) *tally {
	counts := 1
	if n.Owners {
		counts = max(1, len(n.Paths))
	}
	return &tally{need: n, fingerprint: fingerprint, voted: map[string]bool{}, votes: make([]int, counts)}
}

// vote adds a person's vote, or says why not.
func (t *tally) vote(c Case, who ledger.Actor) string {
	if t.voted[who.ID] {
		return "this person's vote is counted already"
	}
	goodFor, why := t.entitled(c, who)
	if why != "" {
		return why
	}
	t.voted[who.ID] = true
	for i, yes := range goodFor {
		if yes {
			t.votes[i]++
		}
	}
	return ""
}

// approved is how many people approved; with owners, of the path that fewest
// approved.
func (t *tally) approved() int {
	least := t.votes[0]
	for _, n := range t.votes {
		least = min(least, n)
	}
	return least
}

// sum is the need with its votes.
func (t *tally) sum() Need {
	return Need{t.need.Kind, t.fingerprint, max(1, t.need.Required), t.approved()}
}

// text says in words how far a need is met.
func (t *tally) text(n Need) string {
	if n.Kind == policy.KindFileChange {
		return fmt.Sprintf("%d of %d approvals", n.Approved, n.Required)
	}
	who := ""
	if t.need.Names() {
		who = " by " + t.need.People()
	}
	return fmt.Sprintf("%s%s: %d of %d", n.Kind, who, n.Approved, n.Required)
}

// entitled tells for which counts a person's vote is good, or why for none.
func (t *tally) entitled(c Case, who ledger.Actor) ([]bool, string) {
	out := make([]bool, len(t.votes))
	if !t.need.Names() || t.need.Lists(who.ID, who.Login) {
		return all(out), ""
	}
	why := "its author is not one of " + t.need.People()
	for _, team := range t.need.Teams {
		in, err := ask(c.Teams, team, who)
		if err != nil {
			why = "whether its author is in " + team + " cannot be told: " + ledger.OneLine(err.Error(), 100)
		} else if in {
			return all(out), ""
		}
	}
	if !t.need.Owners {
		return nil, why
	}
	owner := false
	for i, path := range t.need.Paths {
		owns, err := ask(c.Owners, path, who)
		if err != nil {
			why = "whether its author owns " + path + " cannot be told: " + ledger.OneLine(err.Error(), 100)
		}
		out[i] = owns && err == nil
		owner = owner || out[i]
	}
	if !owner {
		return nil, why
	}
	return out, ""
}

func ask(f func(string, ledger.Actor) (bool, error), what string, who ledger.Actor) (bool, error) {
	if f == nil {
		return false, nil
	}
	return f(what, who)
}

func all(out []bool) []bool {
	for i := range out {
		out[i] = true
	}
	return out
}
