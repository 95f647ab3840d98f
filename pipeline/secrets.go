package pipeline

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/canon"
	"github.com/countersign-dev/countersign/pipeline/ledger"
	"github.com/countersign-dev/countersign/pipeline/patch"
	"github.com/countersign-dev/countersign/pipeline/policy"
	"github.com/countersign-dev/countersign/pipeline/seal"
	"github.com/countersign-dev/countersign/pipeline/secret"
)

// A SecretError says where a patch that may not be proposed, or applied, holds
// what looks like secrets. It never holds one.
type SecretError struct {
	Found []secret.PatchFinding
	Why   string
}

func (e *SecretError) Error() string {
	f := e.Found[0]
	at := patch.Quote(f.Path)
	if f.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, f.Line)
	}
	text := fmt.Sprintf("%s: what looks like a secret (%s)", at, f.Kind)
	if n := len(e.Found) - 1; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text + ": " + e.Why
}

// A RedactedError says that the ledger has a patch only without its secrets.
type RedactedError struct {
	ID     string
	Sealed bool // it has the patch encrypted as well
}

func (e *RedactedError) Error() string {
	return "the ledger has the patch of " + e.ID + " only without its secrets"
}

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
	tx := log.Transaction()
	if tx.Pointers.Proposal == nil {
		return r, &ledger.CorruptError{ID: id, Err: fmt.Errorf("it has no proposal")}
	}
	base, err := r.Repo.Tree(ctx, tx.Pointers.Proposal.BaseCommit)
	if err != nil {
		return r, err
	}
	parsed, err := patch.Parse(raw)
	if err != nil {
		return r, err
	}
	set, err := parsed.Resolve(base)
	if err != nil {
		return r, err
	}
	if set.ID() != tx.PatchID() {
		return r, &patch.Error{Message: fmt.Sprintf("it is the patch %.12s, and %s is about %.12s", set.ID(), id, tx.PatchID())}
	}
	return r.With(r.known().given(set.Bytes())), nil
}

// rawPatch returns the very bytes that a transaction is about: from the ledger,
// from who gave them, with the lines that the base commit has, or unsealed.
func (r *Runner) rawPatch(ctx context.Context, tree fs.FS, tx ledger.Transaction) ([]byte, error) {
	if diff, ok := r.patches[tx.PatchID()]; ok {
		return diff, nil
	}
	diff, err := ledger.StoredPatch(tree, tx)
	p := tx.Pointers.Proposal
	if err != nil || p.PatchRedactedSHA256 == "" {
		return diff, err
	}
	if restored, ok := r.restored(ctx, tx, diff); ok {
		return restored, nil
	}
	return r.unsealed(tree, tx)
}

// restored puts the base commit's lines back into a patch that is stored
// without its secrets: enough, if they stood in no added line.
func (r *Runner) restored(ctx context.Context, tx ledger.Transaction, diff []byte) ([]byte, bool) {
	base, err := r.Repo.Tree(ctx, tx.Pointers.Proposal.BaseCommit)
	if err != nil {
		return nil, false
	}
	parsed, err := patch.Parse(diff)
	if err != nil {
		return nil, false
	}
	if parsed, err = parsed.Restore(base); err != nil {
		return nil, false
	}
	set, err := parsed.Resolve(base)
	return set.Bytes(), err == nil && set.ID() == tx.PatchID()
}

// unsealed decrypts a patch that was sealed.
func (r *Runner) unsealed(tree fs.FS, tx ledger.Transaction) ([]byte, error) {
	p := tx.Pointers.Proposal
	if p.PatchSealedSHA256 == "" || strings.TrimSpace(r.Identities) == "" {
		return nil, &RedactedError{tx.TransactionID, p.PatchSealedSHA256 != ""}
	}
	sealed, err := fs.ReadFile(tree, path.Join(ledger.Dir(tx.TransactionID), ledger.SealedFile(tx.PatchID())))
	if err != nil {
		return nil, fmt.Errorf("reading the sealed patch: %w", err)
	}
	diff, err := seal.Open(sealed, r.Identities, maxSealed)
	if err != nil {
		return nil, fmt.Errorf("unsealing the patch of %s: %w", tx.TransactionID, err)
	}
	if canon.Hex(diff) != tx.PatchID() {
		return nil, &ledger.CorruptError{ID: tx.TransactionID, Err: fmt.Errorf("the sealed patch does not hash to its patch_id")}
	}
	return diff, nil
}

// maxSealed bounds a patch that is unsealed, in bytes: its files can be larger
// than the diff that was proposed.
const maxSealed = 1 << 30

// rules asks for the Policy. It is recorded as it is, so that it must hold
// nothing that would be taken out.
func (r *Runner) rules(ctx context.Context, base string) (Rules, error) {
	rules, err := r.Rules(ctx, base)
	if err != nil {
		return Rules{}, err
	}
	if found := r.Secrets.Find(string(rules.Policy.JSON())); len(found) > 0 {
		at := secret.PatchFinding{Path: policy.Path, Kind: found[0].Kind}
		return Rules{}, &SecretError{[]secret.PatchFinding{at}, "the Policy is recorded with every transaction; name the variable that holds it instead"}
	}
	return rules, nil
}

// onCommit puts a transaction's patch on a commit.
func (r *Runner) onCommit(ctx context.Context, tree fs.FS, tx ledger.Transaction, commit string) (patch.Patchset, error) {
	diff, err := r.rawPatch(ctx, tree, tx)
	if err != nil {
		return patch.Patchset{}, err
	}
	base, err := r.Repo.Tree(ctx, commit)
	if err != nil {
		return patch.Patchset{}, err
	}
	parsed, err := patch.Parse(diff)
	if err != nil {
		return patch.Patchset{}, err
	}
	return parsed.Resolve(base)
}
