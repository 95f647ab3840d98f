package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/replay"
	"github.com/countersign-dev/countersign/pipeline/simulate"
)

// differences are what people are told of each difference.
var differences = map[simulate.Difference]string{
	simulate.Blocked: "would have been blocked", simulate.AsksMore: "would have been asked more", simulate.LetsThrough: "would have been let through",
	simulate.AsksLess: "would have been asked less", simulate.Unknown: "cannot be told", simulate.None: "without a difference",
}

// Simulation is what another Policy would have changed: what it changes first, and of
// what it does not only the number.
func Simulation(r simulate.Result, s Style) string {
	var b strings.Builder
	since := ""
	if r.Since != "" {
		since = " since " + r.Since
	}
	fmt.Fprintf(&b, "%s on %s%s\n", Clean(r.Policy), Counted(len(r.Cases), "change"), since)
	for _, d := range simulate.Order {
		if n := r.Counts[d]; n > 0 {
			fmt.Fprintf(&b, "%6d %s\n", n, differences[d])
		}
		if d == simulate.Unknown && r.AtBest > 0 {
			fmt.Fprintf(&b, "%6d of these approved, if what is not known was in favour\n", r.AtBest)
		}
	}
	for _, why := range r.Incomplete {
		fmt.Fprintf(&b, "%s: %s\n", s.Red("not complete"), Clean(why))
	}
	var last simulate.Difference
	for _, c := range r.Cases {
		if c.Difference == simulate.None {
			continue
		}
		if c.Difference != last {
			fmt.Fprintf(&b, "\n%s\n", s.Bold(differences[c.Difference]))
		}
		last = c.Difference
		fmt.Fprintf(&b, "  %s %s\n    %s\n", cmp.Or(c.TransactionID, fmt.Sprintf("pull request %d", c.PullRequest)), Clean(c.Summary), verdicts(c))
		for _, why := range c.Why {
			fmt.Fprintf(&b, "    - %s\n", Clean(why))
		}
	}
	return b.String()
}

// verdicts are those of then and of now, in words.
func verdicts(c simulate.Case) string {
	switch {
	case c.Now == replay.Unknown && c.Then == replay.Unknown:
		return "unknown"
	case c.AtBest != "" && c.AtBest != replay.Unknown:
		return fmt.Sprintf("%s → unknown, at best %s", c.Then, c.AtBest)
	}
	return fmt.Sprintf("%s → %s", c.Then, c.Now)
}
