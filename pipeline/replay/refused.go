package replay

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/policy"
	"github.com/countersign-dev/countersign/pipeline/writing"
)

// A change is what a Policy may refuse whoever approves it.
type change struct {
	files    int
	bytes    int64 // of the canonical patch as it is stored; 0 where it is not there
	secrets  bool
	applied  bool // by this program, which runs commands before
	commands bool // the Proposal asks for checks, which may be commands
}

// proposedIn is the change of a transaction.
func proposedIn(dir fs.FS, log *ledger.Log) change {
	p := log.Transaction().Pointers.Proposal
	item, _ := writing.FileChange(log)
	c := change{files: len(item.Item.Changes), secrets: p.ContainsSecrets, applied: p.Kind != ledger.KindPullRequest, commands: p.Checks != ""}
	if info, err := fs.Stat(dir, ledger.PatchFile(p.PatchID)); err == nil {
		c.bytes = info.Size()
	}
	return c
}

// refused says why a Policy does not take a change that the one when it was reviewed took,
// and the one when it was decided on did not refuse; and what of that is not known.
func (c change) refused(p, reviewed, decided policy.Policy) (why, untold []string) {
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
