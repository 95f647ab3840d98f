package view

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/plain"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// A Step is what to do next, and what for: a command of the program, by its arguments, or else a line
// to comment with on the pull request.
type Step struct {
	Command []string
	Line    string
	For     string
}

// next are the steps that take a transaction on from where it stands: none where nobody has anything to do.
func (t Transaction) next(f Facts) []Step {
	takes, applies := []string{"run", f.ID}, "applies it"
	switch {
	case f.PullRequest > 0:
		takes[0] = "settle"
	case f.Redacted:
		takes, applies = append(takes, "--patch", "FILE"), applies+"; the file is the patch as it was proposed"
	}
	var first []Step
	if f.Moved {
		first, takes = []Step{{Command: []string{"review", "--again", f.ID}, For: "proposes it on HEAD as it is"}}, append(takes, "--to", "branch")
	}
	failed := f.State == plain.CheckFailed || f.State == plain.ApplyFailed
	switch {
	case f.Status == ledger.Applied:
		return []Step{{Command: []string{"validate", f.ID}, For: "checks it"}}
	case f.State == plain.Approved, failed && f.Verdict != nil && f.Verdict.State == approval.Approved:
		return append(first, Step{Command: takes, For: applies})
	case f.Verdict == nil || f.State.Tone() != plain.ToneOpen && !failed || f.State == plain.Mergeable:
		return nil
	case f.PullRequest > 0:
		var lines []Step
		for _, r := range Missing(t.Requirements) {
			if r.Signed {
				return []Step{{Command: []string{"sign", "--pr", fmt.Sprint(f.PullRequest), "--post", f.ID}, For: "signs your approval and posts it"}}
			}
			lines = append(lines, Step{Line: "/approve " + r.Fingerprint, For: fmt.Sprintf("as a comment on pull request %d", f.PullRequest)})
		}
		return lines
	}
	approve := []string{"approve", f.ID}
	if open := t.Open(); len(open) > 0 {
		approve = append(approve, open[0].Flags()...)
	}
	return append(first, Step{Command: approve, For: "shows it and asks"}, Step{Command: takes, For: "then " + applies})
}

// PersonDecides is what is next for an agent whose change waits for a person.
const PersonDecides = "a person decides: tell them what person.say says, then wait"

// HowToDecide tells a person how to decide: on the pull request, at its address where that is known, or by a command.
func HowToDecide(pullRequest int, page, command string) string {
	if pullRequest > 0 {
		return strings.TrimSuffix(fmt.Sprintf("Whoever may decide does so on pull request %d: %s", pullRequest, page), ": ")
	}
	return "To decide, run this in a terminal of your own, where it shows the change and asks: " + command
}
