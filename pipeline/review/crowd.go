package review

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/fault"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
)

// refuseCrowd refuses a change whose proposer has as many open as the Policy allows. Who proposed what is the record's word. What the
// change takes the place of does not count, nor do the same bytes elsewhere. A damaged one counts for everybody.
func (p gathered) refuseCrowd(tree fs.FS, supersedes []string) error {
	most := p.rules.Policy.Limits.Open
	if most == 0 {
		return nil
	}
	all, damaged, err := lookup.Each(tree)
	if err != nil {
		return err
	}
	var open []string
	for _, d := range damaged { // which may be anybody's
		open = append(open, d.ID)
	}
	for _, t := range all {
		if !t.Closed && t.Proposer.Kind == p.proposer.Kind && t.Proposer.ID == p.proposer.ID && t.PatchID() != p.ID && !p.replacesOwn(t) && !slices.Contains(supersedes, t.TransactionID) {
			open = append(open, t.TransactionID)
		}
	}
	if len(open) < most {
		return nil
	}
	named := strings.Join(open[:min(len(open), mostNamed)], ", ")
	if more := len(open) - mostNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fault.Refuse(
		fmt.Sprintf("%s has %s open, and limits.open of the Policy is %d: %s", ledger.OneLine(p.proposer.Login, 80), ledger.Plural(len(open), "change", "changes"), most, named),
		"wait until people have decided on them, or take one back: countersign close "+open[0],
	)
}

// mostNamed is how many open changes a refusal names.
const mostNamed = 20

// replacesOwn reports whether a transaction is the earlier diff of the same pull request, which ends as soon as its new one is recorded.
func (p gathered) replacesOwn(t ledger.Transaction) bool {
	of := t.Pointers.Proposal
	return p.own && t.GateOnly() && of.PullRequest == p.pull.Number && of.Repository != nil && of.Repository.ID == p.pull.Repository.ID
}
