package report

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/attest"
)

// Checks says what came of verifying a statement about a commit.
func Checks(predicateType, commit string, checks []attest.Check) string {
	var b strings.Builder
	verdict := "verified"
	for _, c := range checks {
		if c.Outcome == attest.Bad {
			verdict = "not verified"
			break
		}
		if c.Outcome != attest.Good {
			verdict = "verified, but for what is unknown"
		}
	}
	fmt.Fprintf(&b, "%s of commit %.12s: %s\n", attest.Name(predicateType), commit, verdict)
	for _, c := range checks {
		fmt.Fprintf(&b, "  %-9s %-7s %s\n", c.What, c.Outcome, Clean(c.Message))
	}
	return b.String()
}
