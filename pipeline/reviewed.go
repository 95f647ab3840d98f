package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/pipeline/checks"
	"github.com/countersign-dev/countersign/pipeline/code"
	"github.com/countersign-dev/countersign/pipeline/lookup"
	"github.com/countersign-dev/countersign/pipeline/record/canon"
	"github.com/countersign-dev/countersign/pipeline/record/ledger"
	"github.com/countersign-dev/countersign/pipeline/record/patch"
	"github.com/countersign-dev/countersign/pipeline/redact"
)

// A RedactedError says that the ledger has a patch only without its secrets.
type RedactedError struct {
	ID     string
	Sealed bool // it has the patch encrypted as well
}

func (e *RedactedError) Error() string {
	text := "the ledger has the patch of " + e.ID + " only without its secrets"
	if e.Sealed {
		text += ", and whole for whoever has its age identity in COUNTERSIGN_AGE_IDENTITY"
	}
	return text
}

func (e *RedactedError) Hint() string {
	return "countersign run " + e.ID + " --patch FILE  # the patch as it was proposed"
}

// A PatchSource is where the bytes of the patch that a transaction is about come from, beside the
// ledger: read again, put on a commit, and compared with what people were shown.
type PatchSource struct {
	Repo       code.Repository
	Given      map[string][]byte // by patch_id
	Identities string            // age identities that unseal patches, "" for none
	Diffs      Diffs             // nil reads canonical bytes alone
}

// Diffs reads what is no patch in canonical bytes (package gitpatch does). Whether it is the
// patch that was reviewed, the hash of what it makes says.
type Diffs interface {
	// Given puts a diff in any of Git's forms on a tree.
	Given(diff []byte, base fs.FS) (patch.Patchset, error)
	// Restored puts one that is kept without the secrets in the lines of base on base.
	Restored(diff []byte, base fs.FS) (patch.Patchset, error)
}

// Bytes returns the very bytes that a transaction is about: from the ledger, from
// who gave them, with the lines that the base commit has, or unsealed.
func (s PatchSource) Bytes(ctx context.Context, tree fs.FS, tx ledger.Transaction) ([]byte, error) {
	if diff, ok := s.Given[tx.PatchID()]; ok {
		return diff, nil
	}
	diff, err := lookup.StoredPatch(tree, tx)
	if err != nil || tx.Pointers.Proposal.PatchRedactedSHA256 == "" {
		return diff, err
	}
	if restored, ok := s.restored(ctx, tx, diff); ok {
		return restored, nil
	}
	return s.unsealed(tree, tx)
}

// restored puts the base commit's lines back into a patch that is stored
// without its secrets: enough, if they stood in no added line.
func (s PatchSource) restored(ctx context.Context, tx ledger.Transaction, diff []byte) ([]byte, bool) {
	base, err := s.Repo.Tree(ctx, tx.Pointers.Proposal.BaseCommit)
	if err != nil {
		return nil, false
	}
	if s.Diffs == nil {
		return nil, false
	}
	set, err := s.Diffs.Restored(diff, base)
	return set.Bytes(), err == nil && set.ID() == tx.PatchID()
}

// maxSealed bounds a patch that is unsealed, in bytes: its files can be larger
// than the diff that was proposed.
const maxSealed = 1 << 30

// unsealed decrypts a patch that was sealed.
func (s PatchSource) unsealed(tree fs.FS, tx ledger.Transaction) ([]byte, error) {
	p := tx.Pointers.Proposal
	if p.PatchSealedSHA256 == "" || strings.TrimSpace(s.Identities) == "" {
		return nil, &RedactedError{tx.TransactionID, p.PatchSealedSHA256 != ""}
	}
	sealed, err := ledger.ReadFile(tree, tx.TransactionID, ledger.SealedFile(tx.PatchID()))
	if err != nil {
		return nil, fmt.Errorf("reading the sealed patch: %w", err)
	}
	diff, err := redact.Unseal(sealed, s.Identities, maxSealed)
	if err != nil {
		return nil, fmt.Errorf("unsealing the patch of %s: %w", tx.TransactionID, err)
	}
	if canon.Hex(diff) != tx.PatchID() {
		return nil, &ledger.CorruptError{ID: tx.TransactionID, Err: errors.New("the sealed patch does not hash to its patch_id")}
	}
	return diff, nil
}

