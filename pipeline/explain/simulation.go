package explain

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/parallel"
	"github.com/countersign-dev/countersign/pipeline/record/approval"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A Simulation is what a Policy would have made of what came after a time. Counts has every
// difference. Cases are in the Order of their differences, the newest first.
type Simulation struct {
	LedgerCommit string             `json:"ledger_commit"` // "" where there is no ledger
	Policy       string             `json:"policy"`        // the file that it was read from
	PolicySHA256 string             `json:"policy_sha256"`
	Since        string             `json:"since"`      // RFC 3339, "" for everything
	Incomplete   []string           `json:"incomplete"` // what could not be read, and is in no case
	Counts       map[Difference]int `json:"counts"`
	AtBest       int                `json:"approved_at_best"` // of those that are UnknownVerdict
	Cases        []Case             `json:"cases"`
}

// Simulate replays the transactions of a ledger's tree of which something was recorded at
// a time or later, on all cores. Progress is told how many are done.
func Simulate(tree fs.FS, since time.Time, p policy.Policy, progress func(done, total int)) ([]Case, error) {
	all, damaged, err := lookup.Each(tree)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, tx := range all {
		if tx.Closed && tx.Pointers.Proposal == nil { // nobody asked for a decision
			continue
		}
		if at, err := time.Parse(ledger.TimeFormat, tx.UpdatedAt); err != nil || !at.Before(since) {
			ids = append(ids, tx.TransactionID)
		}
	}
	for _, d := range damaged { // when that was cannot be told either
		ids = append(ids, d.ID)
	}
	var policies approval.Policies
	cases := make([]Case, len(ids))
	const atOnce = 256
	for from := 0; from < len(ids); from += atOnce {
		n := min(atOnce, len(ids)-from)
		parallel.Do(n, func(i int) { cases[from+i] = SimulateTransaction(tree, &policies, ids[from+i], p) })
		progress(from+n, len(ids))
	}
	return cases, nil
}

// Sum puts cases in order and counts them.
func (r *Simulation) Sum(cases []Case) {
	r.Cases = slices.SortedStableFunc(slices.Values(cases), func(a, b Case) int {
		return cmp.Or(cmp.Compare(slices.Index(Differences, a.Difference), slices.Index(Differences, b.Difference)), -cmp.Compare(a.At, b.At))
	})
	r.Counts = map[Difference]int{}
	for _, d := range Differences {
		r.Counts[d] = 0
	}
	for _, c := range cases {
		r.Counts[c.Difference]++
		if c.Difference == DifferenceUnknown && c.AtBest == approval.Approved {
			r.AtBest++
		}
	}
}

// A policyChange is what a Policy may refuse whoever approves it.
type policyChange struct {
	files    int
	bytes    int64 // of the canonical patch as it is stored; 0 where it is not there
	secrets  bool
	applied  bool // by this program, which runs commands before
	commands bool // the Proposal asks for checks, which may be commands
}

// proposedIn is the change of a transaction.
func proposedIn(dir fs.FS, log *ledger.Log) policyChange {
	p := log.Transaction().Pointers.Proposal
	item, _ := writing.FileChange(log)
	c := policyChange{files: len(item.Item.Changes), secrets: p.ContainsSecrets, applied: p.Kind != ledger.KindPullRequest, commands: p.Checks != ""}
	if info, err := fs.Stat(dir, ledger.PatchFile(p.PatchID)); err == nil {
		c.bytes = info.Size()
	}
	return c
}

// refused says why a Policy does not take a change that the one when it was reviewed took,
// and the one when it was decided on did not refuse; and what of that is not known.
func (c policyChange) refused(p, reviewed, decided policy.Policy) (why, untold []string) {
	if c.secrets && p.Secrets.Mode == policy.Refuse && decided.Secrets.Mode != policy.Refuse {
		why = append(why, "refuses what looks like a secret")
	}
	if most := p.Limits.Files; c.files > most && most < reviewed.Limits.Files {
		why = append(why, fmt.Sprintf("takes %d files at most, and it has %d", most, c.files))
	}
	switch most := p.Limits.Bytes; {
	case most >= reviewed.Limits.Bytes:
	case c.bytes == 0:
		untold = append(untold, "how large the patch is")
	case c.bytes > most:
		why = append(why, fmt.Sprintf("takes %d bytes at most, and the patch has %d", most, c.bytes))
	}
	if !c.applied {
		return why, untold
	}
	if p.Sandbox == policy.ReadOnly && decided.Sandbox != policy.ReadOnly {
		why = append(why, "applies nothing: sandbox is read-only")
	}
	for _, run := range p.Commands.Run {
		ran := slices.ContainsFunc(decided.Commands.Run, func(o policy.Check) bool { return o.Required && o.Same(run.Argv) })
		if run.Required && !ran {
			untold = append(untold, fmt.Sprintf("whether %s would have passed", ledger.OneLine(run.Text(), 100)))
		}
	}
	if c.commands && !sameCommands(p, decided) {
		untold = append(untold, "what the Proposal's own checks would have come to")
	}
	return why, untold
}

func sameCommands(a, b policy.Policy) bool {
	same := func(x, y policy.Command) bool { return x.Same(y.Argv) }
	return slices.EqualFunc(a.Commands.Allow, b.Commands.Allow, same) &&
		slices.EqualFunc(a.Commands.Run, b.Commands.Run, func(x, y policy.Check) bool { return x.Required == y.Required && same(x.Command, y.Command) })
}
