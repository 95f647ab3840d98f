package proofs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/countersign-dev/countersign/cmd/countersign/internal/console"
	"github.com/countersign-dev/countersign/cmd/countersign/internal/session"
	"github.com/countersign-dev/countersign/gitstore"
	"github.com/countersign-dev/countersign/pipeline/pull"
	"github.com/countersign-dev/countersign/pipeline/record/audit/history"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/witness"
	"github.com/countersign-dev/countersign/report"
)

// CosignSettled shows the tip that a settle left to the witnesses of the Policy. Who does not sign is a
// note; too few are an error where the Policy demands them.
func CosignSettled(ctx context.Context, s *session.Session, sum *pull.Settled) {
	if s.Store.Seen() == "" { // there is no ledger, or it was refused
		return
	}
	p, f, err := PolicyWitnesses(ctx, s)
	if err == nil && p.File == "" {
		return
	}
	var done cosigned
	if err == nil {
		done, err = cosign(ctx, s, f)
	}
	switch {
	case err != nil && (p.Required > 0 || p.File == "" || errors.Is(err, witness.ErrHistory)): // or it is not known what is required
		sum.Fail(fmt.Errorf("showing the ledger's tip to witnesses: %w", err))
	case err != nil:
		sum.Notes = append(sum.Notes, "The ledger's tip was not shown to witnesses: "+ledger.OneLine(s.Redact(err.Error()).String(), 300))
	default:
		for _, line := range done.lines() {
			sum.Notes = append(sum.Notes, "Of the ledger's checkpoint: "+line)
		}
		if err := done.enough(p.Required); err != nil {
			sum.Fail(err)
		}
	}
}

// WitnessFlags are what audit asks of witnesses.
type WitnessFlags struct {
	File   string
	Quorum int
	ask    bool
	Names  *witness.File // what the file has, read already
}

// heldToWitnesses holds a ledger to what witnesses signed of it, as rule WITNESS.
func heldToWitnesses(ctx context.Context, a *session.Session, tip string, o WitnessFlags) (*witness.Witnessed, []history.Finding, error) {
	if o.Names == nil {
		names, err := readWitnesses(a.Console, o.File)
		if err != nil {
			return nil, nil, err
		}
		o.Names = &names
	}
	f := *o.Names
	if err := checkQuorum(f, o.Quorum); err != nil {
		return nil, nil, err
	}
	if o.Quorum == 0 && !f.Demands() {
		return nil, nil, &console.UsageError{Message: "nothing says how many witnesses are needed", Hint: "--quorum N"}
	}
	found := func(message string) history.Finding {
		return history.Finding{RuleID: "WITNESS", Message: message}
	}
	kept, err := a.Local.Kept(ctx, gitstore.Checkpoints, nil)
	if err != nil {
		return nil, nil, err
	}
	leaves, tree, err := leavesOf(ctx, a.Local, tip)
	if err != nil { // HISTORY or OBJECT says why
		origin, _ := f.Origin()
		w := &witness.Witnessed{Origin: origin, Witnesses: []witness.Testimony{}, Ignored: []string{}}
		return w, []history.Finding{found("no checkpoint can be held to the history, as that is not all here")}, nil
	}
	notes := make([][]byte, 0, len(kept.Files))
	for _, name := range slices.Sorted(maps.Keys(kept.Files)) {
		notes = append(notes, kept.Files[name])
	}
	r, err := f.Check(notes, tree, o.Quorum)
	if err != nil {
		return nil, nil, err
	}
	w := &r.Witnessed
	if w.Covered > 0 {
		w.Commit = leaves[w.Covered-1].ID
	}
	if o.ask {
		r.Found = append(r.Found, askAgain(ctx, a.Console, f, &r, tree, o.Quorum)...)
	}
	var all []history.Finding
	for _, message := range r.Found {
		all = append(all, found(message))
	}
	return w, all, nil
}

// mostSkew is how far a witness's clock may be from ours when it has just signed.
const mostSkew = 10 * 60

// askAgain asks the witnesses whether they have seen more than the newest checkpoint here.
func askAgain(ctx context.Context, c *console.Console, f witness.File, r *witness.Report, tree *witness.Tree, quorum int) []string {
	newest, ok := r.NewestNote()
	if !ok {
		return []string{"no witness can be asked, as there is no checkpoint of this history"}
	}
	log := WitnessLog{Checkpoint: newest.Checkpoint, Note: newest.Raw, Tree: tree}
	seen := map[string]int64{}
	for _, one := range f.Witnesses {
		seen[one.Name] = newest.Size
	}
	answers := log.Ask(ctx, witnessTimeout, f.Witnesses, seen)
	for i := range answers {
		a, asked := &answers[i], &r.Witnesses[i].Asked
		if off := c.Now().Unix() - a.At; a.At > 0 && (off > mostSkew || off < -mostSkew) {
			a.At, a.Err = 0, fmt.Errorf("its signature is of %s, which is not now", witness.FormatTime(a.At))
		}
		switch {
		case a.Size > 0:
			*asked = fmt.Sprintf("it has seen %s, and the newest checkpoint here has %d", report.Counted(int(a.Size), "commit"), newest.Size)
		case a.Err != nil:
			*asked = ledger.OneLine(a.Err.Error(), 300)
		default:
			*asked = "it has seen nothing newer"
		}
	}
	return f.Fresh(newest, answers, quorum)
}