// On puts a transaction's patch on a commit.
func (s PatchSource) On(ctx context.Context, tree fs.FS, tx ledger.Transaction, commit string) (patch.Patchset, error) {
	diff, err := s.Bytes(ctx, tree, tx)
	if err != nil {
		return patch.Patchset{}, err
	}
	parsed, err := patch.Parse(diff)
	if err != nil {
		return patch.Patchset{}, err
	}
	base, err := s.Repo.Tree(ctx, commit)
	if err != nil {
		return patch.Patchset{}, err
	}
	return code.Put(parsed, base)
}

// Check returns the canonical bytes of a patch that somebody gives for a
// transaction, on the commit that was reviewed. Whether it is that patch, its
// hash says.
func (s PatchSource) Check(ctx context.Context, tx ledger.Transaction, raw []byte) ([]byte, error) {
	if tx.Pointers.Proposal == nil {
		return nil, lookup.NoPatch(tx.TransactionID)
	}
	base, err := s.Repo.Tree(ctx, tx.Pointers.Proposal.BaseCommit)
	if err != nil {
		return nil, err
	}
	if s.Diffs == nil {
		return nil, errors.New("nothing here reads a patch that is given")
	}
	set, err := s.Diffs.Given(raw, base)
	if err != nil {
		return nil, err
	}
	if set.ID() != tx.PatchID() {
		return nil, &patch.Error{Message: fmt.Sprintf("it is the patch %.12s, and %s is about %.12s", set.ID(), tx.TransactionID, tx.PatchID())}
	}
	return set.Bytes(), nil
}

// ChangedFiles returns the files of a proposal that a commit has otherwise than the
// review recorded.
func ChangedFiles(base fs.FS, p ledger.Proposal) ([]string, error) {
	read := func(name string, _ *patch.File) (*patch.File, error) { return patch.Lookup(base, name) }
	return others(p.TargetFiles, p.BaseSHA256, read)
}

// FitPatch puts the patch of a transaction, as it is recorded, on a commit. changed are the files that this has
// otherwise than the review found them: where there are some, an apply ends the transaction as superseded.
func FitPatch(base fs.FS, diff patch.Diff, tx ledger.Transaction) (set patch.Patchset, changed []string, err error) {
	changed, err = ChangedFiles(base, *tx.Pointers.Proposal)
	if err != nil || len(changed) > 0 {
		return set, changed, err
	}
	set, err = code.Put(diff, base)
	var unfit *patch.Error
	switch {
	case errors.As(err, &unfit): // the content is as it was: a mode, or a name beside it, changed
		return set, []string{unfit.Path}, nil
	case err == nil && set.ID() != tx.PatchID():
		changed = tx.Pointers.Proposal.TargetFiles
	}
	return set, changed, err
}

// Moved returns the files of a transaction that are not any more, at a commit, as the review found them.
func (s PatchSource) Moved(ctx context.Context, tree fs.FS, tx ledger.Transaction, commit string) ([]string, error) {
	base, err := s.Repo.Tree(ctx, commit)
	if err != nil {
		return nil, err
	}
	diff, err := s.Bytes(ctx, tree, tx)
	if errors.As(err, new(*RedactedError)) {
		return ChangedFiles(base, *tx.Pointers.Proposal)
	}
	if err != nil {
		return nil, err
	}
	parsed, err := patch.Parse(diff)
	if err != nil {
		return nil, &ledger.CorruptError{ID: tx.TransactionID, Err: err}
	}
	_, changed, err := FitPatch(base, parsed, tx)
	return changed, err
}

