package pipeline

import (
	"context"

	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/reviewed"
)

// oneLine is a text without secrets, in one line: what is cut first is not found.
func (r *Runner) oneLine(text string, limit int) string {
	return ledger.OneLine(r.Secrets.Text(text), limit)
}

// Give returns a Runner that has a patch whose transaction has it only redacted.
// Which transaction that is, its hash says; the patch goes on the commit it was
// reviewed on.
func (r *Runner) Give(ctx context.Context, snap ledger.Snapshot, id string, raw []byte) (*Runner, error) {
	log, err := ledger.Read(snap.Tree, id)
	if err != nil {
		return r, err
	}
	diff, err := r.source().Check(ctx, log.Transaction(), raw)
	if err != nil {
		return r, err
	}
	return r.With(r.known().given(diff)), nil
}

// source is where patches are read.
func (r *Runner) source() reviewed.Source {
	return reviewed.Source{Repo: r.Repo, Given: r.patches, Identities: r.Identities}
}

// rules asks for the Policy. It is recorded as it is, so that it must hold
// nothing that would be taken out.
func (r *Runner) rules(ctx context.Context, base string) (Rules, error) {
	rules, err := r.Rules(ctx, base)
	if err != nil {
		return Rules{}, err
	}
	err = r.Secrets.Refuse(policy.Path, string(rules.Policy.JSON()), "the Policy is recorded with every transaction; name the variable that holds it instead")
	if err != nil {
		return Rules{}, err
	}
	return rules, nil
}