// ReadBack returns the files that are not as the patch leaves them.
func ReadBack(set patch.Patchset, read checks.ReadFile) ([]canon.Violation, error) {
	var changed []string
	for _, f := range set.Files() {
		got, err := read(f.Path, f.After)
		if _, unfit := err.(*patch.Error); err != nil && !unfit {
			return nil, err
		}
		if err != nil || !got.Equal(f.After) {
			changed = append(changed, f.Path)
		}
	}
	return violations(changed), nil
}

// ReadBackHashes is ReadBack by hashes alone, for a patch that the ledger has
// only redacted: modes and renames are then apply's word.
func ReadBackHashes(p ledger.Proposal, read checks.ReadFile) ([]canon.Violation, error) {
	changed, err := others(p.TargetFiles, p.AfterSHA256, read)
	return violations(changed), err
}

// others returns the files whose hash is another.
func others(files []string, hashes map[string]*string, read checks.ReadFile) ([]string, error) {
	var out []string
	for _, name := range files {
		got, err := read(name, nil)
		if _, unfit := err.(*patch.Error); err != nil && !unfit {
			return nil, err
		}
		if err != nil || !same(got.Sum(), hashes[name]) {
			out = append(out, name)
		}
	}
	return out, nil
}

func violations(files []string) []canon.Violation {
	var out []canon.Violation
	for _, name := range files {
		out = append(out, canon.Violation{RuleID: "READBACK", Path: name, Message: "is not as the approved patch leaves it"})
	}
	return out
}

// ComparePatch compares a patch with what its record tells about it: people were
// shown the record. Whoever can write the ledger could have named other files,
// or hidden some of the patch as if it were a secret. The Finder that it returns
// knows the patch's secrets.
func ComparePatch(tx ledger.Transaction, set patch.Patchset, known redact.Finder) (redact.Finder, error) {
	finder, found, clean := known.Learn(set)
	return finder, CompareFound(tx, set, found, clean)
}

// CompareFound is ComparePatch where what looks like secrets in the patch was found already;
// clean is the patch without them.
func CompareFound(tx ledger.Transaction, set patch.Patchset, found []redact.Finding, clean []byte) error {
	corrupt := func(why string) error { return &ledger.CorruptError{ID: tx.TransactionID, Err: errors.New(why)} }
	p := tx.Pointers.Proposal
	before, after := set.Hashes()
	var files []string
	for _, f := range set.Files() {
		files = append(files, f.Path)
	}
	if !slices.Equal(files, p.TargetFiles) || !maps.EqualFunc(before, p.BaseSHA256, same) || !maps.EqualFunc(after, p.AfterSHA256, same) {
		return corrupt("the files that it names are not those of its patch")
	}
	if len(found) > 0 && !p.ContainsSecrets {
		return &redact.FoundError{Found: found, Why: "the review did not find it, so nobody was asked about it"}
	}
	if p.PatchRedactedSHA256 != "" && canon.Sum(clean) != p.PatchRedactedSHA256 {
		return corrupt("what is stored of its patch is not that patch without secrets, by the rules of today")
	}
	return nil
}

// ByAuthors compares who wrote a pull request's own diff with what its record tells:
// their approvals do not count. Accounts are told apart by their numbers, as they can be
// renamed. Of another head with the same diff the committers may be others, and the
// verdict goes by those of the head as it is as well; of the same one nobody may be
// missing.
func ByAuthors(tx ledger.Transaction, author ledger.Actor, head string, committers []ledger.Actor) error {
	corrupt := func(why string) error { return &ledger.CorruptError{ID: tx.TransactionID, Err: errors.New(why)} }
	p := tx.Pointers.Proposal
	if tx.Proposer.Kind != author.Kind || tx.Proposer.ID != author.ID {
		return corrupt("its proposer is not the author of the pull request")
	}
	if p.HeadCommit != head {
		return nil
	}
	for _, who := range committers {
		if !slices.ContainsFunc(p.Authors, func(a ledger.Actor) bool { return a.Kind == who.Kind && a.ID == who.ID }) {
			return corrupt("its authors are not the committers of the pull request")
		}
	}
	return nil
}

// same compares hashes; nil is that of no file.
func same(a, b *string) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
